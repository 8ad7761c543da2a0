"""The ops of a schedule in an order in which each can be timed from those before it."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.schedules import OpKind, Placement, Schedule, check_schedule

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
KINDS = len(OpKind)


@dataclass(frozen=True, kw_only=True, eq=False)
class Graph:
    """
    What waits for what, as arrays over ops in topological order.

    Attributes
    ----------
    schedule
        The order that the arrays stand for.
    stage
        Stage of each op; shape (ops,).
    price
        Row of the price list, kind x cells + cell; shape (ops,).
    before
        Position of the op before it on its stage, -1 for none; shape (ops,).
    giver
        Position of the op whose result it needs, -1 for none; shape (ops,).
    edge
        Edge that the result crosses, -1 when it stays on its stage; shape (ops,).
    row_start
        Where each stage's ops begin in ``position``; shape (S + 1,).
    position
        Position of each op, stage by stage in the order of the rows; shape (ops,).
    """

    schedule: Schedule
    stage: Ints
    price: Ints
    before: Ints
    giver: Ints
    edge: Ints
    row_start: Ints
    position: Ints


@lru_cache(maxsize=8)
def build_graph(schedule: Schedule) -> Graph:
    """
    Sort the ops of a schedule topologically; linear in ops.

    Raises
    ------
    ScheduleError
        When the order is incomplete or waits for itself.
    """
    check_schedule(schedule)
    ops = np.array([op for row in schedule.rows for op in row], dtype=np.int32)
    kind, cell, micro_batch = ops.T
    row_start = np.cumsum([0, *map(len, schedule.rows)], dtype=np.int32)
    stage = np.repeat(np.arange(schedule.stages, dtype=np.int32), np.diff(row_start))
    before = np.arange(-1, len(ops) - 1, dtype=np.int32)
    before[row_start[:-1]] = -1
    giver = _givers(schedule, kind, cell, micro_batch)
    giver_stage = np.where(giver >= 0, stage[giver], stage)
    order = _topological(row_start, giver)
    position = np.empty_like(order)
    position[order] = np.arange(len(order), dtype=np.int32)
    return Graph(
        schedule=schedule,
        stage=stage[order],
        price=(kind * schedule.cells + cell)[order].astype(np.int32),
        before=_moved(before, order, position),
        giver=_moved(giver, order, position),
        edge=_edges(giver_stage, stage, kind, schedule)[order],
        row_start=row_start,
        position=position,
    )


def _givers(schedule: Schedule, kind: Ints, cell: Ints, micro_batch: Ints) -> Ints:
    """Index of the op whose result each op needs: the chain for F and B or I, the own I for W."""
    index = np.full((KINDS, schedule.cells, schedule.micro_batches), -1, dtype=np.int32)
    index[kind, cell, micro_batch] = np.arange(len(kind), dtype=np.int32)
    # A cell runs B or I for a micro-batch, never both.
    gradient = np.maximum(index[OpKind.B], index[OpKind.I])
    need = np.full_like(index, -1)
    need[OpKind.F, 1:] = index[OpKind.F, :-1]
    for backward in (OpKind.B, OpKind.I):
        need[backward, :-1] = gradient[1:]
        need[backward, -1] = index[OpKind.F, -1]
    need[OpKind.W] = index[OpKind.I]
    result: Ints = need[kind, cell, micro_batch]
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


def _topological(row_start: Ints, giver: Ints) -> Ints:
    """Round after round, each stage runs as far as it can; neighbours stay close in memory."""
    needs, starts = giver.tolist(), row_start.tolist()
    done = [False] * len(needs)
    order: list[int] = []
    pointers = starts[:-1]
    while len(order) < len(needs):
        for stage, end in enumerate(starts[1:]):
            at = pointers[stage]
            while at < end and (needs[at] < 0 or done[needs[at]]):
                done[at] = True
                order.append(at)
                at += 1
            pointers[stage] = at
    return np.array(order, dtype=np.int32)


def _moved(pointer: Ints, order: Ints, position: Ints) -> Ints:
    """Express pointers between ops in topological positions."""
    target = pointer[order]
    return np.where(target >= 0, position[target], -1).astype(np.int32)
