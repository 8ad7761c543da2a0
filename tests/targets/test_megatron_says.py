"""What Megatron-LM can say of a plan, against what its own flags mean."""

import pytest
from hypothesis import given

from sapp_ppb.problem import Problem
from sapp_ppb.targets.megatron import refuses, unsaid
from sapp_ppb.targets.megatron_recompute import RecomputeFlags
from tests.targets.megatron_cases import megatron_plans, model_of, plan_of_layout


@given(megatron_plans())
def test_every_plan_of_its_settings_can_be_said(plan):
    assert unsaid(plan) == ()


def problem_of(**sizes):
    return Problem(model=model_of(16), **sizes)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"stages": 4, "micro_batches": 8, "schedule": "gpipe"}, "has no schedule gpipe"),
        ({"stages": 1, "interleave": 2, "micro_batches": 8}, "must be greater than 1 for several chunks"),
        (
            {"stages": 4, "interleave": 2, "micro_batches": 10, "micro_batch_group": "remainder-first"},
            "takes no remainder first",
        ),
        ({"stages": 4, "interleave": 2, "micro_batches": 3}, "from the 4 stages to the 3 micro-batches"),
    ],
)
def test_problems_of_which_it_can_run_no_plan(sizes, words):
    (fault,) = refuses(problem_of(**sizes))
    assert words in fault


def test_problems_of_which_it_can_run_plans():
    assert refuses(problem_of(stages=4, micro_batches=3)) == ()
    assert (
        refuses(problem_of(stages=4, interleave=2, micro_batches=8, micro_batch_group="remainder-first"))
        == ()
    )


def test_mtp_layers_before_the_last_chunk_can_not_be_said():
    plan = plan_of_layout("Et|m||L", 2)
    assert unsaid(plan) == ("all MTP layers must stand in one cell, in the last chunk of its stage",)


def test_mtp_layers_under_block_recompute_are_left_alone():
    flags = RecomputeFlags(granularity="full", method="block", layers=3)
    assert unsaid(plan_of_layout("Ettt|ttmL", 2, flags=flags)) == ()
