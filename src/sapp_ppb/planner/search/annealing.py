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
from sapp_ppb.planner.search.budget import number_of_ops
from sapp_ppb.planner.search.search_kernel import anneal, repair, tie_break
from sapp_ppb.planner.search.tables import Array, search_tables
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator.graph import graph_of
from sapp_ppb.simulator.price import price_rule
from sapp_ppb.simulator.timeline import hop_times, simulate
from sapp_ppb.targets import is_nested

# A start takes this many moves for every cell to settle, and these at least; more budget buys
# more starts, in these limits.
_MOVES_A_CELL, _MOVES_A_START = 375, 12_000
_FEWEST_STARTS, _MOST_STARTS = 4, 64
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
# Ops of a long step, and heats and spreads of its starts: what is lost by melting or scattering
# them takes too long to be won back.  Of very many micro-batches so many a stage are enough.
_LONG, _LONG_HEATS, _LONG_SPREADS, _ROUNDS_OF_STAGES = 30_000, (0.04,), (0.0,), 4
# Temperatures among plans of equal makespan, in forward times of a layer.
_WARM, _COOL = 0.2, 1e-6
# What unevenness weighs against the makespan, in temperatures.
_GUIDANCE = 50.0


@dataclass(kw_only=True, eq=False)
class State:
    """A plan in the making: cell boundaries, type of each layer, and the price of the cells."""

    bound: NDArray[np.int64]
    rec: NDArray[np.int64]
    banned: NDArray[np.int64]
    costs: Array
    over: Array  # MB that each stage is over
    score: Array  # excess MB and makespan, now and at best
    best: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

    def from_best(self) -> "State":
        """Copy that goes on from the best plan met."""
        return State(
            bound=self.best[0].copy(),
            rec=self.best[1].copy(),
            banned=self.best[2].copy(),
            costs=self.costs.copy(),
            over=self.over.copy(),
            score=np.array([self.score[2], self.score[3], self.score[2], self.score[3]]),
            best=(self.best[0].copy(), self.best[1].copy(), self.best[2].copy()),
        )


# Columns of a graph that the kernels take, what its hops cost, and how its ops are priced.
Timing = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], Array, Array]


def _timing(problem: Problem) -> Timing:
    graph = graph_of(problem)
    return (graph.price, graph.before, graph.giver, hop_times(problem, graph), price_rule(problem))


def _shorter(problem: Problem) -> Problem | None:
    """Find the same problem with as few micro-batches as fill the pipeline, where that saves much."""
    ops, whole = number_of_ops(problem), problem.micro_batches % problem.stages == 0
    few = problem.micro_batches < 2 * _ROUNDS_OF_STAGES * problem.stages
    if ops < _LONG or not whole or few or problem.micro_batch_group:
        return None
    if problem.schedule_name in (ScheduleName.CUSTOM, ScheduleName.ZB_AUTO):  # orders for this M alone
        return None
    return replace(problem, micro_batches=_ROUNDS_OF_STAGES * problem.stages)


class Search:
    """One search over one problem."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self._nested = is_nested(problem.target)
        self._speeds = np.array(problem.speed_per_cell)
        self._split = None if problem.fix is None else problem.fix.layers
        self._may_shift = self._split is None
        self.tables = search_tables(problem)
        self._fine = _timing(problem)
        # Scattered starts of a long step are timed on a shorter one, with the memory of the long.
        shorter = _shorter(problem)
        self._coarse = self._fine if shorter is None else _timing(shorter)
        self._graph = self._fine
        self._cheaper = len(self._fine[0]) / len(self._coarse[0])
        # Both are small against the time of a layer, and the second against the first.
        layer_ms = float(self.tables.fwd.mean())
        self._ties = layer_ms * np.array([1e-3, 1e-5 / (problem.cells * problem.model.body_count)])
        self._random = np.array([seed * 1_000_003 + 12_345], dtype=np.uint64)
        self._numbers = np.random.default_rng(seed)
        cells = problem.cells
        self._pool = (
            np.zeros((_POOL, 3, cells)),
            np.zeros(_POOL),
            np.zeros(1, dtype=np.int64),
            np.arange(_POOL),
        )

    @property
    def is_exact(self) -> bool:
        """Whether states are timed on the problem itself, not on a shorter one."""
        return self._graph is self._fine

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
            Relative time of each cell; shape (cells,).  None: all alike.  Faster stages do more in it.
        """
        tables, cells = self.tables, self.problem.cells
        times = tables.fwd + tables.bwd[:, Recompute.NONE]
        before = tables.fixed[0, 0] + tables.fixed[1, 0]
        total = before + times.sum() + tables.fixed[0, -1] + tables.fixed[1, -1]
        shares = self._speeds if weights is None else weights * self._speeds
        upto = np.cumsum(shares)[:-1] / shares.sum()
        targets = total * (upto + spread * self._numbers.uniform(-1, 1, cells - 1) / cells)
        # A boundary falls on the layer whose middle is next.
        inner = np.searchsorted(before + np.cumsum(times) - times / 2, np.sort(targets))
        return self._fresh(np.concatenate([[0], inner, [len(self.tables.kind)]]).astype(np.int64))

    def _weights(self, start: int) -> Array | None:
        """
        Draw the cells' shares of a start: alike, at random by chunk, or no layers in early chunks.

        The first chunks' micro-batches live longest, and where cells may be empty the best
        plans can leave the first one so and fill the others evenly, the later ones a little
        more, or leave half of them so and fill the last one most.
        """
        chunks, stages = self.problem.interleave, self.problem.stages
        if chunks == 1 or start % 4 == 0:
            return None
        if start % 4 == 1:
            return np.repeat(self._numbers.exponential(size=chunks) + 1e-9, stages)
        empty = 1 if start % 4 == 2 else chunks // 2
        growth = self._numbers.uniform(1.0, 1.3) if start % 4 == 2 else self._numbers.uniform(2.0, 5.0)
        shares = np.concatenate([np.full(empty, 1e-9), growth ** np.arange(chunks - empty)])
        return np.repeat(shares, stages)

    def _fresh(self, bound: NDArray[np.int64]) -> State:
        """State of given cells, every layer in its fastest type where that fits."""
        tables = self.tables
        if self._split is not None:
            bound = np.concatenate([[0], np.cumsum(self._split)]).astype(np.int64)
        _keep_least(bound, tables.least)
        rec = np.argmin(np.where(tables.usable, tables.bwd, np.inf), axis=1)
        banned = np.full(self.problem.cells, Recompute.COMM if self._nested else -1, dtype=np.int64)
        return self._state(bound, rec, banned)

    def resume(self, plan: Plan) -> State:
        """State of a given plan; where the split is fixed, only its recompute is taken."""
        sizes = plan.layers_per_cell if self._split is None else np.array(self._split)
        bound = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        rec = np.concatenate(
            [
                np.repeat(np.arange(plan.counts.shape[1]), plan.counts[kind, :, cell])
                for cell in range(self.problem.cells)
                for kind in range(len(plan.counts))
            ]
        )
        uses_comm = plan.counts[:, Recompute.COMM].sum(axis=0) > 0
        banned = np.where(uses_comm, Recompute.SELECTIVE, Recompute.COMM)
        return self._state(bound, rec, banned if self._nested else np.full_like(banned, -1))

    def _state(self, bound: NDArray[np.int64], rec: NDArray[np.int64], banned: NDArray[np.int64]) -> State:
        tables, chunks = self.tables, self.problem.interleave
        costs = np.zeros((6, self.problem.cells))
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
        return State(
            bound=bound, rec=rec, banned=banned, costs=costs, over=np.array(over), score=score, best=best
        )

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
        work = ((state.costs[0] + state.costs[1]) / self._speeds).sum()
        return float(work) * self.problem.micro_batches / self.problem.stages

    def _round(self, state: State, moves: int, hot: float, cold: float, ceiling_ms: float = np.inf) -> None:
        tables = self.tables
        guidance = _GUIDANCE if ceiling_ms == np.inf else 0.0
        anneal(
            moves, hot, cold, guidance, ceiling_ms, self._ties, state.bound, state.rec, state.banned,
            state.costs, state.over, *state.best, state.score, self._random, self._nested, self._may_shift,
            *tables.layers(), *tables.memory(), tables.least, tables.stage_of, tables.cells_of, *self._graph,
            *self._pool,
        )  # fmt: skip

    def plan_of(self, state: State) -> Plan | None:
        """Best plan of a state, None while none fits."""
        if state.score[2] > 0.0:
            return None
        bound, rec, _ = state.best
        counts = np.zeros(
            (len(self.problem.model.bodies), len(self.problem.model.types), self.problem.cells),
            dtype=np.int64,
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
        moves_a_start = max(_MOVES_A_START, _MOVES_A_CELL * self.problem.cells)
        number = min(max(scattered // moves_a_start, _FEWEST_STARTS), _MOST_STARTS)
        is_long = number_of_ops(self.problem) >= _LONG
        heats, spreads = (_LONG_HEATS, _LONG_SPREADS) if is_long else (_HEATS, _SPREADS)
        states = []
        self._time_on(self._coarse)
        for start in range(number):
            spread = spreads[start % len(spreads)]
            state = self.resume(known) if known else self.start(spread, self._weights(start))
            states.append(state)
            hot = _HOT * heats[start % len(heats)]
            yield from self.anneal(state, scattered // number, hot=hot, cold=min(_COLD, hot / 10))
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
            state.score[3] = simulate(plan).step_ms

    def polish(self, plan: Plan, ceiling_ms: float, moves: int) -> Plan | None:
        """
        Look for a plan that is no slower than a ceiling and has less recompute.

        Of equal recompute the one with the lower highest peak is preferred, then the
        one in which neighbouring stages differ by fewer layers.

        Parameters
        ----------
        plan
            Where to begin; it is within the ceiling.
        moves
            Moves to try.

        Returns
        -------
        Plan
            The best one met; None when nothing near is within the ceiling.
        """
        state, tables = self.resume(plan), self.tables
        self._time_on(self._fine)
        rank = tie_break(
            state.bound, state.costs, self._ties, tables.held, tables.limit, tables.live, tables.again_of,
            tables.row_start, tables.cells_of,
        )  # fmt: skip
        state.score[:] = (state.score[0], rank, state.score[0], rank)
        layer_ms = float(tables.fwd.mean())
        self._round(state, moves, _WARM * layer_ms, _COOL * layer_ms, ceiling_ms)
        return self.plan_of(state)

    def go_on(self, state: State, moves: int) -> Iterator[State]:
        """Anneal a state that is thought to be good, colder than a start."""
        yield from self.anneal(state, moves, hot=_HOT * _COLDER)

    def refine(self, state: State, moves: int) -> Iterator[State]:
        """Anneal again from the best plan of a state, colder."""
        again = state.from_best()
        fresh = self._state(again.bound, again.rec, again.banned)
        fresh.score[:] = again.score
        yield from self.go_on(fresh, moves)


def _rank(state: State) -> tuple[float, float]:
    return (float(state.score[2]), float(state.score[3]))


def _keep_least(bound: NDArray[np.int64], least: NDArray[np.int64]) -> None:
    """Push boundaries apart until every cell has its fewest layers."""
    for cell in range(len(least) - 1):
        bound[cell + 1] = max(bound[cell + 1], bound[cell] + least[cell])
    for cell in range(len(least) - 1, 0, -1):
        bound[cell] = min(bound[cell], bound[cell + 1] - least[cell])
