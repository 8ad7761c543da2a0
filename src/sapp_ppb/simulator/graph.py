"""The ops of a schedule in an order in which each can be timed from those before it."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.problem import Problem
from sapp_ppb.schedules import OpKind, P2PMode, Placement, Schedule, check_schedule
from sapp_ppb.schedules.check import stuck_error
from sapp_ppb.simulator.complete import is_complete, op_columns
from sapp_ppb.simulator.order_kernel import sort_ops
from sapp_ppb.simulator.overlap import EXTRA, PairNodes, pair_nodes

Ints = NDArray[np.int32]
KINDS = len(OpKind)

# Below this many ops plain functions are done before a compiler is loaded.
PLAIN_OPS = 20_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Graph:
    """
    What waits for what, as arrays over nodes in topological order.

    A node is an op.  Only the two ops of an overlapped pair that really overlaps are
    six nodes together, see ``overlap.py``.  What a stage does after its last op, where it
    does anything, is one more node; these are the last ones, in the order of the stages.

    Attributes
    ----------
    schedule
        The order that the arrays stand for.
    stage
        Stage of each node; shape (nodes,).
    price
        Row of the price list, kind x cells + cell; shape (nodes,).
    before
        Position of the node before it on its stage, -1 for none; shape (nodes,).
    giver
        Position of the node whose result it needs, -1 for none; shape (nodes,).
    edge
        Edge that the result crosses, -1 when it stays on its stage; shape (nodes,).
    row_start
        Where each stage's ops begin in ``first`` and ``last``; shape (S + 1,).
    first, last
        Node with which each op begins and the one with which it ends, stage by stage
        in the order of the rows; shape (ops,).
    extra
        Number of nodes that stand for what is done after the last op, S or 0.
    """

    schedule: Schedule
    stage: Ints
    price: Ints
    before: Ints
    giver: Ints
    edge: Ints
    row_start: Ints
    first: Ints
    last: Ints
    extra: int = 0


def graph_of(problem: Problem) -> Graph:
    """
    Graph of a problem's order, with its messages and overlap, and what stages do after their last op.

    Raises
    ------
    ScheduleError
        When the order is incomplete or waits for itself.
    """
    overlapping = problem.overlap_factor > 0.0 and bool(problem.order.pairs)
    return build_graph(problem.order, problem.p2p_mode, overlapping=overlapping, working_on=problem.has_extra)


@dataclass(frozen=True, kw_only=True, eq=False)
class Inputs:
    """
    Where each op's input comes from; ops stage by stage in the order of the rows.

    Attributes
    ----------
    kind, cell, stage
        What and where each op is; shape (ops,).
    giver
        Op with whose end its input leaves, -1 for none; shape (ops,).
    edge
        Edge that the input crosses, -1 when it stays on its stage; shape (ops,).
    row_start
        Where each stage's ops begin; shape (S + 1,).
    """

    kind: Ints
    cell: Ints
    stage: Ints
    giver: Ints
    edge: Ints
    row_start: Ints


def inputs_of(schedule: Schedule, p2p_mode: P2PMode = P2PMode.ASYNC) -> Inputs:
    """Look up what each op of a complete order waits for; linear in ops."""
    columns = op_columns(schedule)
    row_start = np.cumsum([0, *map(len, schedule.rows)], dtype=np.int32)
    kind, cell = columns[:2]
    stage = np.repeat(np.arange(schedule.stages, dtype=np.int32), np.diff(row_start))
    giver = _givers(schedule, kind, cell, _units(schedule, columns))
    edge = _edges(np.where(giver >= 0, stage[giver], stage), stage, kind, schedule)
    # With one chunk a stage, Megatron sends between a forward and the backward behind it.
    if p2p_mode is P2PMode.BLOCKING and schedule.chunks > 1:
        giver = _held_back(giver, edge, kind, stage)
    return Inputs(kind=kind, cell=cell, stage=stage, giver=giver, edge=edge, row_start=row_start)


def op_graph(problem: Problem) -> Graph:
    """
    Graph of a problem's order in which every op is one node, pairs that overlap too.

    It says what waits for what, and not when: ``first`` and ``last`` are the same.
    """
    # The same words as above, so that both find the same graph in the cache.
    return build_graph(problem.order, problem.p2p_mode, overlapping=False, working_on=False)


@lru_cache(maxsize=8)
def build_graph(
    schedule: Schedule,
    p2p_mode: P2PMode = P2PMode.ASYNC,
    *,
    overlapping: bool = False,
    working_on: bool = False,
) -> Graph:
    """
    Sort the ops of a schedule topologically; linear in ops.

    Parameters
    ----------
    p2p_mode
        When a forward's output leaves.
    overlapping
        Whether the pairs of the order overlap; without, they are ops like any others.
    working_on
        Whether stages do something after their last op.

    Raises
    ------
    ScheduleError
        When the order is incomplete or waits for itself.
    """
    if not is_complete(schedule):
        check_schedule(schedule, overlapping=overlapping)
    ops = inputs_of(schedule, p2p_mode)
    before = np.arange(-1, len(ops.kind) - 1, dtype=np.int32)
    before[ops.row_start[:-1]] = -1
    together = np.zeros(len(ops.kind), dtype=np.bool_)
    if overlapping:
        together = _together(schedule, ops.row_start)
    order = _topological(schedule, ops.row_start, ops.giver, together, overlapping=overlapping)
    position = np.empty_like(order)
    position[order] = np.arange(len(order), dtype=np.int32)
    nodes = PairNodes(
        stage=ops.stage[order],
        price=(ops.kind * schedule.cells + ops.cell)[order].astype(np.int32),
        before=_moved(before, order, position),
        giver=_moved(ops.giver, order, position),
        edge=ops.edge[order],
        first=position,
        last=position,
    )
    if overlapping:
        nodes = pair_nodes(nodes, together[order], schedule.cells)
    if working_on:
        nodes = _working_on(nodes, schedule, ops.row_start)
    extra = schedule.stages if working_on else 0
    return Graph(schedule=schedule, row_start=ops.row_start, extra=extra, **vars(nodes))


def _working_on(nodes: PairNodes, schedule: Schedule, row_start: Ints) -> PairNodes:
    """Add a node behind the last op of every stage, priced in the stage's first cell."""
    stages = np.arange(schedule.stages, dtype=np.int32)
    # In either placement chunk 0 of stage s is cell s.
    added = (
        stages,
        EXTRA * schedule.cells + stages,
        nodes.last[row_start[1:] - 1],
        np.full_like(stages, -1),
        np.full_like(stages, -1),
    )
    there = (nodes.stage, nodes.price, nodes.before, nodes.giver, nodes.edge)
    columns = [np.concatenate(pair).astype(np.int32) for pair in zip(there, added, strict=True)]
    return PairNodes(
        stage=columns[0],
        price=columns[1],
        before=columns[2],
        giver=columns[3],
        edge=columns[4],
        first=nodes.first,
        last=nodes.last,
    )


def _units(schedule: Schedule, columns: Ints) -> Ints:
    """Piece of each op, counted through all micro-batches: m k + chunk."""
    micro_batch, chunk = columns[2], columns[3]
    k = schedule.sequence_chunks
    return np.asarray(micro_batch * k + chunk if k > 1 else micro_batch)


def _givers(schedule: Schedule, kind: Ints, cell: Ints, unit: Ints) -> Ints:
    """Index of the op whose result each op needs: the chain for F and B or I, the own I for W."""
    index = np.full((KINDS, schedule.cells, schedule.units), -1, dtype=np.int32)
    index[kind, cell, unit] = np.arange(len(kind), dtype=np.int32)
    # A cell runs B or I for a piece, never both.
    gradient = np.maximum(index[OpKind.B], index[OpKind.I])
    need = np.full_like(index, -1)
    need[OpKind.F, 1:] = index[OpKind.F, :-1]
    for backward in (OpKind.B, OpKind.I):
        need[backward, :-1] = gradient[1:]
        need[backward, -1] = index[OpKind.F, -1]
    need[OpKind.W] = index[OpKind.I]
    result: Ints = need[kind, cell, unit]
    return result


def _edges(giver_stage: Ints, stage: Ints, kind: Ints, schedule: Schedule) -> Ints:
    """Edge s joins stages s and s + 1; the last joins the last stage and the first."""
    low, high = np.minimum(giver_stage, stage), np.maximum(giver_stage, stage)
    wrap = high - low > 1
    if schedule.stages == 2 and schedule.placement is Placement.LOOP:
        # Between two stages, forwards 1 -> 0 and backwards 0 -> 1 are the wrap.
        forward = kind == OpKind.F
        wrap |= np.where(forward, giver_stage > stage, giver_stage < stage)
    edge = np.where(wrap, schedule.stages - 1, low)
    return np.where(giver_stage == stage, -1, edge).astype(np.int32)


def _held_back(giver: Ints, edge: Ints, kind: Ints, stage: Ints) -> Ints:
    """
    Have a forward that is sent leave with the backward right behind it on its stage.

    A stage that runs all its forwards first has no turns of a forward and a backward,
    and sends the last of them like the others.
    """
    forward = kind == OpKind.F
    # Behind the last forward there is no further one; a stage in turns has a backward before it.
    last = np.zeros(stage[-1] + 1, dtype=np.int64)
    np.maximum.at(last, stage[forward], np.flatnonzero(forward))
    first = np.full(stage[-1] + 1, len(kind))
    np.minimum.at(first, stage[~forward], np.flatnonzero(~forward))
    turns = (first < last)[stage]
    backward = (kind == OpKind.B) | (kind == OpKind.I)
    behind = np.append(backward[1:] & (stage[1:] == stage[:-1]), False) & turns
    waits = forward & (edge >= 0) & behind[giver]
    return np.where(waits, giver + 1, giver).astype(np.int32)


def _together(schedule: Schedule, row_start: Ints) -> NDArray[np.bool_]:
    """Whether each op is the forward of an overlapped pair; its backward comes right behind it."""
    forward = np.zeros(row_start[-1], dtype=np.bool_)
    for stage, start in enumerate(row_start[:-1]):
        forward[start + np.array(schedule.pairs_of(stage), dtype=np.int64)] = True
    return forward


def _topological(
    schedule: Schedule, row_start: Ints, giver: Ints, together: NDArray[np.bool_], *, overlapping: bool
) -> Ints:
    """Sort the ops of a complete order, or refuse one that waits for itself."""
    done = np.zeros(len(giver) + 1, dtype=np.bool_)
    done[-1] = True  # stands for what nobody has to make, -1
    pointers, order = row_start[:-1].copy(), np.empty_like(giver)
    if len(giver) > PLAIN_OPS:
        known = sort_ops(row_start, giver, together, done, pointers, order)
    else:
        # Lists are several times faster than arrays for one element at a time.
        lists = [each.tolist() for each in (row_start, giver, together, done, pointers, order)]
        known = sort_ops.python(*lists)
        pointers, order = (np.array(each, dtype=np.int32) for each in lists[-2:])
    if known < len(giver):
        check_schedule(schedule, overlapping=overlapping)  # names the cause, where the order alone is it
        stuck = enumerate(zip(pointers, row_start, row_start[1:], strict=False))
        waits = {stage: int(at - start) for stage, (at, start, end) in stuck if at < end}
        raise stuck_error(schedule, waits, "with p2p-mode blocking ")
    return order


def _moved(pointer: Ints, order: Ints, position: Ints) -> Ints:
    """Express pointers between ops in topological positions."""
    target = pointer[order]
    return np.where(target >= 0, position[target], -1).astype(np.int32)
