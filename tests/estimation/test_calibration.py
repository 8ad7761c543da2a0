"""Overhead and hop time from measured steps: found again where they were put in, and never for the worse."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind, Model, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.estimation import calibrate
from sapp_ppb.plan import Plan, plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator import Besides, MeasuredStep, simulate
from tests.strategies import plans_in_any_mode, random_mode, random_plan, random_problem


def with_numbers(plan: Plan, overhead_ms: float, hop_ms: float) -> Plan:
    model = replace(plan.problem.model, op_overhead_ms=overhead_ms, hop_ms=hop_ms)
    return Plan(problem=plan.problem.changed(model=model), counts=plan.counts)


def run(plan: Plan, overhead_ms: float, hop_ms: float, *, error: float = 0.0) -> MeasuredStep:
    """Step of a world with an overhead and hops, seen with a relative error."""
    step_ms = simulate(with_numbers(plan, overhead_ms, hop_ms)).makespan_ms
    return MeasuredStep(name="run", plan=plan, step_ms=step_ms * (1 + error))


def random_plans(seed: int, number: int) -> list[Plan]:
    """Plans of several cells under any schedule."""
    rng = Random(seed)
    plans: list[Plan] = []
    while len(plans) < number:
        plan = random_plan(rng, random_mode(rng, random_problem(rng, micro_batches=rng.randint(2, 12))))
        plans += [plan] if plan.problem.stages > 1 else []
    return plans


def squares(steps: Sequence[MeasuredStep], overhead_ms: float, hop_ms: float) -> float:
    return sum(
        (Besides(step.plan).step(overhead_ms, hop_ms).makespan_ms / step.step_ms - 1) ** 2 for step in steps
    )


@pytest.mark.parametrize("seed", range(12))
def test_numbers_that_were_put_in_are_found_again(seed: int) -> None:
    rng = Random(f"numbers {seed}")
    overhead_ms, hop_ms = rng.choice([(0.3, 2.0), (4.0, 0.5), (0.0, 3.0), (1.5, 0.0), (0.0, 0.0)])
    found = calibrate([run(plan, overhead_ms, hop_ms) for plan in random_plans(seed, 8)])
    assert found.op_overhead_ms == pytest.approx(overhead_ms, abs=2e-6)
    assert found.hop_ms == pytest.approx(hop_ms, abs=2e-6)
    assert found.median_after == pytest.approx(0.0, abs=1e-6)
    assert found.median_left_out == pytest.approx(0.0, abs=1e-6)
    assert found.free == ()


@pytest.mark.parametrize("seed", range(12))
def test_with_errors_of_measuring_no_numbers_nearby_are_better(seed: int) -> None:
    rng = Random(f"errors {seed}")
    steps = [run(plan, 2.0, 3.0, error=rng.gauss(0, 0.02)) for plan in random_plans(seed, 10)]
    found = calibrate(steps)
    best = squares(steps, found.op_overhead_ms, found.hop_ms)
    assert best <= squares(steps, 0.0, 0.0)
    for more, further in [(0.1, 0.0), (-0.1, 0.0), (0.0, 0.1), (0.0, -0.1), (0.1, -0.1), (-0.1, 0.1)]:
        overhead_ms, hop_ms = max(found.op_overhead_ms + more, 0), max(found.hop_ms + further, 0)
        assert best <= squares(steps, overhead_ms, hop_ms) * (1 + 1e-6)


@given(st.lists(plans_in_any_mode(), min_size=1, max_size=3), st.data())
def test_whatever_was_measured_the_fit_is_no_worse_than_none(plans: list[Plan], data) -> None:
    steps = [
        MeasuredStep(
            name="run",
            plan=plan,
            step_ms=simulate(plan).makespan_ms * data.draw(st.floats(0.5, 3.0)),
        )
        for plan in plans
    ]
    found = calibrate(steps)
    assert found.op_overhead_ms >= 0
    assert found.hop_ms >= 0
    assert squares(steps, found.op_overhead_ms, found.hop_ms) <= squares(steps, 0.0, 0.0) + 1e-9


@given(plans_in_any_mode(), st.floats(0, 5), st.floats(0, 5))
def test_what_is_counted_is_what_the_simulator_takes(plan: Plan, overhead_ms: float, hop_ms: float) -> None:
    counted = Besides(plan).step(overhead_ms, hop_ms)
    told = simulate(with_numbers(plan, overhead_ms, hop_ms)).makespan_ms
    assert counted.makespan_ms == pytest.approx(told, rel=1e-9)
    # The counts are of a path: none is longer at other numbers.
    rest = counted.makespan_ms - counted.ops * overhead_ms - counted.hops * hop_ms
    for other in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (5.0, 5.0)):
        path_ms = rest + counted.ops * other[0] + counted.hops * other[1]
        assert path_ms <= Besides(plan).step(*other).makespan_ms * (1 + 1e-9) + 1e-9


def tiny(stages: int, micro_batches: int, *, overhead_ms: float = 0.0) -> Plan:
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=stages, forward_ms=10)
    problem = Problem(
        model=Model(name="tiny", layers=(body,), op_overhead_ms=overhead_ms),
        stages=stages,
        micro_batches=micro_batches,
        schedule=ScheduleName.GPIPE,
    )
    return plan_from_matrices(problem, {"Dec": {"none": [[1] * stages]}})


def test_errors_are_told_with_the_models_own_numbers_with_the_new_ones_and_without_the_run() -> None:
    # GPipe on 2 stages: (M + 1)(30 + 2 o) and 2 hops.  The model says o = 1: 64 and 160.  Measured are
    # 66 and 159, which is o = 0.5 and hops of 2.  Without the first run 2 hops and 10 ops share 9 ms.
    steps = [
        MeasuredStep(name="a", plan=tiny(2, 1, overhead_ms=1.0), step_ms=66.0),
        MeasuredStep(name="b", plan=tiny(2, 4, overhead_ms=1.0), step_ms=159.0),
    ]
    found = calibrate(steps)
    assert [found.op_overhead_ms, found.hop_ms] == pytest.approx([0.5, 2.0])
    first, second = found.runs
    assert (first.name, first.before_ms, second.before_ms) == ("a", 64.0, 160.0)
    assert first.error(first.before_ms) == pytest.approx(-2 / 66)
    assert second.error(second.before_ms) == pytest.approx(1 / 159)
    assert [first.after_ms, second.after_ms] == pytest.approx([66, 159])
    assert first.left_out_ms is not None
    assert 60 <= first.left_out_ms <= 60 + 9


def test_a_single_run_is_not_left_out_and_does_not_tell_the_numbers_apart() -> None:
    found = calibrate([MeasuredStep(name="a", plan=tiny(2, 4), step_ms=159.0)])
    assert found.runs[0].left_out_ms is None
    assert found.median_left_out is None
    assert found.free == ("op_overhead_ms", "hop_ms")
    assert found.median_after == pytest.approx(0.0, abs=1e-6)


def test_one_stage_has_no_hops_to_tell_of() -> None:
    found = calibrate([MeasuredStep(name=str(m), plan=tiny(1, m), step_ms=32.0 * m) for m in (2, 5)])
    assert [found.op_overhead_ms, found.hop_ms] == pytest.approx([1.0, 0.0])
    assert found.free == ("hop_ms",)


def test_steps_that_are_faster_than_their_layers_give_no_negative_numbers() -> None:
    found = calibrate([MeasuredStep(name=str(m), plan=tiny(2, m), step_ms=20.0 * m) for m in (2, 5)])
    assert (found.op_overhead_ms, found.hop_ms) == (0.0, 0.0)


def test_no_runs_at_all_are_refused() -> None:
    with pytest.raises(InputError, match="runs: there is none; give at least one measured step"):
        calibrate([])
