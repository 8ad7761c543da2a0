"""
GPipe: all forwards, then all backwards.

Time runs to the right, a forward and a backward take one slot each::

    stage 0 | 0F0 0F1 0F2 0F3  .   .   .   .  0B0 0B1 0B2 0B3
    stage 1 |  .  1F0 1F1 1F2 1F3  .   .  1B0 1B1 1B2 1B3
    stage 2 |  .   .  2F0 2F1 2F2 2F3 2B0 2B1 2B2 2B3

Rule: F of every micro-batch, ascending, then B of every micro-batch,
ascending; in other words the warm-up takes all M forwards, and a stage keeps
M micro-batches alive.  One chunk a stage.

Source: Huang et al., NeurIPS 2019, arXiv:1811.06965, section 2.3; backwards
ascend as in PyTorch's ``ScheduleGPipe``.
"""

from sapp_ppb.schedules.groups import one_chunk_schedule
from sapp_ppb.schedules.op import Schedule
from sapp_ppb.schedules.wording import check_sizes


def gpipe(stages: int, micro_batches: int) -> Schedule:
    """
    Build GPipe's order.

    Parameters
    ----------
    stages, micro_batches
        S and M, each at least 1.

    Raises
    ------
    ScheduleError
        If a size is no whole number from 1 up.

    Examples
    --------
    The row of stage 0 as drawn above:

    >>> print(gpipe(3, 4).to_csv().splitlines()[0])
    0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3
    """
    check_sizes("gpipe", stages=stages, micro_batches=micro_batches)
    return one_chunk_schedule("gpipe", micro_batches, [micro_batches] * stages)
