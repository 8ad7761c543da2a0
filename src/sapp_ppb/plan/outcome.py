"""Outcome: what is known of the best plan, or of why there is none."""

import math
from dataclasses import dataclass, field
from enum import StrEnum

from sapp_ppb.plan.plan import Plan
from sapp_ppb.problem import Problem


class Status(StrEnum):
    """What is proven of an outcome."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"


class StoppedBy(StrEnum):
    """Why the planner stopped."""

    PROOF = "proof"
    GAP = "gap"
    BUDGET = "budget"
    TIME = "time"
    INTERRUPT = "interrupt"


@dataclass(frozen=True, kw_only=True)
class Bubble:
    """
    Idle time as shares of useful work, the four parts adding up to the total.

    Attributes
    ----------
    fill_drain
        What equal cells would still lose to filling and draining the pipeline.
    imbalance
        What uneven cells add; may be negative.
    recompute
        What doing forwards again adds, and what a strategy adds to a backward.
    communication
        What sending between stages adds, and the overhead of every op where the model has one.
    """

    fill_drain: float
    imbalance: float
    recompute: float
    communication: float

    @property
    def total(self) -> float:
        """Sum of the parts; (S - 1) / M for equal cells under 1F1B."""
        return self.fill_drain + self.imbalance + self.recompute + self.communication


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """
    Why nothing fits.

    Attributes
    ----------
    stage, op
        Where memory is short when every stage is as empty as it can be; None when no
        plan was found in time that would show it.
    over_mb
        MB over the limit there, in the plan found whose excess is smallest.  Without
        such a plan every plan is over by this or more; None when not even that is known.
    smallest_limit_mb
        Memory limit, one number for all stages and the margin included, that some plan
        meets: it works always, and None when no plan was found in time.
    proven
        Whether no limit works that is more than 1 % below ``smallest_limit_mb``; only
        then may it be called the smallest.
    remedies
        Pairs of a change and the value that would do, each alone and each checked by a
        plan.  The changes are ``memory_limit_mb``, ``constant_memory_less_by_mb`` (MB
        less on every stage), ``schedule``, ``recompute`` (label of a type or strategy to
        allow as well), ``interleave`` and ``stages``.  What was not settled in time is missing.
    """

    stage: int | None
    op: str | None
    over_mb: float | None
    smallest_limit_mb: float | None
    proven: bool = True
    remedies: tuple[tuple[str, float | str], ...] = ()

    @property
    def needed_mb(self) -> float:
        """Memory limit that is asked for; infinite where none is known."""
        return math.inf if self.smallest_limit_mb is None else self.smallest_limit_mb


@dataclass(frozen=True, kw_only=True)
class WithoutTarget:
    """
    What is known of plans that the target need not be able to say.

    Attributes
    ----------
    makespan_ms
        Step of the best such plan found, its makespan and what comes after.
    lower_bound_ms
        No such plan is faster.
    """

    makespan_ms: float
    lower_bound_ms: float


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """
    The answer to a problem, and what is known about it.

    Attributes
    ----------
    problem
        What was asked.
    plan
        Best plan found, None when nothing fits.
    status, stopped_by
        What is proven, and why the planner stopped.
    makespan_ms, peak_memory_mb, bubble
        Of the plan, by the simulator; None or empty without a plan.
    step_ms
        The makespan and what stages do after their last op, which is what is minimised: the
        makespan itself where there is no such thing, and None without a plan.
    lower_bound_ms
        No plan within the limits has a shorter step than this; None when nothing fits.
    seconds, seed
        Time taken and the seed that repeats it.
    shortage
        Why nothing fits, when nothing does.
    without_target
        What is known of plans without the target's limits, where that was looked at.
    stage_order
        For each stage the device that it runs on, a place in the speeds and limits as they
        were given; the problem has them in this order.  None where the order was given.
    runners_up
        Other plans that fit, met on the way, the fastest first.  They are not in plan files,
        and outcomes that differ in nothing else are equal.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=3, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=3, micro_batches=4)
    >>> plan = plan_from_matrices(problem, {"Dec": {"none": [[1, 1, 1]]}})
    >>> Outcome(problem=problem, plan=plan, status=Status.FEASIBLE, stopped_by=StoppedBy.BUDGET,
    ...         makespan_ms=18.0, lower_bound_ms=13.5).gap  # (18 - 13.5) / 18
    0.25
    """

    problem: Problem
    plan: Plan | None
    status: Status
    stopped_by: StoppedBy
    makespan_ms: float | None = None
    step_ms: float | None = None
    lower_bound_ms: float | None = None
    peak_memory_mb: tuple[float, ...] = ()
    bubble: Bubble | None = None
    seconds: float = 0.0
    seed: int = 0
    shortage: Shortage | None = None
    without_target: WithoutTarget | None = None
    stage_order: tuple[int, ...] | None = None
    runners_up: tuple[Plan, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        """Take the makespan for the step where nothing comes after the last ops."""
        if self.step_ms is None:
            object.__setattr__(self, "step_ms", self.makespan_ms)

    @property
    def gap(self) -> float | None:
        """Share of the step that is not proven necessary; None without a plan."""
        if self.step_ms is None or self.lower_bound_ms is None:
            return None
        if self.step_ms == 0.0:  # of layers that take no time
            return 0.0
        return max(0.0, (self.step_ms - self.lower_bound_ms) / self.step_ms)
