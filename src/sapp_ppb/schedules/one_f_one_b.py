"""
1F1B: a forward and a backward in turn, after a warm-up that shrinks along the stages.

Time runs to the right, a forward and a backward take one slot each::

    stage 0 | 0F0 0F1 0F2  .   .  0B0 0F3 0B1  .  0B2  .  0B3
    stage 1 |  .  1F0 1F1  .  1B0 1F2 1B1 1F3 1B2  .  1B3
    stage 2 |  .   .  2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3

Rule: stage s warms up with min(S-1-s, M) forwards, then runs the next forward
and the next backward in turn until the forwards are used up, then the
backwards that are left.  It keeps min(S-s, M) micro-batches alive.  One chunk
a stage; any M, also fewer micro-batches than stages.

Source: Narayanan et al., SC 2021, arXiv:2104.04473, section 2.2.1
(PipeDream-Flush); NVIDIA Megatron-LM, core/pipeline_parallel/schedules.py,
commit d98e8a64.
"""

from sapp_ppb.schedules.groups import one_chunk_schedule
from sapp_ppb.schedules.op import Schedule
from sapp_ppb.schedules.wording import check_sizes


def one_f_one_b(stages: int, micro_batches: int) -> Schedule:
    """
    Build the 1F1B order.

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
    The row of stage 0 as drawn above, 3 - 1 - 0 = 2 forwards before the first pair:

    >>> print(one_f_one_b(3, 4).to_csv().splitlines()[0])
    0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3
    """
    check_sizes("1f1b", stages=stages, micro_batches=micro_batches)
    return one_chunk_schedule("1f1b", micro_batches, [stages - 1 - stage for stage in range(stages)])
