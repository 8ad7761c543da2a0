"""
Annealing on the exact simulator: many scattered starts, then the best few refined.

Work is counted in moves, never in seconds, so that a seed has one answer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.planner.search_kernel import anneal, repair
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.graph import graph_of
from sapp_ppb.simulator.memory import live_rows
from sapp_ppb.simulator.price import layer_tables
from sapp_ppb.simulator.timeline import hop_times, simulate

Array = NDArray[np.float64]

# A start takes this many moves to settle; more budget buys more starts, in these limits.
_MOVES_A_START = 12_000
_FEWEST_STARTS, _MOST_STARTS = 6, 64
_REFINED = 3
# Share of the moves that goes to the starts.
_SCATTERED = 0.75
# How far starts are thrown from equal cells, in cells; one regime of splits is seldom all.
_SPREADS = (0.0, 0.6, 0.0, 1.0, 0.3, 2.0, 3.0)
# Rounds in which a start is annealed; between them the caller can look, stop or go on.
_ROUNDS = 8
_POOL = 64
# Temperatures as shares of the makespan.
_HOT, _COLD = 5e-3, 5e-5
# Starts differ in temperature by these factors, in turn; the refined ones are colder.
_HEATS, _COLDER = (1.0, 4.0, 0.2, 4.0, 1.0), 1 / 3
# Ops of a step that is long enough to be shortened for the first look.
_LONG = 30_000
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


# Columns of a graph that the kernels take, and what its hops cost.
Timing = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], Array]


def _timing(problem: Problem) -> Timing:
    graph = graph_of(problem)
    return (graph.price, graph.before, graph.giver, hop_times(problem, graph))


def _shorter(problem: Problem) -> Problem | None:
    """Find the same problem with as few micro-batches as fill the pipeline, where that saves much."""
    ops, whole = 2 * problem.cells * problem.micro_batches, problem.micro_batches % problem.stages == 0
    fixed = problem.micro_batch_group is not None or problem.order_file is not None
    if ops < _LONG or not whole or problem.micro_batches < 4 * problem.stages or fixed:
        return None
    return replace(problem, micro_batches=2 * problem.stages)


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
        self._fine = _timing(problem)
        # Scattered starts of a long step are timed on a shorter one, with the memory of the long.
        shorter = _shorter(problem)
        self._coarse = self._fine if shorter is None else _timing(shorter)
        self._graph = self._fine
        self._cheaper = len(self._fine[0]) / len(self._coarse[0])
        self._random = np.array([seed * 1_000_003 + 12_345], dtype=np.uint64)
        self._numbers = np.random.default_rng(seed)
        cells = problem.cells
        self._pool = (
            np.zeros((_POOL, 2, cells)),
            np.zeros(_POOL),
            np.zeros(1, dtype=np.int64),
            np.arange(_POOL),
        )

    def start_near(self, layers: Array) -> State:
        """Cut the chain where fractional numbers of layers a cell would, rounded along the chain."""
        bound = np.concatenate([[0], np.rint(np.cumsum(layers)[:-1]), [len(self.tables.kind)]])
        return self._fresh(np.clip(bound, 0, len(self.tables.kind)).astype(np.int64))

    def start(self, spread: float, weights: Array | None = None) -> State:
        """
        Cut the chain into cells of given shares of its time, boundaries moved at random.

        Parameters
        ----------
        spread
            How far a boundary may move, in cells.
        weights
            Relative time of each cell; shape (cells,).  None: all alike.
        """
        tables, cells = self.tables, self.problem.cells
        times = tables.fwd + tables.bwd[:, Recompute.NONE]
        before = tables.fixed[0, 0] + tables.fixed[1, 0]
        total = before + times.sum() + tables.fixed[0, -1] + tables.fixed[1, -1]
        shares = np.ones(cells) if weights is None else weights
        upto = np.cumsum(shares)[:-1] / shares.sum()
        targets = total * (upto + spread * self._numbers.uniform(-1, 1, cells - 1) / cells)
        # A boundary falls on the layer whose middle is next.
        inner = np.searchsorted(before + np.cumsum(times) - times / 2, np.sort(targets))
        return self._fresh(np.concatenate([[0], inner, [len(self.tables.kind)]]).astype(np.int64))

    def _weights(self, start: int) -> Array | None:
        """
        Draw the cells' shares of a start: alike, chunks at random, or no layers in the first chunk.

        The first chunk's micro-batches live longest, and where cells may be empty the
        best plans can leave it so and fill the others evenly, the later ones a little more.
        """
        chunks, stages = self.problem.interleave, self.problem.stages
        if chunks == 1 or start % 3 == 0:
            return None
        if start % 3 == 1:
            return np.repeat(self._numbers.exponential(size=chunks) + 1e-9, stages)
        tilt = self._numbers.uniform(0.0, 0.3) * np.linspace(-1, 1, chunks - 1) if chunks > 2 else np.zeros(1)
        return np.repeat(np.concatenate([[1e-9], 1.0 + tilt]), stages)

    def _fresh(self, bound: NDArray[np.int64]) -> State:
        """State of given cells, every layer in its fastest type where that fits."""
        tables = self.tables
        _keep_least(bound, tables.least)
        rec = np.argmin(np.where(tables.usable, tables.bwd, np.inf), axis=1)
        banned = np.full(self.problem.cells, -1 if self.may_mix else Recompute.COMM, dtype=np.int64)
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
        Anneal many starts with most of the moves, then refine the best ones.

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
        scattered = int(_SCATTERED * moves * self._cheaper)
        number = min(max(scattered // _MOVES_A_START, _FEWEST_STARTS), _MOST_STARTS)
        states = []
        self._time_on(self._coarse)
        for start in range(number):
            spread = _SPREADS[start % len(_SPREADS)]
            state = self.resume(known) if known else self.start(spread, self._weights(start))
            states.append(state)
            hot = _HOT * _HEATS[start % len(_HEATS)]
            yield from self.anneal(state, scattered // number, hot=hot)
        self._time_on(self._fine)
        if self._coarse is not self._fine:
            for state in states:
                self._time_anew(state)
        states.sort(key=_rank)
        for state in states[:_REFINED]:
            yield from self.refine(state, int((1 - _SCATTERED) * moves) // _REFINED)

    def _time_on(self, graph: Timing) -> None:
        """Time on another graph from here on; what is known of the last one's paths is void."""
        if graph is not self._graph:
            self._graph = graph
            self._pool[2][0] = 0

    def _time_anew(self, state: State) -> None:
        """Time the best plan of a state on the graph in use."""
        plan = self.plan_of(state)
        if plan is not None:
            state.score[3] = simulate(plan).makespan_ms

    def refine(self, state: State, moves: int) -> Iterator[State]:
        """Anneal again from the best plan of a state, colder."""
        again = state.from_best()
        fresh = self._state(again.bound, again.rec, again.banned)
        fresh.score[:] = again.score
        yield from self.anneal(fresh, moves, hot=_HOT * _COLDER)


def _rank(state: State) -> tuple[float, float]:
    return (float(state.score[2]), float(state.score[3]))


def _keep_least(bound: NDArray[np.int64], least: NDArray[np.int64]) -> None:
    """Push boundaries apart until every cell has its fewest layers."""
    for cell in range(len(least) - 1):
        bound[cell + 1] = max(bound[cell + 1], bound[cell] + least[cell])
    for cell in range(len(least) - 1, 0, -1):
        bound[cell] = min(bound[cell], bound[cell + 1] - least[cell])
