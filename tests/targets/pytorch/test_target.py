"""What PyTorch's pipelining can say: any order, and layers that are wrapped one by one."""

import pytest

from sapp_ppb import plan_pipeline
from sapp_ppb.costs import Recompute
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.pytorch.target import PYTORCH, class_of, refuses, unsaid, ways
from tests.parts_plans import FULL, NONE, SELECTIVE, plan_along
from tests.torchtitan_plans import model_of


def problem_of(*counts, stages=2, micro_batches=8, **more):
    return Problem(model=model_of(*counts), stages=stages, micro_batches=micro_batches, **more)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"stages": 1}, "no pipeline on one stage"),
        (
            {"schedule": ScheduleName.SEQ1F1B, "sequence_chunks": 2},
            "does not cut micro-batches along the sequence",
        ),
    ],
)
def test_orders_that_it_does_not_run_are_refused(more, words):
    assert words in refuses(problem_of(8, **more))[0]


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({}, "1F1B"),
        ({"schedule": ScheduleName.ZBV, "interleave": 2}, "ZBVZeroBubble"),
        ({"interleave": 2}, "Interleaved1F1B"),
        # PyTorch takes 8 div 2 = 4 rounds of 2, so groups of 4 are another order.
        ({"interleave": 2, "micro_batch_group": 4}, None),
        ({"interleave": 2, "schedule": ScheduleName.INTERLEAVED_LESS_MEMORY}, None),
    ],
)
def test_a_class_of_its_own_runs_an_order_where_it_makes_that_order(more, name):
    problem = problem_of(8, **more)
    assert class_of(problem) == name
    assert refuses(problem) == ()


def test_every_layer_has_a_type_of_its_own():
    assert unsaid(plan_along([4], [[FULL, NONE], [NONE, SELECTIVE]], stages=2)) == ()


def test_a_stage_without_a_module_can_not_be_said():
    assert unsaid(plan_along([2], [[], [NONE, NONE]], stages=2)) == ()
    bare = plan_along([2], [[NONE, NONE], []], stages=2, tail=False)
    assert "must hold a module (got none in cell 1" in unsaid(bare)[0]


def test_its_way_has_three_types():
    (way,) = ways(problem_of(8))
    assert way.problem.recompute == (NONE, SELECTIVE, FULL)
    assert ways(problem_of(8, recompute=(Recompute.COMM,))) == ()


def test_the_planner_stays_within_what_it_can_say():
    outcome = plan_pipeline(problem_of(3, 6, target="pytorch", memory_limit_mb=970.0), time_limit_s=2)
    assert outcome.plan is not None
    assert PYTORCH.unsaid(outcome.plan) == ()
