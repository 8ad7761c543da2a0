"""
One chunk a stage: the optimum, with its proof.

A stage takes a run of layers, and for a run the fastest choice of recompute types
within the stage's memory is the only one that matters, because no path gets longer
when a backward gets shorter.  A plan is a path of runs through the chain:

    (E1)  minimise T
    (E2)  sum of y over the runs of stage s that end before layer i
          = sum of y over the runs of stage s + 1 that begin with it          every s, i
    (E3)  T >= fixed(p) + sum over runs (u(p, s) f + w(p, s) b + z(p, s) w) y   every path p
    (E4)  y binary

Paths come lazily: solve, simulate, state the longest paths, repeat until the
simulated plan is as fast as the program says.  Runs that no plan within the
cutoff uses are dropped before: by the families LB1 to LB4, then by the simulator,
with every other stage at its least.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.plan import Plan
from sapp_ppb.planner.proof.cuts import PathCut, Separator
from sapp_ppb.planner.proof.families import PathFamilies
from sapp_ppb.planner.proof.fronts import CellFronts, FrontTooLargeError, Run, cell_fronts, run_between
from sapp_ppb.planner.proof.highs import LinearProgram
from sapp_ppb.planner.proof.segments import Segments, chain_segments, has_few_runs, kinds, shares
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.price import layer_tables, most_work_ms, price_lists, price_rule, prices
from sapp_ppb.simulator.timeline import batched_makespans

Floats = NDArray[np.float64]

# The program works in units of which the cutoff has this many, whatever the user's times are.
_UNITS = 1e4
# Runs slower than the cutoff by rounding alone are kept.
_ROUNDING = 1e-9
_WINDOWS = 4
_LP_ROUNDS = 200
# Price lists that are timed at once.
_BATCH = 1024
# More runs than this make a program that no time limit of minutes would solve.
_MOST_RUNS = 60_000


@dataclass(frozen=True, kw_only=True, eq=False)
class _Runs:
    """
    Runs that are left, as columns; ``choice`` tells which front and point each one is.

    ``times_ms`` holds F, B and W; shape (3, runs).
    """

    stage: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    times_ms: Floats
    choice: list[tuple[CellFronts, Run, int]]

    def kept(self, mask: NDArray[np.bool_]) -> "_Runs":
        return _Runs(
            stage=self.stage[mask],
            first=self.first[mask],
            last=self.last[mask],
            times_ms=self.times_ms[:, mask],
            choice=[choice for choice, keep in zip(self.choice, mask, strict=True) if keep],
        )


@dataclass(frozen=True, kw_only=True)
class ChainAnswer:
    """
    What is proven.

    Attributes
    ----------
    bound_ms
        No plan is faster.
    plan
        The best plan met, if it beats the cutoff; None otherwise.
    """

    bound_ms: float
    plan: Plan | None


class ExactChain:
    """
    The program for one problem with one chunk.

    Parameters
    ----------
    cutoff_ms
        Makespan of the best plan known; slower plans are not looked at.
    deadline
        Time of ``time.monotonic`` at which to give up.

    Raises
    ------
    FrontTooLargeError
        When there are too many runs to be listed, or choices of recompute, or the deadline has passed.
    """

    def __init__(self, problem: Problem, cutoff_ms: float, deadline: float = math.inf) -> None:
        if not has_few_runs(problem):
            raise FrontTooLargeError
        self._problem, self._deadline = problem, deadline
        self._cutoff_ms = cutoff_ms
        self._separator = Separator(problem)
        self._kind = kinds(problem)
        self.bound_ms = 0.0
        self._runs = self._remaining_runs()

    @property
    def runs(self) -> int:
        """Number of runs that are left."""
        return len(self._runs.stage)

    def _remaining_runs(self) -> _Runs:
        limit = self._cutoff_ms * (1 + _ROUNDING)
        relaxed = chain_segments(self._problem, limit)
        families = PathFamilies(self._problem, relaxed)
        # Runs slower than the cutoff are not priced, so that no more than that is proven.
        self.bound_ms = min(families.bound(self._deadline), self._cutoff_ms)
        self._look_at_the_clock()
        runs, exact = self._exact(families.runs_within(limit), relaxed.forward_ms)
        families = PathFamilies(self._problem, exact)
        self.bound_ms = max(self.bound_ms, min(families.bound(self._deadline), self._cutoff_ms))
        self._look_at_the_clock()
        within = families.runs_within(limit)
        runs = runs.kept(within[runs.stage, runs.first, runs.last])
        return runs.kept(self._least_makespans(runs) <= limit)

    def _exact(self, usable: NDArray[np.bool_], forward_ms: Floats) -> tuple[_Runs, Segments]:
        """Exact times of the usable runs, and the table of all with the others infinite."""
        tables, problem = layer_tables(self._problem), self._problem
        slowest = most_work_ms(problem, self._cutoff_ms).max()
        fronts = cell_fronts(problem, tables, slowest)
        total = np.full(usable.shape, np.inf)
        found, choice = [], []
        upto = np.concatenate([[0.0], np.cumsum(tables.weight_ms[self._kind])])
        for stage, first, last, share_mb in self._shares(usable, fronts):
            run = run_between(self._kind, first, last)
            options = [
                (front.backward_ms[point], known, run, point)
                for known in fronts[stage]
                if (point := (front := known.front(run)).within(share_mb[known.again_mb])) >= 0
            ]
            if options:
                fastest = min(options, key=lambda option: float(option[0]))
                backward = float(fastest[0]) + tables.fixed.backward_ms[stage]
                weight = upto[last] - upto[first] + tables.fixed.weight_ms[stage]
                found.append((stage, first, last, forward_ms[stage, first, last], backward, weight))
                choice.append(fastest[1:])
                total[stage, first, last] = forward_ms[stage, first, last] + backward
        columns = np.array(found, dtype=float).reshape(-1, 6).T
        runs = _Runs(
            stage=columns[0].astype(np.int64),
            first=columns[1].astype(np.int64),
            last=columns[2].astype(np.int64),
            times_ms=columns[3:],
            choice=choice,
        )
        return runs, Segments(forward_ms=forward_ms, total_ms=total)

    def _shares(
        self, usable: NDArray[np.bool_], fronts: list[list[CellFronts]]
    ) -> Iterator[tuple[int, int, int, dict[float, float]]]:
        """Stage, first and last of every usable run, and its share of memory by the working set."""
        tables = layer_tables(self._problem)
        for stage, known in enumerate(fronts):
            first, last = np.nonzero(usable[stage])
            share_mb = {
                again_mb: shares(self._problem, tables, stage, first, last, again_mb)
                for again_mb in {each.again_mb for each in known}
            }
            for at, run in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
                self._look_at_the_clock()
                yield stage, *run, {again_mb: float(share[at]) for again_mb, share in share_mb.items()}

    def _look_at_the_clock(self) -> None:
        if time.monotonic() > self._deadline:
            raise FrontTooLargeError

    def _least_makespans(self, runs: _Runs) -> Floats:
        """Makespan of every run with all other stages at their least: monotone, so a bound."""
        rule = price_rule(self._problem)
        # Of every price the least, as an I may be least where B is not.
        each = prices(rule[:, runs.stage], runs.times_ms[None])[0].T
        least = np.full((self._problem.stages, len(rule)), np.inf)
        np.minimum.at(least, runs.stage, each)
        if not len(runs.stage) or not np.isfinite(least).all():
            return np.full(len(runs.stage), np.inf)
        makespans = []
        for begin in range(0, len(runs.stage), _BATCH):
            self._look_at_the_clock()
            part = slice(begin, begin + _BATCH)
            stage = runs.stage[part]
            lists = np.tile(least.T, (len(stage), 1, 1))
            lists[np.arange(len(stage)), :, stage] = each[part]
            makespans.append(batched_makespans(self._problem, lists.reshape(len(stage), -1)))
        return np.concatenate(makespans)

    def solve(self, deadline: float = math.inf) -> ChainAnswer:
        """
        Prove the optimum, or as much as can be done before a deadline of ``time.monotonic``.

        Raises
        ------
        SolverError
            When the solver fails.
        """
        if not self.runs:
            # Nothing is as fast as the cutoff, which is therefore the optimum.
            return ChainAnswer(bound_ms=self._cutoff_ms, plan=None)
        if self.runs > _MOST_RUNS:
            return ChainAnswer(bound_ms=self.bound_ms, plan=None)
        program, makespan, columns = self._program()
        best_ms, best = self._cutoff_ms, None
        self._relax(program, makespan, columns, deadline)
        while time.monotonic() < deadline:
            solution = program.solve(time_limit_s=deadline - time.monotonic())
            # Slower plans than the cutoff are not in the program: it bounds the faster ones.
            self.bound_ms = max(self.bound_ms, min(solution.bound * self._unit, best_ms))
            if solution.values is None:
                break
            chosen = np.flatnonzero(solution.values[columns] > 0.5)
            times = self._runs.times_ms[:, chosen]
            cuts = self._separator.paths(times, _WINDOWS, self.bound_ms)
            length = self._length(times)
            if length < best_ms:
                best_ms, best = length, chosen
            if best_ms - self.bound_ms <= _ROUNDING * best_ms:
                break
            if not cuts:
                break
            for cut in cuts:
                self._state(program, makespan, columns, cut)
        plan = None if best is None else self._plan(best)
        return ChainAnswer(bound_ms=self.bound_ms, plan=plan)

    @property
    def _unit(self) -> float:
        return self._cutoff_ms / _UNITS

    def _program(self) -> tuple[LinearProgram, int, list[int]]:
        program = LinearProgram()
        makespan = program.add_column(1.0, self.bound_ms / self._unit, math.inf)
        columns = [program.add_column(0.0, 0.0, 1.0, integer=True) for _ in range(self.runs)]
        layers = len(self._kind)
        balance: dict[tuple[int, int], dict[int, float]] = {}
        for column, stage, first, last in zip(
            columns, self._runs.stage, self._runs.first, self._runs.last, strict=True
        ):
            balance.setdefault((int(stage), int(first)), {})[column] = -1.0
            balance.setdefault((int(stage) + 1, int(last)), {})[column] = 1.0
        for (stage, layer), terms in balance.items():
            enters = -1.0 if (stage, layer) == (0, 0) else 0.0
            leaves = 1.0 if (stage, layer) == (self._problem.stages, layers) else 0.0
            program.add_row(terms, lower=enters + leaves, upper=enters + leaves)
        return program, makespan, columns

    def _relax(self, program: LinearProgram, makespan: int, columns: list[int], deadline: float) -> None:
        """State the paths that bind the linear relaxation."""
        for _ in range(_LP_ROUNDS):
            if time.monotonic() > deadline:
                return
            left_s = max(deadline - time.monotonic(), 0.0)
            solution = program.solve(left_s, relaxed=True)
            if solution.values is None or solution.bound == -math.inf:
                return
            share = solution.values[columns]
            least = float(solution.values[makespan]) * self._unit
            cuts = self._separator.paths(self._stage_times(share), _WINDOWS, least * (1 + 1e-7))
            if not cuts:
                return
            for cut in cuts:
                self._state(program, makespan, columns, cut)

    def _stage_times(self, share: Floats) -> Floats:
        """F, B and W of every stage under shares of its runs; shape (3, S)."""
        times = np.zeros((self._problem.stages, 3))
        np.add.at(times, self._runs.stage, (share * self._runs.times_ms).T)
        return times.T

    def _state(self, program: LinearProgram, makespan: int, columns: list[int], cut: PathCut) -> None:
        """Add (E3) for one path."""
        runs = self._runs
        weight = (cut.uses[:, runs.stage] * runs.times_ms).sum(axis=0)
        terms = dict(zip(columns, (-weight / self._unit).tolist(), strict=True))
        terms[makespan] = 1.0
        program.add_row(terms, lower=cut.fixed_ms / self._unit)

    def _length(self, times_ms: Floats) -> float:
        return float(
            batched_makespans(self._problem, price_lists(price_rule(self._problem), times_ms[None]))[0]
        )

    def _plan(self, chosen: NDArray[np.int64]) -> Plan:
        entries = len(self._problem.model.bodies)
        counts = np.zeros((entries, len(self._problem.model.types), self._problem.cells), dtype=np.int64)
        for index in chosen:
            fronts, run, point = self._runs.choice[index]
            counts[:, :, self._runs.stage[index]] = fronts.counts(run, point, entries)
        return Plan(problem=self._problem, counts=counts)
