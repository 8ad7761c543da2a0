"""
Interleaved zero bubble: weight gradients wait, and fill what would be idle; ZB-H1 for V = 1.

Time runs to the right, F, I and W take one slot each::

    stage 0 | 0F0 0F1 0F2  .   .  0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3
    stage 1 |  .  1F0 1F1  .  1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3
    stage 2 |  .   .  2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3

Rule: the groups and tables of the interleaved schedule, but stage s warms up
with min((S-1-s) + (V-1)N, MV) forwards, and a backward is an input gradient I
and a weight gradient W: the W of the k-th backward follows the (k+s)-th I, and
those left over come at the end.  Every stage keeps S + (V-1)N micro-batches alive,
what 1F1B has on its first stage.

N is M // max(1, M // S) unless given, the size of M // S equal rounds, of which M
must be a multiple.  With one chunk a stage there are no groups, and M is free.

Source: Qi et al., ICLR 2024, arXiv:2401.10241, section 2.3 (ZB-H1); PyTorch
2.13, ``ScheduleInterleavedZeroBubble``.
"""

from collections.abc import Sequence
from numbers import Integral

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules.groups import accepted_sizes, check_group, equal_groups, grouped_rows
from sapp_ppb.schedules.op import Op, OpKind, Placement, Schedule
from sapp_ppb.schedules.wording import check_sizes, one_of

NAME = "interleaved-zero-bubble"


def interleaved_zero_bubble(stages: int, chunks: int, micro_batches: int, group: object = None) -> Schedule:
    """
    Build the interleaved zero-bubble order.

    Parameters
    ----------
    stages, chunks, micro_batches
        S, V and M, each at least 1.
    group
        Micro-batch group size N, as ``interleaved`` takes it, with several chunks only;
        None takes M // max(1, M // S).

    Raises
    ------
    ScheduleError
        If the group does not work for these sizes; the message names those that do.

    Examples
    --------
    The row of stage 0 as drawn above, (3-1-0) + (1-1)3 = 2 forwards before the first pair:

    >>> print(interleaved_zero_bubble(3, 1, 4).to_csv().splitlines()[0])
    0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3
    """
    check_sizes(NAME, stages=stages, chunks=chunks, micro_batches=micro_batches)
    check_group(NAME, chunks, group)
    size = micro_batches if chunks == 1 else _group_size(stages, micro_batches, group)
    warm_ups = [(stages - 1 - stage) + (chunks - 1) * size for stage in range(stages)]
    rows = grouped_rows(chunks, equal_groups(micro_batches, size), warm_ups)
    return Schedule(
        name=NAME,
        stages=stages,
        chunks=chunks,
        micro_batches=micro_batches,
        placement=Placement.LOOP,
        rows=tuple(split_backwards(row, delay=stage) for stage, row in enumerate(rows)),
    )


def split_backwards(row: Sequence[Op], delay: int) -> tuple[Op, ...]:
    """
    Make every whole backward an I, and have its W follow ``delay`` further ones.

    Examples
    --------
    >>> row = [Op(OpKind.B, 0, 0), Op(OpKind.B, 0, 1), Op(OpKind.B, 0, 2)]
    >>> print(*split_backwards(row, 1))
    0I0 0I1 0W0 0I2 0W1 0W2
    """
    split, waiting = [], []
    for op in row:
        if op.kind is not OpKind.B:
            split.append(op)
            continue
        split.append(op._replace(kind=OpKind.I))
        waiting.append(op._replace(kind=OpKind.W))
        if len(waiting) > delay:
            split.append(waiting.pop(0))
    return (*split, *waiting)


def _group_size(stages: int, micro_batches: int, group: object) -> int:
    """Size of the groups, or the reason why there are none."""
    sizes, rounds = accepted_sizes(stages, micro_batches), max(1, micro_batches // stages)
    if group is None and micro_batches % rounds == 0:
        return micro_batches // rounds
    if group is None:
        below = micro_batches - micro_batches % stages
        raise ScheduleError(
            f"{NAME}: {micro_batches} micro-batches can not be run in {rounds} equal rounds; "
            f"use {below} or {below + stages} micro-batches, or give --micro-batch-group {one_of(sizes)}"
        )
    if not isinstance(group, bool) and isinstance(group, Integral) and group in sizes:
        return int(group)
    raise ScheduleError(
        f"{NAME}: --micro-batch-group {group} does not work with {stages} stages and "
        f"{micro_batches} micro-batches; use {one_of(sizes)}"
    )
