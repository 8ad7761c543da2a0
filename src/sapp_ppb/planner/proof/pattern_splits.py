"""How a region of patterns is split: by a stage's load, its cells' loads, its backward times."""

import math

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.planner.proof.patterns import StagePatterns

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
# Which patterns of each stage a part of the search space may use.
Region = tuple[Mask, ...]
# For each stage its patterns in use, as indices, and their shares.
Shares = tuple[tuple[NDArray[np.int64], Floats], ...]
# For each stage and level, values of its patterns.
Features = list[list[list[Floats]]]


def pattern_features(patterns: list[StagePatterns]) -> Features:
    """
    List what stages are branched on, level by level.

    Loads are the time of forwards, which the layers alone decide; then come cells
    and entries; then backward times, which the recompute types decide.
    """
    return [_features(each) for each in patterns]


def _features(each: StagePatterns) -> list[list[Floats]]:
    chunks = range(each.forward_ms.shape[1])
    # Scores are compared, so layers count in milliseconds too: in any unit of time the same one is first.
    layer_ms = float(each.forward_ms.sum() / max(each.layers.sum(), 1))
    entries = [layer_ms * each.layers[:, :, k].sum(axis=1) for k in range(each.layers.shape[2])]
    return [
        [each.forward_ms.sum(axis=1)],
        [*(each.forward_ms[:, chunk] for chunk in chunks), *entries],
        [each.backward_ms.sum(axis=1), *(each.backward_ms[:, chunk] for chunk in chunks)],
    ]


def region_splits(features: Features, region: Region, shares: Shares) -> list[tuple[Region, Region]]:
    """Ways to split a region at a solution, the most promising first; none for a whole solution."""
    for level in range(3):
        found = []
        for stage, (used, share) in enumerate(shares):
            for values in features[stage][level]:
                # Shares add up to one by rounding only; a mean must not fall below all values.
                mean = float(share @ values[used] / share.sum())
                low = values[used][values[used] <= mean + 1e-9 * abs(mean)].max(initial=-math.inf)
                high = values[used].max(initial=-math.inf)
                if high > low + 1e-9 * abs(high):
                    # Distance of the mean to the nearest value that a pattern can have.
                    score = float(np.abs(values[region[stage]] - mean).min())
                    found.append((score, stage, values, low))
        if found:
            found.sort(key=lambda entry: -entry[0])
            return [_split(region, stage, values, low) for _, stage, values, low in found]
    return []


def _split(region: Region, stage: int, values: Floats, low: float) -> tuple[Region, Region]:
    """Patterns of a stage up to a value, and above it."""
    below = values <= low + 1e-9 * abs(low)
    sides = (region[stage] & below, region[stage] & ~below)
    left, right = ((*region[:stage], side, *region[stage + 1 :]) for side in sides)
    return left, right


def regions_without(region: Region, shares: Shares) -> list[Region]:
    """Split a region around one whole solution: together they hold all but that one."""
    rest, parts = list(region), []
    for stage, (used, _) in enumerate(shares):
        others = rest[stage].copy()
        others[used[0]] = False
        if others.any():
            parts.append((*rest[:stage], others, *rest[stage + 1 :]))
        only = np.zeros_like(others)
        only[used[0]] = True
        rest[stage] = only
    return parts
