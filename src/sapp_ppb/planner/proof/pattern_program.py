"""
The linear program over patterns, with paths stated and columns priced as needed.

    (P1)  minimise T
    (P2)  F_c = sum of y f_c,  B_c = sum of y b_c,  W_c = sum of y w_c
                                                        over the patterns of c's stage, every cell c
    (P3)  sum of y = 1                                  over the patterns of a stage, every stage
    (P4)  sum of y n_k = count of k                     over all patterns, every BODY entry k
    (P5)  sum of y n_k in cells <= c  >=  count of k x sum of y over patterns that have an
          entry after k in cell c                       every k but the last, every c
    (P6)  T >= fixed(p) + sum over c (u(p, c) F_c + w(p, c) B_c + z(p, c) W_c)    every path p, lazily
    (P7)  0 <= y

With y whole, (P5) says that no layer of a later entry stands before one of an
earlier entry, so a whole solution is a plan.  Few patterns are columns at a time:
those with a negative reduced cost are added until none is left.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.plan import Plan
from sapp_ppb.planner.alike import Grouped
from sapp_ppb.planner.proof.path_program import PathProgram
from sapp_ppb.planner.proof.pattern_splits import (
    Region,
    Shares,
    pattern_features,
    region_splits,
    regions_without,
)
from sapp_ppb.planner.proof.patterns import StagePatterns, with_surplus
from sapp_ppb.problem import Problem

Floats = NDArray[np.float64]

# Cost of a missing or surplus layer or pattern, in units: keeps the program feasible, never cheap.
_PENALTY = 1e6
_PRICED = 1e-5  # reduced cost, in units, that is worth a column
_COLUMNS_A_STAGE = 6
_PRICING_ROUNDS = 50


@dataclass(frozen=True, kw_only=True, eq=False)
class PatternPoint:
    """
    Solution of the program over a region.

    Attributes
    ----------
    bound_ms
        No plan of the region is faster.
    times_ms
        F, B and W of the cells; shape (3, cells).
    shares
        For each stage its patterns in use, as indices, and their shares.
    is_whole
        Whether every stage uses one pattern and nothing is missing.
    reduced
        For each stage the reduced costs of its patterns, in milliseconds.
    layers
        Layers of each cell; shape (cells,).
    """

    bound_ms: float
    times_ms: Floats
    shares: Shares
    is_whole: bool
    reduced: tuple[Floats, ...]
    layers: Floats


class PatternProgram(PathProgram):
    """
    The program of one problem.

    Parameters
    ----------
    cutoff_ms
        Makespan of the best plan known; sets the program's unit.
    grouped
        As of ``PathProgram``.
    """

    def __init__(
        self,
        problem: Problem,
        patterns: list[StagePatterns],
        cutoff_ms: float,
        grouped: Grouped | None = None,
    ) -> None:
        super().__init__(problem, cutoff_ms, grouped)
        self._grouped = grouped
        self.patterns = patterns if self._surplus is None else with_surplus(patterns, self._surplus)
        self._add_rows()
        self._first_cut = self._program.rows
        self._penalised = self._add_penalties()
        self._first = self._penalised[-1] + 1
        self._columns: list[tuple[int, int]] = []
        self._is_column = [np.zeros(len(each.layers), dtype=bool) for each in patterns]
        self._region: Region = self.whole_region()
        self._entries = [self._stage_entries(each) for each in self.patterns]
        self._features = pattern_features(self.patterns)

    def whole_region(self) -> Region:
        """All patterns of all stages."""
        return tuple(np.ones(len(each.layers), dtype=bool) for each in self.patterns)

    def _add_rows(self) -> None:
        program, problem = self._program, self.problem
        for column in self._times.ravel().tolist():
            program.add_row({column: -1.0}, self._shortest, 0.0)
        self._add_totals()
        self._stage_row = program.rows
        for _ in range(problem.stages):
            program.add_row({}, 1.0, 1.0)
        self._entry_row = program.rows
        for layer in problem.model.bodies:
            program.add_row({}, layer.count, layer.count)
        self._order_row = program.rows
        for _ in problem.model.bodies[1:]:
            for _ in range(problem.cells):
                program.add_row({}, lower=0.0)

    def _add_penalties(self) -> list[int]:
        entries = range(self._entry_row, self._order_row)
        stages = range(self._stage_row, self._entry_row)
        orders = range(self._order_row, self._program.rows)
        signs = [(row, sign) for row in entries for sign in (1.0, -1.0)]
        signs += [(row, 1.0) for row in (*stages, *orders)]
        return [self._program.add_column(_PENALTY, 0.0, math.inf, terms={row: sign}) for row, sign in signs]

    def _stage_entries(self, each: StagePatterns) -> Floats:
        """Coefficients of a stage's patterns in (P4) and (P5); shape (patterns, rows)."""
        problem, layers = self.problem, each.layers
        entries = len(problem.model.bodies)
        parts = [layers.sum(axis=1).astype(float)]
        for k in range(entries - 1):
            there = np.asarray(layers[:, :, k + 1 :].any(axis=2))
            rows = np.zeros((len(layers), problem.cells))
            for chunk, cell in enumerate(each.cells):
                rows[:, cell:] += layers[:, chunk, k, None]
                rows[:, cell] -= problem.model.bodies[k].count * there[:, chunk]
            parts.append(rows)
        return np.concatenate(parts, axis=1)

    def enter(self, region: Region) -> None:
        """Restrict the columns to a region."""
        self._region = region
        columns = np.arange(self._first, self._first + len(self._columns))
        open_ = [math.inf if region[stage][pattern] else 0.0 for stage, pattern in self._columns]
        self._program.set_bounds(columns, np.zeros(len(columns)), np.array(open_))

    def solve(self, pricing_rounds: int = _PRICING_ROUNDS) -> PatternPoint:
        """
        Solve over the region entered, adding columns until none is worth it.

        With fewer pricing rounds the bound is still one: the reduced costs of what is
        missing are taken off it.

        Raises
        ------
        OutOfWorkError
            When its work or time was over before.
        SolverError
            When the solver fails.
        """
        while True:
            solution = self._solved()
            if solution.values is None:
                # Penalties keep the program feasible, so an empty stage is all that can be.
                return self._nothing()
            reduced = self._reduced(solution.row_duals)
            least = [
                float(costs[mask].min(initial=math.inf))
                for costs, mask in zip(reduced, self._region, strict=True)
            ]
            if math.inf in least:
                return self._nothing()
            pricing_rounds -= 1
            if pricing_rounds <= 0 or not self._add_columns(reduced):
                break
        bound = solution.objective + sum(min(0.0, each) for each in least)
        return self._point(bound * self._unit, solution.values, reduced)

    def _reduced(self, duals: Floats) -> list[Floats]:
        """Reduced costs of all patterns, in units."""
        cells = self.problem.cells
        times = duals[: self._parts * cells].reshape(self._parts, cells) / self._unit
        rest = duals[self._entry_row : self._first_cut]
        return [
            -(
                np.tensordot(each.times_ms[:, : self._parts], times[:, each.cells], axes=2)
                + entries @ rest
                + duals[self._stage_row + stage]
            )
            for stage, (each, entries) in enumerate(zip(self.patterns, self._entries, strict=True))
        ]

    def _add_columns(self, reduced: list[Floats]) -> bool:
        added = False
        for stage, (costs, mask) in enumerate(zip(reduced, self._region, strict=True)):
            wanted = mask & ~self._is_column[stage] & (costs < -_PRICED)
            best = np.flatnonzero(wanted)[np.argsort(costs[wanted], kind="stable")[:_COLUMNS_A_STAGE]]
            for pattern in best:
                self._add_column(stage, int(pattern))
            added |= len(best) > 0
        return added

    def _add_column(self, stage: int, pattern: int) -> None:
        each, cells = self.patterns[stage], self.problem.cells
        terms = {self._stage_row + stage: 1.0}
        for chunk, cell in enumerate(each.cells.tolist()):
            for part in range(self._parts):
                terms[part * cells + cell] = float(each.times_ms[pattern, part, chunk] / self._unit)
        entries = self._entries[stage][pattern]
        terms |= {self._entry_row + int(row): float(entries[row]) for row in np.flatnonzero(entries)}
        self._program.add_column(0.0, 0.0, math.inf, terms=terms)
        self._columns.append((stage, pattern))
        self._is_column[stage][pattern] = True

    def _point(self, bound_ms: float, values: Floats, reduced: list[Floats]) -> PatternPoint:
        used: list[dict[int, float]] = [{} for _ in self.patterns]
        for (stage, pattern), share in zip(self._columns, values[self._first :], strict=False):
            if share > 1e-7:
                used[stage][pattern] = float(share)
        shares = tuple((np.array(list(each), dtype=np.int64), np.array(list(each.values()))) for each in used)
        missing = values[self._penalised].max() > 1e-9
        return PatternPoint(
            bound_ms=bound_ms,
            times_ms=self._times_of(values),
            shares=shares,
            is_whole=self._surplus is None and not missing and all(len(each) == 1 for each in used),
            reduced=tuple(costs * self._unit for costs in reduced),
            layers=self._layers(shares),
        )

    def _layers(self, shares: Shares) -> Floats:
        layers = np.zeros(self.problem.cells)
        for each, (used, share) in zip(self.patterns, shares, strict=True):
            layers[each.cells] = share @ each.layers[used].sum(axis=2)
        return layers

    def _nothing(self) -> PatternPoint:
        empty = np.empty(0)
        return PatternPoint(
            bound_ms=math.inf,
            times_ms=empty,
            shares=(),
            is_whole=False,
            reduced=(),
            layers=empty,
        )

    def tightened(self, region: Region, point: PatternPoint, room_ms: float) -> Region:
        """Drop the patterns whose reduced cost says that no plan with them is as fast."""
        return tuple(mask & (costs <= room_ms) for mask, costs in zip(region, point.reduced, strict=True))

    def splits(self, region: Region, point: PatternPoint) -> list[tuple[Region, Region]]:
        """Ways to split a region at its solution, the most promising first."""
        return region_splits(self._features, region, point.shares)

    def set_apart(self, region: Region, point: PatternPoint) -> list[Region]:
        """Split a region around its whole solution, which is left out."""
        return regions_without(region, point.shares)

    def plan_of(self, point: PatternPoint) -> Plan:
        """Plan of a whole solution."""
        entries = len(self.problem.model.bodies)
        counts = np.zeros((entries, len(self.problem.model.types), self.problem.cells), dtype=np.int64)
        for each, (used, _) in zip(self.patterns, point.shares, strict=True):
            counts[:, :, each.cells] = each.counts(int(used[0]), entries)
        if self._grouped is None:
            return Plan(problem=self.problem, counts=counts)
        return Plan(problem=self._grouped.source, counts=self._grouped.spread(counts))
