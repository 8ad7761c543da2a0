"""Bounds that every plan obeys, computed before any search."""

import math
import time

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.planner.proof.families import PathFamilies
from sapp_ppb.planner.proof.segments import chain_segments, has_few_runs
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.price import (
    LayerTables,
    layer_tables,
    least_share_worked,
    most_work_ms,
    splits_backward,
)

Floats = NDArray[np.float64]

# Times the bound by work that runs are priced up to first; what is left out is looked at when it counts.
_FIRST_LOOK = 1.5


def lower_bound(problem: Problem, deadline: float = math.inf) -> float:
    """
    Milliseconds below which no plan within the limits can be.

    The best of the work bound and, for one chunk, the path bound.

    Parameters
    ----------
    deadline
        Time of ``time.monotonic`` from which on the bound may be lower.
    """
    bounds = [work_bound(problem)]
    if problem.interleave == 1 and has_few_runs(problem):
        bounds.append(path_bound(problem, deadline))
    return max(bounds)


def work_bound(problem: Problem) -> float:
    """
    All work, in the fastest type of every layer, shared by the stages as their speeds allow.

    Stage s of speed v_s does at most v_s (T - w_s) of it, w_s being what else it spends
    the step on, so T is at least the work and all v_s w_s over the sum of the speeds.
    Stage s waits for the first micro-batch to come up through the s cells
    before it, and for the last to go back down: its fewest layers, and HEAD and
    TAIL, are counted (whole backwards only; with sequence chunks one of them), and what
    stage 0 does after its last op comes behind.  What s itself does after its last op may be
    longer than both.  The overhead of a forward and a backward, for every sequence chunk,
    comes on top in every cell.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> work_bound(problem)  # two stages share 4 * 2 * 3 = 24; stage 1 waits for one layer's 3: (24 + 3) / 2
    13.5
    """
    return _work_bound(problem, _idle_ms(problem))


def any_order_bound(problem: Problem) -> float:
    """
    Work bound that holds in whatever order the devices of the stages stand.

    No device is faster than the fastest, and the sum of v_s w_s is least when the slowest
    device waits longest.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4,
    ...                   stage_speed=(0.5, 1.0))
    >>> any_order_bound(problem)  # speeds 1.5 share 24; at best the slower one waits for 3: (24 + 1.5) / 1.5
    17.0
    """
    idle_ms = _idle_ms(problem.changed(stage_speed=max(problem.speed_per_stage)))
    slowest_first = problem.changed(stage_speed=tuple(sorted(problem.speed_per_stage)))
    return _work_bound(slowest_first, np.sort(idle_ms)[::-1])


def _work_bound(problem: Problem, idle_ms: Floats) -> float:
    """Bound by work, given what each stage spends the step on besides."""
    tables, speeds = layer_tables(problem), np.array(problem.speed_per_stage)
    fixed = tables.fixed.forward_ms + tables.fixed.backward_ms
    work = float(_least_times(tables) @ [layer.count for layer in problem.model.bodies]) + float(fixed.sum())
    overhead_ms = problem.interleave * _overhead_ms(problem)
    busy = problem.micro_batches * (work * least_share_worked(problem) + overhead_ms * float(speeds.sum()))
    return float((busy + speeds @ idle_ms) / speeds.sum())


def bound_within(problem: Problem, cutoff_ms: float, known_ms: float) -> float:
    """
    Bound a way among plans as fast as a cutoff; infinite where another way has all of its plans.

    A stage that is done within the cutoff has at most so many layers.  A rule that picks the
    first N layers of a cell then picks at least N of every so many, and one that picks
    more than that picks all, as the rule of the next smaller N does.

    Parameters
    ----------
    known_ms
        A bound that is known already.
    """
    rule = None if problem.fix is None else problem.fix.places
    if rule is None or rule.first is None or math.isinf(cutoff_ms):
        return known_ms
    tables = layer_tables(problem)
    none, more = tables.backward_ms[:, Recompute.NONE], tables.backward_ms[:, rule.recompute]
    least = float((tables.forward_ms + np.minimum(none, more)).min())
    stage_ms = float(most_work_ms(problem, cutoff_ms * (1 + 1e-9)).max())
    most = max(1, math.floor(stage_ms / least + 1e-9))
    least_first = rule.first // rule.chunks  # dealt layers differ by one from chunk to chunk
    if least_first > most:
        return math.inf
    bodies = problem.model.bodies
    subject = len(bodies) - rule.entries_left
    never = sum(layer.count for layer in bodies[subject:])
    picked = max(0.0, problem.model.body_count * least_first / most - never)
    extra = max(0.0, float((more - none)[:subject].min()))
    share = problem.micro_batches * least_share_worked(problem) / sum(problem.speed_per_stage)
    return max(known_ms, work_bound(problem) + share * picked * extra)


def _least_times(tables: LayerTables) -> Floats:
    """Time of a layer of each entry in its fastest type; shape (BODY layers,)."""
    return np.asarray(tables.forward_ms + np.where(tables.considered, tables.backward_ms, np.inf).min(axis=1))


def _idle_ms(problem: Problem) -> Floats:
    """Find what each stage waits for or does after its last op, at least; shape (S,)."""
    extra_ms = np.array(problem.extra_per_stage_ms)
    if splits_backward(problem):
        return extra_ms
    waits = _least_waits(problem) / problem.sequence_chunks
    return np.asarray(np.maximum(waits + extra_ms[0], extra_ms))


def _overhead_ms(problem: Problem) -> float:
    """Overhead of a forward and a backward of one micro-batch in a cell; a split backward has more."""
    return 2 * problem.sequence_chunks * problem.model.op_overhead_ms


def _least_waits(problem: Problem) -> Floats:
    """Find what each stage must wait at both ends together; shape (S,)."""
    tables = layer_tables(problem)
    least_ms = float(_least_times(tables).min())
    cell_ms = [
        (
            tables.fixed.forward_ms[cell]
            + tables.fixed.backward_ms[cell]
            + problem.least_layers(cell) * least_ms
        )
        / problem.speed_per_cell[cell]
        + _overhead_ms(problem)
        for cell in range(problem.cells)
    ]
    first = [min(problem.cells_of(stage)) for stage in range(problem.stages)]
    return np.array([sum(cell_ms[:cell]) for cell in first])


def path_bound(problem: Problem, deadline: float = math.inf) -> float:
    """
    Smallest T at which some plan with one chunk keeps LB1 to LB4 on every stage.

    Runs use the relaxed times of ``segments``, so the answer is a bound.  Infinite
    when no split fits even so.

    Parameters
    ----------
    deadline
        As of ``lower_bound``.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> round(path_bound(problem), 9)  # LB1 on stage 1: 3 + 4 * 3, the optimum (M + S - 1) * 3
    15.0
    """
    priced_ms = _FIRST_LOOK * work_bound(problem) or math.inf
    while True:
        segments = chain_segments(problem, priced_ms)
        bound = PathFamilies(problem, segments).bound(deadline)
        # A chain as fast as that uses no run that was left out.
        if bound <= priced_ms or segments.is_whole:
            return bound
        if time.monotonic() > deadline:
            return priced_ms
        priced_ms *= 2
