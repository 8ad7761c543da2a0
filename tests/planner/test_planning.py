"""plan_pipeline() against brute force, and what it refuses, promises and survives."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError, NoPlanFoundError
from sapp_ppb.plan import Outcome, Plan, Shortage, Status, StoppedBy
from sapp_ppb.planner import Progress, baselines, plan_pipeline, run
from sapp_ppb.planner.search.annealing import Search
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Placement
from sapp_ppb.simulator import simulate
from sapp_ppb.targets import silent_cells
from tests.planner.brute_force import MOST_PLANS, all_plans, small_problem
from tests.reference import reference

_SOAK = int(os.environ.get("SAPP_PPB_SOAK", "0"))
_PROBLEMS = _SOAK or 60
_MOST_PLANS = MOST_PLANS if _SOAK else 4_000
_TIME_LIMIT_S = 0.2


@dataclass(frozen=True, kw_only=True)
class Case:
    """A random problem, what brute force says of it, and what the planner says."""

    seed: int
    problem: Problem
    optimum_ms: float
    least_over_mb: float
    smallest_limit_mb: float
    outcome: Outcome

    @property
    def fits(self) -> bool:
        return math.isfinite(self.optimum_ms)

    @property
    def plan(self) -> Plan:
        assert self.outcome.plan is not None
        return self.outcome.plan

    @property
    def step_ms(self) -> float:
        assert self.outcome.step_ms is not None
        return self.outcome.step_ms

    @property
    def bound_ms(self) -> float:
        assert self.outcome.lower_bound_ms is not None
        return self.outcome.lower_bound_ms

    @property
    def is_best(self) -> bool:
        return self.step_ms <= self.optimum_ms * (1 + 1e-6)

    @property
    def shortage(self) -> Shortage:
        assert self.outcome.shortage is not None
        return self.outcome.shortage

    def __str__(self) -> str:
        """Enough to find the problem again."""
        unequal = self.problem.stage_speed is not None or self.problem.has_extra
        words = ", unequal devices" if unequal else ""
        words += ", strategies" if len(self.problem.model.types) > len(Recompute) else ""
        return f"seed {self.seed}, target {self.problem.target}{words}"


def solved(seed: int, target: str | None, most_plans: int = _MOST_PLANS, **drawn: bool) -> Case:
    problem = small_problem(Random(seed), most_plans=most_plans, target=target, runs=True, **drawn)
    every = problem
    if target is not None:
        # MindFormers has a layer in every cell, whatever the problem allows, but beside HEAD, and beside TAIL
        # where the last cell is the last stage's.
        is_loop = problem.order.placement is Placement.LOOP
        every = problem.changed(min_layers_per_cell=1, empty_tail=is_loop)
    plans = all_plans(every, nested=target is not None)
    return Case(
        seed=seed,
        problem=problem,
        optimum_ms=plans.optimum_ms,
        least_over_mb=plans.least_over_mb if plans.number else math.inf,
        smallest_limit_mb=plans.smallest_limit_mb if plans.number else math.inf,
        outcome=plan_pipeline(problem, time_limit_s=_TIME_LIMIT_S),
    )


@pytest.fixture(scope="module", autouse=True)
def standing_clock() -> Iterator[None]:
    """Stop the clock: work is then bounded by its budget alone, however busy the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", lambda: 0.0)
        yield


@pytest.fixture(scope="module")
def cases(standing_clock) -> list[Case]:
    alike = [solved(seed, None) for seed in range(_PROBLEMS)]
    alike += [solved(seed, None, devices=True) for seed in range(_PROBLEMS)]
    return alike + [solved(seed, None, together=True) for seed in range(_SOAK or 40)]


@pytest.fixture(scope="module")
def target_cases(standing_clock) -> list[Case]:
    plain = [solved(seed, "mindformers", 2_000) for seed in range(_PROBLEMS)]
    return plain + [solved(seed, "mindformers", 2_000, together=True) for seed in range(_SOAK or 30)]


@pytest.fixture
def loose() -> Problem:
    """Five layers on two stages, enough for a gap: 3 on one of them, whatever the plan."""
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=5,
        forward_ms=10,
        activation_mb={Recompute.NONE: 10, Recompute.FULL: 1},
    )
    tail = layer_from_times(name="tail", kind=LayerKind.TAIL, forward_ms=7)
    return Problem(model=Model(name="loose", layers=(body, tail)), stages=2, interleave=2, micro_batches=4)


def wrong(cases: list[Case], is_right) -> str:
    return "\n".join(str(case) for case in cases if not is_right(case))


def planned(cases: list[Case]) -> list[Case]:
    return [case for case in cases if case.outcome.plan is not None]


def test_infeasible_is_said_exactly_when_nothing_fits(cases):
    assert not wrong(cases, lambda c: (c.outcome.status is Status.INFEASIBLE) is not c.fits)
    assert not wrong(cases, lambda c: (c.outcome.plan is None) is not c.fits)
    assert not wrong(cases, lambda c: (c.outcome.shortage is None) is c.fits)


def test_no_plan_is_faster_than_the_best_of_all(cases):
    assert not wrong(planned(cases), lambda c: c.step_ms >= c.optimum_ms * (1 - 1e-9))


def test_no_bound_is_above_the_best_of_all(cases):
    assert not wrong(planned(cases), lambda c: c.bound_ms <= c.optimum_ms * (1 + 1e-9))


def test_optimal_is_said_of_optima_only(cases):
    optimal = [c for c in cases if c.outcome.status is Status.OPTIMAL]
    assert optimal
    assert not wrong(optimal, lambda c: c.is_best)
    assert not wrong(
        planned(cases), lambda c: (c.outcome.gap <= 1e-6) is (c.outcome.status is Status.OPTIMAL)
    )


def test_nearly_every_plan_is_the_best(cases):
    best = [c for c in planned(cases) if c.is_best]
    assert len(best) >= 0.95 * len(planned(cases))


def test_makespan_and_peaks_are_those_of_the_reference_simulator(cases):
    for case in planned(cases):
        told = reference(case.plan)
        assert case.step_ms == pytest.approx(told.step_ms, rel=1e-9), case
        assert case.outcome.makespan_ms == pytest.approx(told.makespan_ms, rel=1e-9), case
        assert case.outcome.peak_memory_mb == pytest.approx(told.peak_mb, rel=1e-9), case
        for peak, limit in zip(told.peak_mb, case.problem.limit_per_stage_mb, strict=True):
            assert peak <= limit * (1 + 2e-9), case


def test_no_plan_is_slower_than_a_baseline_that_fits(cases):
    for case in planned(cases):
        for baseline in baselines(case.problem):
            timeline = simulate(baseline.plan)
            slower = case.step_ms > timeline.step_ms * (1 + 1e-9)
            assert not (timeline.fits_memory and slower), f"{case}: {baseline.name}"


def test_no_layer_is_recomputed_that_could_be_left_alone(cases):
    assert not wrong(planned(cases), lambda c: not spared(c.plan))


def spared(plan: Plan) -> bool:
    """Whether some recomputed layer would fit, and be faster, under NONE; a tie costs nothing."""
    for layer, recompute, cell in np.argwhere(plan.counts):
        body = plan.problem.model.bodies[layer]
        none = Recompute.NONE
        if recompute == none or none not in body.considered:
            continue
        if body.backward_ms[none] < body.backward_ms[recompute]:
            counts = plan.counts.copy()
            counts[layer, recompute, cell] -= 1
            counts[layer, none, cell] += 1
            if simulate(Plan(problem=plan.problem, counts=counts)).fits_memory:
                return True
    return False


def test_shortage_is_the_least_excess_of_all_plans(cases):
    short = [case for case in cases if not case.fits]
    assert short
    for case in short:
        assert case.shortage.over_mb == pytest.approx(case.least_over_mb, rel=1e-6), case


def test_smallest_limit_is_the_least_highest_peak_of_all_plans(cases):
    for case in (case for case in cases if not case.fits):
        smallest = case.shortage.smallest_limit_mb
        assert smallest == pytest.approx(case.smallest_limit_mb, rel=1e-6), case


def test_a_plan_exists_at_the_smallest_limit(cases):
    for case in [case for case in cases if not case.fits][: max(10, _SOAK)]:
        enough = replace(case.problem, memory_limit_mb=case.shortage.smallest_limit_mb)
        outcome = plan_pipeline(enough, time_limit_s=_TIME_LIMIT_S)
        assert outcome.plan is not None, case
        assert simulate(outcome.plan).fits_memory, case


def test_a_seed_has_one_answer(cases):
    for case in planned(cases)[:12]:
        again = plan_pipeline(case.problem, time_limit_s=_TIME_LIMIT_S)
        assert again.plan == case.plan, case
        assert again.stopped_by is case.outcome.stopped_by, case


@pytest.mark.parametrize("only", [Recompute.SELECTIVE, Recompute.COMM])
def test_a_target_plans_layers_that_know_one_of_the_two_types_only(only):
    # Four layers on two stages, 2 and 2, whatever their type: (M + S - 1) x 2 x (1 + b).
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=4, forward_ms=1, activation_mb={only: 5})
    problem = Problem(model=Model(name="m", layers=(body,)), stages=2, micro_batches=3, target="mindformers")
    outcome = plan_pipeline(problem, time_limit_s=_TIME_LIMIT_S)
    assert outcome.makespan_ms == pytest.approx((3 + 2 - 1) * 2 * (1 + body.backward_ms[only]))


def test_a_target_cuts_between_kinds_that_must_not_meet():
    # Alone, 2 + 2 layers would be even; SELECTIVE-only layers next to COMM-only ones must stand apart.
    first = layer_from_times(
        name="first", kind=LayerKind.BODY, count=1, forward_ms=1, activation_mb={Recompute.SELECTIVE: 5}
    )
    second = layer_from_times(
        name="second", kind=LayerKind.BODY, count=3, forward_ms=1, activation_mb={Recompute.COMM: 5}
    )
    problem = Problem(
        model=Model(name="m", layers=(first, second)), stages=2, micro_batches=3, target="mindformers"
    )
    outcome = plan_pipeline(problem, time_limit_s=_TIME_LIMIT_S)
    assert outcome.plan is not None
    assert outcome.plan.layers_per_cell.tolist() == [1, 3]


def test_a_target_that_forbids_every_plan_gets_none():
    # One cell, and two kinds that must not share it.
    layers = [
        layer_from_times(name=r.label, kind=LayerKind.BODY, count=1, forward_ms=1, activation_mb={r: 5})
        for r in (Recompute.SELECTIVE, Recompute.COMM)
    ]
    problem = Problem(
        model=Model(name="m", layers=tuple(layers)), stages=1, micro_batches=2, target="mindformers"
    )
    outcome = plan_pipeline(problem, time_limit_s=_TIME_LIMIT_S)
    assert outcome.status is Status.INFEASIBLE
    assert outcome.plan is None


def test_a_v_of_cells_is_planned_as_mindformers_has_it():
    # Six layers in four cells that turn back: the best split would leave the last one, on stage 0, to TAIL
    # alone, which MindFormers refuses, and the search once met no other.
    case = solved(2235, "mindformers", 20_000, together=True)
    assert case.problem.order.placement is Placement.V
    assert case.plan.layers_per_cell.min() >= 1 or case.plan.layers_per_cell.tolist()[0] == 0
    assert case.is_best


def test_a_target_forbids_selective_beside_comm(target_cases):
    assert not wrong(planned(target_cases), lambda c: not silent_cells(c.plan))


def test_a_target_changes_neither_bound_nor_feasibility_wrongly(target_cases):
    assert not wrong(target_cases, lambda c: (c.outcome.plan is not None) is c.fits)
    assert not wrong(planned(target_cases), lambda c: c.step_ms >= c.optimum_ms * (1 - 1e-9))
    assert not wrong(planned(target_cases), lambda c: c.bound_ms <= c.optimum_ms * (1 + 1e-9))


def test_nearly_every_plan_for_a_target_is_its_best(target_cases):
    best = [c for c in planned(target_cases) if c.is_best]
    assert len(best) >= 0.9 * len(planned(target_cases))


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_time_limit_must_be_positive(loose, seconds):
    with pytest.raises(InputError, match=r"time-limit must be above 0"):
        plan_pipeline(loose, time_limit_s=seconds)


@pytest.mark.parametrize("gap", [1.0, -0.1, math.nan])
def test_gap_must_be_a_share(loose, gap):
    with pytest.raises(InputError, match=r"gap must be at least 0 and below 1"):
        plan_pipeline(loose, gap=gap)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5])
def test_seed_must_be_a_whole_number(loose, seed):
    with pytest.raises(InputError, match=r"seed must be a whole number"):
        plan_pipeline(loose, seed=seed)


def test_all_wrong_options_are_told_at_once(loose):
    with pytest.raises(InputError, match="options: 3 faults"):
        plan_pipeline(loose, time_limit_s=0, gap=2, seed=-1)


def test_a_wide_gap_stops_at_the_first_plan(loose):
    outcome = plan_pipeline(loose, time_limit_s=0.2, gap=0.9)
    assert outcome.stopped_by in {StoppedBy.GAP, StoppedBy.PROOF}
    assert outcome.gap is not None
    assert outcome.gap <= 0.9


def test_an_interrupted_run_keeps_its_best_plan(loose):
    def interrupt(progress):
        if progress.best_ms is not None:
            raise KeyboardInterrupt

    outcome = plan_pipeline(loose, time_limit_s=0.2, watch=interrupt)
    assert outcome.stopped_by is StoppedBy.INTERRUPT
    assert outcome.plan is not None
    assert outcome.makespan_ms == pytest.approx(reference(outcome.plan).makespan_ms)


def test_progress_gets_better_and_never_crosses_its_bound(loose):
    seen: list[Progress] = []
    plan_pipeline(loose, time_limit_s=0.2, watch=seen.append)
    best = [progress.best_ms for progress in seen if progress.best_ms is not None]
    assert best == sorted(best, reverse=True)
    assert [p.bound_ms for p in seen] == sorted(p.bound_ms for p in seen)
    assert all(p.bound_ms <= p.best_ms * (1 + 1e-9) for p in seen if p.best_ms is not None)
    assert [p.seconds for p in seen] == sorted(p.seconds for p in seen)


def test_a_search_that_finds_nothing_says_that_a_plan_may_exist(loose, monkeypatch):
    monkeypatch.setattr(run, "baselines", lambda problem: ())
    monkeypatch.setattr(Search, "run", lambda *_, **__: iter(()))
    with pytest.raises(NoPlanFoundError, match="one may exist"):
        plan_pipeline(loose, time_limit_s=0.2)


def test_the_only_plan_of_equal_stages_is_proven():
    # One layer a stage; (M + S - 1)(f + b) = (4 + 3 - 1) * (1 + 2).
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=3, forward_ms=1)
    problem = Problem(model=Model(name="equal", layers=(body,)), stages=3, micro_batches=4)
    outcome = plan_pipeline(problem, time_limit_s=0.2)
    assert outcome.status is Status.OPTIMAL
    assert outcome.stopped_by is StoppedBy.PROOF
    assert outcome.makespan_ms == pytest.approx(18)
    assert outcome.lower_bound_ms == pytest.approx(18)
    assert outcome.bubble is not None
    assert outcome.bubble.total == pytest.approx(2 / 4)  # (S - 1) / M


def test_why_nothing_fits_is_not_looked_for_where_something_fits(monkeypatch):
    # Two layers of two micro-batches hold 4 x 5 MB under SELECTIVE, too much, and 4 x 1 under FULL.
    monkeypatch.setattr(run, "find_shortage", lambda *_, **__: pytest.fail("nobody asked"))
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=4,
        forward_ms=1,
        activation_mb={Recompute.SELECTIVE: 5, Recompute.FULL: 1},
    )
    model = Model(name="m", layers=(body,))
    problem = Problem(
        model=model,
        stages=2,
        micro_batches=4,
        memory_limit_mb=5,
        min_layers_per_cell=1,
        max_recompute_types=1,
    )
    outcome = plan_pipeline(problem, time_limit_s=0.2)
    assert outcome.plan is not None
    assert outcome.plan.counts[0, Recompute.FULL].sum() == 4
