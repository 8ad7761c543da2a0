"""Unequal devices and the order of them: against brute force over plans and orders, and by hand."""

import itertools
import math
import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError, NoPlanFoundError
from sapp_ppb.plan import Outcome, Plan, Status, StoppedBy
from sapp_ppb.planner import Progress, plan_pipeline
from sapp_ppb.planner.device_orders import in_order, number_of_orders, orders_of
from sapp_ppb.planner.proof.bounds import any_order_bound, lower_bound
from sapp_ppb.problem import Problem
from sapp_ppb.readers import read_model
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator import simulate
from tests.planner.brute_force import all_plans, small_problem
from tests.reference import reference

_SOAK = int(os.environ.get("SAPP_PPB_SOAK", "0"))
_PROBLEMS = _SOAK or 40


def equal_layers(count: int = 6, **sizes) -> Problem:
    """So many layers of 1 + 2 ms, and 10 MB under NONE, 1 MB under FULL, which takes 1 ms more."""
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=count,
        forward_ms=1,
        activation_mb={Recompute.NONE: 10, Recompute.FULL: 1},
    )
    return Problem(model=Model(name="equal", layers=(body,)), **sizes)


def planned(problem: Problem, **options) -> Outcome:
    return plan_pipeline(problem, time_limit_s=options.pop("seconds", 0.5), **options)


def test_two_slow_stages_of_eight_are_planned_with_proof() -> None:
    # 30 layers; six stages of speed 1 and two of 0.5 are 7 in all: 30 / 7 = 4.3 layers at speed 1 and
    # 2.1 at 0.5.  All 32 x 90 ms of work take the speed of 7 no less than 2880 / 7 = 411 ms.
    problem = equal_layers(30, stages=8, micro_batches=32, stage_speed=(1, 1, 0.5, 1, 1, 0.5, 1, 1))
    outcome = planned(problem, seconds=5.0)
    assert outcome.status is Status.OPTIMAL
    assert outcome.plan is not None
    layers = outcome.plan.layers_per_cell
    assert outcome.makespan_ms is not None
    assert outcome.makespan_ms > 2880 / 7
    assert max(layers[[2, 5]]) < min(layers[[0, 1, 3, 4, 6, 7]])
    assert outcome.makespan_ms == pytest.approx(reference(outcome.plan).makespan_ms)


def test_a_slow_stage_has_half_the_layers() -> None:
    # 6 layers on speeds 1 and 0.5: 4 take 12 ms and 2 take 6 / 0.5 = 12: (4 + 2 - 1) x 12 = 60.
    outcome = planned(equal_layers(6, stages=2, micro_batches=4, stage_speed=(1, 0.5)))
    assert outcome.status is Status.OPTIMAL
    assert outcome.makespan_ms == pytest.approx(60)
    assert outcome.plan is not None
    assert outcome.plan.layers_per_cell.tolist() == [4, 2]


def test_a_small_device_goes_where_least_is_alive() -> None:
    # 1F1B keeps S - s micro-batches alive on stage s: 3, 2, 1 of M = 3.  3 layers need 3 x 10 = 30,
    # 20 and 10 MB.  As given the first stage has 10 MB and its layer must be recomputed (3 x 1 MB).
    # The 10 MB device last needs no recompute: (3 + 3 - 1) x 3 = 15, against 3 ms more at least.
    problem = equal_layers(3, stages=3, micro_batches=3, memory_limit_mb=(10.0, 30.0, 20.0))
    given, ordered = planned(problem), planned(problem, reorder_stages=True)
    assert given.makespan_ms is not None
    assert given.makespan_ms > 15
    assert ordered.status is Status.OPTIMAL
    assert ordered.makespan_ms == pytest.approx(15)
    assert ordered.stage_order == (1, 2, 0)
    assert ordered.problem.memory_limit_mb == (30.0, 20.0, 10.0)


def best_of_orders(problem: Problem) -> float:
    """Least step over every permutation of the devices, and every plan."""
    return min(
        all_plans(in_order(problem, order)).optimum_ms
        for order in itertools.permutations(range(problem.stages))
    )


def wrong(seed: int, *, together: bool = False) -> str | None:
    """Say what is wrong with the best order of one random problem; None when nothing is."""
    problem = small_problem(Random(seed), most_plans=300, devices=True, together=together)
    if number_of_orders(problem) == 1:
        return None
    best = best_of_orders(problem)
    bound = min(lower_bound(in_order(problem, order)) for order in orders_of(problem))
    if not any_order_bound(problem) <= min(best, math.inf) * (1 + 1e-9):
        return f"seed {seed}: the bound of any order is {any_order_bound(problem)!r}, the best is {best!r}"
    if not bound <= best * (1 + 1e-9):
        return f"seed {seed}: the least bound is {bound!r}, the best is {best!r}"
    outcome = plan_pipeline(problem, time_limit_s=0.3, reorder_stages=True)
    if outcome.plan is None or outcome.step_ms is None or outcome.lower_bound_ms is None:
        return None if math.isinf(best) else f"seed {seed}: nothing fits, but {best!r} does"
    assert outcome.stage_order is not None
    told = reference(outcome.plan)
    if outcome.problem != in_order(problem, outcome.stage_order) or outcome.plan.problem != outcome.problem:
        return f"seed {seed}: the problem is not in the order {outcome.stage_order}"
    if not math.isclose(outcome.step_ms, told.step_ms, rel_tol=1e-9):
        return f"seed {seed}: {outcome.step_ms!r} ms, the slow simulator {told.step_ms!r}"
    if not best * (1 - 1e-9) <= outcome.step_ms or not simulate(outcome.plan).fits_memory:
        return f"seed {seed}: {outcome.step_ms!r} ms beats the best, {best!r}, or does not fit"
    if not outcome.lower_bound_ms <= best * (1 + 1e-9):
        return f"seed {seed}: the bound is {outcome.lower_bound_ms!r}, the best {best!r}"
    if outcome.status is Status.OPTIMAL and outcome.step_ms > best * (1 + 1e-6):
        return f"seed {seed}: {outcome.step_ms!r} ms is called optimal, {best!r} is"
    return None


def test_the_best_of_all_orders_is_found_or_bounded() -> None:
    found = [text for seed in range(_PROBLEMS) if (text := wrong(seed)) is not None]
    assert not found, "\n".join(found)


def test_the_best_of_all_orders_is_found_or_bounded_with_special_layers_and_strategies() -> None:
    found = [text for seed in range(_PROBLEMS // 2) if (text := wrong(seed, together=True)) is not None]
    assert not found, "\n".join(found)


def test_most_orders_of_one_chunk_are_proven() -> None:
    # Guards the test above, which would pass if nothing were ever proven.
    proven = [
        planned(problem, reorder_stages=True, seconds=0.3).status is Status.OPTIMAL
        for problem in (small_problem(Random(seed), most_plans=300, devices=True) for seed in range(150))
        if number_of_orders(problem) > 1
        and problem.interleave == 1
        and problem.schedule_name is ScheduleName.ONE_F_ONE_B
        and not math.isinf(best_of_orders(problem))
    ]
    assert len(proven) >= 5
    assert all(proven)


def test_more_orders_than_can_be_listed_are_searched_by_swaps() -> None:
    # 6! = 720 orders.  The bound is one of any order, so less is proven, and nothing wrong.
    problem = equal_layers(18, stages=6, micro_batches=6, stage_speed=(0.5, 0.6, 0.7, 0.8, 0.9, 1.0))
    assert number_of_orders(problem) == 720
    outcome, given = planned(problem, reorder_stages=True, seconds=2.0), planned(problem, seconds=2.0)
    assert outcome.step_ms is not None
    assert given.step_ms is not None
    assert outcome.stage_order is not None
    assert outcome.problem == in_order(problem, outcome.stage_order)
    assert outcome.step_ms <= given.step_ms * (1 + 1e-9)
    assert outcome.lower_bound_ms == pytest.approx(any_order_bound(problem))


@pytest.mark.parametrize("speeds", [(1.0, 0.5), (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)])
def test_nothing_fits_is_said_of_all_orders(speeds: tuple[float, ...]) -> None:
    # A layer holds 1 MB a micro-batch at least, and 0.5 MB is all that any stage has.
    problem = equal_layers(
        18, stages=len(speeds), micro_batches=6, stage_speed=speeds, memory_limit_mb=(0.5,) * len(speeds)
    )
    outcome = planned(problem, reorder_stages=True)
    assert outcome.status is Status.INFEASIBLE
    assert outcome.problem == problem
    assert outcome.shortage is not None


def test_many_orders_of_which_only_some_may_fit_are_not_called_infeasible() -> None:
    # The largest device could hold a layer, the others none: no order fits, but that is not known.
    problem = equal_layers(18, stages=6, micro_batches=6, memory_limit_mb=(0.1, 0.2, 0.3, 0.4, 0.5, 1000.0))
    with pytest.raises(NoPlanFoundError, match="in no order of the stages that was tried"):
        planned(problem, reorder_stages=True)


def test_equal_stages_are_not_reordered() -> None:
    with pytest.raises(InputError, match="reorder-stages: needs stages that differ, and all are alike"):
        planned(equal_layers(stages=2, micro_batches=4), reorder_stages=True)


def test_a_target_with_several_ways_is_planned_in_every_order() -> None:
    problem = equal_layers(6, stages=2, micro_batches=4, stage_speed=(0.5, 1), target="megatron")
    outcome = planned(problem, reorder_stages=True, seconds=2.0)
    # 4 + 2 layers as above, in either order, are (4 + 2 - 1) x 12 = 60.
    assert outcome.step_ms == pytest.approx(60)
    assert outcome.problem == in_order(problem, outcome.stage_order or ())


def test_one_seed_has_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    problem = equal_layers(12, stages=3, interleave=2, micro_batches=6, stage_speed=(0.5, 1, 1.0))
    first, again = (planned(problem, reorder_stages=True) for _ in range(2))
    assert first == again


def test_what_comes_after_the_last_op_is_part_of_what_is_minimised() -> None:
    # 4 layers of 1 + 2 ms on two stages, M = 4.  Stage 1 ends its last backward before stage 0 does.
    # 2 + 2 layers: (4 + 2 - 1) x 6 = 30, stage 1 is done at 30 - 4 = 26.  With 11 ms on stage 1 the
    # step is 37.  3 + 1: stage 0 works 4 x 9 = 36 without a wait, since 1B0 is done at
    # 3 + 1 + 2 = 6 and 0F1 at 6: F0 F1 B0 ... B3, 36; stage 1's last forward is behind 0F3 and 1B3
    # is done before 0B3 starts at 30: 30 + 11 = 41 at most, above 36.
    problem = equal_layers(4, stages=2, micro_batches=4, step_extra_ms=(0.0, 11.0))
    best = all_plans(problem)
    outcome = planned(problem)
    assert outcome.plan is not None
    assert outcome.status is Status.OPTIMAL
    assert outcome.step_ms == pytest.approx(best.optimum_ms) == pytest.approx(reference(outcome.plan).step_ms)
    even = simulate(Plan(problem=problem, counts=[[[2, 2], [0, 0], [0, 0], [0, 0], [0, 0]]]))  # type: ignore[arg-type]
    assert (even.makespan_ms, even.step_ms) == (30.0, 37.0)


def test_equal_times_after_the_last_op_only_add_to_the_step() -> None:
    # Stage 0 ends last under 1F1B, so 5 ms on every stage come behind the makespan.
    problem = equal_layers(6, stages=2, micro_batches=4)
    without, with_extra = planned(problem), planned(replace(problem, step_extra_ms=5.0))
    assert without.makespan_ms == with_extra.makespan_ms
    assert with_extra.step_ms == pytest.approx((without.step_ms or 0.0) + 5)
    assert with_extra.lower_bound_ms == pytest.approx((without.lower_bound_ms or 0.0) + 5)
    assert with_extra.status is Status.OPTIMAL


def test_an_interrupt_keeps_the_best_plan_and_a_bound_of_any_order() -> None:
    def interrupt(progress: Progress) -> None:
        if progress.best_ms is not None:
            raise KeyboardInterrupt

    problem = equal_layers(9, stages=3, interleave=2, micro_batches=6, stage_speed=(1, 0.5, 0.7))
    outcome = planned(problem, reorder_stages=True, watch=interrupt)
    assert outcome.stopped_by is StoppedBy.INTERRUPT
    assert outcome.plan is not None
    assert outcome.step_ms == pytest.approx(reference(outcome.plan).step_ms)
    assert outcome.lower_bound_ms == pytest.approx(any_order_bound(problem))


@pytest.mark.parametrize("most", [0, 1])
def test_reordered_stages_mix_no_more_types_than_they_may(most) -> None:
    # Six layers on two stages, four micro-batches, 45 MB: stage 0 holds two live, so that without
    # recompute it has two layers, 2 x 2 x 10 = 40 MB, and stage 1 the other four, 40 MB.
    problem = equal_layers(
        stages=2, micro_batches=4, memory_limit_mb=45, stage_speed=(1, 0.9), max_recompute_types=most
    )
    outcome = planned(problem, reorder_stages=True)
    assert outcome.plan is not None
    assert outcome.plan.mixed_types <= most
    if most == 0:
        assert outcome.plan.layers_per_cell.tolist() == [2, 4]


DOCUMENT = (Path(__file__).parents[2] / "docs" / "devices.md").read_text(encoding="utf-8")


def documented(**changes) -> Problem:
    """Give the problem of docs/devices.md."""
    model = read_model(Path(__file__).parents[2] / "examples" / "llama2_70b.json")
    return Problem(model=model, stages=8, micro_batches=64, memory_limit_mb=50_000, **changes)


def test_the_document_says_what_two_slow_stages_of_eight_take() -> None:
    outcome = planned(documented(stage_speed=(1, 1, 1, 0.8, 1, 0.8, 1, 1)), seconds=10.0)
    assert outcome.status is Status.OPTIMAL
    assert f"makespan      {outcome.makespan_ms:,.1f} ms" in DOCUMENT


def test_the_document_says_what_time_after_the_last_op_takes() -> None:
    outcome = planned(documented(step_extra_ms=(*[900] * 7, 40_000)), seconds=10.0)
    assert outcome.status is Status.OPTIMAL
    assert f"makespan      {outcome.makespan_ms:,.1f} ms" in DOCUMENT
    assert f"step          {outcome.step_ms:,.1f} ms with time outside the pipeline; stage 7" in DOCUMENT


@pytest.mark.slow
def test_the_document_says_what_the_best_order_takes() -> None:
    problem = documented(stage_speed=(1, 1, 1, 0.8, 1, 0.8, 1, 1))
    outcome = planned(problem, reorder_stages=True, seconds=30.0)
    assert outcome.status is Status.OPTIMAL
    assert f"makespan      {outcome.makespan_ms:,.1f} ms" in DOCUMENT
    assert f"stage order   {' '.join(map(str, outcome.stage_order or ()))}: " in DOCUMENT
