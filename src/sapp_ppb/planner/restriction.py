"""What a framework's limits cost: the best plan that it can say beside the best of all."""

from dataclasses import replace

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Outcome, Plan, Status, StoppedBy, WithoutTarget
from sapp_ppb.planner.answer import PROVEN
from sapp_ppb.planner.planning import plan_pipeline
from sapp_ppb.planner.run import Watch
from sapp_ppb.problem import Problem
from sapp_ppb.targets import is_nested, target_named


def with_cost_of_target(
    outcome: Outcome, *, time_limit_s: float, seed: int = 0, threads: int = 1, watch: Watch | None = None
) -> Outcome:
    """
    Plan again without the target's limits, from the plan that it can say.

    Parameters
    ----------
    outcome
        Answer to a problem with a target.
    time_limit_s
        For the plan without them.

    Returns
    -------
    Outcome
        The same, with what is known of plans without the target; unchanged where
        there is no plan or no target, or where planning was interrupted.
    """
    problem, plan = outcome.problem, outcome.plan
    if outcome.stopped_by is StoppedBy.INTERRUPT:
        return outcome
    if plan is None or problem.target is None or outcome.step_ms is None:
        return outcome
    if not target_restricts(problem):
        known = WithoutTarget(makespan_ms=outcome.step_ms, lower_bound_ms=outcome.lower_bound_ms or 0.0)
        return replace(outcome, without_target=known)
    free = problem.changed(target=None)
    answer = plan_pipeline(
        free,
        time_limit_s=time_limit_s,
        seed=seed,
        threads=threads,
        warm_start=Plan(problem=free, counts=plan.counts),
        watch=watch,
    )
    assert answer.step_ms is not None, "it begins with a plan"  # noqa: S101
    known = WithoutTarget(
        makespan_ms=min(answer.step_ms, outcome.step_ms), lower_bound_ms=answer.lower_bound_ms or 0.0
    )
    told = _with_bound(replace(outcome, without_target=known), known.lower_bound_ms)
    return replace(told, stopped_by=StoppedBy.INTERRUPT) if answer.stopped_by is StoppedBy.INTERRUPT else told


def _with_bound(outcome: Outcome, bound_ms: float) -> Outcome:
    """Raise the bound to one of all plans, which may prove this one optimal."""
    if outcome.step_ms is None or bound_ms <= (outcome.lower_bound_ms or 0.0):
        return outcome
    bound_ms = min(bound_ms, outcome.step_ms)
    if outcome.step_ms - bound_ms > PROVEN * outcome.step_ms:
        return replace(outcome, lower_bound_ms=bound_ms)
    return replace(outcome, lower_bound_ms=bound_ms, status=Status.OPTIMAL, stopped_by=StoppedBy.PROOF)


def target_restricts(problem: Problem) -> bool:
    """
    Whether a target leaves out any plan.

    None has words for strategies.  One whose only way is the problem itself leaves out nothing
    else, unless types are nested; those of one kind of layer matter only where SELECTIVE and
    COMM compete.
    """
    if problem.target is None:
        return False
    has_strategies = len(problem.model.types) > len(Recompute)
    if has_strategies or any(
        way.problem is not problem for way in target_named(problem.target).ways(problem)
    ):
        return True
    if not is_nested(problem.target):
        return False
    types = problem.considered(problem.model.bodies[0])
    return len(problem.model.bodies) > 1 or (Recompute.SELECTIVE in types and Recompute.COMM in types)
