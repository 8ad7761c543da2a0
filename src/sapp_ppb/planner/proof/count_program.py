"""
The linear program over counts, for stages with too many patterns to be listed.

    (N1)  minimise T
    (N2)  F_c = fixed + sum of x f_k,  B_c = fixed + sum of x b_kr,
          W_c = fixed + sum of x w_k                                     every cell c
    (N3)  n_kc = sum over r of x_krc,  m_ks = sum of n_kc over the cells of s
    (N4)  sum over c of n_kc = count of k                                every BODY entry k
    (N5)  sum over k of n_kc >= least layers of c                        every c
    (N6)  held_s + sum of cells of s (parameters + live x activation) <= limit_s    every row of s
    (N7)  count of k x u_kc <= sum of n_k in cells <= c,
          sum of n_j, j > k, in cell c <= most_c u_kc,  u_kc <= u_k,c+1       every k but the last
    (N8)  T >= fixed(p) + sum over c (u(p, c) F_c + w(p, c) B_c + z(p, c) W_c)    every path p, lazily

with m, n and u whole in a plan; x stays fractional, so this bounds plans and never
proves one.  most_c is what the cutoff leaves to a cell: M times its load is work of
one stage, which no plan within the cutoff exceeds.  u_kc says that entry k ends in
cells <= c.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.fix import PlaceRule
from sapp_ppb.plan import Plan
from sapp_ppb.planner.alike import Grouped
from sapp_ppb.planner.proof.path_program import PathProgram
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.memory import problem_rows
from sapp_ppb.simulator.price import LayerTables, layer_tables, most_work_ms

Floats = NDArray[np.float64]
# Lower and upper bounds of the whole columns.
Bounds = tuple[Floats, Floats]

_DEVEX_A_WORK = 3  # iterations by Devex in the time of one by steepest edges
_WHOLE = 1e-6  # a value this close to a whole number is one


@dataclass(frozen=True, kw_only=True, eq=False)
class CountPoint:
    """
    Solution of the program over a region.

    Attributes
    ----------
    bound_ms
        No plan of the region is faster.
    times_ms
        F, B and W of the cells; shape (3, cells).
    values, duals
        Values of the whole columns, and what one unit more of each costs, in milliseconds.
    layers
        Layers of each cell; shape (cells,).
    is_whole
        Never: types stay fractional.
    """

    bound_ms: float
    times_ms: Floats
    values: Floats
    duals: Floats
    layers: Floats
    is_whole: bool = False


class CountProgram(PathProgram):
    """
    The program of one problem.

    Parameters
    ----------
    cutoff_ms
        Makespan of the best plan known.
    grouped
        As of ``PathProgram``.
    """

    def __init__(self, problem: Problem, cutoff_ms: float, grouped: Grouped | None = None) -> None:
        super().__init__(problem, cutoff_ms, grouped, devex=True)
        self._tables = layer_tables(problem)
        self._most = _most_layers(problem, self._tables, cutoff_ms)
        self._typed = self._add_types()
        self._cell, self._stage = self._add_counts()
        self._ended = self._add_order()
        self._add_memory()
        self._add_totals()
        self._levels = [
            list(self._ended.values()),
            list(self._stage.values()),
            list(self._cell.values()),
        ]
        self._columns = np.array([column for level in self._levels for column in level])
        self._weights = self._column_weights()
        self._whole = self._first_bounds()
        self._first_cut = self._program.rows

    def _add_types(self) -> dict[tuple[int, int, int], int]:
        """Add x, and (N2)."""
        program, tables, counts = self._program, self._tables, self.problem.model.bodies
        typed = {
            (k, r, cell): program.add_column(0.0, 0.0, counts[k].count)
            for k in range(len(counts))
            for r in np.flatnonzero(tables.considered[k]).tolist()
            for cell in range(self.problem.cells)
        }
        self._keep_recompute(typed)
        forward, weight = (
            np.tile(ms[:, None], tables.considered.shape[1]) for ms in (tables.forward_ms, tables.weight_ms)
        )
        by_type = (forward, tables.backward_ms, weight)
        for cell in range(self.problem.cells):
            here = {key: column for key, column in typed.items() if key[2] == cell}
            for columns, fixed, prices in zip(self._times, tables.fixed.times_ms, by_type, strict=False):
                terms = {column: float(prices[k, r] / self._unit) for (k, r, _), column in here.items()}
                side = -float(fixed[cell]) / self._unit
                row = {**terms, int(columns[cell]): -1.0}
                program.add_row(row, side + self._shortest, side)
        return typed

    def _keep_recompute(self, typed: dict[tuple[int, int, int], int]) -> None:
        """Hold x where recompute is fixed."""
        fix = self.problem.fix
        if fix is not None and fix.places is not None:
            self._keep_places(fix.places, typed)
        if fix is None or fix.recompute is None:
            return
        kept = fix.recomputed
        keys = [key for key in typed if key[1] != Recompute.NONE]
        numbers = np.array([float(kept[key]) for key in keys])
        self._program.set_bounds(np.array([typed[key] for key in keys], dtype=np.int64), numbers, numbers)

    def _keep_places(self, rule: PlaceRule, typed: dict[tuple[int, int, int], int]) -> None:
        """Relax a rule of places: other types are out, and a cell recomputes no more than its first N."""
        out = [key for key in typed if key[1] not in (Recompute.NONE, rule.recompute)]
        zeros = np.zeros(len(out))
        self._program.set_bounds(np.array([typed[key] for key in out], dtype=np.int64), zeros, zeros)
        for cell in range(self.problem.cells if rule.first is not None else 0):
            here = _ones(typed[key] for key in typed if key[1:] == (rule.recompute, cell))
            self._program.add_row(here, upper=float(rule.of_cell(cell, self.problem.cells).first or 0))

    def _add_counts(self) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]]:
        """Add n and m, (N3), (N4) and (N5)."""
        program, problem = self._program, self.problem
        cells: dict[tuple[int, int], int] = {}
        stages: dict[tuple[int, int], int] = {}
        typed: dict[tuple[int, int], dict[int, float]] = {}
        for (k, _, cell), column in self._typed.items():
            typed.setdefault((k, cell), {})[column] = 1.0
        for k, layer in enumerate(problem.model.bodies):
            for cell in range(problem.cells):
                most = min(float(layer.count), float(self._most[k, cell]))
                cells[k, cell] = program.add_column(0.0, 0.0, most)
                program.add_row({**typed[k, cell], cells[k, cell]: -1.0}, 0.0, 0.0)
            program.add_row(_ones(cells[k, cell] for cell in range(problem.cells)), layer.count, layer.count)
            for stage in range(problem.stages):
                stages[k, stage] = program.add_column(0.0, 0.0, layer.count)
                terms = _ones(cells[k, cell] for cell in self.problem.cells_of(stage))
                program.add_row({**terms, stages[k, stage]: -1.0}, 0.0, 0.0)
        for cell in range(problem.cells):
            least, most = problem.least_layers(cell), math.inf
            if problem.fix is not None and problem.fix.layers is not None:
                least = most = problem.fix.layers[cell]
            here = _ones(cells[k, cell] for k in range(len(problem.model.bodies)))
            program.add_row(here, lower=least, upper=most)
        return cells, stages

    def _add_order(self) -> dict[tuple[int, int], int]:
        """Add u and (N7)."""
        program, entries = self._program, self.problem.model.bodies
        ended: dict[tuple[int, int], int] = {}
        for k, layer in enumerate(entries[:-1]):
            for cell in range(self.problem.cells):
                ended[k, cell] = column = program.add_column(0.0, 0.0, 1.0)
                upto = _ones(self._cell[k, other] for other in range(cell + 1))
                program.add_row({**upto, column: -float(layer.count)}, lower=0.0)
                later = range(k + 1, len(entries))
                most = float(sum(self._most[j, cell] for j in later))
                program.add_row({**_ones(self._cell[j, cell] for j in later), column: -most}, upper=0.0)
                if cell:
                    program.add_row({column: 1.0, ended[k, cell - 1]: -1.0}, lower=0.0)
        return ended

    def _add_memory(self) -> None:
        """Add (N6); a working set only adds to it, and is left out."""
        problem, tables = self.problem, self._tables
        for stage, live in enumerate(problem_rows(problem, working_set=False)):
            limit = problem.limit_per_stage_mb[stage]
            if not math.isfinite(limit):
                continue
            scale = max(limit, 1.0)
            cells = self.problem.cells_of(stage)
            fixed_mb = live.totals(tables.fixed.activation_mb[cells], np.zeros(len(cells)))
            held = problem.constant_per_stage_mb[stage] + tables.fixed.parameter_mb[cells].sum()
            for row, fixed in zip(live.rows, fixed_mb, strict=True):
                room = limit * (1 + 1e-9) - held - fixed
                lives = dict(zip(cells, row.tolist(), strict=True))
                terms = {
                    column: float(tables.parameter_mb[k] + lives[cell] * tables.activation_mb[k, r]) / scale
                    for (k, r, cell), column in self._typed.items()
                    if cell in lives
                }
                self._program.add_row(terms, upper=float(room) / scale)

    def _column_weights(self) -> Floats:
        """Weigh the whole columns for branching: by their entry's time."""
        each = self._tables.forward_ms + self._tables.backward_ms[:, Recompute.NONE]
        worth = [float(each.max())] * len(self._ended)
        worth += [float(each[k]) for k, _ in self._stage] + [float(each[k]) for k, _ in self._cell]
        return np.array(worth)

    def _first_bounds(self) -> Bounds:
        counts = [layer.count for layer in self.problem.model.bodies]
        upper = [1.0] * len(self._ended) + [float(counts[k]) for k, _ in self._stage]
        upper += [min(float(counts[k]), float(self._most[k, cell])) for k, cell in self._cell]
        return np.zeros(len(upper)), np.array(upper)

    def whole_region(self) -> Bounds:
        """All plans."""
        return self._whole

    def enter(self, region: Bounds) -> None:
        """Restrict the whole columns to a region."""
        self._program.set_bounds(self._columns, region[0], region[1])

    def solve(self, pricing_rounds: int = 1) -> CountPoint:
        """
        Solve over the region entered; there is nothing to price.

        Raises
        ------
        OutOfWorkError
            When its work or time was over before.
        SolverError
            When the solver fails.
        """
        solution = self._solved(_DEVEX_A_WORK)
        if solution.values is None:
            empty = np.empty(0)
            return CountPoint(
                bound_ms=math.inf,
                times_ms=empty,
                values=empty,
                duals=empty,
                layers=empty,
            )
        return CountPoint(
            bound_ms=solution.objective * self._unit,
            times_ms=self._times_of(solution.values),
            values=solution.values[self._columns],
            duals=solution.column_duals[self._columns] * self._unit,
            layers=self._layers(solution.values),
        )

    def _layers(self, values: Floats) -> Floats:
        layers = np.zeros(self.problem.cells)
        for (_, cell), column in self._cell.items():
            layers[cell] += values[column]
        return layers

    def tightened(self, region: Bounds, point: CountPoint, room_ms: float) -> Bounds:
        """Move the bounds beyond which a column's reduced cost exceeds the room."""
        lower, upper = region
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.floor(room_ms / np.abs(point.duals) + _WHOLE)
        rises, falls = point.duals > 1e-9 * room_ms, point.duals < -1e-9 * room_ms
        upper = np.where(rises & (point.values <= lower + _WHOLE), np.minimum(upper, lower + steps), upper)
        lower = np.where(falls & (point.values >= upper - _WHOLE), np.maximum(lower, upper - steps), lower)
        return lower, upper

    def splits(self, region: Bounds, point: CountPoint) -> list[tuple[Bounds, Bounds]]:
        """Ways to split at a column that should be whole, the most promising first."""
        begin = 0
        for level in self._levels:
            end = begin + len(level)
            away = np.abs(point.values[begin:end] - np.rint(point.values[begin:end]))
            if away.max(initial=0.0) > _WHOLE:
                order = np.argsort(-away * self._weights[begin:end], kind="stable")
                chosen = [begin + int(at) for at in order if away[at] > _WHOLE]
                return [_split(region, at, math.floor(point.values[at])) for at in chosen]
            begin = end
        return []

    def set_apart(self, region: Bounds, point: CountPoint) -> list[Bounds]:
        """Nothing: no solution is whole."""
        return []

    def plan_of(self, point: CountPoint) -> Plan:
        """Refuse: no solution is whole."""
        raise AssertionError("a solution over counts is never a plan")


def _ones(columns: Iterable[int]) -> dict[int, float]:
    return dict.fromkeys(columns, 1.0)


def _split(region: Bounds, at: int, value: float) -> tuple[Bounds, Bounds]:
    """Up to a value, and from the next whole number on."""
    lower, upper = region
    below, above = upper.copy(), lower.copy()
    below[at], above[at] = value, value + 1
    return (lower, below), (above, upper)


def _most_layers(problem: Problem, tables: LayerTables, cutoff_ms: float) -> NDArray[np.int64]:
    """Layers of each entry that a cell's stage has time for within the cutoff; shape (entries, cells)."""
    least = tables.forward_ms + np.where(tables.considered, tables.backward_ms, np.inf).min(axis=1)
    fixed = tables.fixed.forward_ms + tables.fixed.backward_ms
    places = [problem.order.placement.stage_of(cell, problem.stages) for cell in range(problem.cells)]
    room = np.maximum(most_work_ms(problem, cutoff_ms * (1 + 1e-9))[places] - fixed, 0.0)
    counts = np.array([layer.count for layer in problem.model.bodies])
    most = np.floor(room[None, :] / np.maximum(least[:, None], 1e-300) + 1e-9)
    return np.asarray(np.minimum(most, counts[:, None]).astype(np.int64))
