"""
Which order of ops MindFormers' keys mean, and the rules of micro-batches and schedulers.

``pipeline_scheduler`` is heeded only with ``pipeline_interleave``; without, MindSpore runs
1F1B and takes ``pp_interleave_num`` for 1.  Source: MindSpore, ``ccsrc/frontend/parallel``,
PipelineParallelScheduler and InterleavedScheduler::Reorder, and ``set_auto_parallel_context``;
MindFormers, ``_check_config``, and its page on Seq-Pipe for ``seq_split_num``.
"""

from dataclasses import dataclass

from sapp_ppb.costs.checks import shown
from sapp_ppb.schedules import MicroBatchGroup, ScheduleName
from sapp_ppb.targets.config import BrokenRule

SCHEDULERS = ("1f1b", "gpipe", "seqpipe", "seqvpp", "seqsmartvpp", "zero_bubble_v")


@dataclass(frozen=True, kw_only=True)
class Order:
    """
    Order of ops that a configuration means.

    Attributes
    ----------
    schedule
        None when there is none.
    micro_batch_group
        How the interleaved schedule takes micro-batches.
    broken, notes
        Rules that it breaks, and what is odd about it.
    """

    schedule: ScheduleName | None
    micro_batch_group: MicroBatchGroup = None
    broken: tuple[BrokenRule, ...] = ()
    notes: tuple[str, ...] = ()


def order_of(
    scheduler: object, *, interleaves: bool, stages: int, chunks: int, sequence_chunks: int = 1
) -> Order:
    """
    Order that ``pipeline_scheduler`` means.

    Parameters
    ----------
    interleaves
        ``pipeline_interleave``.
    stages, chunks
        S, and V as it takes effect.
    sequence_chunks
        ``seq_split_num``.

    Examples
    --------
    >>> order_of("1f1b", interleaves=True, stages=4, chunks=2).schedule.value
    'interleaved'
    >>> order_of("gpipe", interleaves=False, stages=4, chunks=1).schedule.value  # not heeded
    '1f1b'
    """
    if scheduler not in SCHEDULERS:
        rule = f"must be one of {', '.join(SCHEDULERS)}"
        return Order(
            schedule=None, broken=(BrokenRule(key="pipeline_scheduler", rule=rule, found=shown(scheduler)),)
        )
    if not interleaves:
        ignored = (
            f"pipeline_scheduler {scheduler} takes effect only with pipeline_interleave: True; 1f1b runs"
        )
        notes = () if scheduler == "1f1b" else (ignored,)
        return Order(schedule=ScheduleName.ONE_F_ONE_B, notes=notes)
    if scheduler == "zero_bubble_v":
        return Order(schedule=ScheduleName.ZBV, broken=_zbv_faults(chunks))
    if scheduler == "gpipe":
        return _all_forwards(chunks)
    if scheduler == "1f1b" or sequence_chunks == 1:
        return _one_f_one_b(chunks)
    return _in_pieces(str(scheduler), stages)


def _zbv_faults(chunks: int) -> tuple[BrokenRule, ...]:
    if chunks == 2:
        return ()
    rule = "zero_bubble_v has 2 chunks a stage"
    return (BrokenRule(key="pp_interleave_num", rule=rule, found=str(chunks), mend="give 2"),)


def _all_forwards(chunks: int) -> Order:
    if chunks == 1:
        return Order(schedule=ScheduleName.GPIPE)
    note = "gpipe with several chunks is timed as looped-bfs, whose backwards take micro-batches in reverse"
    return Order(schedule=ScheduleName.LOOPED_BFS, notes=(note,))


def _one_f_one_b(chunks: int) -> Order:
    if chunks > 1:
        return Order(schedule=ScheduleName.INTERLEAVED)
    note = (
        "pipeline_interleave: True with one chunk a stage makes MindSpore run twice the forwards of 1f1b "
        "before the first backward, which holds more memory; it is timed as 1f1b; set it to False"
    )
    return Order(schedule=ScheduleName.ONE_F_ONE_B, notes=(note,))


def _in_pieces(scheduler: str, stages: int) -> Order:
    notes = () if scheduler == "seqpipe" else (f"{scheduler} is timed as seqpipe",)
    rule = "seqsmartvpp wants an even number of stages"
    odd = BrokenRule(key="pipeline_scheduler", rule=rule, found=str(stages))
    broken = (odd,) if scheduler == "seqsmartvpp" and stages % 2 else ()
    return Order(schedule=ScheduleName.SEQ1F1B, broken=broken, notes=notes)


def micro_batch_rules(
    schedule: ScheduleName | None, *, stages: int, micro_batches: int
) -> tuple[MicroBatchGroup, tuple[BrokenRule, ...], tuple[str, ...]]:
    """
    How an order takes micro-batches: its group, the rules broken, and what is odd.

    Examples
    --------
    >>> micro_batch_rules(ScheduleName.INTERLEAVED, stages=4, micro_batches=10)[0]
    'remainder-first'
    >>> print(micro_batch_rules(ScheduleName.ONE_F_ONE_B, stages=4, micro_batches=2)[1][0])
    micro_batch_num: must be at least pipeline_stage, 4 (got 2)
    """
    if micro_batches < stages:
        rule = f"must be at least pipeline_stage, {stages}"
        return None, (BrokenRule(key="micro_batch_num", rule=rule, found=str(micro_batches)),), ()
    rest = micro_batches % stages
    if schedule is not ScheduleName.INTERLEAVED or not (rest or micro_batches < 2 * stages):
        return None, (), ()
    note = (
        f"micro_batch_num {micro_batches}: older releases of MindSpore interleave only multiples of "
        f"pipeline_stage from {2 * stages} on"
    )
    return ("remainder-first" if rest else None), (), (note,)
