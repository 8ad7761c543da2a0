"""
Annealing on the exact simulator: many scattered starts, then the best few refined.

Work is counted in moves, never in seconds, so that a seed has one answer.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.planner.search_kernel import anneal, repair
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.graph import build_graph
from sapp_ppb.simulator.memory import live_rows
from sapp_ppb.simulator.price import layer_tables
from sapp_ppb.simulator.timeline import hop_times

Array = NDArray[np.float64]

# A start takes this many moves to settle; more budget buys more starts, in these limits.
_MOVES_A_START = 12_000
_FEWEST_STARTS, _MOST_STARTS = 6, 64
_REFINED = 3
# How far starts are thrown from equal cells, in cells; one regime of splits is seldom all.
_SPREADS = (0.0, 0.6, 1.0, 2.0, 0.3, 3.0)
# Rounds in which a start is annealed; between them the caller can look, stop or go on.
_ROUNDS = 8
_POOL = 64
# Temperatures as shares of the makespan.
_HOT, _COLD = 5e-3, 5e-5
# Every other start is hotter by this factor, the refined ones colder.
_HOTTER, _COLDER = 4.0, 1 / 3
# What unevenness weighs against the makespan, in temperatures.
_GUIDANCE = 50.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Tables:
    """A problem as the arrays that the kernels share; ``layers`` are single layers in chain order."""

    fwd: Array
    bwd: Array
    act: Array
    par: Array
    usable: NDArray[np.bool_]
    kind: NDArray[np.int64]
    fixed: Array
    held: Array
    limit: Array
    live: Array
    row_start: NDArray[np.int64]
    least: NDArray[np.int64]
    stage_of: NDArray[np.int64]
    cells_of: NDArray[np.int64]

    def memory(self) -> tuple[NDArray[np.generic], ...]:
        """Arrays from ``fixed`` on that ``repair`` takes."""
        return (self.fixed, self.held, self.limit, self.live, self.row_start)

    def layers(self) -> tuple[NDArray[np.generic], ...]:
        """Arrays of the layers."""
        return (self.fwd, self.bwd, self.act, self.par, self.usable, self.kind)


@dataclass(kw_only=True, eq=False)
class State:
    """A plan in the making: cell boundaries, type of each layer, and the price of the cells."""

    bound: NDArray[np.int64]
    rec: NDArray[np.int64]
    banned: NDArray[np.int64]
    costs: Array
    score: Array  # excess MB and makespan, now and at best
    best: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

    def from_best(self) -> "State":
        """Copy that goes on from the best plan met."""
        return State(
            bound=self.best[0].copy(),
            rec=self.best[1].copy(),
            banned=self.best[2].copy(),
            costs=self.costs.copy(),
            score=np.array([self.score[2], self.score[3], self.score[2], self.score[3]]),
            best=(self.best[0].copy(), self.best[1].copy(), self.best[2].copy()),
        )


def search_tables(problem: Problem) -> Tables:
    """Lay a problem out for the kernels."""
    tables, schedule = layer_tables(problem), problem.order
    kind = np.repeat(np.arange(len(problem.model.bodies)), [layer.count for layer in problem.model.bodies])
    rows = live_rows(schedule)
    cells = range(problem.cells)
    fixed = tables.fixed
    return Tables(
        fwd=tables.forward_ms[kind],
        bwd=tables.backward_ms[kind],
        act=tables.activation_mb[kind],
        par=tables.parameter_mb[kind],
        usable=tables.considered[kind],
        kind=kind.astype(np.int64),
        fixed=np.array([fixed.forward_ms, fixed.backward_ms, fixed.activation_mb, fixed.parameter_mb]),
        held=np.array(problem.constant_per_stage_mb),
        # A limit that nothing reaches keeps infinities out of the kernels.
        limit=np.minimum(problem.limit_per_stage_mb, 1e18),
        live=np.concatenate([live.rows for live in rows]),
        row_start=np.cumsum([0, *(len(live.rows) for live in rows)], dtype=np.int64),
        least=np.array([problem.least_layers(cell) for cell in cells], dtype=np.int64),
        stage_of=np.array(
            [schedule.placement.stage_of(cell, problem.stages) for cell in cells], dtype=np.int64
        ),
        cells_of=np.array(
            [
                [
                    schedule.placement.cell_of(stage, chunk, problem.stages)
                    for chunk in range(problem.interleave)
                ]
                for stage in range(problem.stages)
            ],
            dtype=np.int64,
        ),
    )


class Search:
    """
    One search over one problem.

    Parameters
    ----------
    may_mix
        Whether SELECTIVE and COMM may stand in one cell.
    """

    def __init__(self, problem: Problem, seed: int, *, may_mix: bool = True) -> None:
        self.problem = problem
        self.may_mix = may_mix
        self.tables = search_tables(problem)
        graph = build_graph(problem.order)
        self._graph = (graph.stage, graph.price, graph.before, graph.giver, hop_times(problem, graph))
        self._random = np.array([seed * 1_000_003 + 12_345], dtype=np.uint64)
        self._numbers = np.random.default_rng(seed)
        cells = problem.cells
        self._pool = (
            np.zeros((_POOL, 2, cells)),
            np.zeros(_POOL),
            np.zeros(1, dtype=np.int64),
            np.arange(_POOL),
        )

    def start(self, spread: float) -> State:
        """Cut the chain into cells of equal time, each boundary moved at random by up to ``spread`` cells."""
        tables, cells, layers = self.tables, self.problem.cells, len(self.tables.kind)
        time = np.cumsum(tables.fwd + tables.bwd[:, Recompute.NONE])
        before = tables.fixed[0, 0] + tables.fixed[1, 0]
        total = before + time[-1] + tables.fixed[0, -1] + tables.fixed[1, -1]
        targets = total * (np.arange(1, cells) + spread * self._numbers.uniform(-1, 1, cells - 1)) / cells
        inner = np.searchsorted(time + before, np.sort(targets))
        bound = np.concatenate([[0], inner, [layers]]).astype(np.int64)
        _keep_least(bound, tables.least)
        rec = np.argmin(np.where(tables.usable, tables.bwd, np.inf), axis=1)
        banned = np.full(cells, -1 if self.may_mix else Recompute.COMM, dtype=np.int64)
        return self._state(bound, rec, banned)

    def resume(self, plan: Plan) -> State:
        """State of a given plan."""
        sizes = plan.layers_per_cell
        bound = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        rec = np.concatenate(
            [
                np.repeat(np.arange(len(Recompute)), plan.counts[kind, :, cell])
                for cell in range(self.problem.cells)
                for kind in range(len(plan.counts))
            ]
        )
        uses_comm = plan.counts[:, Recompute.COMM].sum(axis=0) > 0
        banned = np.where(uses_comm, Recompute.SELECTIVE, Recompute.COMM)
        return self._state(bound, rec, np.full_like(banned, -1) if self.may_mix else banned)

    def _state(self, bound: NDArray[np.int64], rec: NDArray[np.int64], banned: NDArray[np.int64]) -> State:
        tables, chunks = self.tables, self.problem.interleave
        costs = np.zeros((4, self.problem.cells))
        rec = rec.astype(np.int64)
        over = [
            repair(
                stage, False, tables.cells_of, bound, rec, banned, *tables.layers(), *tables.memory(), costs,
                np.ones(chunks), 0.0, self._random,
            )
            for stage in range(self.problem.stages)
        ]  # fmt: skip
        score = np.array([sum(over), np.inf, np.inf, np.inf])
        best = (bound.copy(), rec.copy(), banned.copy())
        return State(bound=bound, rec=rec, banned=banned, costs=costs, score=score, best=best)

    def anneal(self, state: State, moves: int, hot: float = _HOT, cold: float = _COLD) -> Iterator[State]:
        """Anneal a state in rounds; temperatures are shares of its makespan."""
        scale = self._scale(state)
        for number in range(_ROUNDS):
            ratio = cold / hot
            temperatures = [scale * hot * ratio ** ((number + k) / _ROUNDS) for k in (0, 1)]
            self._round(state, max(1, moves // _ROUNDS), *temperatures)
            yield state

    def _scale(self, state: State) -> float:
        if np.isfinite(state.score[1]):
            return float(state.score[1])
        work = state.costs[0].sum() + state.costs[1].sum()
        return float(work) * self.problem.micro_batches / self.problem.stages

    def _round(self, state: State, moves: int, hot: float, cold: float) -> None:
        tables = self.tables
        anneal(
            moves, hot, cold, _GUIDANCE, state.bound, state.rec, state.banned, state.costs, *state.best,
            state.score, self._random, self.may_mix, *tables.layers(), *tables.memory(), tables.least,
            tables.stage_of, tables.cells_of, *self._graph, *self._pool,
        )  # fmt: skip

    def plan_of(self, state: State) -> Plan | None:
        """Best plan of a state, None while none fits."""
        if state.score[2] > 0.0:
            return None
        bound, rec, _ = state.best
        counts = np.zeros(
            (len(self.problem.model.bodies), len(Recompute), self.problem.cells), dtype=np.int64
        )
        cell = np.repeat(np.arange(self.problem.cells), np.diff(bound))
        np.add.at(counts, (self.tables.kind, rec, cell), 1)
        return Plan(problem=self.problem, counts=counts)

    def run(self, moves: int, known: Plan | None = None) -> Iterator[State]:
        """
        Anneal many starts with half of the moves, then refine the best ones.

        Parameters
        ----------
        moves
            Moves in all.
        known
            A plan that fits, for problems in which most starts do not.

        Yields
        ------
        State
            The state at work, after every round.
        """
        number = min(max(moves // (2 * _MOVES_A_START), _FEWEST_STARTS), _MOST_STARTS)
        states = []
        for start in range(number):
            spread = _SPREADS[start % len(_SPREADS)]
            state = self.resume(known) if known else self.start(spread)
            states.append(state)
            hot = _HOT * (_HOTTER if start % 2 else 1.0)
            yield from self.anneal(state, moves // (2 * number), hot=hot)
        states.sort(key=_rank)
        for state in states[:_REFINED]:
            again = self._refreshed(state.from_best())
            yield from self.anneal(again, moves // (2 * _REFINED), hot=_HOT * _COLDER)

    def _refreshed(self, state: State) -> State:
        fresh = self._state(state.bound, state.rec, state.banned)
        fresh.score[:] = state.score
        return fresh


def _rank(state: State) -> tuple[float, float]:
    return (float(state.score[2]), float(state.score[3]))


def _keep_least(bound: NDArray[np.int64], least: NDArray[np.int64]) -> None:
    """Push boundaries apart until every cell has its fewest layers."""
    for cell in range(len(least) - 1):
        bound[cell + 1] = max(bound[cell + 1], bound[cell] + least[cell])
    for cell in range(len(least) - 1, 0, -1):
        bound[cell] = min(bound[cell], bound[cell + 1] - least[cell])
