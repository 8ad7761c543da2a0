"""A quick look, by arrays, whether an order is complete; the judge of orders finds out what is not."""

import itertools

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.schedules import OpKind, Schedule
from sapp_ppb.schedules.op import WHOLE

# Ops of one cell and micro-batch by kind: a whole backward, or one that is split.
_WHOLE = tuple(kind in (OpKind.F, OpKind.B) for kind in OpKind)
_SPLIT = tuple(kind is not OpKind.B for kind in OpKind)


def op_columns(schedule: Schedule) -> NDArray[np.int32]:
    """
    Kind, cell, micro-batch and sequence chunk of every op, stage by stage; shape (4, ops).

    Raises
    ------
    OverflowError
        When a number is beyond 32 bits.

    Examples
    --------
    >>> from sapp_ppb.schedules import build_schedule
    >>> op_columns(build_schedule("1f1b", 1, 1, 2))[:3].tolist()  # F0 B0 F1 B1, all of cell 0
    [[0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 1, 1]]
    """
    numbers = itertools.chain.from_iterable(itertools.chain.from_iterable(schedule.rows))
    ops = sum(map(len, schedule.rows))
    return np.ascontiguousarray(np.fromiter(numbers, np.int32, 4 * ops).reshape(-1, 4).T)


def is_complete(schedule: Schedule) -> bool:
    """
    Whether every op is there once and in its place; False also where that takes a closer look.

    Orders with sequence chunks take one.
    """
    stages, slots = schedule.stages, schedule.cells * schedule.units
    lengths = [len(row) for row in schedule.rows]
    if (
        schedule.sequence_chunks > 1
        or len(lengths) != stages
        or not 0 < 2 * slots <= sum(lengths) <= 3 * slots
    ):
        return False
    try:
        kind, cell, micro_batch, chunk = op_columns(schedule).astype(np.int64)
    except OverflowError:  # a file may name any number
        return False
    inside = (cell >= 0) & (cell < schedule.cells) & (micro_batch >= 0) & (micro_batch < schedule.units)
    if not (inside & (chunk == WHOLE)).all():
        return False
    home = np.array([schedule.placement.stage_of(each, stages) for each in range(schedule.cells)])
    if not (home[cell] == np.repeat(np.arange(stages), lengths)).all():
        return False
    place = (kind * schedule.cells + cell) * schedule.units + micro_batch
    times = np.bincount(place, minlength=len(OpKind) * slots).reshape(len(OpKind), slots)
    right = [(times == np.array(kinds)[:, None]).all(axis=0) for kinds in (_WHOLE, _SPLIT)]
    return bool((right[0] | right[1]).all())
