"""
Which device does the work of which stage, where devices differ in speed or memory.

Devices alike are interchangeable, so there are as many orders as arrangements of their
classes.  Where these are few each is bounded and tried for a moment; the best few get most
of the time, and every other one is proven to hold no better plan, as far as the time goes.
Where they are many, swaps of two devices look for a good one, and the bound is one that
holds in any order.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sapp_ppb.errors import NoPlanFoundError
from sapp_ppb.plan import Outcome, Plan, StoppedBy
from sapp_ppb.planner.allowed import may_be
from sapp_ppb.planner.answer import PROVEN, answer, joint_reason
from sapp_ppb.planner.baselines import baselines
from sapp_ppb.planner.device_orders import (
    Order,
    check_reordering,
    devices_of,
    in_order,
    number_of_orders,
    orders_of,
)
from sapp_ppb.planner.proof.bounds import any_order_bound, lower_bound
from sapp_ppb.planner.run import Run, Watch
from sapp_ppb.planner.search.annealing import Search
from sapp_ppb.planner.search.budget import budget_for
from sapp_ppb.planner.shortage.least_memory import least_memory_if_known
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import Timeline, simulate

# How a problem is planned without another order: seconds, and the answer.
Planner = Callable[[Problem, float], Outcome]

# Orders that are each looked at; of more, so many are tried.
_MOST_ORDERS, _TRIED = 200, 120
# Moves that tell what an order is worth: a share of its own, and the fewest and the most.
_TASTED, _TASTING_MOVES = 0.2, (300, 12_000)
# Orders that have most of the time, and how much; of later ones with one chunk only the proof is wanted.
_BEST, _BEST_SHARE, _PROVING_MOVES = 3, 0.75, 1_000
_LEAST_MEMORY_S = 5.0
# Two steps are the same within this share.
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class _Candidate:
    """An order, the problem in it, a bound, and the best plan that a short search met."""

    order: Order
    problem: Problem
    bound_ms: float
    timeline: Timeline | None = None

    @property
    def step_ms(self) -> float:
        return math.inf if self.timeline is None else self.timeline.step_ms


def plan_orders(
    problem: Problem,
    *,
    time_limit_s: float,
    gap: float,
    seed: int,
    threads: int,
    known: Plan | None,
    watch: Watch | None,
    plan: Planner,
    plain: bool,
    has_way: Callable[[Plan], bool],
    patience: float = 1.0,
) -> Outcome:
    """
    Find the best plan over all orders of the devices.

    Parameters
    ----------
    time_limit_s
        For all of them together.
    known
        A plan to begin with, tried in every order.
    plan
        How one problem is planned as it stands.
    plain
        Whether a single run plans a problem; otherwise ``plan`` is asked for every order.
    has_way
        Whether a plan is one of those that the target is asked for.
    patience
        As of ``plan_pipeline``.

    Returns
    -------
    Outcome
        Its problem has speeds and limits in the order chosen, ``stage_order`` says which it is.

    Raises
    ------
    InputError
        When the stages do not differ.
    NoPlanFoundError
        When the limit passed before any plan was found.
    """
    check_reordering(problem)
    options = {"gap": gap, "seed": seed, "threads": threads, "watch": watch}
    return _Orders(problem, time_limit_s, patience, known, plan, plain, has_way, options).outcome()


class _Orders:
    """The best plan over the orders so far, and what is left of the time."""

    def __init__(
        self,
        problem: Problem,
        time_limit_s: float,
        patience: float,
        known: Plan | None,
        plan: Planner,
        plain: bool,
        has_way: Callable[[Plan], bool],
        options: dict[str, Any],
    ) -> None:
        self._problem, self._time_limit_s, self._patience = problem, time_limit_s, patience
        self._options, self._seed = options, options["seed"]
        self._known, self._plan, self._plain, self._has_way = known, plan, plain, has_way
        self._started = time.monotonic()
        self._deadline = self._started + budget_for(problem, time_limit_s, patience).stop_s
        self._few = number_of_orders(problem) <= _MOST_ORDERS
        self._best: tuple[Order, Timeline] | None = None
        self._runners_up: tuple[Plan, ...] = ()
        self._bound_ms, self._stopped_by = math.inf, StoppedBy.PROOF

    @property
    def _best_ms(self) -> float:
        return math.inf if self._best is None else self._best[1].step_ms

    def outcome(self) -> Outcome:
        """Run to an end, or until it is interrupted and there is a plan."""
        try:
            candidates = self._all() if self._few else self._swapped()
            self._go_through(sorted(candidates, key=lambda each: (each.step_ms, each.bound_ms)))
        except KeyboardInterrupt:
            if self._best is None:
                raise
            self._stopped_by = StoppedBy.INTERRUPT
        if not self._few or self._stopped_by is StoppedBy.INTERRUPT:
            self._bound_ms = any_order_bound(self._problem)
        return self._nothing() if self._best is None else self._told(*self._best)

    def _go_through(self, candidates: list[_Candidate]) -> None:
        """Plan the orders that may be better, the most promising first, and gather what bounds the others."""
        for number, each in enumerate(candidates):
            rest = candidates[number + 1 :]
            if each.bound_ms >= self._best_ms * (1 - PROVEN) or self._is_hopeless(number):
                self._bound_ms = min(self._bound_ms, each.bound_ms)
                continue
            if self._look_at_the_clock() or self._stopped_by is StoppedBy.INTERRUPT:
                self._bound_ms = min(self._bound_ms, each.bound_ms, *(other.bound_ms for other in rest))
                return
            self._plan_one(each, self._seconds_for(number, len(candidates)), late=number >= _BEST)

    def _look_at_the_clock(self) -> bool:
        """Whether the time is over, which is then a reason to stop."""
        late = time.monotonic() > self._deadline
        self._stopped_by = joint_reason(self._stopped_by, StoppedBy.TIME if late else StoppedBy.PROOF)
        return late

    def _is_hopeless(self, number: int) -> bool:
        """Whether an order would have too little time for a better plan or a proof."""
        late = number >= _BEST and self._best is not None
        return late and self._plain and self._problem.interleave > 1

    def _seconds_for(self, number: int, orders: int) -> float:
        """Share out what trying has left of the time: most of it to the best few orders, alike."""
        left_s = (1 - _TASTED) * self._time_limit_s
        if orders <= _BEST or self._is_hopeless(_BEST):
            return left_s / min(orders, _BEST)
        return left_s * (_BEST_SHARE / _BEST if number < _BEST else (1 - _BEST_SHARE) / (orders - _BEST))

    def _all(self) -> list[_Candidate]:
        """Bound every order, and try each for a moment that may be better than those before."""
        orders = [(order, in_order(self._problem, order)) for order in orders_of(self._problem)]
        bounded = [
            _Candidate(order=order, problem=problem, bound_ms=self._bound(problem, len(orders)))
            for order, problem in orders
        ]
        bounded.sort(key=lambda each: each.bound_ms)
        return [self._tasted(each, len(bounded)) for each in bounded]

    def _swapped(self) -> list[_Candidate]:
        """Look for a good order by swaps of two devices, each tried for a moment; the best one met."""
        numbers, devices = np.random.default_rng(self._seed), devices_of(self._problem)
        order = tuple(range(self._problem.stages))
        best = self._tasted(self._candidate(order), _TRIED)
        for _ in range(_TRIED - 1):
            if time.monotonic() > self._deadline:
                break
            one, other = (int(place) for place in numbers.choice(len(order), 2, replace=False))
            swapped = list(best.order)
            swapped[one], swapped[other] = swapped[other], swapped[one]
            if devices[swapped[one]] == devices[swapped[other]]:
                continue
            tried = self._tasted(self._candidate(tuple(swapped)), _TRIED)
            best = tried if tried.step_ms < best.step_ms else best
        return [best]

    def _candidate(self, order: Order) -> _Candidate:
        problem = in_order(self._problem, order)
        return _Candidate(order=order, problem=problem, bound_ms=self._bound(problem, _TRIED))

    def _bound(self, problem: Problem, number: int) -> float:
        """Bound one of so many orders; the clock stops what takes much longer than each of them may."""
        stop_s = budget_for(problem, self._time_limit_s / number, self._patience).stop_s
        return lower_bound(problem, min(self._deadline, time.monotonic() + stop_s))

    def _tasted(self, each: _Candidate, number: int) -> _Candidate:
        """Search an order for a moment, unless it can not be better than the best plan."""
        if math.isinf(each.bound_ms) or each.bound_ms >= self._best_ms * (1 - PROVEN):
            return each
        plans = [baseline.plan for baseline in baselines(each.problem)]
        plans += [] if self._known is None else [Plan(problem=each.problem, counts=self._known.counts)]
        if self._plain:
            moves = _TASTED * budget_for(each.problem, self._time_limit_s / number).moves
            search = Search(each.problem, self._seed)
            state = search.start(0.0)
            for _ in search.anneal(state, int(min(max(moves, _TASTING_MOVES[0]), _TASTING_MOVES[1]))):
                pass
            met = search.plan_of(state)
            plans += [] if met is None else [met]
        timelines = [simulate(plan) for plan in plans if self._may_be(plan)]
        fitting = [timeline for timeline in timelines if timeline.fits_memory]
        tasted = replace(each, timeline=min(fitting, key=lambda one: one.step_ms, default=None))
        self._take(each.order, tasted.timeline)
        return tasted

    def _may_be(self, plan: Plan) -> bool:
        """Whether a plan is one that was asked for, and that the bounds are of."""
        return may_be(plan) and self._has_way(plan)

    def _take(self, order: Order, timeline: Timeline | None) -> None:
        """Keep a plan that is better than the best so far."""
        if timeline is not None and timeline.step_ms < self._best_ms * (1 - _ROUNDING):
            self._best = (order, timeline)

    def _plan_one(self, each: _Candidate, seconds: float, *, late: bool) -> None:
        """Plan one order, with the best plan of all as its cutoff."""
        if self._best is None and not self._may_fit(each):
            return
        try:
            outcome = (
                self._run(each, seconds, late=late) if self._plain else self._plan(each.problem, seconds)
            )
        except NoPlanFoundError:
            self._bound_ms = min(self._bound_ms, each.bound_ms)
            self._look_at_the_clock()
            return
        if outcome.plan is None:
            return
        self._bound_ms = min(self._bound_ms, max(outcome.lower_bound_ms or 0.0, each.bound_ms))
        found = simulate(outcome.plan)
        is_own = self._best is not None and self._best[0] == each.order
        better = found.step_ms < self._best_ms * (1 - _ROUNDING) or (
            is_own and found.step_ms <= self._best_ms
        )
        if outcome.plan.problem is each.problem and better:
            self._best, self._runners_up = (each.order, found), outcome.runners_up
        self._stopped_by = joint_reason(self._stopped_by, outcome.stopped_by)

    def _may_fit(self, each: _Candidate) -> bool:
        """Whether anything fits in an order; a plan that does is kept."""
        least = least_memory_if_known(each.problem, any_that_fits=True, time_limit_s=_LEAST_MEMORY_S)
        if least.rules_out(min(each.problem.limit_per_stage_mb)):
            return False
        timeline = None if least.plan is None or not self._may_be(least.plan) else simulate(least.plan)
        if timeline is not None and timeline.fits_memory:
            self._take(each.order, timeline)
        return True

    def _run(self, each: _Candidate, seconds: float, *, late: bool) -> Outcome:
        budget = budget_for(each.problem, seconds)
        moves = min(budget.moves, _PROVING_MOVES) if late and each.problem.interleave == 1 else budget.moves
        stop_s = max(0.1, self._deadline - time.monotonic())
        return Run(
            problem=each.problem,
            budget=replace(budget, moves=moves, stop_s=stop_s),
            known=None if self._known is None else Plan(problem=each.problem, counts=self._known.counts),
            best=None if self._best is None else self._best[1],
            explains=False,
            **self._options,
        ).outcome()

    def _nothing(self) -> Outcome:
        """
        Say that nothing fits, of the given order, where that is proven of all.

        Raises
        ------
        NoPlanFoundError
            Where some order may have a plan.
        """
        if not (math.isinf(self._bound_ms) if self._few else self._too_much_for_the_largest()):
            raise NoPlanFoundError(
                f"no plan was found in {time.monotonic() - self._started:.1f} s, in no order of the stages "
                "that was tried; one may exist: try a higher --time-limit or --memory-limit"
            )
        answer = self._plan(self._problem, self._time_limit_s)
        return replace(answer, seconds=round(time.monotonic() - self._started, 3))

    def _too_much_for_the_largest(self) -> bool:
        """Whether nothing fits even where every stage has the largest limit; then no order helps."""
        if self._problem.memory_limit_mb is None:
            return False
        largest_mb = max(self._problem.limit_per_stage_mb)
        most = replace(self._problem, memory_limit_mb=largest_mb, memory_margin=0.0)
        return least_memory_if_known(most, time_limit_s=_LEAST_MEMORY_S).rules_out(largest_mb)

    def _told(self, order: Order, best: Timeline) -> Outcome:
        problem = best.plan.problem
        return answer(
            best.plan,
            best,
            bound_ms=self._bound_ms,
            stopped_by=self._stopped_by,
            seconds=time.monotonic() - self._started,
            seed=self._seed,
            stage_order=order,
            runners_up=tuple(plan for plan in self._runners_up if plan.problem is problem),
        )
