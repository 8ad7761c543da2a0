"""sweep(): plan many problems side by side, keep what is found, and put it in one table."""

import math
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sapp_ppb.costs.checks import shown
from sapp_ppb.errors import InputError, PlannerNote
from sapp_ppb.plan import Outcome, Plan
from sapp_ppb.problem import Problem
from sapp_ppb.sweep.answer import SETTLED, Answer, RowStatus, outcome_of
from sapp_ppb.sweep.candidate import Candidate
from sapp_ppb.sweep.frontier import pareto
from sapp_ppb.sweep.pruning import cut_by, waves
from sapp_ppb.sweep.row import Row, row_of
from sapp_ppb.sweep.store import Store, fingerprint
from sapp_ppb.sweep.work import Effort, answer_for, bound_for

if TYPE_CHECKING:
    from sapp_ppb.sweep.executor import Executor

T = TypeVar("T")
_MOST_WORKERS = 4096


@dataclass(frozen=True, kw_only=True)
class SweepProgress:
    """
    Where a sweep stands.

    Attributes
    ----------
    phase
        What is being done, in a word: ``bounds`` or ``plans``.
    done, of
        Problems that are settled, and all.
    cut
        Those among ``done`` that needed no planning.
    best
        Fastest row so far, or None.
    seconds, left_s
        Time since the start, and what is left at this pace; None before there is one.
    news
        A sentence that should not be lost, or nothing.
    """

    phase: str
    done: int
    of: int
    cut: int = 0
    best: Row | None = None
    seconds: float = 0.0
    left_s: float | None = None
    news: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sweep:
    """
    What a sweep found.

    Attributes
    ----------
    rows
        One for each problem, the fastest plan first, those without a plan last.
    interrupted
        Whether it was stopped before every problem was settled; such have no row.
    """

    rows: tuple[Row, ...]
    interrupted: bool = False

    @property
    def best(self) -> Row | None:
        """Row of the fastest plan; None when there is no plan."""
        return self.rows[0] if self.rows and self.rows[0].answer.step_ms is not None else None


Watch = Callable[[SweepProgress], None]


def sweep(
    problems: Iterable[Problem | Candidate],
    *,
    executor: "Executor | None" = None,
    workers: int | None = None,
    time_limit_s: float = 10.0,
    gap: float = 0.0,
    seed: int = 0,
    prune: bool = True,
    folder: str | PathLike[str] | None = None,
    watch: Watch | None = None,
) -> Sweep:
    """
    Plan many problems, each on one core.

    The rows do not depend on where and beside what a problem was planned, but for their
    seconds, and for plans that the clock stopped (``stopped_by`` says ``time``).

    Parameters
    ----------
    problems
        Problems, or candidates that say what training each is a part of.
    executor
        Anything with the ``submit`` of ``concurrent.futures.Executor``, whose workers can
        import this package; None for processes of this machine.
    workers
        Processes of this machine; None for all cores that this process may use.
    time_limit_s, gap, seed
        For each problem, as of ``plan_pipeline``.
    prune
        Cut a problem whose lower bound is above the best plan known of those that answer
        the same question: as many devices, as large a batch, the same limits.
    folder
        Where what is found is kept as it comes, and what is there already is not done again.
    watch
        Called after every problem with the progress.  Without it what is worth saying is
        warned of.

    Returns
    -------
    Sweep
        Whose rows are of the problems in hand when it was interrupted.

    Raises
    ------
    InputError
        If an option can not be, or the folder can not be used.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1)
    >>> model = Model(name="tiny", layers=(body,))
    >>> found = sweep([Problem(model=model, stages=stages, micro_batches=8) for stages in (2, 4)], workers=1)
    >>> [(row.inputs["stages"], row.answer.step_ms) for row in found.rows]  # (M + S - 1) x 8 / S x 3
    [(4, 66.0), (2, 108.0)]
    """
    effort = Effort(time_limit_s=time_limit_s, gap=gap, seed=seed)
    if workers is not None and (isinstance(workers, bool) or not 1 <= workers <= _MOST_WORKERS):
        raise InputError("workers", [f"must be from 1 to {_MOST_WORKERS} (got {shown(workers)})"])
    candidates = [_candidate(each) for each in problems]
    store = None
    if folder is not None:
        store = Store(Path(folder), fingerprint(candidates, effort, prune=prune))
    run = _Run(
        candidates=candidates,
        effort=effort,
        executor=executor,
        workers=workers,
        prune=prune,
        store=store,
        watch=watch,
    )
    try:
        return run.result()
    finally:
        if store is not None:
            store.close()


def outcome(row: Row) -> Outcome:
    """
    Make the outcome again that a row with a plan was made of.

    Raises
    ------
    InputError
        When the row has no plan.
    """
    if row.candidate is None or not row.answer.counts:
        raise InputError("row", [f"has no plan: it is {row.answer.status.value}"])
    return outcome_of(row.answer, Plan(problem=row.candidate.problem, counts=_array(row.answer)))


def _array(answer: Answer):  # type: ignore[no-untyped-def]  # an array of counts
    import numpy as np

    return np.array(answer.counts, dtype=np.int64)


def _candidate(given: Problem | Candidate) -> Candidate:
    return given.light if isinstance(given, Candidate) else Candidate(problem=given).light


@dataclass(kw_only=True)
class _Run:
    """One sweep on its way: what is asked, and what is known so far."""

    candidates: Sequence[Candidate]
    effort: Effort
    executor: "Executor | None"
    workers: int | None
    prune: bool
    store: Store | None
    watch: Watch | None
    started: float = field(default_factory=time.monotonic)
    bounds_ms: dict[int, float] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)
    cut: dict[int, str] = field(default_factory=dict)
    known: int = 0  # answers that were kept from before
    _fastest: int | None = None

    def result(self) -> Sweep:
        """Run to an end, or to an interrupt."""
        if self.store is not None:
            self.bounds_ms |= self._within(self.store.bounds_ms)
            for place, answer in self._within(self.store.answers).items():
                self._take(place, answer)
            self.known = len(self.answers)
            for news in self.store.news:
                self._say(news)
            if self.known:
                self._say(f"goes on: {self.known} of {len(self.candidates)} problems were planned before")
        interrupted = False
        try:
            self._find_bounds()
            self._plan()
        except KeyboardInterrupt:
            interrupted = True
        return Sweep(rows=tuple(self._rows()), interrupted=interrupted)

    def _within(self, found: Mapping[int, T]) -> dict[int, T]:
        """Leave out what a damaged file says of candidates that there are not."""
        return {place: value for place, value in found.items() if 0 <= place < len(self.candidates)}

    def _find_bounds(self) -> None:
        """Bound every candidate, without which nothing can be cut, nor put in order."""
        missing = {place: each for place, each in enumerate(self.candidates) if place not in self.bounds_ms}
        for place, bound_ms in self._run(bound_for, missing):
            self.bounds_ms[place] = bound_ms if isinstance(bound_ms, float) else 0.0
            if self.store is not None:
                self.store.keep_bound(place, self.bounds_ms[place])
            self._report("bounds", len(self.bounds_ms))

    def _plan(self) -> None:
        """Plan wave by wave what is neither known nor cut."""
        bounds_ms = [self.bounds_ms[place] for place in range(len(self.candidates))]
        settled: dict[int, Answer] = {}
        for wave in waves(self.candidates, bounds_ms):
            if self.prune:
                cut = cut_by(wave, self.candidates, bounds_ms, settled)
                self.cut |= cut
                for place in cut:  # kept from a run in which the plan that cuts it was lost
                    self.answers.pop(place, None)
                if cut:
                    self._report("plans", len(self.answers) + len(self.cut))
            to_plan = [place for place in wave if place not in self.cut]
            missing = {place: self.candidates[place] for place in to_plan if place not in self.answers}
            for place, answer in self._run(partial(answer_for, effort=self.effort), missing):
                self._settle(place, answer)
                self._report("plans", len(self.answers) + len(self.cut))
            settled |= {place: self.answers[place] for place in to_plan}

    def _settle(self, place: int, answer: object) -> None:
        """Keep what came of a candidate."""
        if not isinstance(answer, Answer):
            reason = f"its workers died ({getattr(answer, 'reason', '')})"
            answer = Answer(status=RowStatus.FAILED, reason=reason, seed=self.effort.seed)
        self._take(place, answer)
        if self.store is not None and answer.status in SETTLED:
            self.store.keep_answer(place, answer)

    def _take(self, place: int, answer: Answer) -> None:
        self.answers[place] = answer
        if answer.step_ms is None:
            return
        fastest = math.inf if self._fastest is None else self.answers[self._fastest].step_ms or math.inf
        if answer.step_ms < fastest:
            self._fastest = place

    def _run(
        self, function: Callable[[Candidate], object], items: Mapping[int, Candidate]
    ) -> Generator[tuple[int, object]]:
        """Run items in workers; what is heard of them is said."""
        from sapp_ppb.sweep.executor import Work

        if not items:
            return
        work = Work(function, executor=self.executor, workers=self.workers, say=self._say)
        with closing(work.run(items)) as results:
            yield from results

    def _say(self, news: str) -> None:
        if self.watch is None:
            warnings.warn(news, PlannerNote, stacklevel=2)
        else:
            self._report("plans", len(self.answers) + len(self.cut), news)

    def _report(self, phase: str, done: int, news: str = "") -> None:
        if self.watch is None:
            return
        seconds = time.monotonic() - self.started
        fresh = done - (self.known if phase == "plans" else 0)
        left = len(self.candidates) - done
        self.watch(
            SweepProgress(
                phase=phase,
                done=done,
                of=len(self.candidates),
                cut=len(self.cut),
                best=None if self._fastest is None else self._row(self._fastest),
                seconds=seconds,
                left_s=seconds / fresh * left if fresh > 0 else None,
                news=news,
            )
        )

    def _row(self, place: int, *, on_front: bool = False) -> Row:
        """Row of a candidate that is settled."""
        if place in self.cut:
            bound_ms = self.bounds_ms[place]
            answer = Answer(
                status=RowStatus.CUT,
                reason=self.cut[place],
                lower_bound_ms=bound_ms,
                seed=self.effort.seed,
            )
        else:
            answer = self.answers[place]
        return row_of(self.candidates[place], answer, self.effort, pareto=on_front)

    def _rows(self) -> list[Row]:
        """List what is settled: the fastest first, and of equally fast ones the first that was given."""
        front = self._front()
        places = sorted({*self.answers, *self.cut}, key=lambda place: (self._rank(place), place))
        return [self._row(place, on_front=place in front) for place in places]

    def _rank(self, place: int) -> tuple[int, float]:
        answer = self.answers.get(place)
        if answer is not None and answer.step_ms is not None:
            return 0, answer.step_ms
        return 1, 0.0

    def _front(self) -> set[int]:
        """Places of the rows that no other beats at both time and memory."""
        by_scale: dict[object, list[int]] = {}
        for place, answer in self.answers.items():
            if answer.step_ms is not None:
                by_scale.setdefault(self.candidates[place].scale, []).append(place)
        found = set()
        for places in by_scale.values():
            points = [
                (self.answers[place].step_ms or 0.0, max(self.answers[place].peak_memory_mb))
                for place in places
            ]
            found |= {places[index] for index in pareto(points)}
        return found


def with_skipped(found: Sweep, skipped: Iterable[Row]) -> Sweep:
    """Add rows of what was no problem at the end."""
    return replace(found, rows=(*found.rows, *skipped))
