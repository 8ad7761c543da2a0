"""What is told of the best plan: optimal where it meets its bound, and why the run stopped where not."""

from sapp_ppb.plan import Outcome, Plan, Status, StoppedBy
from sapp_ppb.simulator import Timeline

# A makespan this close to its bound, as a share, is proven minimal.
PROVEN = 1e-6
# Of several reasons to stop the last one here is told: after the clock or an interrupt no run repeats.
_RISING = (StoppedBy.PROOF, StoppedBy.GAP, StoppedBy.BUDGET, StoppedBy.TIME, StoppedBy.INTERRUPT)


def joint_reason(*reasons: StoppedBy) -> StoppedBy:
    """
    Tell why the runs of one answer stopped.

    Examples
    --------
    >>> joint_reason(StoppedBy.TIME, StoppedBy.BUDGET, StoppedBy.PROOF).value
    'time'
    """
    return max(reasons, key=_RISING.index)


def answer(
    plan: Plan,
    timeline: Timeline,
    *,
    bound_ms: float,
    stopped_by: StoppedBy,
    seconds: float,
    seed: int,
    runners_up: tuple[Plan, ...] = (),
    stage_order: tuple[int, ...] | None = None,
) -> Outcome:
    """
    Tell the best plan.

    Parameters
    ----------
    plan
        As a plan of the problem that was asked.
    timeline
        Of the plan, as one of the problem that it was found for.
    bound_ms
        No plan is faster; where it is above this one by rounding, it is this one's step.
    stopped_by
        Why the run stopped; where another part of it was proven, the work for the rest was done.
    """
    bound_ms = min(bound_ms, timeline.step_ms)
    proven = timeline.step_ms - bound_ms <= PROVEN * timeline.step_ms
    unproven = StoppedBy.BUDGET if stopped_by is StoppedBy.PROOF else stopped_by
    return Outcome(
        problem=plan.problem,
        plan=plan,
        status=Status.OPTIMAL if proven else Status.FEASIBLE,
        stopped_by=StoppedBy.PROOF if proven else unproven,
        makespan_ms=timeline.makespan_ms,
        step_ms=timeline.step_ms,
        lower_bound_ms=bound_ms,
        peak_memory_mb=timeline.peak_memory_mb,
        bubble=timeline.bubble,
        seconds=round(seconds, 3),
        seed=seed,
        stage_order=stage_order,
        runners_up=runners_up,
    )
