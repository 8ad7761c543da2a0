"""The only file that knows the solver: linear and integer programs through HiGHS."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.errors import SolverError

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """
    What the solver says of a minimisation.

    Attributes
    ----------
    values
        One a column; None when no point was found.
    objective
        Value of the point, infinite without one.
    bound
        No point is below this; infinite when there is proven to be none.
    """

    values: Floats | None
    objective: float
    bound: float


class LinearProgram:
    """
    A minimisation that grows by columns and rows.

    Examples
    --------
    >>> program = LinearProgram()
    >>> x, y = program.add_column(1.0, 0.0, 10.0, integer=True), program.add_column(1.0, 0.0, 10.0)
    >>> program.add_row({x: 2.0, y: 1.0}, lower=5.0)
    >>> program.solve().objective  # x = 2, y = 1, or x = 3, y = 0
    3.0
    """

    def __init__(self) -> None:
        try:
            import highspy
        except ImportError as error:
            raise SolverError("the solver HiGHS is not installed; pip install highspy") from error
        self._highspy = highspy
        # The wrapper class greets on stdout when it is made; its base class is silent.
        self._model: Any = getattr(highspy, "_Highs", highspy.Highs)()
        self._infinity = highspy.kHighsInf
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("random_seed", 0),
            ("mip_rel_gap", 0.0),
        ):
            self._model.setOptionValue(option, value)
        self._columns = 0
        self._has_integers = False

    def add_column(self, cost: float, lower: float, upper: float, *, integer: bool = False) -> int:
        """Add a variable; its number."""
        self._model.addCol(
            cost, self._limit(lower), self._limit(upper), 0, np.empty(0, np.int32), np.empty(0)
        )
        if integer:
            self._model.changeColIntegrality(self._columns, self._highspy.HighsVarType.kInteger)
            self._has_integers = True
        self._columns += 1
        return self._columns - 1

    def add_row(self, terms: dict[int, float], lower: float = -math.inf, upper: float = math.inf) -> None:
        """Add lower <= sum of terms <= upper; terms are coefficients by column."""
        columns = np.fromiter(terms, np.int32, len(terms))
        values = np.fromiter(terms.values(), np.float64, len(terms))
        self._model.addRow(self._limit(lower), self._limit(upper), len(terms), columns, values)

    def add_rows(self, rows: Sequence[dict[int, float]], lower: float) -> None:
        """Add many rows with one lower side."""
        for terms in rows:
            self.add_row(terms, lower=lower)

    def _limit(self, value: float) -> float:
        return value if math.isfinite(value) else math.copysign(self._infinity, value)

    def solve(self, time_limit_s: float = math.inf, *, relaxed: bool = False) -> Solution:
        """
        Minimise.

        Parameters
        ----------
        relaxed
            Whether integer columns may take any value in between.

        Raises
        ------
        SolverError
            When the solver fails; running out of time is no failure.
        """
        self._model.setOptionValue("solve_relaxation", relaxed)
        # HiGHS counts its limit from the first solve on.
        self._model.setOptionValue("time_limit", self._limit(self._model.getRunTime() + time_limit_s))
        status, kinds = self._run(), self._highspy.HighsModelStatus
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            return Solution(values=None, objective=math.inf, bound=math.inf)
        if status not in (kinds.kOptimal, kinds.kTimeLimit, kinds.kIterationLimit):
            raise SolverError(f"HiGHS stopped: {self._model.modelStatusToString(status)}")
        return self._read(finished=status == kinds.kOptimal, relaxed=relaxed)

    def _run(self) -> Any:
        """Run, and once more in another way where the solver gives up on its first."""
        kinds = self._highspy.HighsModelStatus
        self._model.run()
        if self._model.getModelStatus() == kinds.kNotset:
            # Another user of HiGHS in this process started its threads with another number.
            self._highspy.Highs.resetGlobalScheduler(True)
            self._model.run()
        if self._model.getModelStatus() == kinds.kSolveError:
            self._model.setOptionValue("presolve", "off")
            self._model.clearSolver()
            self._model.run()
            self._model.setOptionValue("presolve", "choose")
        return self._model.getModelStatus()

    def _read(self, *, finished: bool, relaxed: bool) -> Solution:
        information = self._model.getInfo()
        feasible = information.primal_solution_status == self._highspy.SolutionStatus.kSolutionStatusFeasible
        objective = float(information.objective_function_value) if feasible else math.inf
        bound = -math.inf
        if self._has_integers and not relaxed:
            bound = float(information.mip_dual_bound)
        elif finished:
            bound = objective
        values = np.array(self._model.getSolution().col_value) if feasible else None
        return Solution(values=values, objective=objective, bound=bound)
