"""Every schedule by its name: one line a schedule."""

from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules.custom import OrderFile, custom
from sapp_ppb.schedules.dualpipev import dualpipev
from sapp_ppb.schedules.gpipe import gpipe
from sapp_ppb.schedules.interleaved import MicroBatchGroup, interleaved
from sapp_ppb.schedules.interleaved_less_memory import interleaved_less_memory
from sapp_ppb.schedules.interleaved_zero_bubble import interleaved_zero_bubble
from sapp_ppb.schedules.looped_bfs import looped_bfs
from sapp_ppb.schedules.one_f_one_b import one_f_one_b
from sapp_ppb.schedules.op import Schedule
from sapp_ppb.schedules.seq1f1b import seq1f1b
from sapp_ppb.schedules.wording import check_sizes, one_of
from sapp_ppb.schedules.zb_auto import StageCosts, zb_auto
from sapp_ppb.schedules.zbv import zbv


class ScheduleName(StrEnum):
    """Name of a schedule as files and commands write it."""

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"
    INTERLEAVED_LESS_MEMORY = "interleaved-less-memory"
    LOOPED_BFS = "looped-bfs"
    INTERLEAVED_ZERO_BUBBLE = "interleaved-zero-bubble"
    ZBV = "zbv"
    DUALPIPEV = "dualpipev"
    SEQ1F1B = "seq1f1b"
    ZB_AUTO = "zb-auto"
    CUSTOM = "custom"


class _Entry(NamedTuple):
    """A generator, what it takes besides stages and micro-batches, and its usual chunks."""

    generator: Callable[..., Schedule]
    takes: tuple[str, ...] = ()
    usual_chunks: int = 1


_SCHEDULES = {
    ScheduleName.GPIPE: _Entry(gpipe),
    ScheduleName.ONE_F_ONE_B: _Entry(one_f_one_b),
    ScheduleName.INTERLEAVED: _Entry(interleaved, ("chunks", "group")),
    ScheduleName.INTERLEAVED_LESS_MEMORY: _Entry(interleaved_less_memory, ("chunks",)),
    ScheduleName.LOOPED_BFS: _Entry(looped_bfs, ("chunks",)),
    ScheduleName.INTERLEAVED_ZERO_BUBBLE: _Entry(interleaved_zero_bubble, ("chunks", "group")),
    ScheduleName.ZBV: _Entry(zbv, ("chunks",), usual_chunks=2),
    ScheduleName.DUALPIPEV: _Entry(dualpipev, ("chunks",), usual_chunks=2),
    ScheduleName.SEQ1F1B: _Entry(seq1f1b, ("chunks", "group", "sequence_chunks")),
    ScheduleName.ZB_AUTO: _Entry(zb_auto, ("costs",)),
    ScheduleName.CUSTOM: _Entry(custom, ("chunks", "sequence_chunks", "order")),
}
# What has a value that stands for "not given", and the option that gives it.
_UNGIVEN = {"chunks": 1, "group": None, "sequence_chunks": 1, "order": None, "costs": None}
_OPTIONS = {"group": "micro-batch-group", "sequence_chunks": "sequence-chunks", "order": "order"}


# More ops than this need gigabytes and minutes; a typo is likelier than a wish.
_MOST_OPS = 2_000_000
MOST_CELLS = 4096


def ops_fault(stages: int, chunks: int, micro_batches: int) -> str | None:
    """
    Fault of sizes that give more ops, or more cells, than anyone plans for.

    Examples
    --------
    >>> ops_fault(16, 2, 32)  # 2 x 16 x 2 x 32 = 2,048 ops
    >>> ops_fault(4, 1, 10**6)[:75]  # 2 x 4 x 10^6
    'stages x interleave x micro-batches is too large: 8,000,000 ops of 2,000,00'
    """
    ops, cells = 2 * stages * chunks * micro_batches, stages * chunks
    if ops <= _MOST_OPS and cells > MOST_CELLS:
        return f"stages x interleave is too large: {cells:,} cells of {MOST_CELLS:,} at most; check both"
    if ops <= _MOST_OPS:
        return None
    return (
        f"stages x interleave x micro-batches is too large: {ops:,} ops of {_MOST_OPS:,} at most; "
        "plan with fewer micro-batches"
    )


def build_schedule(
    name: str,
    stages: int,
    chunks: int | None,
    micro_batches: int,
    group: MicroBatchGroup = None,
    *,
    sequence_chunks: int = 1,
    order: OrderFile | None = None,
    costs: StageCosts | None = None,
) -> Schedule:
    """
    Build a schedule by its name.

    Parameters
    ----------
    name
        A ``ScheduleName`` or its text.
    stages, chunks, micro_batches
        S, V and M, each at least 1; None for V is the schedule's own number.
    group
        Micro-batch group of schedules with several chunks; None is their default, and
        the only choice elsewhere.
    sequence_chunks
        k pieces of every micro-batch, for ``seq1f1b`` and ``custom``.
    order
        File of a ``custom`` order.
    costs
        What ``zb-auto`` is made for; None stands for equal stages.

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
    chunks = usual_chunks(known) if chunks is None else chunks
    sizes = {"stages": stages, "chunks": chunks, "micro_batches": micro_batches}
    check_sizes(known, **sizes, sequence_chunks=sequence_chunks)
    fault = ops_fault(int(stages), int(chunks), int(micro_batches) * int(sequence_chunks))
    if fault:
        raise ScheduleError(f"{known}: {fault}")
    given = {"chunks": int(chunks), "group": group, "sequence_chunks": int(sequence_chunks), "order": order}
    _check_taken(known, given)
    # The group's type is part of the cache's key: True equals 1, but is no group.
    return _built(known, int(stages), int(micro_batches), costs=costs, **given)


def usual_chunks(name: str | None) -> int:
    """
    Chunks a stage that a schedule has when none are asked for; None stands for the default schedule.

    Raises
    ------
    ScheduleError
        If the name is unknown.

    Examples
    --------
    >>> usual_chunks(ScheduleName.ZBV), usual_chunks(ScheduleName.ONE_F_ONE_B)
    (2, 1)
    """
    return 1 if name is None else _SCHEDULES[_known(name)].usual_chunks


def _check_taken(name: ScheduleName, given: dict[str, Any]) -> None:
    """Refuse what is given and means nothing for a schedule."""
    takes = _SCHEDULES[name].takes
    for what, value in given.items():
        if what in takes or value == _UNGIVEN[what]:
            continue
        if what == "chunks":
            raise ScheduleError(f"{name}: chunks must be 1 (got {value}); use {ScheduleName.INTERLEAVED}")
        shown = value.path if isinstance(value, OrderFile) else value
        takers = [other for other, entry in _SCHEDULES.items() if what in entry.takes]
        raise ScheduleError(
            f"{name}: takes no --{_OPTIONS[what]} (got {shown}); leave it out or use {one_of(takers)}"
        )


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
def _built(name: ScheduleName, stages: int, micro_batches: int, **given: Any) -> Schedule:
    """Build once; an order is immutable, so all may share it."""
    entry = _SCHEDULES[name]
    taken = {what: given[what] for what in entry.takes}
    return entry.generator(stages=stages, micro_batches=micro_batches, **taken)
