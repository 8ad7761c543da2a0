"""What Colossal-AI can say: its split, its styles, and what a cell recomputes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb import plan_pipeline
from sapp_ppb.costs import Recompute
from sapp_ppb.fix import Fix
from sapp_ppb.plan import Status
from sapp_ppb.planner import with_cost_of_target
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.colossalai import COLOSSALAI, default_layers, micro_batch_fault, refuses, unsaid, ways
from tests.parts_plans import FULL, NONE, colossalai_plans, own_split, plan_along
from tests.torchtitan_plans import model_of


def problem_of(*counts, stages=2, interleave=1, micro_batches=8, schedule=None, **more):
    return Problem(
        model=model_of(*counts),
        stages=stages,
        interleave=interleave,
        micro_batches=micro_batches,
        schedule=schedule,
        **more,
    )


@given(st.integers(1, 300), st.integers(1, 40))
def test_its_own_split_gives_the_rest_to_the_middle(layers, cells):
    assert list(default_layers(layers, cells)) == own_split(layers, cells)
    assert sum(default_layers(layers, cells)) == layers


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (
            problem_of(8, schedule=ScheduleName.GPIPE),
            "has no schedule gpipe; use one of 1f1b, interleaved, zbv",
        ),
        (problem_of(8, stages=1), "no pipeline on one stage"),
        (
            problem_of(8, interleave=2, micro_batches=7, micro_batch_group="remainder-first"),
            "multiple of pp_size, 2",
        ),
        (problem_of(12, interleave=3, micro_batches=8), "multiple of num_model_chunks, 3"),
        (problem_of(8, interleave=2, micro_batch_group=4), "takes groups of 2 micro-batches"),
    ],
)
def test_orders_that_it_does_not_run_are_refused(problem, words):
    assert words in "\n".join(refuses(problem))


def test_zbv_wants_micro_batches_in_multiples_of_the_stages_alone():
    assert micro_batch_fault("zbv", 3, 2, 9) is None
    assert (
        micro_batch_fault("zbv", 3, 2, 10)
        == "num_microbatches must be a multiple of pp_size, 3, for zbv (got 10)"
    )
    assert micro_batch_fault("1f1b", 3, 1, 10) is None


def test_a_layer_that_is_recomputed_behind_one_that_is_not_can_not_be_said():
    plan = plan_along([1, 3], [[NONE, FULL], [NONE, NONE]], stages=2)
    assert "counts the first layers of a cell" in "\n".join(unsaid(plan))
    assert unsaid(plan_along([1, 3], [[FULL, NONE], [NONE, NONE]], stages=2)) == ()


def test_several_chunks_can_only_be_split_as_it_does_itself():
    # 9 layers in 4 cells: 2 each, the rest of 1 in cell 4 // 2 - 1 // 2 = 2.
    named = {"stages": 2, "schedule": ScheduleName.INTERLEAVED}
    assert unsaid(plan_along([9], [[NONE] * 2, [NONE] * 2, [NONE] * 3, [NONE] * 2], **named)) == ()
    other = plan_along([9], [[NONE] * 3, [NONE] * 2, [NONE] * 2, [NONE] * 2], **named)
    assert "splits 9 layers as [2, 2, 3, 2]; this plan has [3, 2, 2, 2]" in unsaid(other)[0]


def test_a_stage_without_anything_can_not_be_said():
    plan = plan_along([3], [[NONE], [], [NONE, NONE]], stages=3)
    assert "must hold parameters" in unsaid(plan)[0]


def test_its_way_has_two_types_and_its_own_split():
    (way,) = ways(problem_of(9, interleave=2))
    assert way.problem.recompute == (Recompute.NONE, Recompute.FULL)
    assert way.problem.fix == Fix(layers=(2, 2, 3, 2))
    assert ways(problem_of(9, interleave=2, fix=Fix(layers=(3, 2, 2, 2)))) == ()
    assert ways(problem_of(9, recompute=(Recompute.SELECTIVE,))) == ()


@given(colossalai_plans())
def test_its_way_holds_every_plan_that_it_can_say(plan):
    (way,) = ways(plan.problem.changed(min_layers_per_cell=1))
    allowed = way.problem
    assert allowed.recompute is not None
    assert not plan.counts[:, [r for r in Recompute if r not in allowed.recompute]].any()
    assert allowed.fix is None or allowed.fix.allows(plan.counts)


@pytest.mark.parametrize(("chunks", "limit_mb"), [(1, 700.0), (2, 1160.0)])
def test_the_planner_stays_within_what_it_can_say(chunks, limit_mb):
    problem = problem_of(3, 6, interleave=chunks, target="colossalai", memory_limit_mb=limit_mb)
    outcome = with_cost_of_target(plan_pipeline(problem, time_limit_s=2), time_limit_s=2)
    assert outcome.status in (Status.OPTIMAL, Status.FEASIBLE)
    assert outcome.plan is not None
    assert COLOSSALAI.unsaid(outcome.plan) == ()
    assert outcome.without_target is not None


def test_what_does_not_fit_is_told_of_its_own_split():
    # 9 layers of 96 MB recomputed, 2, 2, 3 and 2 along the chain: stage 0 holds cells 0 and 2.  Before its
    # first backward it runs 2 (S - 1) + (V - 1) S + 1 = 5 forwards, as groups of 2: 3 of cell 0 and 2 of
    # cell 2, so 3 x 2 + 2 x 3 = 12 layers of 96 MB.
    problem = problem_of(3, 6, interleave=2, target="colossalai", memory_limit_mb=900.0)
    shortage = plan_pipeline(problem, time_limit_s=2).shortage
    assert shortage is not None
    assert (shortage.stage, shortage.smallest_limit_mb) == (0, 12 * 96.0)
    # No fix was asked for, so none can be dropped; Colossal-AI has no other schedule for chunks.
    assert [change for change, _ in shortage.remedies] == ["memory_limit_mb"]
