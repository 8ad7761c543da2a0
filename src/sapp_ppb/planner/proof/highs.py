"""The only file that knows the solver: linear and integer programs through HiGHS."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.errors import SolverError
from sapp_ppb.interrupts import held_interrupts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# A bound may be above the value of its point by so much, as a share: HiGHS's own tolerance, and more.
_ROUNDING = 1e-6


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
    row_duals, column_duals
        What one unit more on a row's side, or of a column, costs; empty without a point.
    """

    values: Floats | None
    objective: float
    bound: float
    row_duals: Floats
    column_duals: Floats


class _Model:
    """A model of HiGHS, whose every fault is a SolverError."""

    def __init__(self, model: Any, failed: Any) -> None:
        self._model, self._failed = model, failed

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            try:
                answer = getattr(self._model, name)(*arguments)
            except Exception as error:
                raise SolverError(f"HiGHS failed in {name}: {error}") from error
            if (
                isinstance(answer, type(self._failed)) and answer == self._failed and name != "run"
            ):  # what a run came to is asked for by itself
                raise SolverError(f"HiGHS refused {name}")
            return answer

        return call


class LinearProgram:
    """
    A minimisation that grows by columns and rows.

    Parameters
    ----------
    devex
        Price by Devex weights instead of steepest edges: twice as fast on long rows.

    Examples
    --------
    >>> program = LinearProgram()
    >>> x, y = program.add_column(1.0, 0.0, 10.0, integer=True), program.add_column(1.0, 0.0, 10.0)
    >>> program.add_row({x: 2.0, y: 1.0}, lower=5.0)  # its number
    0
    >>> program.solve().objective  # x = 2, y = 1, or x = 3, y = 0
    3.0
    """

    def __init__(self, *, devex: bool = False) -> None:
        try:
            import highspy
        except ModuleNotFoundError as error:
            raise SolverError("the solver HiGHS is not installed; pip install highspy") from error
        except Exception as error:  # a library that is broken, or of another machine
            raise SolverError(f"the solver HiGHS can not be loaded: {error}") from error
        self._highspy = highspy
        # The wrapper class greets on stdout when it is made; its base class is silent.
        self._model: Any = _Model(getattr(highspy, "_Highs", highspy.Highs)(), highspy.HighsStatus.kError)
        self._infinity = highspy.kHighsInf
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("random_seed", 0),
            ("mip_rel_gap", 0.0),
            ("simplex_dual_edge_weight_strategy", 1 if devex else -1),
        ):
            self._model.setOptionValue(option, value)
        self._columns = 0
        self._has_integers = False

    def add_column(
        self,
        cost: float,
        lower: float,
        upper: float,
        *,
        integer: bool = False,
        terms: dict[int, float] | None = None,
    ) -> int:
        """Add a variable with its coefficients in rows that exist; its number."""
        rows, values = _sparse(terms or {})
        self._model.addCol(cost, self._limit(lower), self._limit(upper), len(rows), rows, values)
        if integer:
            self._model.changeColIntegrality(self._columns, self._highspy.HighsVarType.kInteger)
            self._has_integers = True
        self._columns += 1
        return self._columns - 1

    def add_row(self, terms: dict[int, float], lower: float = -math.inf, upper: float = math.inf) -> int:
        """Add lower <= sum of terms <= upper, terms being coefficients by column; its number."""
        columns, values = _sparse(terms)
        self._model.addRow(self._limit(lower), self._limit(upper), len(terms), columns, values)
        return int(self._model.getNumRow()) - 1

    @property
    def rows(self) -> int:
        """Rows there are."""
        return int(self._model.getNumRow())

    def set_bounds(self, columns: Ints, lower: Floats, upper: Floats) -> None:
        """Change the bounds of many columns."""
        if len(columns):
            # HiGHS before 1.8 reads its arrays as if they had no gaps, whatever their strides.
            low = np.ascontiguousarray(lower, np.float64)
            high = np.ascontiguousarray(np.clip(upper, None, self._infinity), np.float64)
            self._model.changeColsBounds(len(columns), columns.astype(np.int32), low, high)

    def slack_rows(self, first: int) -> NDArray[np.bool_]:
        """Whether each row from ``first`` on did not bind in the last solve; shape (rows - first,)."""
        basic = self._highspy.HighsBasisStatus.kBasic
        status = self._model.getBasis().row_status
        return np.array([each == basic for each in status[first:]], dtype=bool)

    def drop_rows(self, rows: Ints) -> None:
        """Delete rows, by number."""
        if len(rows):
            self._model.deleteRows(len(rows), rows.astype(np.int32))

    @property
    def iterations(self) -> int:
        """Simplex iterations of the last solve."""
        return int(max(self._model.getInfo().simplex_iteration_count, 0))

    def _limit(self, value: float) -> float:
        return value if math.isfinite(value) else math.copysign(self._infinity, value)

    def solve(
        self, time_limit_s: float = math.inf, *, relaxed: bool = False, most_iterations: int | None = None
    ) -> Solution:
        """
        Minimise.

        Parameters
        ----------
        relaxed
            Whether integer columns may take any value in between.
        most_iterations
            Simplex iterations after which a linear program is given up; None for no end.

        Returns
        -------
        Solution
            Its bound is minus infinity where a linear program was given up, or ran out of time.

        Raises
        ------
        SolverError
            When the solver fails; running out of time is no failure.
        """
        self._model.setOptionValue("solve_relaxation", relaxed)
        # HiGHS counts its limit from the first solve on.
        self._model.setOptionValue("time_limit", self._limit(self._model.getRunTime() + time_limit_s))
        endless = self._highspy.kHighsIInf
        most = endless if most_iterations is None else min(most_iterations, endless)
        self._model.setOptionValue("simplex_iteration_limit", most)
        status, kinds = self._run(), self._highspy.HighsModelStatus
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            return Solution(
                values=None,
                objective=math.inf,
                bound=math.inf,
                row_duals=np.empty(0),
                column_duals=np.empty(0),
            )
        if status not in (kinds.kOptimal, kinds.kTimeLimit, kinds.kIterationLimit):
            raise SolverError(f"HiGHS stopped: {self._model.modelStatusToString(status)}")
        return self._read(finished=status == kinds.kOptimal, relaxed=relaxed)

    def _run(self) -> Any:
        """Run; a Ctrl-C comes through soon, and not when the solver is done."""
        with held_interrupts(patient=True) as asked:  # raised inside of the solver it would end the process

            def stop(kind: Any, message: str, told: Any, answer: Any, data: Any) -> None:
                if asked():
                    answer.user_interrupt = True

            kinds = self._highspy.cb.HighsCallbackType
            self._model.setCallback(stop, None)
            for kind in (kinds.kCallbackMipInterrupt, kinds.kCallbackSimplexInterrupt):
                self._model.startCallback(kind)
            try:
                return self._run_to_an_end()
            finally:
                self._model.setCallback(None, None)

    def _run_to_an_end(self) -> Any:
        """Run, and once more in another way where the solver gives up on its first."""
        kinds = self._highspy.HighsModelStatus
        self._model.run()
        if self._model.getModelStatus() == kinds.kNotset:
            # Another user of HiGHS in this process started its threads with another number.
            self._highspy.Highs.resetGlobalScheduler(True)
            self._model.run()
        if self._model.getModelStatus() in (kinds.kSolveError, kinds.kUnknown) or self._is_spoilt():
            self._model.setOptionValue("presolve", "off")
            self._model.clearSolver()
            self._model.run()
            self._model.setOptionValue("presolve", "choose")
        return self._model.getModelStatus()

    def _is_spoilt(self) -> bool:
        """Whether a solution has values that are no numbers, which presolve makes now and then."""
        return self._has_integers and bool(np.isnan(self._model.getSolution().col_value).any())

    def _read(self, *, finished: bool, relaxed: bool) -> Solution:
        information = self._model.getInfo()
        feasible = information.primal_solution_status == self._highspy.SolutionStatus.kSolutionStatusFeasible
        objective = float(information.objective_function_value) if feasible else math.inf
        bound = -math.inf
        if self._has_integers and not relaxed:
            bound = float(information.mip_dual_bound)
        elif finished:
            bound = objective
        solution = self._model.getSolution()
        values = np.array(solution.col_value) if feasible else None
        self._check(values, objective, bound)
        return Solution(
            values=values,
            objective=objective,
            bound=bound,
            row_duals=np.array(solution.row_dual),
            column_duals=np.array(solution.col_dual),
        )

    def _check(self, values: Floats | None, objective: float, bound: float) -> None:
        """Refuse an answer that can be none; every plan made of one is timed and weighed anew besides."""
        wrong = math.isnan(bound) or math.isnan(objective)
        if values is not None:
            wrong = wrong or len(values) != self._columns or not np.isfinite(values).all()
            wrong = wrong or bound > objective + _ROUNDING * max(1.0, abs(objective))
        if wrong:
            raise SolverError("HiGHS gave an answer that can not be: its values or its bound are no solution")


def _sparse(terms: dict[int, float]) -> tuple[NDArray[np.int32], Floats]:
    places = np.fromiter(terms, np.int32, len(terms))
    return places, np.fromiter(terms.values(), np.float64, len(terms))
