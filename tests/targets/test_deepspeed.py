"""What DeepSpeed can say: boundaries, one order, one interval."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb import plan_pipeline
from sapp_ppb.costs import Recompute
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName, build_schedule
from sapp_ppb.targets.deepspeed import DEEPSPEED, parts_of, refuses, unsaid, ways
from tests.parts_plans import FULL, NONE, SELECTIVE, plan_along
from tests.torchtitan_plans import model_of


def problem_of(*counts, stages=2, micro_batches=8, **more):
    return Problem(model=model_of(*counts), stages=stages, micro_batches=micro_batches, **more)


def train_schedule(stages, micro_batches, stage):
    """
    Order of a stage by the steps of DeepSpeed's TrainSchedule.

    At step t a stage of the same parity runs the forward of micro-batch (t - stage) / 2,
    and one of the other parity the backward of (t + stage + 1) / 2 - stages.
    """
    for step in range(2 * (micro_batches + stages - 1)):
        forward = step % 2 == stage % 2
        number = (step - stage) // 2 if forward else (step + stage + 1) // 2 - stages
        if 0 <= number < micro_batches:
            yield f"{stage}{'F' if forward else 'B'}{number}"


@given(st.integers(1, 8), st.integers(1, 20))
def test_its_train_schedule_is_1f1b(stages, micro_batches):
    text = build_schedule(ScheduleName.ONE_F_ONE_B, stages, 1, micro_batches).to_csv()
    assert text.splitlines() == [",".join(train_schedule(stages, micro_batches, s)) for s in range(stages)]


def test_boundaries_count_the_entries_of_head_and_tail():
    # One of the HEAD, then 2 and 3 layers, then one of the TAIL.
    plan = plan_along([5], [[NONE] * 2, [NONE] * 3], stages=2)
    assert parts_of(plan) == [0, 3, 7]
    assert parts_of(plan_along([5], [[NONE] * 2, [NONE] * 3], stages=2, head=False, tail=False)) == [0, 2, 5]
    assert parts_of(plan_along([5], [[NONE] * 5], stages=1)) == [0, 7]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"interleave": 2}, "runs one chunk a stage"),
        ({"schedule": ScheduleName.GPIPE}, "has no schedule gpipe; use 1f1b"),
    ],
)
def test_orders_that_it_does_not_run_are_refused(more, words):
    assert words in refuses(problem_of(8, **more))[0]


def test_a_stage_may_hold_the_head_alone_and_not_nothing():
    assert unsaid(plan_along([3], [[], [NONE] * 3], stages=2)) == ()
    bare = plan_along([3], [[], [NONE] * 3], stages=2, head=False)
    assert "must hold parameters for its optimizer (got none in cell 0" in unsaid(bare)[0]


@pytest.mark.parametrize("kind", [SELECTIVE, Recompute.COMM, Recompute.BOTH])
def test_what_is_recomputed_in_part_can_not_be_said(kind):
    assert "one activation_checkpoint_interval" in unsaid(plan_along([2], [[kind], [kind]], stages=2))[0]


def test_its_ways_are_the_two_intervals():
    found = ways(problem_of(8))
    assert [way.words for way in found] == [
        "activation_checkpoint_interval=0",
        "activation_checkpoint_interval=1",
    ]
    assert [way.problem.recompute for way in found] == [(NONE,), (FULL,)]
    assert [way.words[-1] for way in ways(problem_of(8, recompute=(FULL,)))] == ["1"]


def test_the_planner_stays_within_what_it_can_say():
    # 8 layers of 100 MB on stage 0 with 2 micro-batches alive are 800 MB and more; recomputed ones hold 96.
    outcome = plan_pipeline(problem_of(8, target="deepspeed", memory_limit_mb=790.0), time_limit_s=2)
    assert outcome.plan is not None
    assert DEEPSPEED.unsaid(outcome.plan) == ()
