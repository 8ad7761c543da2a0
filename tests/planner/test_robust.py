"""Plans under noise: exact where it can be worked out, repeatable, and the same draws for all."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Outcome, Plan, Status, StoppedBy, plan_from_matrices
from sapp_ppb.planner import plan_pipeline, robustness
from sapp_ppb.planner.robust import chain_of
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import simulate
from tests.strategies import plans_in_any_mode, with_devices


def outcome_of(plan: Plan, *runners_up: Plan, seed: int = 0) -> Outcome:
    return Outcome(
        problem=plan.problem,
        plan=plan,
        status=Status.FEASIBLE,
        stopped_by=StoppedBy.BUDGET,
        makespan_ms=simulate(plan).makespan_ms,
        seed=seed,
        runners_up=runners_up,
    )


def one_stage(
    *, count: int = 1, micro_batches: int = 1, ends: bool = False, overhead_ms: float = 0.0
) -> Plan:
    """Layers of 1 + 2 ms on one stage, with a HEAD and a TAIL of the same."""
    kinds = [LayerKind.HEAD, LayerKind.BODY, LayerKind.TAIL] if ends else [LayerKind.BODY]
    layers = tuple(layer_from_times(name=kind.value, kind=kind, count=count, forward_ms=1) for kind in kinds)
    model = Model(name="one", layers=layers, op_overhead_ms=overhead_ms)
    problem = Problem(model=model, stages=1, micro_batches=micro_batches)
    return plan_from_matrices(problem, {"BODY": {"none": [[count]]}})


@given(plans_in_any_mode())
def test_without_noise_every_draw_is_the_makespan(plan: Plan) -> None:
    found = robustness(outcome_of(plan), 0.0, draws=3)
    makespan = simulate(plan).makespan_ms
    for each in (found.chosen.step_ms, found.chosen.median_ms, found.chosen.p95_ms):
        assert each == pytest.approx(makespan, rel=1e-9)
    assert len(found.plans) <= 9


@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_the_factor_of_a_layer_has_the_mean_1_and_the_deviation_asked_for(noise: float) -> None:
    # One layer of 3 ms: its step is 3 times its factor.  Log-normal of mean 1 and relative deviation r:
    # sigma^2 = ln(1 + r^2), median exp(-sigma^2 / 2), 95th percentile exp(1.645 sigma - sigma^2 / 2).
    found = robustness(outcome_of(one_stage()), noise, draws=200_000).chosen
    sigma = np.sqrt(np.log(1 + noise**2))
    assert found.median_ms / 3 == pytest.approx(np.exp(-(sigma**2) / 2), rel=0.005)
    assert found.p95_ms / 3 == pytest.approx(np.exp(1.6449 * sigma - sigma**2 / 2), rel=0.005)


def test_layers_vary_one_by_one_and_their_micro_batches_together() -> None:
    # 100 layers: their deviations average, 5 % / sqrt(100) = 0.5 %; 100 micro-batches of one layer do not.
    many = robustness(outcome_of(one_stage(count=100)), 0.05, draws=20_000).chosen
    assert many.p95_ms / 300 - 1 == pytest.approx(1.645 * 0.005, rel=0.05)
    often = robustness(outcome_of(one_stage(micro_batches=100)), 0.05, draws=20_000).chosen
    assert often.p95_ms / 300 - 1 == pytest.approx(1.645 * 0.05, rel=0.05)


def test_every_head_and_tail_varies_too_and_the_overhead_does_not() -> None:
    # 3 x 4 layers of 3 ms: 36 with a deviation of 5 % / sqrt(12), and 2 ops of 100.
    plan = one_stage(count=4, ends=True, overhead_ms=100.0)
    found = robustness(outcome_of(plan), 0.05, draws=20_000).chosen
    assert found.step_ms == 236.0
    assert (found.p95_ms - 236) / 36 == pytest.approx(1.645 * 0.05 / np.sqrt(12), rel=0.05)


def test_a_recomputed_layer_varies_with_all_of_its_time() -> None:
    # F 1 and B 2 x 1.5 = 3 with FULL: 4 times the factor that the layer without recompute has 3 times.
    body = layer_from_times(
        name="BODY", kind=LayerKind.BODY, forward_ms=1, activation_mb={Recompute.NONE: 2, Recompute.FULL: 1}
    )
    problem = Problem(model=Model(name="one", layers=(body,)), stages=1, micro_batches=1)
    plain, full = (plan_from_matrices(problem, {"BODY": {label: [[1]]}}) for label in ("none", "full"))
    found = robustness(outcome_of(plain, full), 0.2)
    for plan, times in zip(found.plans, (3, 4), strict=True):
        assert plan.p95_ms / times == pytest.approx(found.chosen.p95_ms / 3, rel=1e-12)


def test_the_same_seed_gives_the_same_table_and_another_one_another() -> None:
    plan = one_stage(count=3)
    tables = [
        [(each.median_ms, each.p95_ms) for each in robustness(outcome_of(plan, seed=seed), 0.05).plans]
        for seed in (7, 7, 8)
    ]
    assert tables[0] == tables[1]
    assert tables[0] != tables[2]


def uneven() -> tuple[Plan, Plan]:
    """Four layers of 60 ms and two of 30 on two stages: 3 + 3 of them, and 2 + 4."""
    layers = tuple(
        layer_from_times(name=name, kind=LayerKind.BODY, count=count, forward_ms=ms)
        for name, count, ms in (("big", 4, 20), ("small", 2, 10))
    )
    problem = Problem(model=Model(name="uneven", layers=layers), stages=2, micro_batches=16)
    return (
        plan_from_matrices(problem, {"big": {"none": [[3, 1]]}, "small": {"none": [[0, 2]]}}),
        plan_from_matrices(problem, {"big": {"none": [[2, 2]]}, "small": {"none": [[0, 2]]}}),
    )


def test_a_stage_of_more_layers_is_surer_and_can_be_worth_a_longer_step() -> None:
    # Loads 180 | 120: (LB2) on stage 0 says 300 + 15 x 120 + 14 x 60; loads 120 | 180: (LB1) on stage 1 says
    # 120 + 16 x 180.  The busy stage has three layers of 60, deviation 20 % of 60 sqrt(3) = 20.8 ms, or two
    # of 60 and two of 30, 20 % of 30 sqrt(10) = 19.0 ms.
    fast, sure = uneven()
    found = robustness(outcome_of(fast, sure), 0.2)
    assert found.chosen.plan == fast
    assert (found.chosen.step_ms, found.best_at_p95.step_ms) == (2940.0, 3000.0)
    assert found.best_at_p95.plan == sure
    assert found.best_at_p95.p95_ms < 0.98 * found.chosen.p95_ms


def test_what_was_met_comes_first_and_then_splits_with_one_layer_moved() -> None:
    # On two stages 3 + 3 layers can become 2 + 4 (known already) and 4 + 2.
    fast, sure = uneven()
    found = robustness(outcome_of(fast, sure), 0.05)
    assert sorted(tuple(each.plan.layers_per_cell.tolist()) for each in found.plans) == [
        (2, 4),
        (3, 3),
        (4, 2),
    ]
    assert found.plans[0].plan == fast
    times = [each.step_ms for each in found.plans[1:]]
    assert times == sorted(times)


def test_a_layer_is_not_moved_where_it_does_not_fit_or_may_not_go() -> None:
    body = layer_from_times(
        name="Dec", kind=LayerKind.BODY, count=4, forward_ms=1, activation_mb={Recompute.NONE: 10}
    )
    problem = Problem(
        model=Model(name="tight", layers=(body,)), stages=2, micro_batches=4, memory_limit_mb=(40, 20)
    )
    # 1F1B holds 2 and 1 micro-batches: 2 x 2 x 10 = 40 on stage 0, 2 x 10 on stage 1; nothing can move.
    plan = plan_from_matrices(problem, {"Dec": {"none": [[2, 2]]}})
    assert [each.plan for each in robustness(outcome_of(plan), 0.05).plans] == [plan]
    roomy = replace(problem, memory_limit_mb=None)
    plan = Plan(problem=roomy, counts=plan.counts)
    assert len(robustness(outcome_of(plan), 0.05).plans) == 3
    kept = Plan(problem=replace(roomy, fix=plan.split), counts=plan.counts)
    assert [each.plan for each in robustness(outcome_of(kept), 0.05).plans] == [kept]


@given(plans_in_any_mode())
def test_a_plan_written_out_layer_by_layer_has_its_counts_in_the_order_of_the_chain(plan: Plan) -> None:
    kind, recompute, cell = chain_of(plan)
    counts = np.zeros_like(plan.counts)
    np.add.at(counts, (kind, recompute, cell), 1)
    assert np.array_equal(counts, plan.counts)
    assert (np.diff(kind) >= 0).all()
    assert (np.diff(cell) >= 0).all()


def test_planning_remembers_other_plans_that_fit() -> None:
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=12,
        forward_ms=1,
        activation_mb={Recompute.NONE: 10, Recompute.FULL: 1},
    )
    problem = Problem(
        model=Model(name="tiny", layers=(body,)), stages=3, interleave=2, micro_batches=6, memory_limit_mb=170
    )
    outcome = plan_pipeline(problem, time_limit_s=0.2)
    assert outcome.plan is not None
    assert outcome.makespan_ms is not None
    assert 1 <= len(outcome.runners_up) <= 8
    assert len({outcome.plan, *outcome.runners_up}) == len(outcome.runners_up) + 1
    timelines = [simulate(plan) for plan in outcome.runners_up]
    assert all(timeline.fits_memory for timeline in timelines)
    assert min(timeline.makespan_ms for timeline in timelines) >= outcome.makespan_ms * (1 - 1e-9)


def test_no_plan_and_a_noise_that_can_not_be_are_refused() -> None:
    nothing = Outcome(
        problem=one_stage().problem, plan=None, status=Status.INFEASIBLE, stopped_by=StoppedBy.PROOF
    )
    with pytest.raises(InputError, match="there is no plan to try, because none fits"):
        robustness(nothing, 0.05)
    for noise in (-0.1, 1.5, float("nan")):
        with pytest.raises(InputError, match="noise: must be from 0 to 100%"):
            robustness(outcome_of(one_stage()), noise)


@given(plans_in_any_mode(), st.integers(0, 2**32 - 1))
def test_without_noise_every_draw_on_unequal_devices_is_the_step(plan: Plan, seed: int) -> None:
    unequal = Plan(problem=with_devices(Random(seed), plan.problem), counts=plan.counts)
    found = robustness(outcome_of(unequal), 0.0, draws=3).chosen
    for each in (found.step_ms, found.median_ms, found.p95_ms):
        assert each == pytest.approx(simulate(unequal).step_ms, rel=1e-9)
