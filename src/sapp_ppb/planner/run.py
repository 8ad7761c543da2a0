"""One run of the planner: search, bound, and what can be said of the best plan found."""

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.errors import NoPlanFoundError, PlannerNote, SolverError
from sapp_ppb.plan import Outcome, Plan, Status, StoppedBy
from sapp_ppb.planner.allowed import may_be
from sapp_ppb.planner.answer import PROVEN, answer
from sapp_ppb.planner.baselines import baselines
from sapp_ppb.planner.met import tell_met
from sapp_ppb.planner.proof.bounds import lower_bound
from sapp_ppb.planner.proof.exact_chain import ExactChain
from sapp_ppb.planner.proof.fronts import FrontTooLargeError
from sapp_ppb.planner.proof.programs import programs_for
from sapp_ppb.planner.proof.tree import Program, Tree
from sapp_ppb.planner.search.annealing import Search, State
from sapp_ppb.planner.search.budget import Budget
from sapp_ppb.planner.search.side_by_side import side_by_side
from sapp_ppb.planner.search.tidy import tidied, tie_rank
from sapp_ppb.planner.shortage.infeasible import SHORTAGE_S, find_shortage
from sapp_ppb.planner.shortage.least_memory import least_memory_if_known
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import Timeline, simulate
from sapp_ppb.simulator.price import price

# Two makespans are the same within this share.
_ROUNDING = 1e-12
# Moves that a first start may take to fit before the least memory is computed.
_MOVES_TO_FIT = 2000
# Moves after which a first proof is tried where that is quick.
_MOVES_TO_PROVE = 60_000
# Every so many nodes of branch and bound, so many moves search near the best open one.
_GUIDED_EVERY, _GUIDED_MOVES = 3, 4000
# Moves that refine a better plan found so.
_REFINING_MOVES = 30_000
# Share of the moves, as a divisor, that go on from a plan that is given.
_FROM_KNOWN = 4
# Moves among plans of equal makespan at the end: a share of all, as a divisor, and the most.
_POLISHED, _POLISHING_MOVES = 20, 20_000
# Seeds of searches side by side are this far apart.
_SEEDS = 7_919
# Plans besides the best one that are remembered.
RUNNERS_UP = 8


@dataclass(frozen=True, kw_only=True)
class Progress:
    """
    Where a run stands.

    Attributes
    ----------
    phase
        What is being done, in a word.
    best_ms
        Step of the best plan so far; None before there is one.
    bound_ms
        Proven lower bound so far.
    seconds
        Time since the start.
    """

    phase: str
    best_ms: float | None
    bound_ms: float
    seconds: float

    @property
    def gap(self) -> float | None:
        """Share of the step that is not proven necessary."""
        return None if self.best_ms is None else max(0.0, 1 - self.bound_ms / self.best_ms)


Watch = Callable[[Progress], None]


@dataclass(kw_only=True)
class Run:
    """
    One run: the best plan and the bound so far, and the clock.

    Attributes
    ----------
    problem, budget, gap, seed, watch
        What was asked.
    threads
        Searches side by side, each from starts of its own.
    known
        A plan to go on from.
    best
        The best plan so far; one from elsewhere may be given, as a cutoff.
    explains
        Whether to look for why nothing fits, and what would, where nothing does.
    bound_ms
        Proven so far: no plan of the problem is faster.
    stopped_by
        Why it stopped, once it has, with a plan or without.
    """

    problem: Problem
    budget: Budget
    gap: float
    seed: int
    watch: Watch | None
    threads: int = 1
    known: Plan | None = None
    best: Timeline | None = None
    explains: bool = True
    bound_ms: float = 0.0
    stopped_by: StoppedBy = StoppedBy.PROOF
    started: float = field(default_factory=time.monotonic)
    _searches: list[Search] = field(default_factory=list)
    _met: dict[Plan, float] = field(default_factory=dict)  # the fastest plans met, and their steps
    _tried_ms: float | None = None  # step that was last to be proven

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self.started

    def outcome(self) -> Outcome:
        """
        Run to an end.

        Raises
        ------
        NoPlanFoundError
            When the limit passed before any plan was found.
        """
        try:
            self.bound_ms = lower_bound(self.problem, self.started + self.budget.stop_s)
            if math.isinf(self.bound_ms):
                return self._infeasible()
            stopped_by = self._search()
        except KeyboardInterrupt:
            if self.best is None:
                raise
            stopped_by = StoppedBy.INTERRUPT
        if stopped_by is None:
            return self._infeasible()
        self.stopped_by = stopped_by
        if self.best is None:
            raise NoPlanFoundError(
                f"no plan was found in {self.seconds:.1f} s; one may exist: try a higher --time-limit "
                "or --memory-limit"
            )
        return self._feasible(self.best, stopped_by)

    def _search(self) -> StoppedBy | None:
        """Search, and prove, until something says stop; None when nothing fits."""
        self._searches = searches = [self._new_search(number) for number in range(self.threads)]
        search, known = searches[0], None
        self._take_baselines()
        if self.known is not None:
            self._consider(self.known)
            again = search.go_on(search.resume(self.known), self.budget.moves // _FROM_KNOWN)
            self._take_all(search, again)
        if self.best is None and not self._fits_soon(search):
            least = least_memory_if_known(self.problem, time_limit_s=self._remaining())
            if least.rules_out(min(self.problem.limit_per_stage_mb)):
                return None
            known = least.plan
        if self.problem.interleave == 1:
            quick = min(_MOVES_TO_PROVE, self.budget.moves)
            stop = self._anneal(searches, quick, known) or self._prove_chain()
            if stop:
                return stop
        stop = self._anneal(searches, self.budget.moves, known)
        return stop or self._prove_chain() or self._branch(search) or StoppedBy.BUDGET

    def _new_search(self, number: int) -> Search:
        return Search(self.problem, self.seed + number * _SEEDS)

    def _anneal(self, searches: list[Search], moves: int, known: Plan | None) -> StoppedBy | None:
        for search, state in side_by_side([(search, search.run(moves, known)) for search in searches]):
            self._take(search, state)
            reason = self._reason_to_stop()
            if reason is not None:
                return reason
        return None

    def _take_all(self, search: Search, states: Iterator[State]) -> None:
        """Take every state of a search until the time is over."""
        for state in states:
            self._take(search, state)
            if self._remaining() <= 0.0:
                break

    def _prove_chain(self) -> StoppedBy | None:
        """Prove the best plan optimal, or find a better one, where a stage has one chunk."""
        cutoff = None if self.best is None else self.best.step_ms
        if self.problem.interleave > 1 or cutoff is None or cutoff == self._tried_ms:
            return None
        self._tried_ms = cutoff
        self._report("proof")
        try:
            deadline = self.started + self.budget.stop_s
            chain = ExactChain(self.problem, cutoff, deadline)
            self.bound_ms = max(self.bound_ms, chain.bound_ms)
            answer = chain.solve(deadline)
        except (FrontTooLargeError, SolverError) as error:
            if isinstance(error, SolverError):
                warnings.warn(f"no proof: {error}", PlannerNote, stacklevel=2)
            return None
        self.bound_ms = max(self.bound_ms, answer.bound_ms)
        if answer.plan is not None:
            self._consider(answer.plan)
        return self._reason_to_stop()

    def _branch(self, search: Search) -> StoppedBy | None:
        """Raise the bound, and meet better plans, by branch and bound."""
        if not self.budget.work or self.best is None:
            return None
        self._report("proof")
        left, deadline = self.budget.work, self.started + self.budget.stop_s
        programs = programs_for(self.problem, self.best.step_ms, deadline, tell_apart=self.budget.tell_apart)
        try:
            for program, share in programs:
                stop = self._branch_on(program, search, int(share * left))
                left -= program.work
                if stop or left <= 0:
                    return stop
        except SolverError as error:
            warnings.warn(f"no proof: {error}", PlannerNote, stacklevel=2)
        return self._reason_to_stop()

    def _branch_on(self, program: Program[Any, Any], search: Search, work: int) -> StoppedBy | None:
        """Branch and bound over one program."""
        assert self.best is not None, "a plan to beat"  # noqa: S101
        tree = Tree(program, self.best.step_ms, price(self.best.plan).times_ms)
        deadline = self.started + self.budget.stop_s
        progressing = tree.run(work, deadline, first_work=self.budget.first_work)
        for number, progress in enumerate(progressing):
            self.bound_ms = max(self.bound_ms, progress.bound_ms)
            if progress.plan is not None:
                self._consider(progress.plan)
            if progress.layers is not None and number % _GUIDED_EVERY == 0:
                self._search_near(search, progress.layers)
                tree.lower_cutoff(self.best.step_ms)
            self._report("proof")
            if reason := self._reason_to_stop():
                return reason
        return None

    def _search_near(self, search: Search, layers: NDArray[np.float64]) -> None:
        """Search near fractional numbers of layers a cell; longer where that finds a better plan."""
        before = self.best
        state = search.start_near(layers)
        for _ in search.anneal(state, _GUIDED_MOVES):
            if self._remaining() <= 0.0:
                break
        self._take(search, state)
        if self.best is not before:
            self._take_all(search, search.refine(state, _REFINING_MOVES))

    def _take_baselines(self) -> None:
        """Take what people do anyway, where it fits and the target can say it."""
        for baseline in baselines(self.problem):
            self._consider(baseline.plan)

    def _fits_soon(self, search: Search) -> bool:
        """Whether a first start comes to fit within few moves."""
        state = search.start(0.0)
        return any(state.score[2] == 0.0 for _ in search.anneal(state, _MOVES_TO_FIT))

    def _take(self, search: Search, state: State) -> None:
        """Believe the simulator, not the search: time the plan anew and check its memory."""
        known = math.inf if self.best is None else self.best.step_ms
        step_ms = float(state.score[3])
        if state.score[2] == 0.0 and step_ms < known * (1 - _ROUNDING):
            plan = search.plan_of(state)
            if plan is not None:
                self._consider(plan)
        elif state.score[2] == 0.0 and search.is_exact and self._is_among_the_fastest(step_ms):
            plan = search.plan_of(state)
            if plan is not None and may_be(plan):
                self._remember(plan, step_ms)
        self._report("search")

    def _is_among_the_fastest(self, step_ms: float) -> bool:
        return len(self._met) <= RUNNERS_UP or step_ms < max(self._met.values())

    def _remember(self, plan: Plan, step_ms: float) -> None:
        """Keep the fastest plans met, the best one among them."""
        if self._is_among_the_fastest(step_ms):
            self._met[plan] = step_ms
        if len(self._met) > RUNNERS_UP + 1:
            del self._met[max(self._met, key=lambda met: self._met[met])]

    def _runners_up(self, best: Plan) -> tuple[Plan, ...]:
        """Plans met that fit, the best one left out, the fastest first."""
        others = sorted((plan for plan in self._met if plan != best), key=lambda plan: self._met[plan])
        return tuple(plan for plan in others if simulate(plan).fits_memory)[:RUNNERS_UP]

    def _report(self, phase: str) -> None:
        if self.watch is not None:
            best_ms = None if self.best is None else self.best.step_ms
            self.watch(Progress(phase=phase, best_ms=best_ms, bound_ms=self.bound_ms, seconds=self.seconds))

    def _consider(self, plan: Plan) -> None:
        if not may_be(plan):
            return
        timeline = simulate(plan)
        if not timeline.fits_memory:
            return
        self._remember(plan, timeline.step_ms)
        if self.best is None or timeline.step_ms < self.best.step_ms:
            self.best = timeline
            tell_met(timeline)

    def _reason_to_stop(self) -> StoppedBy | None:
        if self.best is not None:
            gap = 1 - self.bound_ms / self.best.step_ms
            if gap <= PROVEN:
                return StoppedBy.PROOF
            if gap <= self.gap:
                return StoppedBy.GAP
        return StoppedBy.TIME if self._remaining() <= 0.0 else None

    def _remaining(self) -> float:
        return max(0.0, self.budget.stop_s - self.seconds)

    def _polished(self, best: Timeline) -> Timeline:
        """Prefer less recompute, lower peaks and smoother splits among plans that are no slower."""
        slowest = best.step_ms * (1 + _ROUNDING)
        candidates = [best]
        if self._searches and self.seconds < self.budget.stop_s:
            moves = min(_POLISHING_MOVES, self.budget.moves // _POLISHED)
            polished = self._searches[0].polish(best.plan, slowest, moves)
            if polished is not None:
                candidates.append(simulate(polished))
        candidates += [simulate(tidied(each.plan)) for each in candidates]
        usable = [
            each for each in candidates if each.fits_memory and each.step_ms <= slowest and may_be(each.plan)
        ]
        return min(usable, key=tie_rank, default=best)

    def _feasible(self, best: Timeline, stopped_by: StoppedBy) -> Outcome:
        best = self._polished(best)
        return answer(
            best.plan,
            best,
            bound_ms=self.bound_ms,
            stopped_by=stopped_by,
            seconds=self.seconds,
            seed=self.seed,
            runners_up=self._runners_up(best.plan),
        )

    def _infeasible(self) -> Outcome:
        shortage = None
        if self.explains:
            shortage = find_shortage(self.problem, time_limit_s=max(self._remaining(), SHORTAGE_S))
        return Outcome(
            problem=self.problem,
            plan=None,
            status=Status.INFEASIBLE,
            stopped_by=StoppedBy.PROOF,
            seconds=round(self.seconds, 3),
            seed=self.seed,
            shortage=shortage,
        )
