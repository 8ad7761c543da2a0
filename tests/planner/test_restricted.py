"""Problems with a working set, a fixed part or few recompute types, against all their plans."""

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError, NoPlanFoundError
from sapp_ppb.fix import Fix
from sapp_ppb.plan import Outcome, Plan, Status
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.planner.planning import type_sets
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator import simulate
from sapp_ppb.targets import silent_cells
from tests.planner.brute_force import all_plans, small_problem
from tests.reference import reference
from tests.strategies import random_plan

_PROBLEMS = int(os.environ.get("SAPP_PPB_SOAK", "0")) or 80
_MOST_PLANS = 300
_TIME_LIMIT_S = 0.2


@pytest.fixture(scope="module", autouse=True)
def standing_clock() -> Iterator[None]:
    """Stop the clock: work is then bounded by its budget alone, however busy the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", lambda: 0.0)
        yield


def restricted(rng: Random, problem: Problem) -> Problem | None:
    """Add one to three of the restrictions to a problem; None where it can not have them."""
    fixed = random_plan(rng, problem)
    changes: dict[str, object] = {}
    if rng.random() < 0.6:
        changes["recompute_working_set"] = True
    if rng.random() < 0.4:
        changes["max_recompute_types"] = rng.randint(0, 2)
    if not changes or rng.random() < 0.5:
        changes["fix"] = rng.choice([fixed.split, fixed.recompute])
    try:
        return replace(problem, **changes)  # type: ignore[arg-type]
    except InputError:
        return None


def drawn(seed: int, *, together: bool = False) -> tuple[Problem, bool] | None:
    """Problem of a seed, every third for MindFormers, whose types are nested, and whether it is."""
    nested = seed % 3 == 0
    target = "mindformers" if nested else None
    problem = restricted(
        Random(f"restricted {seed}"),
        small_problem(Random(seed), most_plans=_MOST_PLANS, target=target, runs=True, together=together),
    )
    return None if problem is None else (problem, nested)


def optimum_ms(problem: Problem, *, nested: bool) -> float:
    """Least makespan of all plans that keep what is fixed and fit by the slow reference."""
    free = replace(problem, fix=None, max_recompute_types=None, recompute_working_set=False)
    if nested:  # MindFormers has a layer in every cell, whatever the problem allows, but beside HEAD and TAIL
        free = replace(free, min_layers_per_cell=1)
    every = all_plans(free, nested=nested)
    best = math.inf
    for index in np.argsort(every.makespan_ms, kind="stable").tolist():
        if every.makespan_ms[index] >= best:
            break
        plan = Plan(problem=problem, counts=every.plan(index).counts)
        if _keeps(plan) and _fits(plan):
            best = float(every.makespan_ms[index])
    return best


def _fits(plan: Plan) -> bool:
    limits = plan.problem.limit_per_stage_mb
    return all(mb <= limit * (1 + 1e-9) for mb, limit in zip(reference(plan).peak_mb, limits, strict=True))


def _keeps(plan: Plan) -> bool:
    """Whether a plan keeps what its problem asks, in plain words and sums."""
    fix, most = plan.problem.fix, plan.problem.max_recompute_types
    used = [r for r in plan.problem.model.types if r != Recompute.NONE and plan.counts[:, r].sum() > 0]
    if most is not None and len(used) > most:
        return False
    if fix is not None and fix.layers is not None:
        return bool((plan.counts.sum(axis=0).sum(axis=0) == fix.layers).all())
    if fix is not None and fix.recompute is not None:
        return bool((plan.counts[:, 1:] == np.array(fix.recompute)[:, 1:]).all())
    return True


def answer(problem: Problem) -> Outcome | None:
    """Ask the planner; None when it found no plan, and could not say that there is none."""
    try:
        return plan_pipeline(problem, time_limit_s=_TIME_LIMIT_S)
    except NoPlanFoundError:
        return None


@pytest.mark.parametrize("together", [False, True])
def test_no_plan_is_better_than_the_best_and_no_bound_above_it(together):
    problems = proven = infeasible = 0
    for seed in range(_PROBLEMS):
        case = drawn(seed, together=together)
        if case is None:
            continue
        problem, nested = case
        try:
            outcome = answer(problem)
        except InputError:  # no layer, or no cell, can be as the restrictions say
            assert not math.isfinite(optimum_ms(problem, nested=nested)), seed
            continue
        best = optimum_ms(problem, nested=nested)
        problems += 1
        if outcome is None:
            continue
        if outcome.plan is None:
            infeasible += 1
            assert math.isinf(best), f"seed {seed} has a plan of {best} ms"
            continue
        assert outcome.step_ms is not None, seed
        assert outcome.lower_bound_ms is not None, seed
        assert outcome.step_ms >= best * (1 - 1e-9), f"seed {seed}: below the best of all plans, {best}"
        assert outcome.lower_bound_ms <= best * (1 + 1e-9), f"seed {seed}: bound above the best, {best}"
        if outcome.status is Status.OPTIMAL:
            proven += 1
            assert outcome.step_ms <= best * (1 + 1e-6), f"seed {seed}: {best} is faster"
        assert _keeps(outcome.plan), seed
        assert _fits(outcome.plan), seed
        assert not (nested and silent_cells(outcome.plan)), seed
        assert outcome.plan.problem == outcome.problem == problem, seed
    # These are small enough to be proven, all but few, and some fit nowhere: the laws above were tried.
    assert proven > 0.9 * (problems - infeasible)
    assert infeasible >= 0.05 * problems


@pytest.fixture
def chain() -> Problem:
    """Four layers of 100 MB, 10 MB when all is recomputed, on two stages."""
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=4,
        forward_ms=10,
        activation_mb={Recompute.NONE: 100, Recompute.SELECTIVE: 60, Recompute.FULL: 10},
    )
    return Problem(model=Model(name="chain", layers=(body,)), stages=2, micro_batches=4)


def plan_of(problem: Problem, *cells: tuple[int, int, int]) -> Plan:
    """Plan of layers under none, selective and full in each cell."""
    counts = np.zeros((1, 5, len(cells)), dtype=np.int64)
    counts[0][[Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL]] = np.array(cells).T
    return Plan(problem=problem, counts=counts)


def test_a_recomputed_layer_holds_again_what_it_let_go_while_its_backward_runs(chain):
    # Stage 0 has 2 micro-batches live and both layers under FULL: 2 x 2 x 10, and in a backward
    # 100 - 10 again.  Stage 1 has 1 live, none recomputed: 2 x 100.
    counted = replace(chain, recompute_working_set=True)
    plans = [plan_of(problem, (0, 0, 2), (2, 0, 0)) for problem in (chain, counted)]
    assert [simulate(plan).peak_memory_mb for plan in plans] == [(40.0, 200.0), (130.0, 200.0)]
    assert str(simulate(plans[1]).peaks[0].op) == "0B0"
    # Of SELECTIVE and FULL the one that lets go more: 2 x (60 + 10) + 90.
    assert simulate(plan_of(counted, (0, 1, 1), (2, 0, 0))).peak_memory_mb[0] == 230.0


def test_a_working_set_without_the_memory_of_none_is_refused(chain):
    body = replace(chain.model.bodies[0], activation_mb=(None, 60.0, None, None, 10.0))
    with pytest.raises(InputError, match="needs the activation memory of 'body' under none"):
        replace(chain, model=Model(name="chain", layers=(body,)), recompute_working_set=True)


def test_a_fixed_split_is_kept_though_another_is_faster(chain):
    fixed = replace(chain, fix=Fix(layers=(3, 1)))
    outcome = plan_pipeline(fixed, time_limit_s=0.2)
    assert outcome.plan is not None
    assert outcome.plan.layers_per_cell.tolist() == [3, 1]
    # 3 layers: 4 x 90, the stage before it has nothing, and B0 waits for stage 1: 30 later than F1 ends.
    assert outcome.status is Status.OPTIMAL
    assert outcome.makespan_ms == simulate(outcome.plan).makespan_ms > plan_pipeline(chain).makespan_ms  # type: ignore[operator]


def test_fixed_recompute_is_kept_and_the_other_layers_are_spread(chain):
    kept = plan_of(chain, (3, 0, 0), (0, 0, 1)).recompute
    outcome = plan_pipeline(replace(chain, fix=kept), time_limit_s=0.2)
    assert outcome.plan is not None
    assert outcome.plan.counts[0, Recompute.FULL].tolist() == [0, 1]
    assert outcome.plan.layers_per_cell.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("fix", "words"),
    [
        (Fix(), "one of the two"),
        (Fix(layers=(4,)), r"of 2 cells \(got 1\)"),
        (Fix(layers=(3, 2)), r"4 in all \(got 5\)"),
        (Fix(layers=(4, 0)), "allow fewer with --min-layers"),
        (Fix(recompute=(((0,),) * 5,)), "must have the shape"),
        (Fix(recompute=(((1, 0), *(((0, 0),) * 4)),)), "none under none"),
        (Fix(recompute=((*(((0, 0),) * 4), (3, 3)),)), "recomputes 6 layers of body, which has 4"),
        (Fix(recompute=(((0, 0), (0, 0), (1, 0), (0, 0), (0, 0)),)), "as comm, which"),
    ],
)
def test_what_can_not_be_fixed_is_refused(chain, fix, words):
    with pytest.raises(InputError, match=words):
        replace(chain, fix=fix)


def test_more_types_than_allowed_can_not_be_fixed(chain):
    with pytest.raises(InputError, match="fix mixes selective, full, more than the 1 of max-recompute-types"):
        replace(chain, fix=plan_of(chain, (0, 1, 1), (2, 0, 0)).recompute, max_recompute_types=1)


def test_recompute_that_the_target_can_not_say_is_not_kept():
    memory = {Recompute.NONE: 100, Recompute.SELECTIVE: 60, Recompute.COMM: 50}
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=2, forward_ms=10, activation_mb=memory)
    problem = Problem(
        model=Model(name="one", layers=(body,)), stages=1, micro_batches=2, target="mindformers"
    )
    fix = Fix(recompute=(((0,), (1,), (1,), (0,), (0,)),))
    with pytest.raises(InputError, match="cell 0 recomputes some layers as selective and some as comm"):
        plan_pipeline(replace(problem, fix=fix))


def test_few_types_split_a_problem_into_those_that_have_every_plan_allowed(chain):
    sets = type_sets(replace(chain, max_recompute_types=1))
    assert [[r.label for r in each.recompute or ()] for each in sets] == [
        ["none", "selective"],
        ["none", "full"],
    ]
    assert type_sets(replace(chain, max_recompute_types=2)) == [replace(chain, max_recompute_types=2)]
    assert [each.recompute for each in type_sets(replace(chain, max_recompute_types=0))] == [
        (Recompute.NONE,)
    ]


def test_few_types_leave_the_order_that_was_made_for_the_problem():
    # zb-auto makes its order from the types that a problem may use; those of a set are fewer.
    problem, nested = drawn(1702) or (None, False)
    assert problem is not None
    assert problem.schedule_name is ScheduleName.ZB_AUTO
    assert problem.max_recompute_types == 1
    outcome = plan_pipeline(problem, time_limit_s=_TIME_LIMIT_S)
    assert outcome.plan is not None
    assert outcome.makespan_ms == simulate(outcome.plan).makespan_ms
    assert outcome.makespan_ms == pytest.approx(optimum_ms(problem, nested=nested), rel=1e-9)


def test_a_plan_to_begin_with_is_never_lost(chain):
    tight = replace(chain, memory_limit_mb=250.0)
    best = plan_pipeline(tight, time_limit_s=0.2)
    assert best.plan is not None
    again = plan_pipeline(tight, time_limit_s=1e-6, warm_start=best.plan)
    assert again.makespan_ms == best.makespan_ms


def test_a_plan_for_other_cells_is_refused_as_a_start(chain):
    one = Problem(model=chain.model, stages=1, interleave=2, micro_batches=4)
    counts = np.zeros((1, 5, 2), dtype=np.int64)
    counts[0, 0] = (2, 2)
    plan = Plan(problem=one, counts=counts)
    with pytest.raises(InputError, match="for 1 stages x 2 chunks, the problem has 2 stages x 1 chunks"):
        plan_pipeline(chain, warm_start=plan)


def test_threads_change_no_optimum_and_repeat_themselves(chain):
    problem = replace(chain, interleave=2, schedule=None, memory_limit_mb=400.0)
    first, second = (plan_pipeline(problem, time_limit_s=0.3, threads=3) for _ in range(2))
    assert first.plan == second.plan
    assert first.makespan_ms == plan_pipeline(problem, time_limit_s=0.3).makespan_ms


@pytest.mark.parametrize("threads", [0, 257, True, 1.5])
def test_a_number_of_threads_that_can_not_be_is_refused(chain, threads):
    with pytest.raises(InputError, match="threads must be a whole number from 1 to 256"):
        plan_pipeline(chain, threads=threads)
