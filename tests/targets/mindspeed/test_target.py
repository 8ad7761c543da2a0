"""What MindSpeed can say: Megatron-LM's settings, the V of DualPipeV, recompute dealt over chunks."""

import numpy as np
import pytest
from hypothesis import given

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.megatron.target import MEGATRON
from sapp_ppb.targets.mindspeed.target import MINDSPEED, recompute_words
from sapp_ppb.targets.nearest import nearest
from tests.targets.megatron_cases import model_of, plan_of_layout
from tests.targets.mindspeed_cases import counts_of, mindspeed_plans

BLOCK = "--recompute-granularity full --recompute-method block --recompute-num-layers"
PER_RANK = "--enable-recompute-layers-per-pp-rank"


def problem_of(layers: int, *, mtp: int = 0, **changes) -> Problem:
    sizes = {"stages": 2, "micro_batches": 4, "min_layers_per_cell": 0} | changes
    return Problem(model=model_of(layers, mtp=mtp), **sizes)


def plan_of(cells: list[int], full: list[int], *, mtp: int = 0, **changes) -> Plan:
    problem = problem_of(sum(cells), mtp=mtp, **changes)
    return Plan(problem=problem, counts=counts_of(problem, cells, mtp, full))


@given(mindspeed_plans())
def test_every_plan_of_its_settings_can_be_said(plan):
    assert MINDSPEED.unsaid(plan) == ()


@pytest.mark.parametrize(
    ("cells", "full", "words"),
    [
        # N = 3 over two chunks: layers 0 and 1 of chunk 0, layer 0 of chunk 1 (0, 2 and 1 are below 3).
        ([3, 3, 3, 3], [2, 2, 1, 1], f"{BLOCK} 3 {PER_RANK}"),
        # N = 2 gives every chunk one, which Megatron-LM says without it.
        ([3, 3, 3, 3], [1, 1, 1, 1], f"{BLOCK} 1"),
        # Stage 1 has one layer in chunk 0, and what it is too short for goes to no other chunk.
        ([3, 1, 3, 3], [2, 1, 1, 1], f"{BLOCK} 3 {PER_RANK}"),
        ([3, 1, 3, 3], [2, 1, 1, 2], None),
        ([3, 3, 3, 3], [1, 1, 2, 2], None),  # chunk 1 comes after chunk 0
    ],
)
def test_recompute_of_a_stage_is_dealt_over_its_chunks(cells, full, words):
    plan = plan_of(cells, full, interleave=2)
    assert recompute_words(plan) == words
    assert bool(MINDSPEED.unsaid(plan)) is (words is None)


def test_on_a_v_block_counts_every_chunk():
    assert recompute_words(plan_of([3] * 4, [2, 2, 2, 2], schedule=ScheduleName.DUALPIPEV)) == f"{BLOCK} 2"
    assert recompute_words(plan_of([3] * 4, [2, 2, 1, 1], schedule=ScheduleName.DUALPIPEV)) is None


def test_what_can_not_be_said_is_refused_with_the_reason():
    (fault,) = MINDSPEED.unsaid(plan_of([3, 3], [1, 2]))
    assert "N layers of every stage, dealt over its chunks" in fault
    assert MINDSPEED.refuses(problem_of(4, schedule=ScheduleName.GPIPE)) == (
        "MindSpeed has no schedule gpipe; use one of 1f1b, interleaved, dualpipev",
    )
    assert MINDSPEED.refuses(problem_of(4, schedule=ScheduleName.DUALPIPEV, stages=1)) == (
        "MindSpeed's dualpipev needs at least 2 stages (got 1)",
    )
    problem = problem_of(4, mtp=1, schedule=ScheduleName.DUALPIPEV)
    counts = counts_of(problem, [1, 1, 2, 0], 0, [0] * 4)
    counts[1, Recompute.NONE, 2] = 1
    assert MINDSPEED.unsaid(Plan(problem=problem, counts=counts)) == (
        "all MTP layers must stand in the last cell, beside the loss",
    )
    assert MINDSPEED.unsaid(plan_of_layout("Et|m||L", 2)) == MEGATRON.unsaid(plan_of_layout("Et|m||L", 2))


def test_the_nearest_setting_may_be_dealt_over_chunks():
    # One layer differs from [2, 2, 1, 1]; every Megatron-LM setting differs in at least two.
    found = nearest(plan_of([3, 3, 3, 3], [2, 2, 1, 0], interleave=2), MINDSPEED)
    assert found is not None
    assert (found.words, found.differing) == (f"{BLOCK} 3 {PER_RANK}", 1)


@pytest.mark.parametrize(
    "changes", [{}, {"interleave": 2}, {"schedule": ScheduleName.DUALPIPEV, "micro_batches": 8}]
)
def test_the_planner_finds_plans_that_can_be_said(changes):
    problem = problem_of(8, target="mindspeed", memory_limit_mb=1000.0, **changes)
    plan = plan_pipeline(problem, time_limit_s=3).plan
    assert plan is not None
    assert MINDSPEED.unsaid(plan) == ()
    assert int(np.sum(plan.counts)) == 8
