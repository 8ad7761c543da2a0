"""Plans for frameworks whose recompute is one setting: the best of all that they can say."""

import math
from random import Random

import numpy as np
import pytest

from sapp_ppb.errors import InputError, NoPlanFoundError
from sapp_ppb.plan import Outcome, Plan, Status
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from sapp_ppb.targets import target_named
from sapp_ppb.targets.recompute_modes import only_type
from tests.planner.brute_force import all_plans, small_problem
from tests.reference import reference

_PROBLEMS = 150
_MOST_PLANS = 1_500


def optimum_ms(problem: Problem) -> float:
    """Least makespan of all plans that fit and that the target can say, by listing them."""
    plans = all_plans(problem.changed(target=None))
    for index in np.argsort(plans.makespan_ms, kind="stable").tolist():
        if plans.fits[index] and _is_asked(problem, plans.plan(index)):
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


@pytest.mark.parametrize("target", ["megatron", "torchtitan"])
def test_no_plan_that_can_be_said_is_better_and_no_bound_above_it(target):
    proven = feasible = infeasible = 0
    for seed in range(_PROBLEMS):
        problem = small_problem(Random(f"{target} {seed}"), most_plans=_MOST_PLANS, target=target, runs=True)
        best = optimum_ms(problem)
        if not target_named(target).ways(problem):
            assert math.isinf(best), seed
            with pytest.raises(InputError, match="no setting for recompute"):
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
