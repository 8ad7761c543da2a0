"""
Looped breadth-first: all micro-batches through one chunk, then all through the next.

Time runs to the right, a forward and a backward take one slot each::

    stage 0 | 0F0 0F1 0F2 0F3 2F0 2F1 2F2 2F3  .   .  2B3 2B2 2B1 2B0 0B3 0B2 0B1 0B0
    stage 1 |  .  1F0 1F1 1F2 1F3 3F0 3F1 3F2 3F3 3B3 3B2 3B1 3B0 1B3 1B2 1B1 1B0

Rule: chunk by chunk, F of every micro-batch ascending; then, chunks reversed, B
of every micro-batch descending.  A stage keeps M V micro-batches alive: the
most of all schedules, for the fewest switches between chunks (the gradients of
a chunk are complete after one pass, and can be reduced while others run).

Source: Lamy-Poirier, MLSys 2023, arXiv:2211.05953; PyTorch 2.13,
``ScheduleLoopedBFS``.
"""

from sapp_ppb.schedules.op import Op, OpKind, Placement, Schedule
from sapp_ppb.schedules.wording import check_sizes


def looped_bfs(stages: int, chunks: int, micro_batches: int) -> Schedule:
    """
    Build the looped breadth-first order.

    Parameters
    ----------
    stages, chunks, micro_batches
        S, V and M, each at least 1.

    Raises
    ------
    ScheduleError
        If a size is no whole number from 1 up.

    Examples
    --------
    The row of stage 0 as drawn above:

    >>> print(looped_bfs(2, 2, 4).to_csv().splitlines()[0])
    0F0,0F1,0F2,0F3,2F0,2F1,2F2,2F3,2B3,2B2,2B1,2B0,0B3,0B2,0B1,0B0
    """
    check_sizes("looped-bfs", stages=stages, chunks=chunks, micro_batches=micro_batches)
    up, down = range(micro_batches), range(micro_batches - 1, -1, -1)
    rows = []
    for stage in range(stages):
        cells = [Placement.LOOP.cell_of(stage, chunk, stages) for chunk in range(chunks)]
        forwards = [Op(OpKind.F, cell, micro_batch) for cell in cells for micro_batch in up]
        backwards = [Op(OpKind.B, cell, micro_batch) for cell in cells[::-1] for micro_batch in down]
        rows.append((*forwards, *backwards))
    return Schedule(
        name="looped-bfs",
        stages=stages,
        chunks=chunks,
        micro_batches=micro_batches,
        placement=Placement.LOOP,
        rows=tuple(rows),
    )
