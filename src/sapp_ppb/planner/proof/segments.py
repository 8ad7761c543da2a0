"""
The least time that a run of layers takes on a stage, V = 1, memory included.

For every stage and every run of layers i..j-1 of the chain: the shortest
forward + backward time of one micro-batch under the stage's memory limit, with
the choice of recompute types relaxed to shares of layers.  The relaxation is the
linear multiple-choice knapsack, solved by taking steps along each layer's lower
hull of time against activation memory, cheapest first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.fix import PlaceRule
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.memory import problem_rows
from sapp_ppb.simulator.price import LayerTables, layer_tables

Floats = NDArray[np.float64]

# Memory fits within this share of its limit, as the simulator says.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Segments:
    """
    Times of every run of layers on every stage.

    Attributes
    ----------
    forward_ms, total_ms
        Forward, and least forward + backward; shape (S, N + 1, N + 1), indexed
        [stage][first layer][layer after the last]; infinite where the run does not fit.
    """

    forward_ms: Floats
    total_ms: Floats


def chain_segments(problem: Problem) -> Segments:
    """
    Price every run of layers on every stage of a problem with one chunk.

    O(S N^2 K), N layers of K entries.
    """
    tables, runs = layer_tables(problem), _runs(problem)
    forward = runs @ tables.forward_ms
    least_backward = _least_backward(problem, tables, runs)
    share, allowed = shares(problem), allowed_runs(problem)
    forward_ms, total_ms = np.empty(share.shape), np.empty(share.shape)
    for stage in range(problem.stages):
        backward = least_backward(share[stage])
        forward_ms[stage] = forward + tables.fixed.forward_ms[stage]
        total_ms[stage] = np.where(
            ~allowed[stage], np.inf, forward_ms[stage] + backward + tables.fixed.backward_ms[stage]
        )
    return Segments(forward_ms=forward_ms, total_ms=total_ms)


def _least_backward(problem: Problem, tables: LayerTables, runs: Floats) -> Callable[[Floats], Floats]:
    """Tell backward times of all runs within shares of memory; both of shape (N + 1, N + 1)."""
    rule = None if problem.fix is None else problem.fix.places
    if rule is None:
        return partial(_Hull(tables).least_backward, runs)
    held = _placed(rule, tables.activation_mb, runs)
    lacking = _placed(rule, (~tables.considered).astype(float), runs)
    time = np.where(lacking > 0, np.inf, _placed(rule, tables.backward_ms, runs))

    def least_backward(share_mb: Floats) -> Floats:
        return np.where(held <= share_mb, time, np.inf)

    return least_backward


def _placed(rule: PlaceRule, by_type: Floats, runs: Floats) -> Floats:
    """
    Sum of what the layers of each run cost under a rule of places; shape (N + 1, N + 1).

    ``by_type`` has shape (BODY layers, types).
    """
    layers = len(runs) - 1
    none, more = by_type[:, Recompute.NONE], by_type[:, rule.recompute] - by_type[:, Recompute.NONE]
    kind = runs[np.arange(layers), np.arange(1, layers + 1)].argmax(axis=1)
    extra = np.where(kind < len(by_type) - rule.entries_left, more[kind], 0.0)
    total = runs @ none
    for start in range(layers):
        picked = np.zeros(layers)
        places = rule.picked(start, layers)
        picked[places] = extra[places]
        total[start, 1:] += np.cumsum(picked)
    return total


def allowed_runs(problem: Problem) -> NDArray[np.bool_]:
    """Find the runs that each stage may hold, by their layers alone; shape (S, N + 1, N + 1)."""
    layers = np.arange(problem.model.body_count + 1)
    lengths = layers[None, :] - layers[:, None]
    if problem.fix is not None and problem.fix.layers is not None:
        stops = np.cumsum(problem.fix.layers)
        starts = stops - problem.fix.layers
        at = np.arange(problem.stages)
        allowed = np.zeros((problem.stages, *lengths.shape), dtype=bool)
        allowed[at, starts, stops] = True
        return allowed
    least = np.array([problem.least_layers(stage) for stage in range(problem.stages)])
    return np.asarray(lengths >= least[:, None, None])


def shares(problem: Problem, again_mb: float = 0.0) -> Floats:
    """
    Activation memory that one micro-batch of a run may hold; shape (S, N + 1, N + 1).

    With one chunk the live micro-batches share what limit, constant, parameters and
    the fixed layers' activations leave, less the working set where it counts, and less what
    an op needs for a moment.
    """
    tables = layer_tables(problem)
    parameters = _runs(problem) @ tables.parameter_mb
    # What is over its limit by rounding alone fits, as for the simulator: a share of the limit, which may be
    # much more than what a run is left of it.
    limits = np.multiply(problem.limit_per_stage_mb, 1 + _ROUNDING)
    room = limits - problem.constant_per_stage_mb - tables.fixed.parameter_mb
    share = np.full((problem.stages, *parameters.shape), np.inf)
    for stage, live in enumerate(problem_rows(problem)):
        for lives, besides in zip(
            live.rows[:, 0], live.totals(np.zeros(1), np.array([again_mb])), strict=True
        ):
            free = room[stage] - parameters - besides
            share[stage] = np.minimum(share[stage], free / lives)
    return np.asarray(share - tables.fixed.activation_mb[:, None, None])


def _runs(problem: Problem) -> Floats:
    """Layers of each BODY entry among layers i..j-1; shape (N + 1, N + 1, entries)."""
    counts = [layer.count for layer in problem.model.bodies]
    each = np.eye(len(counts))[np.repeat(range(len(counts)), counts)]
    upto = np.vstack([np.zeros(len(counts)), np.cumsum(each, axis=0)])
    return np.asarray(np.maximum(upto[None, :, :] - upto[:, None, :], 0.0))


class _Hull:
    """Lower hulls of backward time against activation memory, one a BODY entry."""

    def __init__(self, tables: LayerTables) -> None:
        hulls = [
            lower_hull(tables.activation_mb[k][usable], tables.backward_ms[k][usable])
            for k, usable in enumerate(tables.considered)
        ]
        self.start_mb = np.array([hull[0][0] for hull in hulls])
        self.start_ms = np.array([hull[0][1] for hull in hulls])
        steps = [
            ((after[1] - before[1]) / (before[0] - after[0]), k, before[0] - after[0], after[1] - before[1])
            for k, hull in enumerate(hulls)
            for before, after in pairwise(hull)
        ]
        self.steps = sorted(steps)

    def least_backward(self, runs: Floats, share_mb: Floats) -> Floats:
        """Backward time of each run within each share of activation memory; infinite if none fits."""
        time = runs @ self.start_ms
        over = runs @ self.start_mb - share_mb
        for rate, k, saved_mb, _ in self.steps:
            relieved = np.clip(over, 0.0, runs[..., k] * saved_mb)
            time = time + relieved * rate
            over = over - relieved
        return np.asarray(np.where(over > 0.0, np.inf, time))


def lower_hull(memory_mb: Floats, time_ms: Floats) -> list[tuple[float, float]]:
    """
    Corners of the lower convex hull, from the fastest point to the one with least memory.

    Examples
    --------
    >>> lower_hull(np.array([10.0, 6.0, 5.0, 1.0]), np.array([1.0, 4.0, 2.0, 5.0]))
    [(10.0, 1.0), (5.0, 2.0), (1.0, 5.0)]
    """
    points = sorted(zip(time_ms.tolist(), memory_mb.tolist(), strict=True))
    hull: list[tuple[float, float]] = []
    for time, memory in points:
        if hull and memory >= hull[-1][0]:
            continue
        while len(hull) >= 2 and _rate(hull[-2], hull[-1]) >= _rate(hull[-1], (memory, time)):
            hull.pop()
        hull.append((memory, time))
    return hull


def _rate(before: tuple[float, float], after: tuple[float, float]) -> float:
    """Milliseconds paid for a MB saved."""
    return (after[1] - before[1]) / (before[0] - after[0])
