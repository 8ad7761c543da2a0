"""
Interleaved 1F1B: every stage holds V chunks, and micro-batches pass them in groups.

Time runs to the right, a forward and a backward take one slot each::

    stage 0 | 0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1  .  2B2  .  2B3 0B2 0B3
    stage 1 |  .  1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3

Rule: micro-batches go in groups of N.  The forwards of a stage run group by
group, within a group chunk 0 to V-1, within a chunk the group's micro-batches
ascending; the backwards run the same table with chunk c replaced by V-1-c.
Stage s warms up with min(2(S-1-s) + (V-1)N, MV) forwards, then runs a forward
and a backward in turn, then the backwards that are left.

N is S unless given.  Megatron takes S <= N <= M if M mod N is 0 or at least S;
with M < S PyTorch runs one group of M.  The older SAPP tool takes any M >= S:
its first group also takes the M mod S micro-batches left over
(``remainder-first``), and N in the warm-up is the size of that group.

Source: Narayanan et al., SC 2021, arXiv:2104.04473, section 2.2.2; NVIDIA
Megatron-LM, core/pipeline_parallel/schedules.py, commit d98e8a64; PyTorch 2.13,
``ScheduleInterleaved1F1B``; SAPP pipeline simulator, ``vpp``.
"""

from numbers import Integral
from typing import Literal, TypeAlias

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules.groups import accepted_sizes, equal_groups, grouped_rows, remainder_first_groups
from sapp_ppb.schedules.op import Placement, Schedule
from sapp_ppb.schedules.wording import check_sizes, one_of

REMAINDER_FIRST: Literal["remainder-first"] = "remainder-first"

MicroBatchGroup: TypeAlias = int | Literal["remainder-first"] | None


def interleaved(stages: int, chunks: int, micro_batches: int, group: MicroBatchGroup = None) -> Schedule:
    """
    Build the interleaved 1F1B order.

    Parameters
    ----------
    stages, chunks, micro_batches
        S, V and M; V is at least 2.
    group
        Micro-batch group size N, or ``"remainder-first"``; None takes S, or M
        if that is less.

    Raises
    ------
    ScheduleError
        If V is 1, or if no framework accepts the group for these sizes; the
        message names those that work.

    Examples
    --------
    The row of stage 0 as drawn above, 2(2-1-0) + (2-1)2 = 4 forwards before the first pair:

    >>> print(interleaved(2, 2, 4).to_csv().splitlines()[0])
    0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3
    """
    check_sizes("interleaved", stages=stages, chunks=chunks, micro_batches=micro_batches)
    if chunks == 1:
        raise ScheduleError("interleaved: chunks must be at least 2 (got 1); use 1f1b")
    groups = _groups(stages, micro_batches, group)
    return Schedule(
        name="interleaved",
        stages=stages,
        chunks=chunks,
        micro_batches=micro_batches,
        placement=Placement.LOOP,
        rows=grouped_rows(
            chunks, groups, [2 * (stages - 1 - stage) + (chunks - 1) * groups[0] for stage in range(stages)]
        ),
    )


def _groups(stages: int, micro_batches: int, group: MicroBatchGroup) -> list[int]:
    """Sizes of the groups, or the reason why there are none."""
    if group == REMAINDER_FIRST:
        if micro_batches < stages:
            raise ScheduleError(
                f"interleaved: --micro-batch-group {REMAINDER_FIRST} needs at least as many micro-batches as "
                f"stages (got {micro_batches} for {stages} stages); leave the group out"
            )
        return remainder_first_groups(micro_batches, stages)
    if group is None:
        _check_default(stages, micro_batches)
        group = min(stages, micro_batches)
    _check_size(stages, micro_batches, group)
    return equal_groups(micro_batches, group)


def _check_default(stages: int, micro_batches: int) -> None:
    """Refuse a remainder that the default group would trip over, naming both ways out."""
    remainder = micro_batches % stages
    if micro_batches > stages and remainder:
        below = micro_batches - remainder
        raise ScheduleError(
            f"interleaved: {micro_batches} micro-batches are not a multiple of {stages} stages; "
            f"use {below} or {below + stages} micro-batches, or give --micro-batch-group "
            f"{one_of([REMAINDER_FIRST, *accepted_sizes(stages, micro_batches)])}"
        )


def _check_size(stages: int, micro_batches: int, group: object) -> None:
    """Refuse a group size that no framework accepts."""
    sizes = accepted_sizes(stages, micro_batches)
    if not isinstance(group, bool) and isinstance(group, Integral) and group in sizes:
        return
    named = [REMAINDER_FIRST, *sizes] if micro_batches >= stages else sizes
    raise ScheduleError(
        f"interleaved: --micro-batch-group {group} does not work with {stages} stages and "
        f"{micro_batches} micro-batches; use {one_of(named)}"
    )
