"""Why nothing fits: the stage, the op, the MB, and the single changes that would do."""

import time
import warnings
from dataclasses import replace

from sapp_ppb.errors import PlannerNote, SolverError
from sapp_ppb.plan import Plan, Shortage
from sapp_ppb.planner.allowed import may_be
from sapp_ppb.planner.baselines import baselines
from sapp_ppb.planner.shortage.least_memory import LeastMemory, least_memory
from sapp_ppb.planner.shortage.remedies import find_remedies
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator.price import price
from sapp_ppb.simulator.timeline import Peak, stage_peaks

# Seconds to say why nothing fits, where a time limit leaves less.
SHORTAGE_S = 5.0
# A limit is called the smallest when none that is lower by more than this share works.
_PROVEN = 0.01
# Shares of the time for the plan that exceeds its limits least, and for the smallest limit.
_FOR_EXCESS, _FOR_LIMIT = 0.5, 0.5
# Shares of the smallest limit that are tried where the order changes with it.
_STEPS = (1.0, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 4.0)
# Seconds for the remedies, however much time is left.
_REMEDIES_S = 4.0


def find_shortage(problem: Problem, *, time_limit_s: float) -> Shortage:
    """
    Explain an infeasible problem by the plan that exceeds its limits least.

    Returns
    -------
    Shortage
        What could be found in time; at worst that every plan is over by so much.
    """
    started = time.monotonic()
    least = _least(problem, _FOR_EXCESS * time_limit_s)
    plan = least.plan or _lightest_baseline(problem)
    if plan is None:
        known = least.over_mb if 0.0 <= least.over_mb < float("inf") else None
        left = time_limit_s - (time.monotonic() - started)
        return Shortage(
            stage=None,
            op=None,
            over_mb=known,
            smallest_limit_mb=None,
            proven=False,
            remedies=find_remedies(problem, None, time_limit_s=min(_REMEDIES_S, left)),
        )
    peaks = stage_peaks(problem, price(plan))
    over = _over(problem, peaks)
    stage = over.index(max(over))
    left = time_limit_s - (time.monotonic() - started)
    smallest: float | None
    smallest, proven = _smallest_limit(problem, peaks, least, _FOR_LIMIT * left)
    if problem.schedule_name is ScheduleName.ZB_AUTO:  # another limit has another order
        smallest, proven = _limit_that_holds(problem, plan, smallest), False
    left = time_limit_s - (time.monotonic() - started)
    return Shortage(
        stage=stage,
        op=str(peaks[stage].op),
        over_mb=over[stage],
        smallest_limit_mb=smallest,
        proven=proven,
        remedies=(
            *(() if smallest is None else (("memory_limit_mb", smallest),)),
            *find_remedies(problem, plan, time_limit_s=min(_REMEDIES_S, left)),
        ),
    )


def under_its_own_order(problem: Problem, shortage: Shortage) -> Shortage:
    """
    Tell the shortage of a part of a problem's plans as the problem's.

    The order of ``zb-auto`` is made for limits and for all types that may be.  A limit or a change that
    does under the order made for some of them need not do under the problem's; another schedule does.
    """
    if problem.schedule_name is not ScheduleName.ZB_AUTO:
        return shortage
    remedies = tuple(remedy for remedy in shortage.remedies if remedy[0] == "schedule")
    return replace(shortage, smallest_limit_mb=None, proven=False, remedies=remedies)


def _limit_that_holds(problem: Problem, plan: Plan, limit_mb: float) -> float | None:
    """Raise a limit in steps until the plan fits under the order that is made for it; None when none does."""
    for share in _STEPS:
        there = replace(problem, memory_limit_mb=share * limit_mb)
        peaks = stage_peaks(there, price(Plan(problem=there, counts=plan.counts)))
        if max(_over(there, peaks)) <= 0.0:
            return share * limit_mb
    return None


def _least(problem: Problem, time_limit_s: float, *, one_limit: bool = False) -> LeastMemory:
    """Least memory; nothing is known when the solver fails, and nothing fits all the same."""
    try:
        return least_memory(problem, one_limit=one_limit, time_limit_s=max(time_limit_s, 0.1))
    except SolverError as error:
        warnings.warn(f"why nothing fits is known in part only: {error}", PlannerNote, stacklevel=3)
        return LeastMemory(plan=None, over_mb=float("-inf"))


def _lightest_baseline(problem: Problem) -> Plan | None:
    """Baseline that exceeds its limits least: a plan to name a stage with when there is no better."""
    plans = [baseline.plan for baseline in baselines(problem) if may_be(baseline.plan)]
    return min(plans, key=lambda plan: max(_over(problem, stage_peaks(problem, price(plan)))), default=None)


def _over(problem: Problem, peaks: tuple[Peak, ...]) -> list[float]:
    return [peak.memory_mb - limit for peak, limit in zip(peaks, problem.limit_per_stage_mb, strict=True)]


def _smallest_limit(
    problem: Problem, peaks: tuple[Peak, ...], least: LeastMemory, time_limit_s: float
) -> tuple[float, bool]:
    """
    One limit for all stages that some plan meets, and whether it is as good as the smallest.

    With one limit for all stages the plan that exceeds it least is the one that holds
    least; with several that is another question.
    """
    bound = min(problem.limit_per_stage_mb) + least.over_mb
    needed = max(peak.memory_mb for peak in peaks)
    if isinstance(problem.memory_limit_mb, tuple):
        answer = _least(problem, time_limit_s, one_limit=True)
        bound = answer.over_mb
        if answer.plan is not None:
            needed = min(needed, max(peak.memory_mb for peak in stage_peaks(problem, price(answer.plan))))
    return problem.limit_for(needed), bool(needed - bound <= _PROVEN * needed)
