"""
Interleaved 1F1B with half the warm-up per hop, so fewer micro-batches are alive.

Time runs to the right, a forward and a backward take one slot each::

    stage 0 | 0F0 0F1 2F0 2F1  .  2B0 0F2 2B1 0F3 0B0 2F2 0B1 2F3 2B2  .  2B3 0B2 0B3
    stage 1 |  .  1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3

Rule: the groups and tables of the interleaved schedule with N = S, but stage s
warms up with min((S-1-s) + (V-1)S, MV) forwards.  A backward may then wait for
the next stage more often, and stages but the last keep fewer micro-batches
alive.  M must be a multiple of S: with the remainder in the first group,
as the SAPP tool has it, the order waits for itself.

Source: SAPP pipeline simulator, ``vpp2`` ("less memory"); the warm-up is that of
PyTorch 2.13's ``ScheduleInterleavedZeroBubble``.
"""

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules.groups import equal_groups, grouped_rows
from sapp_ppb.schedules.op import Placement, Schedule
from sapp_ppb.schedules.wording import check_sizes, one_of


def interleaved_less_memory(stages: int, chunks: int, micro_batches: int) -> Schedule:
    """
    Build the interleaved order with the shorter warm-up.

    Parameters
    ----------
    stages, chunks, micro_batches
        S, V and M; V is at least 2 and M a multiple of S.

    Raises
    ------
    ScheduleError
        If V is 1 or M no multiple of S; the message names what works.

    Examples
    --------
    The row of stage 0 as drawn above, (2-1-0) + (2-1)2 = 3 forwards before the first pair:

    >>> print(interleaved_less_memory(2, 2, 4).to_csv().splitlines()[0])
    0F0,0F1,2F0,2F1,2B0,0F2,2B1,0F3,0B0,2F2,0B1,2F3,2B2,2B3,0B2,0B3
    """
    name = "interleaved-less-memory"
    check_sizes(name, stages=stages, chunks=chunks, micro_batches=micro_batches)
    if chunks == 1:
        raise ScheduleError(f"{name}: chunks must be at least 2 (got 1); use 1f1b")
    _check_multiple(name, stages, micro_batches)
    return Schedule(
        name=name,
        stages=stages,
        chunks=chunks,
        micro_batches=micro_batches,
        placement=Placement.LOOP,
        rows=grouped_rows(chunks, equal_groups(micro_batches, stages), warm_ups(stages, chunks)),
    )


def warm_ups(stages: int, chunks: int) -> list[int]:
    """
    Count the forwards before the first pair on each stage.

    Examples
    --------
    >>> warm_ups(4, 2)  # (4-1-s) + (2-1)4
    [7, 6, 5, 4]
    """
    return [(stages - 1 - stage) + (chunks - 1) * stages for stage in range(stages)]


def _check_multiple(name: str, stages: int, micro_batches: int) -> None:
    """Refuse a remainder, naming the nearest micro-batches without one."""
    remainder = micro_batches % stages
    if remainder:
        below = micro_batches - remainder
        works = [m for m in (below, below + stages) if m > 0]
        raise ScheduleError(
            f"{name}: {micro_batches} micro-batches are not a multiple of {stages} stages, and with the "
            f"remainder in the first group the order would wait for itself; "
            f"use {one_of(works)} micro-batches, or the schedule interleaved"
        )
