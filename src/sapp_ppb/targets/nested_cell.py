"""
Recompute of one cell that lists which count its first layers can say.

The types of its layers must fall along the chain, each within the one before, so
SELECTIVE and COMM can not both be there.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Layer, Recompute, RecomputeType

Ints = NDArray[np.int64]
# Layers of another type, MB that those hold more, ms that they work longer.
Change = tuple[int, float, float]
_CHAINS = tuple(
    (Recompute.FULL, Recompute.BOTH, middle, Recompute.NONE)
    for middle in (Recompute.SELECTIVE, Recompute.COMM)
)


def nested_cell(
    layers: Sequence[Layer],
    wanted: Ints,
    last: Mapping[int, Recompute],
    types: Collection[RecomputeType] = tuple(Recompute),
) -> Ints | None:
    """
    Change the types of as few layers of a cell as possible, so that they fall along the chain.

    Of equal numbers the one that adds least activation memory is taken, then the one
    that does least again.

    Parameters
    ----------
    layers
        BODY entries along the chain.
    wanted
        Layers of each entry under each type; shape (BODY layers, types).
    last
        Type that the last layer of an entry must have, by its index.
    types
        Types that the framework has.

    Returns
    -------
    ndarray or None
        Shape (BODY layers, types), nothing under a strategy; None when no types fall along
        the chain that the layers can have.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, layer_from_times
    >>> memory = {r: 9.0 - r for r in Recompute}
    >>> body = layer_from_times(
    ...     name="Dec", kind=LayerKind.BODY, count=6, forward_ms=1, activation_mb=memory)
    >>> nested_cell([body], np.array([[1, 2, 3, 0, 0]]), {}).tolist()  # SELECTIVE gives way to COMM
    [[1, 0, 5, 0, 0]]
    """
    chains = {tuple(r for r in chain if r in types) for chain in _CHAINS}
    found = [each for chain in sorted(chains) if (each := _along(chain, layers, wanted, last)) is not None]
    return min(found, key=lambda each: each[0])[1] if found else None


def _along(
    chain: Sequence[Recompute], layers: Sequence[Layer], wanted: Ints, last: Mapping[int, Recompute]
) -> tuple[Change, Ints] | None:
    """Let each entry use a run of the chain that begins where the run of the one before ends."""
    best: dict[int, tuple[Change, list[Ints]]] = {0: ((0, 0.0, 0.0), [])}
    for index, (layer, row) in enumerate(zip(layers, wanted, strict=True)):
        reached: dict[int, tuple[Change, list[Ints]]] = {}
        for start, (so_far, rows) in best.items():
            for high, low in _runs(start, len(chain), empty=not row.any()):
                moved = _within(chain[high : low + 1], layer, row, last.get(index))
                if moved is None:
                    continue
                change = (so_far[0] + moved[0][0], so_far[1] + moved[0][1], so_far[2] + moved[0][2])
                if low not in reached or change < reached[low][0]:
                    reached[low] = (change, [*rows, moved[1]])
        best = reached
    if not best:
        return None
    change, rows = min(best.values(), key=lambda each: each[0])
    return change, np.array(rows)


def _runs(start: int, stop: int, *, empty: bool) -> list[tuple[int, int]]:
    """First and last place of every run of a chain; an entry without layers leaves it where it is."""
    return (
        [(start, start)]
        if empty
        else [(high, low) for high in range(start, stop) for low in range(high, stop)]
    )


def _within(
    run: Sequence[Recompute], layer: Layer, row: Ints, last: Recompute | None
) -> tuple[Change, Ints] | None:
    """Move the layers of an entry to types of a run; None when they can not have them."""
    allowed = [r for r in run if r in layer.considered]
    kept = row.copy()
    if not row.any():
        return (0, 0.0, 0.0), kept
    change: Change = (0, 0.0, 0.0)
    for old in layer.types:
        if old not in run and row[old]:
            if not allowed:
                return None
            new = min(allowed, key=lambda r: _cost(layer, old, r))
            change = _moved(kept, layer, old, new, int(row[old]), change)
    if last is None:
        return change, kept
    if last not in allowed or run[-1] is not last:
        return None
    if not kept[last]:  # one layer of the type that comes closest
        old = min((r for r in run if kept[r]), key=lambda r: _cost(layer, r, last))
        change = _moved(kept, layer, old, last, 1, change)
    return change, kept


def _cost(layer: Layer, old: RecomputeType, new: Recompute) -> tuple[float, float]:
    """MB that a layer holds more, and ms that it works longer; holding less is worth nothing."""
    more_mb = max(0.0, layer.activation(new) - layer.activation(old))
    return more_mb, layer.backward_ms[new] - layer.backward_ms[old]


def _moved(
    counts: Ints, layer: Layer, old: RecomputeType, new: Recompute, number: int, change: Change
) -> Change:
    """Move layers from one type to another, and add what that changes."""
    counts[old] -= number
    counts[new] += number
    added_mb, added_ms = _cost(layer, old, new)
    return change[0] + number, change[1] + number * added_mb, change[2] + number * added_ms
