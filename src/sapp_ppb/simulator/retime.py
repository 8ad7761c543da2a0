"""What is known of a plan file once the simulator has timed its plan anew."""

import warnings
from dataclasses import replace
from math import isclose

from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.plan import Outcome, Status, StoppedBy
from sapp_ppb.simulator.timeline import Timeline, simulate

_SAME = 1e-9  # two times are equal within this share


def retime(outcome: Outcome, where: str) -> tuple[Timeline, Outcome]:
    """
    Time the plan of an outcome that was read from a file.

    The file's bound is kept only when its makespan and peaks are met and it is not
    above the makespan: otherwise the model has changed since, or the file, and the
    bound says nothing of it.

    Raises
    ------
    InputError
        When the file holds no plan.
    """
    if outcome.plan is None or outcome.makespan_ms is None:
        raise InputError(
            where, ["holds no plan to time, because none fits; plan with a higher --memory-limit"]
        )
    timeline = simulate(outcome.plan)
    odd = _what_is_odd(outcome, timeline)
    if odd:
        warnings.warn(f"{where}: {odd}, so the file's bound is left out", FileNote, stacklevel=2)
    return timeline, replace(
        outcome,
        status=Status.FEASIBLE,
        makespan_ms=timeline.makespan_ms,
        step_ms=timeline.step_ms,
        lower_bound_ms=None if odd else outcome.lower_bound_ms,
        peak_memory_mb=timeline.peak_memory_mb,
        bubble=timeline.bubble,
    )


def timed(timeline: Timeline) -> Outcome:
    """Outcome of a plan that nobody planned here: what the simulator says, and no bound."""
    return Outcome(
        problem=timeline.plan.problem,
        plan=timeline.plan,
        status=Status.FEASIBLE,
        stopped_by=StoppedBy.BUDGET,
        makespan_ms=timeline.makespan_ms,
        step_ms=timeline.step_ms,
        lower_bound_ms=None,
        peak_memory_mb=timeline.peak_memory_mb,
        bubble=timeline.bubble,
        seconds=0.0,
        seed=0,
    )


def _what_is_odd(outcome: Outcome, timeline: Timeline) -> str | None:
    """Say why the file's bound does not hold for the model; None when nothing speaks against it."""
    times = ((outcome.makespan_ms, timeline.makespan_ms), (outcome.step_ms, timeline.step_ms))
    for said, found in times:
        if not isclose(said or 0.0, found, rel_tol=_SAME):
            return f"says {said or 0.0:,.1f} ms, the simulator {found:,.1f} ms; the model is another"
    pairs = zip(outcome.peak_memory_mb, timeline.peak_memory_mb, strict=False)
    for stage, (said_mb, found_mb) in enumerate(pairs):
        if not isclose(said_mb, found_mb, rel_tol=_SAME, abs_tol=_SAME):
            return (
                f"says {said_mb:,.1f} MB on stage {stage}, the simulator {found_mb:,.1f} MB; "
                "the model is another"
            )
    bound = outcome.lower_bound_ms
    if bound is not None and bound > timeline.step_ms * (1 + _SAME):
        return f"says a lower bound of {bound:,.1f} ms, which its plan beats"
    return None
