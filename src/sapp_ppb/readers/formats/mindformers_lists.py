"""
What the lists of MindFormers mean: offset, and counts of recomputed layers.

The inverse of ``writers.mindformers``.  Layers stand in a cell in the order of the
chain, whatever their kind, and each list counts from the first of them.  A layer that
``recompute`` counts is FULL, whatever else counts it; one that both other lists count
is BOTH.  Faults are ValueErrors that start behind the name of the list.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs.checks import LARGEST_COUNT, shown
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.targets import plan_from_types
from sapp_ppb.targets.mindformers.counts import dealt, types_counted

Ints = NDArray[np.int64]
_SHAPES = "a list with a number for each of the {S} stages, or {V} such lists, one for each chunk"


def layers_from_offset(offset: object, problem: Problem) -> Ints:
    """
    Layers of each cell: N div (S x V) and its offset.

    Parameters
    ----------
    offset
        0, a list of S numbers, which then hold for every chunk, or V lists of S.

    Returns
    -------
    ndarray
        Shape (V, S), indexed ``[chunk][stage]``.

    Raises
    ------
    ValueError
        If it has another form, leaves a cell less than nothing, or does not add up to
        N mod (S x V).

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=7, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=3, micro_batches=4)
    >>> layers_from_offset([1, -1, 1], problem).tolist()  # 7 div 3 = 2 each
    [[3, 1, 3]]
    """
    count, cells = problem.model.body_count, problem.cells
    each, rest = divmod(count, cells)
    rows = _rows(offset, problem, allowed="0, " + _SHAPES)
    layers = np.array(rows, dtype=np.int64) + each
    for chunk, stage in np.argwhere(layers < 0).tolist():
        raise ValueError(
            f"leaves {layers[chunk, stage]} layers for stage {stage} chunk {chunk}: "
            f"{count} div {cells} = {each} and {rows[chunk][stage]}; give at least {-each}"
        )
    found = int(layers.sum()) - each * cells
    if found != rest:
        chunks = f", over {problem.interleave} chunks" if problem.interleave > 1 else ""
        wanted = f"{count} mod {cells} = {rest}{chunks}"
        raise ValueError(f"must add up to {wanted} (got {found}), so that each layer has a place")
    return layers


def _rows(offset: object, problem: Problem, *, allowed: str) -> list[list[int]]:
    """Lay an offset out as V rows of S."""
    chunks, stages = problem.interleave, problem.stages
    if not isinstance(offset, bool) and offset == 0:
        return [[0] * stages] * chunks
    if isinstance(offset, list):
        rows = offset if any(isinstance(row, list) for row in offset) else [offset] * chunks
        if len(rows) == chunks and all(_is_row(row, stages) for row in rows):
            return [[int(number) for number in row] for row in rows]
    raise ValueError(f"must be {allowed.format(S=stages, V=chunks)} (got {_found(offset, _is_whole)})")


def _found(value: object, is_right: Callable[[object], bool]) -> str:
    """Show what was found; of lists that are cut off also the first entry that is wrong."""
    said = shown(value)
    if not isinstance(value, list) or not said.endswith("..."):
        return said
    rows = [row if isinstance(row, list) else [row] for row in value]
    wrong = (entry for row in rows for entry in row if not is_right(entry))
    return ", ".join([said, *(f"with {shown(entry)}" for entry in islice(wrong, 1))])


def _is_row(row: object, stages: int) -> bool:
    return isinstance(row, list) and len(row) == stages and all(_is_whole(number) for number in row)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_COUNT


def counts_from_list(value: object, layers: Ints) -> Ints:
    """
    Layers that a recompute list counts in each cell.

    Parameters
    ----------
    value
        None, 0 or false for none and true for all; a list of S counts, each dealt over
        the chunks of its stage in turn; or V entries, at least one of them a list of S,
        the others that or a bool.  A bool in a list stands for none or all.
    layers
        Layers of each cell; shape (V, S).

    Returns
    -------
    ndarray
        Shape (V, S).

    Raises
    ------
    ValueError
        If it has another form, or counts more layers than there are.

    Examples
    --------
    >>> counts_from_list([3, 1], np.array([[1, 2], [4, 2]])).tolist()  # stage 0: one here, two there
    [[1, 1], [2, 0]]
    >>> counts_from_list([True, [0, 2]], np.array([[1, 2], [4, 2]])).tolist()
    [[1, 2], [0, 2]]
    """
    chunks, stages = layers.shape
    if isinstance(value, bool):
        return layers if value else np.zeros_like(layers)
    if value is None or value == 0:
        return np.zeros_like(layers)
    if isinstance(value, list) and len(value) == stages and all(_is_count(entry) for entry in value):
        counts = _counted(value, layers.sum(axis=0).tolist(), "stage {}")
        return np.array(dealt(counts, layers.tolist()), dtype=np.int64)
    if _are_count_rows(value, chunks, stages):
        rows = [[row] * stages if isinstance(row, bool) else row for row in value]
        return np.array(
            [
                _counted(row, of_chunk, f"stage {{}} chunk {chunk}")
                for chunk, (row, of_chunk) in enumerate(zip(rows, layers.tolist(), strict=True))
            ]
        )
    allowed = f"true, false, {_SHAPES.format(S=stages, V=chunks)}"
    raise ValueError(f"must be {allowed} (got {_found(value, _is_count)})")


def _is_count(value: object) -> bool:
    return isinstance(value, bool) or (_is_whole(value) and isinstance(value, int) and value >= 0)


def _are_count_rows(value: object, chunks: int, stages: int) -> TypeGuard[list[bool | list[int]]]:
    """Whether each chunk has its row; bools alone would be read as one a stage."""
    return (
        isinstance(value, list)
        and len(value) == chunks
        and any(isinstance(row, list) for row in value)
        and all(
            isinstance(row, bool)
            or (isinstance(row, list) and len(row) == stages and all(_is_count(entry) for entry in row))
            for row in value
        )
    )


def _counted(row: Sequence[int], layers: Sequence[int], place: str) -> list[int]:
    """Write out the bools of a row, and refuse counts of more than there are."""
    counts = []
    for stage, (entry, most) in enumerate(zip(row, layers, strict=True)):
        count = (most if entry else 0) if isinstance(entry, bool) else entry
        if count > most:
            raise ValueError(
                f"counts {count} layers on {place.format(stage)}, which has {most}; count no more"
            )
        counts.append(count)
    return counts


def plan_from_lists(
    problem: Problem, layers: Ints, recompute: Ints, select_recompute: Ints, select_comm_recompute: Ints
) -> Plan:
    """
    Plan that MindFormers would run.

    Parameters
    ----------
    layers, recompute, select_recompute, select_comm_recompute
        Layers of each cell, and how many of its first ones each list counts; shape (V, S).

    Raises
    ------
    InputError
        If it is no plan of the problem: a cell too empty, or a type that is not given.
    """
    types = types_counted(
        *(rows.tolist() for rows in (layers, recompute, select_recompute, select_comm_recompute))
    )
    return plan_from_types(problem, types)
