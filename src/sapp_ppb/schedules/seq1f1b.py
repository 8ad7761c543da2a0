"""
Seq1F1B: 1F1B over pieces of the sequence, so that less is alive and the pipeline fills sooner.

Time runs to the right, a forward and a backward take one slot each::

    stage 0 | 0F0.0 0F0.1 0F1.0   .   0B0.1 0F1.1 0B0.0   .   0B1.1 0B1.0
    stage 1 |   .   1F0.0 1F0.1 1B0.1 1F1.0 1B0.0 1F1.1 1B1.1 1B1.0

Rule: every micro-batch is cut into k sequence chunks.  A chunk attends to those
before it, so they go forward 0 to k-1 and backward k-1 to 0.  Forwards are the
chunks of all micro-batches in their order; stage s warms up with S-1-s + k-1 of
them, then runs a forward and a backward in turn, then the backwards that are left.
It keeps min(S-s + k-1, kM) chunks alive.

With V chunks a stage, groups of N micro-batches pass them as in the interleaved
schedule, N = ceil(S / k) unless given, and stage s warms up with
2(S-1-s) + (V-1)Nk + k-1 forwards.

Source: Sun et al., NAACL 2025, arXiv:2406.03488, section 3 (Seq1F1B and
Seq1F1B-I; their groups are S chunks, which is the same where k divides S).
"""

from numbers import Integral

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules.groups import check_group, equal_groups, group_table, warm_steady_drain
from sapp_ppb.schedules.op import Op, OpKind, Placement, Schedule
from sapp_ppb.schedules.wording import check_sizes, one_of

NAME = "seq1f1b"


def seq1f1b(
    stages: int, chunks: int, micro_batches: int, sequence_chunks: int, group: object = None
) -> Schedule:
    """
    Build the Seq1F1B order.

    Parameters
    ----------
    stages, chunks, micro_batches
        S, V and M, each at least 1.
    sequence_chunks
        k pieces of every micro-batch, at least 2.
    group
        Micro-batch group size N, with several chunks only; None takes ceil(S / k),
        or M if that is less.

    Raises
    ------
    ScheduleError
        If k is 1, or if the group leaves a last one that is too short to go round all
        stages; the message names what works.

    Examples
    --------
    The row of stage 0 as drawn above, 2-1-0 + 2-1 = 2 forwards before the first pair:

    >>> print(seq1f1b(2, 1, 2, 2).to_csv().splitlines()[0])
    0F0.0,0F0.1,0F1.0,0B0.1,0F1.1,0B0.0,0B1.1,0B1.0
    """
    k = sequence_chunks
    check_sizes(NAME, stages=stages, chunks=chunks, micro_batches=micro_batches, sequence_chunks=k)
    if k == 1:
        raise ScheduleError(
            f"{NAME}: sequence-chunks must be at least 2 (got 1); give --sequence-chunks, "
            f"or use {'1f1b' if chunks == 1 else 'interleaved'}"
        )
    check_group(NAME, chunks, group)
    size = micro_batches if chunks == 1 else _group_size(stages, micro_batches, k, group)
    hops = 1 if chunks == 1 else 2
    warm_ups = [hops * (stages - 1 - s) + (chunks - 1) * size * k + k - 1 for s in range(stages)]
    table = group_table(chunks, equal_groups(micro_batches, size))
    return Schedule(
        name=NAME,
        stages=stages,
        chunks=chunks,
        micro_batches=micro_batches,
        placement=Placement.LOOP,
        rows=tuple(_row(table, stage, stages, k, warm) for stage, warm in enumerate(warm_ups)),
        sequence_chunks=k,
    )


def _row(table: list[tuple[int, int]], stage: int, stages: int, k: int, warm: int) -> tuple[Op, ...]:
    """Order of one stage: every entry of the table stands for k ops."""
    last = max(chunk for chunk, _ in table)
    up, down = range(k), range(k - 1, -1, -1)
    forwards = [Op(OpKind.F, chunk * stages + stage, m, piece) for chunk, m in table for piece in up]
    backwards = [
        Op(OpKind.B, (last - chunk) * stages + stage, m, piece) for chunk, m in table for piece in down
    ]
    return warm_steady_drain(forwards, backwards, warm)


def _group_size(stages: int, micro_batches: int, k: int, group: object) -> int:
    """Size of the groups in micro-batches, or the reason why there are none."""
    least = min(-(-stages // k), micro_batches)
    sizes = [
        n
        for n in range(least, micro_batches + 1)
        if micro_batches % n == 0 or micro_batches % n * k >= stages
    ]
    if group is None and least in sizes:
        return least
    if not isinstance(group, bool) and isinstance(group, Integral) and group in sizes:
        return int(group)
    if group is None:
        raise ScheduleError(
            f"{NAME}: {micro_batches} micro-batches in {k} chunks can not go round {stages} stages in groups "
            f"of {least}; give --micro-batch-group {one_of(sizes)}"
        )
    raise ScheduleError(
        f"{NAME}: --micro-batch-group {group} does not work with {stages} stages, {micro_batches} "
        f"micro-batches and {k} sequence chunks; use {one_of(sizes)}"
    )
