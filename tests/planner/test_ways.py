"""Plans for frameworks whose recompute is one setting: the best of all that they can say."""

import math
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError, NoPlanFoundError
from sapp_ppb.fix import Fix, PlaceRule
from sapp_ppb.plan import Outcome, Plan, Status
from sapp_ppb.planner import plan_pipeline, with_cost_of_target
from sapp_ppb.planner.proof.bounds import bound_within, lower_bound, work_bound
from sapp_ppb.planner.ways import _taste
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets import TARGETS, target_named
from sapp_ppb.targets.recompute_modes import only_type
from tests.planner.brute_force import all_plans, small_problem
from tests.reference import reference

_PROBLEMS = 150
_MOST_PLANS = 1_500


def optimum_ms(problem: Problem) -> float:
    """Least makespan of all plans that fit and that the target can say, by listing them."""
    # No target has words for strategies.
    plans = all_plans(problem.changed(target=None, recompute=tuple(Recompute)))
    fits = plans.fits
    for index in np.argsort(plans.makespan_ms, kind="stable").tolist():
        if fits[index] and _is_asked(problem, plans.plan(index)):
            return float(plans.makespan_ms[index])
    return math.inf


def _is_asked(problem: Problem, plan: Plan) -> bool:
    """Whether the target can say a plan; torchtitan's every n-th layer is planned with one chunk only."""
    if target_named(problem.target or "").unsaid(plan):
        return False
    return problem.target != "torchtitan" or problem.interleave == 1 or only_type(plan) is not None


def answer(problem: Problem) -> Outcome | None:
    """Plan; None where none was found in time."""
    try:
        return plan_pipeline(problem, time_limit_s=3.0)
    except NoPlanFoundError:
        return None


def _has_ways(problem: Problem) -> bool:
    try:
        return bool(target_named(problem.target or "").ways(problem))
    except InputError:
        return False


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "mindformers"])
def test_no_plan_that_can_be_said_is_better_and_no_bound_above_it(target):
    proven = feasible = infeasible = 0
    for seed in range(_PROBLEMS):
        problem = small_problem(Random(f"{target} {seed}"), most_plans=_MOST_PLANS, target=target, runs=True)
        best = optimum_ms(problem)
        if not _has_ways(problem):
            assert math.isinf(best), seed
            with pytest.raises(InputError, match=r"no setting for recompute|a module in every model part"):
                answer(problem)
            continue
        outcome = answer(problem)
        if outcome is None:
            continue
        if outcome.plan is None:
            infeasible += 1
            assert math.isinf(best), f"seed {seed} has a plan of {best} ms"
            continue
        feasible += 1
        assert not target_named(target).unsaid(outcome.plan), seed
        told = reference(outcome.plan)
        assert told.makespan_ms == pytest.approx(outcome.makespan_ms, rel=1e-9), seed
        assert (told.peak_mb <= np.array(problem.limit_per_stage_mb) * (1 + 1e-9)).all(), seed
        assert outcome.makespan_ms is not None, seed
        assert outcome.lower_bound_ms is not None, seed
        assert outcome.makespan_ms >= best * (1 - 1e-9), f"seed {seed}: below the best of all, {best}"
        assert outcome.lower_bound_ms <= best * (1 + 1e-9), f"seed {seed}: bound above the best, {best}"
        if outcome.status is Status.OPTIMAL:
            proven += 1
            assert outcome.makespan_ms <= best * (1 + 1e-6), f"seed {seed}: {best} is faster"
    assert proven >= 0.8 * feasible
    assert infeasible >= 1


def body(count: int, **changes) -> Problem:
    """Two stages and four micro-batches of one kind; forward 1, backward 2, with full 3."""
    memory = {Recompute.NONE: 10.0, Recompute.FULL: 1.0}
    layer = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=count,
        forward_ms=1,
        activation_mb=memory,
        explicit={Recompute.FULL: 3},
    )
    model = Model(name="m", layers=(layer,))
    given: dict[str, Any] = {"stages": 2, "micro_batches": 4, "target": "megatron"} | changes
    return Problem(model=model, **given)


def test_a_way_is_bounded_until_a_time_to_come(monkeypatch):
    # Nine layers on two stages, all FULL, of 1 + 3: the work bound halves 4 x 9 x 4 and waits for one layer,
    # 74, as it must where the time is over; LB1 to LB4 know that a stage has five.
    monkeypatch.setattr("time.monotonic", lambda: 1e6)
    ways = target_named("megatron").ways(body(9))
    _, tasted = _taste(ways, 1.0, math.inf, 0, None, 1.0)
    assert work_bound(ways[0].problem) == pytest.approx(74)
    assert tasted[0].bound_ms == lower_bound(ways[0].problem) > 75


def test_a_share_of_the_time_that_is_shorter_than_a_bound_changes_nothing():
    # A thousandth of a second for each of the ways, and a clock that takes as long from look to look.
    clock = count()
    ways = target_named("megatron").ways(body(9))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", lambda: next(clock) / 1000)
        _, hurried = _taste(ways, 0.001, math.inf, 0, None, 1.0)
    _, usual = _taste(ways, 1.0, math.inf, 0, None, 1.0)
    assert [each.bound_ms for each in hurried] == [each.bound_ms for each in usual]


def way(problem: Problem, layers: int) -> Problem:
    rule = PlaceRule(recompute=Recompute.FULL, first=layers)
    return problem.changed(fix=Fix(places=rule))


def test_a_cutoff_bounds_how_much_a_rule_must_pick():
    # Within 60 ms a stage has at most 60 / 4 / 3 = 5 layers, of which a rule of 2 picks two at least:
    # 8 layers work 4 * 8 * 3 / 2 = 48 a stage, and one layer's wait of 3 / 2 for the second stage,
    # and 8 * 2 / 5 picked ones take 4 / 2 * 1 more each.
    assert bound_within(way(body(8), 2), 60.0, 0.0) == pytest.approx(48 + 1.5 + 3.2 * 2)
    assert bound_within(way(body(8), 2), math.inf, 7.0) == 7.0
    assert bound_within(way(body(8), 6), 60.0, 0.0) == math.inf  # all five, as the rule of 5 picks
    assert bound_within(body(8), 60.0, 7.0) == 7.0


def test_the_smallest_block_that_fits_is_taken():
    # Stage 0 holds two micro-batches of its 4 layers: 80 MB without recompute, 80 - 2 * 9 for each full one.
    outcome = plan_pipeline(body(8, memory_limit_mb=62.0))
    assert outcome.status is Status.OPTIMAL
    assert outcome.plan is not None
    assert outcome.plan.counts[0, Recompute.FULL].tolist() == [1, 1]
    # Five passes of F + B of a stage, 4 * 3 + 1 each: M + S - 1 = 5.
    assert outcome.makespan_ms == pytest.approx(65.0)


def test_what_a_target_costs_is_said():
    outcome = with_cost_of_target(plan_pipeline(body(8, memory_limit_mb=62.0)), time_limit_s=5.0)
    # Free, stage 1 holds one micro-batch and recomputes nothing: 13 + 12 in all, and by LB4 on stage 0
    # a step takes 25 + 12 + (M - S) * 13 = 63.
    free = plan_pipeline(body(8, memory_limit_mb=62.0, target=None))
    assert outcome.without_target is not None
    assert outcome.without_target.makespan_ms == free.makespan_ms == pytest.approx(63.0)
    assert outcome.without_target.lower_bound_ms == free.lower_bound_ms


def test_a_bound_without_the_target_holds_for_it():
    problem = body(8)
    outcome = replace(plan_pipeline(problem), lower_bound_ms=1.0, status=Status.FEASIBLE)
    # Nothing is recomputed: no plan is faster than 5 * 12, which the target can say too.
    proven = with_cost_of_target(outcome, time_limit_s=5.0)
    assert proven.lower_bound_ms == pytest.approx(60.0)
    assert proven.status is Status.OPTIMAL


def test_without_a_target_or_a_plan_nothing_is_compared():
    for problem in (body(8, target=None), body(8, memory_limit_mb=5.0)):
        outcome = plan_pipeline(problem)
        assert with_cost_of_target(outcome, time_limit_s=1.0) is outcome


def test_one_kind_without_competing_types_loses_nothing_in_nested_lists():
    outcome = plan_pipeline(body(8, target="mindformers", memory_limit_mb=62.0))
    told = with_cost_of_target(outcome, time_limit_s=1.0).without_target
    assert told is not None
    assert told.makespan_ms == outcome.makespan_ms


def test_nothing_fits_any_setting():
    # All eight recomputed hold 2 * 4 * 1 MB on stage 0.
    outcome = plan_pipeline(body(8, memory_limit_mb=5.0))
    assert outcome.status is Status.INFEASIBLE
    assert outcome.shortage is not None
    assert outcome.shortage.smallest_limit_mb == pytest.approx(
        6.0
    )  # 3 layers twice on stage 0, 5 on the other


def test_a_schedule_that_the_target_has_not_is_refused():
    problem = body(8, schedule=ScheduleName.GPIPE)
    with pytest.raises(InputError, match="Megatron-LM has no schedule gpipe"):
        plan_pipeline(problem)


def test_recompute_that_no_setting_says_is_refused():
    kept = Fix(recompute=(((0, 0),) * 4 + ((1, 0),),))
    with pytest.raises(InputError, match="no setting for recompute"):
        plan_pipeline(body(8, fix=kept))


def test_the_same_seed_gives_the_same_plan():
    problem = body(9, interleave=2, memory_limit_mb=60.0)
    first, second = (plan_pipeline(problem, seed=3) for _ in range(2))
    assert first.plan == second.plan
    assert first.lower_bound_ms == second.lower_bound_ms


def test_a_limit_that_is_told_does_for_what_the_target_can_say():
    # (2, 2) layers of 10 MB, two live on stage 0: all BOTH hold 2 x (10 + 2 x 2) = 28 MB, which torchtitan
    # can not say; all SELECTIVE 2 x (10 + 2 x 8) = 52.  With (1, 3) stage 1 holds 3 x 18 = 54.
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=4,
        forward_ms=1,
        parameter_mb=10,
        activation_mb={Recompute.NONE: 20, Recompute.SELECTIVE: 8, Recompute.BOTH: 2},
    )
    problem = Problem(
        model=Model(name="m", layers=(body,)),
        stages=2,
        micro_batches=4,
        target="torchtitan",
        memory_limit_mb=30.0,
    )
    shortage = plan_pipeline(problem, time_limit_s=0.5).shortage
    assert shortage is not None
    assert (shortage.smallest_limit_mb, shortage.proven) == (52.0, False)
    assert ("memory_limit_mb", 52.0) in shortage.remedies
    assert plan_pipeline(replace(problem, memory_limit_mb=52.0), time_limit_s=0.5).plan is not None


def _kinds(*memory: dict[Recompute, float], **changes) -> Problem:
    """Kinds of one layer each of 1 + 2 ms on stages that may be empty, as is not planned for MindFormers."""
    layers = tuple(
        layer_from_times(name=f"kind{k}", kind=LayerKind.BODY, forward_ms=1, activation_mb=mb)
        for k, mb in enumerate(memory)
    )
    given: dict[str, Any] = {"model": Model(name="m", layers=layers), "min_layers_per_cell": 0}
    return Problem(**(given | {"stages": 2, "micro_batches": 2, "target": "mindformers"} | changes))


def test_a_way_mixes_no_more_types_than_it_may():
    # Full for both kinds fits and is one type; BOTH for the first and COMM for the second are faster, fit as
    # well, and are two.
    both, comm, full = Recompute.BOTH, Recompute.COMM, Recompute.FULL
    problem = _kinds({both: 3, full: 1}, {comm: 3, full: 1}, max_recompute_types=1)
    outcome = plan_pipeline(problem, time_limit_s=0.5)
    assert outcome.status is Status.OPTIMAL
    assert outcome.plan is not None
    assert outcome.plan.mixed_types == 1
    # (M + S - 1) x (f + b), b = 1.5 x 2.
    assert outcome.makespan_ms == pytest.approx((2 + 2 - 1) * (1 + 3))
    two = plan_pipeline(replace(problem, max_recompute_types=2), time_limit_s=0.5)
    assert two.makespan_ms is not None
    assert two.makespan_ms < 12


def test_a_plan_to_begin_with_may_leave_a_cell_empty_that_planning_fills():
    problem = _kinds({Recompute.NONE: 1}, {Recompute.NONE: 1})
    counts = np.zeros((2, len(Recompute), 2), dtype=np.int64)
    counts[:, Recompute.NONE, 1] = 1
    outcome = plan_pipeline(problem, time_limit_s=0.2, warm_start=Plan(problem=problem, counts=counts))
    assert outcome.plan is not None
    assert outcome.plan.layers_per_cell.tolist() == [1, 1]


def test_reordered_stages_are_filled_as_others_are():
    # Both layers alone on the fast device would take 2 x 6 / 2 = 6 ms; with one on each, the slow one alone
    # takes 2 x 3 / 0.5 = 12.
    problem = _kinds({Recompute.NONE: 1}, {Recompute.NONE: 1}, stage_speed=(0.5, 2))
    outcome = plan_pipeline(problem, time_limit_s=0.2, reorder_stages=True)
    assert outcome.plan is not None
    assert outcome.plan.layers_per_cell.tolist() == [1, 1]


@pytest.mark.parametrize("counts", [(5, 1, 1), (2, 3, 1, 1), (4, 2)])
@pytest.mark.parametrize("limit_mb", [900.0, 620.0, 470.0])
def test_megatron_plans_around_layers_of_multi_token_prediction(counts, limit_mb):
    """Equal ones were joined to one entry, and the block rule then left out too many of the others."""
    layer = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        forward_ms=10,
        activation_mb={Recompute.NONE: 100, Recompute.FULL: 5},
    )
    tail = counts.index(1) if 1 in counts else len(counts) - 1
    bodies = tuple(
        replace(layer, name=f"Dec.{k}", count=count, is_mtp=k >= tail) for k, count in enumerate(counts)
    )
    problem = Problem(
        model=Model(name="m", layers=bodies),
        stages=2,
        interleave=2,
        micro_batches=4,
        memory_limit_mb=limit_mb,
        target="megatron",
    )
    outcome = plan_pipeline(problem, time_limit_s=1.0)
    best_ms = optimum_ms(problem)
    assert math.isfinite(best_ms)
    assert outcome.step_ms == pytest.approx(best_ms)
    assert outcome.lower_bound_ms is not None
    assert outcome.lower_bound_ms <= best_ms * (1 + 1e-9)
