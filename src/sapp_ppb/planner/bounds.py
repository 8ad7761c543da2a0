"""Bounds that every plan obeys, computed before any search."""

import numpy as np

from sapp_ppb.planner.families import PathFamilies
from sapp_ppb.planner.segments import chain_segments
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.price import LayerTables, layer_tables, least_share_worked, splits_backward

# Beyond this many numbers the tables of runs cost more memory and time than the bound is worth.
_LARGEST_TABLE = 60_000_000


def lower_bound(problem: Problem) -> float:
    """
    Milliseconds below which no plan within the limits can be.

    The best of the work bound and, for one chunk, the path bound.
    """
    bounds = [work_bound(problem)]
    size = problem.stages * (problem.model.body_count + 1) ** 2
    if problem.interleave == 1 and size <= _LARGEST_TABLE:
        bounds.append(path_bound(problem))
    return max(bounds)


def work_bound(problem: Problem) -> float:
    """
    All work, in the fastest type of every layer, shared evenly by the stages.

    Stage s also waits for the first micro-batch to come up through the s cells
    before it, and for the last to go back down: its fewest layers, and HEAD and
    TAIL, are counted (whole backwards only; with sequence chunks one of them).  The overhead
    of a forward and a backward, for every sequence chunk, comes on top in every cell.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> work_bound(problem)  # two stages share 4 * 2 * 3 = 24; stage 1 waits for one layer's 3: (24 + 3) / 2
    13.5
    """
    tables = layer_tables(problem)
    usable = np.where(tables.considered, tables.backward_ms, np.inf).min(axis=1)
    each = tables.forward_ms + usable
    fixed = tables.fixed.forward_ms + tables.fixed.backward_ms
    work = float(each @ [layer.count for layer in problem.model.bodies]) + float(fixed.sum())
    waits = 0.0 if splits_backward(problem) else _least_waits(problem, tables, float(each.min()))
    overhead_ms = problem.cells * _overhead_ms(problem)
    busy = problem.micro_batches * (work * least_share_worked(problem) + overhead_ms)
    return (busy + waits / problem.sequence_chunks) / problem.stages


def _overhead_ms(problem: Problem) -> float:
    """Overhead of a forward and a backward of one micro-batch in a cell; a split backward has more."""
    return 2 * problem.sequence_chunks * problem.model.op_overhead_ms


def _least_waits(problem: Problem, tables: LayerTables, least_ms: float) -> float:
    """Sum over the stages of what each must wait at both ends together."""
    cell_ms = [
        tables.fixed.forward_ms[cell]
        + tables.fixed.backward_ms[cell]
        + problem.least_layers(cell) * least_ms
        + _overhead_ms(problem)
        for cell in range(problem.cells)
    ]
    first = [min(problem.cells_of(stage)) for stage in range(problem.stages)]
    return float(sum(sum(cell_ms[:cell]) for cell in first))


def path_bound(problem: Problem) -> float:
    """
    Smallest T at which some plan with one chunk keeps LB1 to LB4 on every stage.

    Runs use the relaxed times of ``segments``, so the answer is a bound.  Infinite
    when no split fits even so.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> round(path_bound(problem), 9)  # LB1 on stage 1: 3 + 4 * 3, the optimum (M + S - 1) * 3
    15.0
    """
    return PathFamilies(problem, chain_segments(problem)).bound()
