"""What the linear programs of plans share: the makespan, the cells' times, and paths as rows."""

import math

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.planner.cuts import PathCut
from sapp_ppb.planner.highs import LinearProgram
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.price import price_rule

Floats = NDArray[np.float64]

# A program works in units of which the cutoff has this many, whatever the user's times are.
UNITS = 1e4


class PathProgram:
    """
    A program that minimises T, with a column for every time of every cell.

    Parameters
    ----------
    cutoff_ms
        Makespan of the best plan known; sets the program's unit.

    Attributes
    ----------
    work
        Simplex iterations times rows so far, for the budget.
    """

    def __init__(self, problem: Problem, cutoff_ms: float) -> None:
        self.problem = problem
        self.work = 0
        self._unit = cutoff_ms / UNITS
        self._program = LinearProgram()
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

    def _times_of(self, values: Floats) -> Floats:
        """F, B and W of the cells in a solution, milliseconds, W zero where nothing is priced by it."""
        times = np.zeros((3, self.problem.cells))
        times[: self._parts] = values[self._times] * self._unit
        return times

    def state(self, cut: PathCut) -> None:
        """Add T >= hops + sum over cells of u F + w B + z W for one path."""
        terms = {self._makespan: 1.0}
        for columns, uses in zip(self._times, cut.uses, strict=False):
            terms |= {int(columns[cell]): -float(uses[cell]) for cell in np.flatnonzero(uses)}
        self._program.add_row(terms, lower=cut.hops_ms / self._unit)

    def drop_slack_cuts(self) -> None:
        """Forget the paths that do not bind."""
        self._program.drop_slack_rows(self._first_cut)

    @property
    def cuts(self) -> int:
        """Paths that are stated."""
        return self._program.rows - self._first_cut
