"""What the linear programs of plans share: the makespan, the cells' times, and paths as rows."""

import math

import numpy as np

from sapp_ppb.planner.cuts import PathCut
from sapp_ppb.planner.highs import LinearProgram
from sapp_ppb.problem import Problem

# A program works in units of which the cutoff has this many, whatever the user's times are.
UNITS = 1e4


class PathProgram:
    """
    A program that minimises T, with a column for every cell's forward and backward time.

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
        self._forward = [self._program.add_column(0.0, 0.0, math.inf) for _ in range(problem.cells)]
        self._backward = [self._program.add_column(0.0, 0.0, math.inf) for _ in range(problem.cells)]
        self._first_cut = 0  # set once all other rows are there

    def state(self, cut: PathCut) -> None:
        """Add T >= hops + sum over cells of u F + w B for one path."""
        terms = {self._makespan: 1.0}
        for columns, uses in ((self._forward, cut.forward), (self._backward, cut.backward)):
            terms |= {columns[cell]: -float(uses[cell]) for cell in np.flatnonzero(uses)}
        self._program.add_row(terms, lower=cut.hops_ms / self._unit)

    def drop_slack_cuts(self) -> None:
        """Forget the paths that do not bind."""
        self._program.drop_slack_rows(self._first_cut)

    @property
    def cuts(self) -> int:
        """Paths that are stated."""
        return self._program.rows - self._first_cut
