"""
ZBV: two chunks on a V and a split backward, so that no stage waits once it has begun.

Time runs to the right, F, I and W take one slot each::

    stage 0 | 0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2
    stage 1 |  .  1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2

Rule: chunk 0 of stage s is cell s, chunk 1 is cell 2S-1-s.  With F0 for the next
forward of chunk 0, and so on, stage s runs

1. 2(S-s)-1 times F0,
2. s times F1 F0,
3. S-s times F1 I1 W1,
4. F0 I0 W0 F1 I1 W1 until the F0 run out, then I0 W0 F1 I1 W1 until the F1 do,
5. s times I0 I1,
6. S-s times I0 W0,
7. the W1 that remain, then the W0 that remain.

This is the order of at least 2S-1 micro-batches; with fewer, it is that order with the
ops of the surplus ones left out.  A stage keeps at most 2S micro-batches alive, as
1F1B does with one chunk of twice the size.

Source: Qi et al., arXiv:2405.15362, section 4 (zero-bubble V schedule); PyTorch
2.13, ``ScheduleZBVZeroBubble``.
"""

from itertools import count

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules.op import Op, OpKind, Placement, Schedule
from sapp_ppb.schedules.wording import check_sizes


def zbv(stages: int, chunks: int, micro_batches: int) -> Schedule:
    """
    Build PyTorch's ZBV order.

    Parameters
    ----------
    stages, chunks, micro_batches
        S, V and M; V is 2.

    Raises
    ------
    ScheduleError
        If V is not 2.

    Examples
    --------
    The row of stage 0 as drawn above, 2(2-0)-1 = 3 forwards of chunk 0 first:

    >>> print(zbv(2, 2, 4).to_csv().splitlines()[0][:39])
    0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0F3
    """
    check_v("zbv", stages=stages, chunks=chunks, micro_batches=micro_batches)
    rows = [_row(stage, stages, max(micro_batches, 2 * stages - 1)) for stage in range(stages)]
    return Schedule(
        name="zbv",
        stages=stages,
        chunks=2,
        micro_batches=micro_batches,
        placement=Placement.V,
        rows=tuple(tuple(op for op in row if op.micro_batch < micro_batches) for row in rows),
    )


def check_v(name: str, *, stages: int, chunks: int, micro_batches: int) -> None:
    """
    Refuse sizes of a schedule on a V, which has two chunks on every stage.

    Examples
    --------
    >>> check_v("zbv", stages=4, chunks=3, micro_batches=8)
    Traceback (most recent call last):
    sapp_ppb.errors.ScheduleError: zbv: chunks must be 2 (got 3); leave --interleave out
    """
    check_sizes(name, stages=stages, chunks=chunks, micro_batches=micro_batches)
    if chunks != 2:
        raise ScheduleError(f"{name}: chunks must be 2 (got {chunks}); leave --interleave out")


def _row(stage: int, stages: int, micro_batches: int) -> list[Op]:
    """Order of one stage for at least 2S-1 micro-batches."""
    cells = (stage, 2 * stages - 1 - stage)
    numbers = {(kind, chunk): count() for kind in OpKind for chunk in (0, 1)}
    ops: list[Op] = []

    def run(times: int, *steps: tuple[OpKind, int]) -> None:
        for kind, chunk in times * steps:
            ops.append(Op(kind, cells[chunk], next(numbers[kind, chunk])))

    f0, f1, i0, i1, w0, w1 = ((k, c) for k in (OpKind.F, OpKind.I, OpKind.W) for c in (0, 1))
    run(2 * (stages - stage) - 1, f0)
    run(stage, f1, f0)
    run(stages - stage, f1, i1, w1)
    # Phases 1 and 2 ran 2S-1-s forwards of chunk 0, phases 2 and 3 ran S of chunk 1.
    run(micro_batches - (2 * stages - 1 - stage), f0, i0, w0, f1, i1, w1)
    run(stages - 1 - stage, i0, w0, f1, i1, w1)
    run(stage, i0, i1)
    run(stages - stage, i0, w0)
    run(stage, w1)
    run(stage, w0)
    return ops
