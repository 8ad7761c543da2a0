"""
What the linear programs of plans share: the makespan, the cells' times, and paths as rows.

A program over neighbours joined at their least costs lets cells take longer than their layers, by

    (J1)  F_c >= fixed + sum over g of (n_gc f_g + least surplus of n_gc neighbours of g), B_c and W_c
          likewise                                        in place of (P2) and (N2), every cell c
    (J2)  sum over c of F_c >= fixed + sum of f of all layers, W likewise, and B in the fastest types
"""

import math
import time

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.planner.alike import Grouped
from sapp_ppb.planner.proof.cuts import PathCut
from sapp_ppb.planner.proof.highs import LinearProgram, Solution
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.price import price_rule

Floats = NDArray[np.float64]

# A program works in units of which the cutoff has this many, whatever the user's times are.
UNITS = 1e4
# Work that is at hand in simplex iterations before the first of them is priced.
_OVERHEAD = 10


class OutOfWorkError(Exception):
    """A program was given up before it was solved: its work, or its time, was over."""


class PathProgram:
    """
    A program that minimises T, with a column for every time of every cell.

    Parameters
    ----------
    cutoff_ms
        Makespan of the best plan known; sets the program's unit.
    grouped
        The problem that this one was made of by joining entries; None where nothing was joined.
    devex
        As of ``LinearProgram``.

    Attributes
    ----------
    work
        Simplex iterations times rows so far, for the budget.
    """

    def __init__(
        self, problem: Problem, cutoff_ms: float, grouped: Grouped | None = None, *, devex: bool = False
    ) -> None:
        self.problem = problem
        # Joined to entries at their least costs, its solutions are no plans, and cells may take longer.
        self._surplus = None if grouped is None or grouped.is_exact else grouped
        self.work = 0
        self._unit = cutoff_ms / UNITS
        self._program = LinearProgram(devex=devex)
        self._makespan = self._program.add_column(1.0, 0.0, math.inf)
        # W has columns only where ops are priced by it.
        self._parts = 3 if price_rule(problem)[:, :, 2].any() else 2
        self._times = np.array(
            [
                [self._program.add_column(0.0, 0.0, math.inf) for _ in range(problem.cells)]
                for _ in range(self._parts)
            ]
        )
        self._first_cut = 0  # set once all other rows are there
        self._ages = np.zeros(0, dtype=np.int64)  # looks at each cut since it last bound
        self._most_work, self._deadline = math.inf, math.inf

    def limit(self, most_work: float, deadline: float) -> None:
        """Give up every later solve once so much work is done, or at a time of ``time.monotonic``."""
        self._most_work, self._deadline = most_work, deadline

    def _solved(self, iterations_a_work: int = 1) -> Solution:
        """
        Solve, and count the work.

        Parameters
        ----------
        iterations_a_work
            Iterations that count as one.

        Raises
        ------
        OutOfWorkError
            When the program was given up.
        SolverError
            When the solver fails.
        """
        most = None
        if math.isfinite(self._most_work):
            left = max(self._most_work - self.work, 0.0)
            most = int(left * iterations_a_work / max(self._program.rows, 1))
        left_s = self._deadline - time.monotonic()
        solution = self._program.solve(max(left_s, 0.0), most_iterations=most)
        rows, iterations = self._program.rows, self._program.iterations
        self.work += (iterations + _OVERHEAD) * rows // iterations_a_work
        if solution.bound == -math.inf:
            raise OutOfWorkError
        return solution

    def _add_totals(self) -> None:
        """State that all cells together take no less than all layers do, where some costs are least ones."""
        if self._surplus is None:
            return
        for columns, total_ms in zip(self._times, self._surplus.total_ms, strict=False):
            self._program.add_row(dict.fromkeys(columns.tolist(), 1.0), lower=float(total_ms) / self._unit)

    @property
    def _shortest(self) -> float:
        """How far a cell's time may be above that of its layers, as the lower end of a row."""
        return 0.0 if self._surplus is None else -math.inf

    def _times_of(self, values: Floats) -> Floats:
        """F, B and W of the cells in a solution, milliseconds, W zero where nothing is priced by it."""
        times = np.zeros((3, self.problem.cells))
        times[: self._parts] = values[self._times] * self._unit
        return times

    def state(self, cut: PathCut) -> None:
        """Add T >= fixed + sum over cells of u F + w B + z W for one path."""
        terms = {self._makespan: 1.0}
        for columns, uses in zip(self._times, cut.uses, strict=False):
            terms |= {int(columns[cell]): -float(uses[cell]) for cell in np.flatnonzero(uses)}
        self._program.add_row(terms, lower=cut.fixed_ms / self._unit)

    def drop_slack_cuts(self, most: int) -> None:
        """Forget the paths that have not bound for longest, until there are ``most`` or all left bind."""
        slack = self._program.slack_rows(self._first_cut)
        ages = np.concatenate([self._ages, np.zeros(len(slack) - len(self._ages), dtype=np.int64)])
        ages = np.where(slack, ages + 1, 0)
        oldest = np.argsort(-ages, kind="stable")[: max(len(ages) - most, 0)]
        dropped = oldest[ages[oldest] > 0]
        self._program.drop_rows(np.sort(dropped) + self._first_cut)
        self._ages = np.delete(ages, dropped)

    @property
    def cuts(self) -> int:
        """Paths that are stated."""
        return self._program.rows - self._first_cut
