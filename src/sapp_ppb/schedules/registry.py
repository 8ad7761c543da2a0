"""Every schedule by its name: one line a schedule."""

from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules.gpipe import gpipe
from sapp_ppb.schedules.interleaved import MicroBatchGroup, interleaved
from sapp_ppb.schedules.interleaved_less_memory import interleaved_less_memory
from sapp_ppb.schedules.one_f_one_b import one_f_one_b
from sapp_ppb.schedules.op import Schedule
from sapp_ppb.schedules.wording import check_sizes, one_of


class ScheduleName(StrEnum):
    """Name of a schedule as files and commands write it."""

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"
    INTERLEAVED_LESS_MEMORY = "interleaved-less-memory"


class _Entry(NamedTuple):
    """A generator and which sizes it takes besides stages and micro-batches."""

    generator: Callable[..., Schedule]
    takes_chunks: bool
    takes_group: bool


_SCHEDULES = {
    ScheduleName.GPIPE: _Entry(gpipe, takes_chunks=False, takes_group=False),
    ScheduleName.ONE_F_ONE_B: _Entry(one_f_one_b, takes_chunks=False, takes_group=False),
    ScheduleName.INTERLEAVED: _Entry(interleaved, takes_chunks=True, takes_group=True),
    ScheduleName.INTERLEAVED_LESS_MEMORY: _Entry(
        interleaved_less_memory, takes_chunks=True, takes_group=False
    ),
}


# More ops than this need gigabytes and minutes; a typo is likelier than a wish.
_MOST_OPS = 4_000_000


def ops_fault(stages: int, chunks: int, micro_batches: int) -> str | None:
    """
    Fault of sizes that give more ops than anyone plans for.

    Examples
    --------
    >>> ops_fault(16, 2, 32)  # 2 x 16 x 2 x 32 = 2,048 ops
    >>> ops_fault(4, 1, 10**6)[:75]  # 2 x 4 x 10^6
    'stages x interleave x micro-batches is too large: 8,000,000 ops of 4,000,00'
    """
    ops = 2 * stages * chunks * micro_batches
    if ops <= _MOST_OPS:
        return None
    return (
        f"stages x interleave x micro-batches is too large: {ops:,} ops of {_MOST_OPS:,} at most; "
        "plan with fewer micro-batches"
    )


def build_schedule(
    name: str, stages: int, chunks: int, micro_batches: int, group: MicroBatchGroup = None
) -> Schedule:
    """
    Build a schedule by its name.

    Parameters
    ----------
    name
        A ``ScheduleName`` or its text.
    stages, chunks, micro_batches
        S, V and M, each at least 1.
    group
        Micro-batch group of ``interleaved``; None is its default, and the only
        choice elsewhere.

    Returns
    -------
    Schedule
        The order; the same object when asked again for the same.

    Raises
    ------
    ScheduleError
        If the name is unknown, the schedule does not exist for these sizes, or they
        give more than 4 million ops.

    Examples
    --------
    >>> print(build_schedule("1f1b", 2, 1, 2).to_csv(), end="")
    0F0,0F1,0B0,0B1
    1F0,1B0,1F1,1B1
    """
    known = _known(name)
    check_sizes(known, stages=stages, chunks=chunks, micro_batches=micro_batches)
    entry = _SCHEDULES[known]
    fault = ops_fault(int(stages), int(chunks), int(micro_batches))
    if fault:
        raise ScheduleError(f"{known}: {fault}")
    if chunks > 1 and not entry.takes_chunks:
        raise ScheduleError(f"{known}: chunks must be 1 (got {chunks}); use {ScheduleName.INTERLEAVED}")
    if group is not None and not entry.takes_group:
        raise ScheduleError(
            f"{known}: takes no --micro-batch-group (got {group}); "
            f"leave it out or use {ScheduleName.INTERLEAVED}"
        )
    # The group's type is part of the cache's key: True equals 1, but is no group.
    return _built(known, int(stages), int(chunks), int(micro_batches), group)


def default_name(chunks: int) -> ScheduleName:
    """
    Name of the schedule that is meant when none is given.

    Examples
    --------
    >>> default_name(1).value, default_name(2).value
    ('1f1b', 'interleaved')
    """
    check_sizes("schedule", chunks=chunks)
    return ScheduleName.ONE_F_ONE_B if chunks == 1 else ScheduleName.INTERLEAVED


def _known(name: str) -> ScheduleName:
    """Find the name among those known."""
    try:
        return ScheduleName(name)
    except ValueError:
        message = f"schedule {name!r} is unknown; one of {one_of(list(ScheduleName))}"
        raise ScheduleError(message) from None


# A large order takes about 30 MB, so only a few are kept.
@lru_cache(maxsize=16, typed=True)
def _built(
    name: ScheduleName, stages: int, chunks: int, micro_batches: int, group: MicroBatchGroup
) -> Schedule:
    """Build once; an order is immutable, so all may share it."""
    entry = _SCHEDULES[name]
    sizes: dict[str, Any] = {"stages": stages, "micro_batches": micro_batches}
    if entry.takes_chunks:
        sizes["chunks"] = chunks
    if entry.takes_group:
        sizes["group"] = group
    return entry.generator(**sizes)
