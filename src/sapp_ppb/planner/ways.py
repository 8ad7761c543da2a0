"""
Planning for a framework with several ways to say recompute, each a problem of its own.

A short search in every way tells which are worth more; those get most of the time, one
after the other, each with the best plan so far as its cutoff, and every other one is
proven to hold no better plan, as far as the time goes.  The least bound of all holds
for the framework.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sapp_ppb.errors import InputError, NoPlanFoundError
from sapp_ppb.plan import Outcome, Plan, Status, StoppedBy
from sapp_ppb.planner.allowed import may_be
from sapp_ppb.planner.answer import PROVEN, answer, joint_reason
from sapp_ppb.planner.met import tell_met
from sapp_ppb.planner.proof.bounds import bound_within, lower_bound
from sapp_ppb.planner.run import RUNNERS_UP, Run, Watch
from sapp_ppb.planner.search.annealing import Search
from sapp_ppb.planner.search.budget import Budget, budget_for
from sapp_ppb.planner.shortage.least_memory import least_memory_if_known
from sapp_ppb.planner.shortage.of_ways import follows_places, nothing_fits, shortage_of_ways
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import Timeline, simulate
from sapp_ppb.targets import Way, target_named

# Moves that tell what a way is worth, as a share of a way's own, and the most.
_TASTED, _TASTING_MOVES = 0.2, 12_000
# Ways that the time is shared by, the most promising first; later ones get a share of an even split.
_BEST, _LEAST_SHARE = 3, 0.2
# Share of its time that a run is counted to have taken when it ended with a proof.
_PROVEN_IN = 1 / 3
# Seconds for the plan that holds least of a way in which the short search met none that fits.
_LEAST_MEMORY_S = 5.0


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tasted:
    """A way, the best plan that a short search met in it, and a bound on any."""

    way: Way
    timeline: Timeline | None
    bound_ms: float

    @property
    def step_ms(self) -> float:
        return math.inf if self.timeline is None else self.timeline.step_ms


def plan_ways(
    problem: Problem,
    ways: Sequence[Way],
    *,
    time_limit_s: float,
    gap: float,
    seed: int,
    threads: int,
    known: Plan | None,
    watch: Watch | None,
    patience: float = 1.0,
) -> Outcome:
    """
    Find the best plan of several ways.

    Parameters
    ----------
    problem
        What was asked, without what a way restricts.
    ways
        At least one, as its target lists them.
    time_limit_s
        For all of them together.
    known
        A plan to begin with; it is used where a way can say it.
    patience
        As of ``plan_pipeline``.

    Raises
    ------
    NoPlanFoundError
        When the limit passed before any plan was found.
    """
    started = time.monotonic()
    deadline = started + budget_for(problem, time_limit_s, patience).stop_s
    best, tasted = _taste(ways, time_limit_s / len(ways), deadline, seed, known, patience)
    if best is None and nothing_fits(ways):
        return Outcome(
            problem=problem,
            plan=None,
            status=Status.INFEASIBLE,
            stopped_by=StoppedBy.PROOF,
            shortage=shortage_of_ways(problem, ways),
            seconds=round(time.monotonic() - started, 3),
            seed=seed,
        )
    options = {"gap": gap, "seed": seed, "watch": watch, "threads": threads}
    rivals = _Rivals(
        tasted=tasted, best=best, known=known, deadline=deadline, patience=patience, options=options
    )
    left_s = time_limit_s
    for each in sorted(range(len(ways)), key=lambda number: tasted[number].step_ms):
        if each in (still_open := rivals.open_ways()):
            share_s = left_s / min(len(still_open), _BEST)
            seconds = max(share_s, _LEAST_SHARE * time_limit_s / len(ways))
            rivals.run(each, seconds)
            left_s -= seconds if each in rivals.open_ways() else _PROVEN_IN * seconds
    while left_s > _LEAST_SHARE * time_limit_s and (still_open := rivals.open_ways()):
        # What the proofs left goes to the way that the bound of all hangs on.
        seconds = max(left_s / 2, _LEAST_SHARE * time_limit_s)
        rivals.run(min(still_open, key=rivals.bounds_ms.__getitem__), seconds)
        left_s -= seconds
    if rivals.best is None:
        raise NoPlanFoundError(
            f"no plan that {target_named(problem.target or '').title} can say was found in "
            f"{time.monotonic() - started:.1f} s; one may exist: try a higher --time-limit or --memory-limit"
        )
    told = _told(problem, rivals.best, rivals.bound_ms(), rivals.stopped_by, started, seed)
    return replace(told, runners_up=_fastest_others(told.plan, rivals.met))


class _Rivals:
    """
    The ways, the best plan of all of them, and the bound of each.

    Attributes
    ----------
    best
        Best plan so far.
    bounds_ms
        Proven of each way alone.
    met
        Plans met.
    stopped_by
        Why the runs stopped.
    """

    def __init__(
        self,
        *,
        tasted: Sequence[_Tasted],
        best: Timeline | None,
        known: Plan | None,
        deadline: float,
        patience: float,
        options: dict[str, Any],
    ) -> None:
        self._problems = [each.way.problem for each in tasted]
        self._known, self._deadline, self._options = known, deadline, options
        self._patience = patience
        self.best = best
        self.bounds_ms = [each.bound_ms for each in tasted]
        self.met: list[Plan] = []
        self.stopped_by = StoppedBy.PROOF

    @property
    def _cutoff_ms(self) -> float:
        return math.inf if self.best is None else self.best.step_ms

    def _bound_ms(self, number: int) -> float:
        """Bound of a way; infinite where another one has all its plans that matter."""
        return bound_within(self._problems[number], self._cutoff_ms, self.bounds_ms[number])

    def bound_ms(self) -> float:
        """Bound of all ways: the best plan's step when none can be better."""
        return min(self._cutoff_ms, *map(self._bound_ms, range(len(self._problems))))

    def open_ways(self) -> list[int]:
        """Ways in which a better plan may be; none after an interrupt."""
        if self.stopped_by is StoppedBy.INTERRUPT:
            return []
        closed_ms = self._cutoff_ms * (1 - PROVEN)
        return [number for number in range(len(self._problems)) if self._bound_ms(number) < closed_ms]

    def run(self, number: int, seconds: float) -> None:
        """Search one way and prove, with the best plan of all as the cutoff."""
        problem = self._problems[number]
        run = Run(
            problem=problem,
            budget=_until(budget_for(problem, seconds, self._patience), self._deadline),
            known=as_plan_of(problem, self._known),
            best=self.best,
            explains=False,
            **self._options,
        )
        try:
            outcome = run.outcome()
        except NoPlanFoundError:
            self.bounds_ms[number] = max(self.bounds_ms[number], run.bound_ms)
            self.stopped_by = joint_reason(self.stopped_by, run.stopped_by)
            return
        if outcome.plan is None:
            self.bounds_ms[number] = math.inf
            return
        self.bounds_ms[number] = max(self.bounds_ms[number], outcome.lower_bound_ms or 0.0)
        self.best = simulate(outcome.plan)
        self.met += [outcome.plan, *outcome.runners_up]
        self.stopped_by = joint_reason(self.stopped_by, outcome.stopped_by)


def _fastest_others(best: Plan | None, met: Sequence[Plan]) -> tuple[Plan, ...]:
    """Plans met in any way, the fastest first, each once and the best one left out."""
    if best is None:
        return ()
    as_asked = dict.fromkeys(Plan(problem=best.problem, counts=plan.counts) for plan in met)
    others = [plan for plan in as_asked if plan != best]
    return tuple(sorted(others, key=lambda plan: simulate(plan).step_ms)[:RUNNERS_UP])


def _taste(
    ways: Sequence[Way],
    seconds: float,
    deadline: float,
    seed: int,
    known: Plan | None,
    patience: float,
) -> tuple[Timeline | None, list[_Tasted]]:
    """Search every way for a moment, and bound it; ways that can not be better are not searched."""
    best: Timeline | None = None
    tasted = []
    for way in ways:
        cutoff_ms = math.inf if best is None else best.step_ms
        bound_ms = bound_within(way.problem, cutoff_ms, 0.0)
        budget = budget_for(way.problem, seconds, patience)
        if bound_ms < cutoff_ms:
            stop = min(deadline, time.monotonic() + budget.stop_s)  # what takes much longer than its share
            bound_ms = max(bound_ms, lower_bound(way.problem, stop))
        found = [simulate(plan) for plan in (as_plan_of(way.problem, known),) if plan is not None]
        if bound_ms < cutoff_ms:
            moves = int(min(_TASTING_MOVES, _TASTED * budget.moves))
            search = Search(way.problem, seed)
            state = search.start(0.0)
            for _ in search.anneal(state, moves):
                pass
            plan = search.plan_of(state)
            found += [] if plan is None else [simulate(plan)]
        fitting = [each for each in found if each.fits_memory and may_be(each.plan)]
        timeline = min(fitting, key=lambda each: each.step_ms, default=None)
        if timeline is None and bound_ms < math.inf and not follows_places(way):
            timeline, bound_ms = _lightest(way, bound_ms)
        tasted.append(_Tasted(way=way, timeline=timeline, bound_ms=bound_ms))
        if timeline is not None and (best is None or timeline.step_ms < best.step_ms):
            best = timeline
            tell_met(timeline)
    return best, tasted


def _lightest(way: Way, bound_ms: float) -> tuple[Timeline | None, float]:
    """Take the plan that holds least, where a search finds none that fits."""
    least = least_memory_if_known(way.problem, any_that_fits=True, time_limit_s=_LEAST_MEMORY_S)
    if least.rules_out(min(way.problem.limit_per_stage_mb)):
        return None, math.inf
    timeline = None if least.plan is None else simulate(least.plan)
    return (timeline if timeline is not None and timeline.fits_memory else None), bound_ms


def _until(budget: Budget, deadline: float) -> Budget:
    """Stop by the clock where all ways together would stop."""
    return replace(budget, stop_s=max(0.1, min(budget.stop_s, deadline - time.monotonic())))


def as_plan_of(problem: Problem, plan: Plan | None) -> Plan | None:
    """Read a plan's counts as a plan of a way; None where they are none."""
    if plan is None:
        return None
    try:
        return Plan(problem=problem, counts=plan.counts)
    except InputError:  # a type, or an empty cell, that the way does not have
        return None


def _told(
    problem: Problem, best: Timeline, bound_ms: float, stopped_by: StoppedBy, started: float, seed: int
) -> Outcome:
    """Tell the best plan of all ways as the whole problem's, with the least bound of all."""
    return answer(
        Plan(problem=problem, counts=best.plan.counts),
        best,
        bound_ms=bound_ms,
        stopped_by=stopped_by,
        seconds=time.monotonic() - started,
        seed=seed,
    )
