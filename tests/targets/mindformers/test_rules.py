"""Which order MindFormers' keys mean, and what it wants of micro-batches."""

import pytest

from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.mindformers.rules import micro_batch_rules, order_of


def order(scheduler, chunks=1, *, interleaves=True, stages=4, pieces=1):
    return order_of(scheduler, interleaves=interleaves, stages=stages, chunks=chunks, sequence_chunks=pieces)


@pytest.mark.parametrize(
    ("scheduler", "chunks", "pieces", "name"),
    [
        ("1f1b", 2, 1, "interleaved"),
        ("gpipe", 1, 1, "gpipe"),
        ("seqpipe", 1, 2, "seq1f1b"),
        ("seqpipe", 2, 2, "seq1f1b"),
        ("seqpipe", 2, 1, "interleaved"),  # one piece is none
        ("zero_bubble_v", 2, 1, "zbv"),
    ],
)
def test_schedulers(scheduler, chunks, pieces, name):
    found = order(scheduler, chunks, pieces=pieces)
    assert (found.schedule, found.broken, found.notes) == (name, (), ())


def test_a_scheduler_is_heeded_only_with_pipeline_interleave():
    assert order("1f1b", interleaves=False).notes == ()
    found = order("gpipe", interleaves=False)
    assert found.schedule is ScheduleName.ONE_F_ONE_B
    assert "takes effect only with pipeline_interleave: True; 1f1b runs" in found.notes[0]


@pytest.mark.parametrize(
    ("scheduler", "chunks", "name", "note"),
    [
        ("1f1b", 1, "1f1b", "twice the forwards of 1f1b"),
        ("gpipe", 2, "looped-bfs", "is timed as looped-bfs"),
        ("seqvpp", 2, "seq1f1b", "seqvpp is timed as seqpipe"),
        ("seqsmartvpp", 2, "seq1f1b", "seqsmartvpp is timed as seqpipe"),
    ],
)
def test_what_is_timed_as_something_else_is_said(scheduler, chunks, name, note):
    found = order(scheduler, chunks, pieces=2)
    assert (found.schedule, found.broken) == (name, ())
    assert note in found.notes[0]


@pytest.mark.parametrize(
    ("scheduler", "stages", "rule"),
    [
        (
            "zero_bubble",
            4,
            "must be one of 1f1b, gpipe, seqpipe, seqvpp, seqsmartvpp, zero_bubble_v (got 'zero_bubble')",
        ),
        (1, 4, "(got 1)"),
        (None, 4, "(got None)"),
        (["1f1b"], 4, "(got ['1f1b'])"),
        ("zero_bubble_v", 4, "pp_interleave_num: zero_bubble_v has 2 chunks a stage (got 3); give 2"),
        ("seqsmartvpp", 3, "seqsmartvpp wants an even number of stages (got 3)"),
    ],
)
def test_rules_of_schedulers(scheduler, stages, rule):
    (broken,) = order(scheduler, 3, stages=stages, pieces=2).broken
    assert rule in str(broken)


def test_micro_batches_are_at_least_the_stages():
    assert micro_batch_rules(ScheduleName.ONE_F_ONE_B, stages=4, micro_batches=4) == (None, (), ())
    _, (rule,), _ = micro_batch_rules(ScheduleName.ONE_F_ONE_B, stages=4, micro_batches=3)
    assert str(rule) == "micro_batch_num: must be at least pipeline_stage, 4 (got 3)"


def test_what_is_left_over_goes_in_the_first_group_of_an_interleaved_order():
    assert micro_batch_rules(ScheduleName.INTERLEAVED, stages=4, micro_batches=8) == (None, (), ())
    assert micro_batch_rules(ScheduleName.ONE_F_ONE_B, stages=4, micro_batches=9)[0] is None
    group, broken, notes = micro_batch_rules(ScheduleName.INTERLEAVED, stages=4, micro_batches=9)
    assert (group, broken) == ("remainder-first", ())
    assert "older releases of MindSpore interleave only multiples of pipeline_stage from 8 on" in notes[0]
