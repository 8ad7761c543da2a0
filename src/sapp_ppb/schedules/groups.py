"""
Groups of micro-batches, and the rows that every schedule here is cut from.

An interleaved stage runs a whole group of micro-batches through its first
chunk before it turns to its second.  That table is written once, here; the
schedules differ in their groups and in how many forwards warm a stage up.
"""

from collections.abc import Sequence
from itertools import chain

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules.op import Op, OpKind, Placement, Schedule


def equal_groups(micro_batches: int, group: int) -> list[int]:
    """
    Sizes of groups of ``group`` micro-batches, with what is left in a last one.

    Examples
    --------
    >>> equal_groups(13, 8)  # 8 + 5 = 13
    [8, 5]
    """
    full, rest = divmod(micro_batches, group)
    return [group] * full + [rest] * (rest > 0)


def remainder_first_groups(micro_batches: int, stages: int) -> list[int]:
    """
    Sizes of groups of S micro-batches, the first of which also takes what is left over.

    Parameters
    ----------
    micro_batches
        M, at least S.
    stages
        S.

    Examples
    --------
    >>> remainder_first_groups(13, 4)  # 13 mod 4 = 1, so 4 + 1, and 4 + 4 to make 13
    [5, 4, 4]
    """
    full, rest = divmod(micro_batches, stages)
    return [stages + rest] + [stages] * (full - 1)


def accepted_sizes(stages: int, micro_batches: int) -> list[int]:
    """
    Group sizes N that frameworks accept for an interleaved schedule, ascending.

    S <= N <= M, and M mod N is 0 or at least S [1]_: in a shorter group the
    first micro-batch is wanted for the next chunk before it has gone round all
    stages, and stages wait.  With M < S a single group of all micro-batches is
    accepted [2]_.

    References
    ----------
    .. [1] NVIDIA Megatron-LM, core/pipeline_parallel/schedules.py, commit d98e8a64.
    .. [2] PyTorch 2.13, torch.distributed.pipelining, ScheduleInterleaved1F1B.

    Examples
    --------
    >>> accepted_sizes(4, 10)  # 10 mod 5 = 0, 10 mod 6 = 4, 10 mod 10 = 0
    [5, 6, 10]
    """
    if micro_batches < stages:
        return [micro_batches]
    sizes = range(stages, micro_batches + 1)
    return [size for size in sizes if micro_batches % size == 0 or micro_batches % size >= stages]


def check_group(name: str, chunks: int, group: object) -> None:
    """
    Refuse a micro-batch group where a stage has one chunk, and so nothing to take in turn.

    Examples
    --------
    >>> check_group("seq1f1b", 1, 4)
    Traceback (most recent call last):
    sapp_ppb.errors.ScheduleError: seq1f1b: takes no --micro-batch-group with one chunk a stage (got 4)
    """
    if chunks == 1 and group is not None:
        raise ScheduleError(f"{name}: takes no --micro-batch-group with one chunk a stage (got {group})")


def warm_steady_drain(forwards: Sequence[Op], backwards: Sequence[Op], warm: int) -> tuple[Op, ...]:
    """
    Row of a stage: warm-up forwards, then a forward and a backward in turn, then backwards.

    Parameters
    ----------
    forwards, backwards
        All forwards and all backwards of the stage, each in its order; equally many.
    warm
        Forwards before the first pair; all of them if there are fewer.

    Examples
    --------
    >>> forwards = [Op(OpKind.F, 0, m) for m in range(3)]
    >>> backwards = [Op(OpKind.B, 0, m) for m in range(3)]
    >>> print(*warm_steady_drain(forwards, backwards, 1))  # 1 forward, 3 - 1 pairs, 1 backward
    0F0 0F1 0B0 0F2 0B1 0B2
    """
    warm = min(warm, len(forwards))
    pairs = len(forwards) - warm
    steady = chain.from_iterable(zip(forwards[warm:], backwards[:pairs], strict=True))
    return (*forwards[:warm], *steady, *backwards[pairs:])


def group_table(chunks: int, groups: Sequence[int]) -> list[tuple[int, int]]:
    """
    Chunk and micro-batch of each forward of a stage, in order.

    The backwards follow the same table with chunk c replaced by V-1-c.

    Examples
    --------
    >>> group_table(2, [2, 1])  # micro-batches 0 and 1 in chunks 0 and 1, then micro-batch 2
    [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (1, 2)]
    """
    table = []
    first = 0
    for size in groups:
        members = range(first, first + size)
        table += [(chunk, micro_batch) for chunk in range(chunks) for micro_batch in members]
        first += size
    return table


def grouped_rows(chunks: int, groups: Sequence[int], warm_ups: Sequence[int]) -> tuple[tuple[Op, ...], ...]:
    """
    Rows of a looped schedule that runs its micro-batches in groups.

    Parameters
    ----------
    chunks
        V.
    groups
        Size of each group; they sum to M.
    warm_ups
        Forwards before the first pair, one number a stage; shape (S,).

    Notes
    -----
    O(S V M), one op object each.

    Examples
    --------
    >>> print(*grouped_rows(2, [1], [1])[0])  # one stage, one micro-batch, two chunks
    0F0 1F0 1B0 0B0
    """
    stages = len(warm_ups)
    table = group_table(chunks, groups)
    rows = []
    for stage, warm in enumerate(warm_ups):
        up = [Placement.LOOP.cell_of(stage, chunk, stages) for chunk in range(chunks)]
        down = up[::-1]
        forwards = [Op(OpKind.F, up[chunk], micro_batch) for chunk, micro_batch in table]
        backwards = [Op(OpKind.B, down[chunk], micro_batch) for chunk, micro_batch in table]
        rows.append(warm_steady_drain(forwards, backwards, warm))
    return tuple(rows)


def one_chunk_schedule(name: str, micro_batches: int, warm_ups: Sequence[int]) -> Schedule:
    """
    Schedule with one chunk a stage: a warm-up, forwards and backwards in turn, the backwards left.

    Parameters
    ----------
    micro_batches
        M.
    warm_ups
        Forwards before the first pair, one number a stage; shape (S,).

    Examples
    --------
    >>> print(one_chunk_schedule("1f1b", 2, [1, 0]).to_csv(), end="")
    0F0,0F1,0B0,0B1
    1F0,1B0,1F1,1B1
    """
    return Schedule(
        name=name,
        stages=len(warm_ups),
        chunks=1,
        micro_batches=micro_batches,
        placement=Placement.LOOP,
        rows=grouped_rows(1, [micro_batches], warm_ups),
    )
