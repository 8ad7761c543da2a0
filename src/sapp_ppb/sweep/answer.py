"""Answer: what planning one candidate came to, small enough to send and to keep."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from sapp_ppb.plan import Bubble, Outcome, Plan, Status, StoppedBy

Counts = tuple[tuple[tuple[int, ...], ...], ...]


class RowStatus(StrEnum):
    """What became of a combination."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    NOT_FOUND = "not-found"
    FAILED = "failed"
    CUT = "cut"
    SKIPPED = "skipped"


# What there is no use in planning again.
SETTLED = (RowStatus.OPTIMAL, RowStatus.FEASIBLE, RowStatus.INFEASIBLE, RowStatus.NOT_FOUND)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """
    What is known of a candidate.

    Attributes
    ----------
    status
        What became of it.
    reason
        Why there is no plan; empty where there is one.
    makespan_ms, step_ms, peak_memory_mb, bubble, counts
        Of the plan, as in ``Outcome`` and ``Plan``; None or empty without one.
    lower_bound_ms
        No plan is faster; None where it is not known, or nothing fits.
    stopped_by
        Why the planner stopped; None where it did not run.
    seconds, seed
        Time taken, and the seed that repeats it.
    """

    status: RowStatus
    reason: str = ""
    makespan_ms: float | None = None
    step_ms: float | None = None
    lower_bound_ms: float | None = None
    peak_memory_mb: tuple[float, ...] = ()
    bubble: Bubble | None = None
    counts: Counts = ()
    stopped_by: StoppedBy | None = None
    seconds: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Take the makespan for the step where nothing follows it."""
        if self.step_ms is None:
            object.__setattr__(self, "step_ms", self.makespan_ms)

    @property
    def gap(self) -> float | None:
        """Share of the step that is not proven necessary; None without a plan."""
        if self.step_ms is None or self.lower_bound_ms is None:
            return None
        return max(0.0, (self.step_ms - self.lower_bound_ms) / self.step_ms)


def answer_of(outcome: Outcome) -> Answer:
    """Keep of an outcome what a sweep needs."""
    counts = () if outcome.plan is None else outcome.plan.counts.tolist()
    return Answer(
        status=RowStatus(outcome.status.value),
        reason=_shortage_text(outcome),
        makespan_ms=None if outcome.makespan_ms is None else float(outcome.makespan_ms),
        step_ms=None if outcome.step_ms is None else float(outcome.step_ms),
        lower_bound_ms=None if outcome.lower_bound_ms is None else float(outcome.lower_bound_ms),
        peak_memory_mb=tuple(float(mb) for mb in outcome.peak_memory_mb),
        bubble=None
        if outcome.bubble is None
        else Bubble(**{part: float(share) for part, share in asdict(outcome.bubble).items()}),
        counts=tuple(tuple(tuple(row) for row in types) for types in counts),
        stopped_by=outcome.stopped_by,
        seconds=float(outcome.seconds),
        seed=outcome.seed,
    )


def outcome_of(answer: Answer, plan: Plan) -> Outcome:
    """Make the outcome again of which a plan's answer was kept."""
    return Outcome(
        problem=plan.problem,
        plan=plan,
        status=Status(answer.status.value),
        stopped_by=answer.stopped_by or StoppedBy.BUDGET,
        makespan_ms=answer.makespan_ms,
        step_ms=answer.step_ms,
        lower_bound_ms=answer.lower_bound_ms,
        peak_memory_mb=answer.peak_memory_mb,
        bubble=answer.bubble,
        seconds=answer.seconds,
        seed=answer.seed,
    )


def to_object(answer: Answer) -> dict[str, object]:
    """Say an answer as JSON can."""
    return asdict(answer)


def from_object(raw: Mapping[str, Any]) -> Answer:
    """
    Read what ``to_object`` said.

    Raises
    ------
    ValueError, TypeError, KeyError
        When it said no such thing.

    Examples
    --------
    >>> answer = Answer(status=RowStatus.FEASIBLE, makespan_ms=2.5, peak_memory_mb=(1.0,), counts=(((3,),),))
    >>> from_object(to_object(answer)) == answer
    True
    """
    bubble, stopped = raw["bubble"], raw["stopped_by"]
    counts = np.array(raw["counts"], dtype=np.int64)
    return Answer(
        status=RowStatus(raw["status"]),
        reason=str(raw["reason"]),
        makespan_ms=_number(raw["makespan_ms"]),
        step_ms=_number(raw["step_ms"]),
        lower_bound_ms=_number(raw["lower_bound_ms"]),
        peak_memory_mb=tuple(float(mb) for mb in raw["peak_memory_mb"]),
        bubble=None if bubble is None else Bubble(**{part: float(share) for part, share in bubble.items()}),
        counts=tuple(tuple(tuple(row) for row in types) for types in counts.tolist()),
        stopped_by=None if stopped is None else StoppedBy(stopped),
        seconds=float(raw["seconds"]),
        seed=int(raw["seed"]),
    )


def _number(value: object) -> float | None:
    return None if value is None else float(value)  # type: ignore[arg-type]  # what is no number raises


def _shortage_text(outcome: Outcome) -> str:
    """Say why nothing fits."""
    shortage = outcome.shortage
    if outcome.plan is not None:
        return ""
    words = "no plan fits"
    if shortage is not None and shortage.stage is not None and shortage.over_mb is not None:
        words += f": stage {shortage.stage} is {shortage.over_mb:,.0f} MB over at best"
    if shortage is not None and shortage.smallest_limit_mb is not None:
        words += f"; {shortage.smallest_limit_mb:,.0f} MB a stage would do"
    return words
