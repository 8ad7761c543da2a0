"""The best plan that a call of the planner has met, for when it is interrupted wherever it is."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sapp_ppb.errors import InputError
from sapp_ppb.plan import Outcome, Plan, Status, StoppedBy
from sapp_ppb.planner.proof.bounds import work_bound
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import Timeline, simulate


class Met:
    """
    Plans met in one call, of whatever part of its problem they are.

    Attributes
    ----------
    best
        The fastest of them.
    """

    def __init__(self) -> None:
        self.best: Timeline | None = None
        self._started = time.monotonic()

    def take(self, timeline: Timeline) -> None:
        """Keep a plan that fits, if it is the fastest."""
        if self.best is None or timeline.step_ms < self.best.step_ms:
            self.best = timeline

    def outcome(self, problem: Problem, seed: int) -> Outcome | None:
        """Tell the fastest plan as an interrupted call's; None where there is none."""
        if self.best is None:
            return None
        try:
            plan = Plan(problem=problem, counts=self.best.plan.counts)
        except InputError:  # of another problem: stages in another order
            return None
        timeline = simulate(plan)
        if not (timeline.fits_memory and plan.keeps_fix):
            return None
        return Outcome(
            problem=problem,
            plan=plan,
            status=Status.FEASIBLE,
            stopped_by=StoppedBy.INTERRUPT,
            makespan_ms=timeline.makespan_ms,
            step_ms=timeline.step_ms,
            lower_bound_ms=min(work_bound(problem), timeline.step_ms),
            peak_memory_mb=timeline.peak_memory_mb,
            bubble=timeline.bubble,
            seconds=round(time.monotonic() - self._started, 3),
            seed=seed,
        )


_CALL: ContextVar[Met | None] = ContextVar("met", default=None)


@contextmanager
def plans_met(met: Met) -> Iterator[None]:
    """Let ``tell_met`` tell of the plans of a block."""
    token = _CALL.set(met)
    try:
        yield
    finally:
        _CALL.reset(token)


def tell_met(timeline: Timeline) -> None:
    """Tell the call at work of a plan that fits and may be."""
    met = _CALL.get()
    if met is not None:
        met.take(timeline)
