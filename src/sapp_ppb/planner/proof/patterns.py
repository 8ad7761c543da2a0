"""
Patterns: everything that one stage can hold, chunk by chunk, and still fit.

A pattern of a stage says for each of its chunks how many layers of which BODY
entries it holds, and how they are recomputed.  Of patterns with the same layers
only those are listed that no other beats in the backward time of every chunk,
since no path gets longer when a backward gets shorter.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.planner.alike import Grouped
from sapp_ppb.planner.proof.front_kernel import sieve
from sapp_ppb.planner.proof.fronts import CellFronts, FrontTooLargeError, Run, cell_fronts, run_between
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.memory import problem_rows
from sapp_ppb.simulator.price import LayerTables, layer_tables, most_work_ms, price_rule, prices
from sapp_ppb.simulator.timeline import batched_makespans

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# What a cell can hold: where its types come from, its layers, and which choice of types.
Option = tuple[CellFronts, Run, int]

# Combinations of chunks that are looked at for one stage, and patterns kept in all.
_MOST_COMBINATIONS = 2_000_000
_MOST_PATTERNS = 40_000
# Numbers in the tables of one chunk's options, and combinations that are looked at at once.
_MOST_NUMBERS, _BLOCK = 20_000_000, 100_000
# Ops that are timed, about two seconds of them, to drop patterns that are slow whatever the others are.
_MOST_TIMED = 2_000_000_000
# What is slower than the cutoff by rounding alone is kept.
_ROUNDING = 1e-9
_BATCH = 2000


class TooManyPatternsError(Exception):
    """A stage has more patterns than can be listed, or than time is left for; the caller goes on without."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StagePatterns:
    """
    Patterns of one stage.

    Attributes
    ----------
    cells
        Cells of the stage, by chunk; shape (V,).
    layers
        Layers of each entry in each chunk; shape (patterns, V, entries).
    times_ms
        F, B and W of each chunk's cell, HEAD and TAIL included; shape (patterns, 3, V).
    choices
        For each chunk the option, as its fronts, run and point; shape (V, options).
    options
        Which option of each chunk a pattern takes; shape (patterns, V).
    """

    cells: Ints
    layers: Ints
    times_ms: Floats
    choices: list[list[Option]]
    options: Ints

    @property
    def forward_ms(self) -> Floats:
        """Forward times of each chunk's cell; shape (patterns, V)."""
        return self.times_ms[:, 0]

    @property
    def backward_ms(self) -> Floats:
        """Backward times of each chunk's cell; shape (patterns, V)."""
        return self.times_ms[:, 1]

    def kept(self, mask: NDArray[np.bool_]) -> "StagePatterns":
        """Patterns of a mask."""
        return StagePatterns(
            cells=self.cells,
            layers=self.layers[mask],
            times_ms=self.times_ms[mask],
            choices=self.choices,
            options=self.options[mask],
        )

    def counts(self, pattern: int, entries: int) -> Ints:
        """Layers of each entry, type and chunk; shape (entries, types, V)."""
        per_chunk = []
        for chunk, option in enumerate(self.options[pattern]):
            fronts, run, point = self.choices[chunk][option]
            per_chunk.append(fronts.counts(run, point, entries))
        return np.stack(per_chunk, axis=2)


def list_patterns(
    problem: Problem, cutoff_ms: float, deadline: float = math.inf, share: float = 1.0
) -> list[StagePatterns]:
    """
    List the patterns of every stage that can be in a plan as fast as a cutoff.

    Parameters
    ----------
    deadline
        Time of ``time.monotonic`` at which to give up.
    share
        Share of the usual number of patterns, and of combinations to look at, that are too many.

    Raises
    ------
    TooManyPatternsError
        When there are too many, or the deadline has passed.
    """
    tables = layer_tables(problem)
    slowest = most_work_ms(problem, cutoff_ms * (1 + _ROUNDING)).tolist()
    fronts = cell_fronts(problem, tables, max(slowest))
    patterns = []
    try:
        for stage in range(problem.stages):
            each = _Stage(problem, tables, stage, slowest[stage], deadline, share)
            patterns.append(each.patterns(fronts))
            if sum(len(each.layers) for each in patterns) > share * _MOST_PATTERNS:
                raise TooManyPatternsError
    except FrontTooLargeError as error:
        raise TooManyPatternsError from error
    return _without_slow(problem, patterns, cutoff_ms, deadline)


def with_surplus(patterns: list[StagePatterns], grouped: Grouped) -> list[StagePatterns]:
    """Add to every cell what its layers take beyond the least costs of their groups, at least."""
    most = max((int(each.layers.max(initial=0)) for each in patterns), default=0)
    surplus = grouped.least_surplus_ms(most)
    of_group = np.arange(surplus.shape[1])
    return [
        # Shape (3, patterns, V, groups), summed over the groups.
        replace(each, times_ms=each.times_ms + surplus[:, of_group, each.layers].sum(axis=3).swapaxes(0, 1))
        for each in patterns
    ]


class _Stage:
    """Combines the options of a stage's chunks."""

    def __init__(
        self,
        problem: Problem,
        tables: LayerTables,
        stage: int,
        slowest_ms: float,
        deadline: float,
        share: float,
    ) -> None:
        fixed, self._deadline = tables.fixed, deadline
        self._most_combinations, self._most_patterns = share * _MOST_COMBINATIONS, share * _MOST_PATTERNS
        self._cells = problem.cells_of(stage)
        self._problem, self._tables, self._slowest_ms = problem, tables, slowest_ms
        self._live = problem_rows(problem)[stage]
        held = problem.constant_per_stage_mb[stage] + fixed.parameter_mb[self._cells].sum()
        held = held + self._live.totals(fixed.activation_mb[self._cells], fixed.again_mb[self._cells])
        limit = problem.limit_per_stage_mb[stage]
        self._room = limit * (1 + _ROUNDING) - held
        self._fixed_ms = float((fixed.forward_ms + fixed.backward_ms)[self._cells].sum())

    def patterns(self, fronts: list[list[CellFronts]]) -> StagePatterns:
        choices = [self._options(cell, fronts[cell]) for cell in self._cells]
        layers, activation, again, backward = zip(*(self._columns(each) for each in choices), strict=True)
        options = np.zeros((1, 0), dtype=np.int64)
        for each in choices:
            if len(options) * len(each) > self._most_combinations:
                raise TooManyPatternsError
            grown = np.repeat(options, len(each), axis=0)
            options = np.column_stack([grown, np.tile(np.arange(len(each)), len(options))])
            blocks = range(0, len(options), _BLOCK)
            parts = (options[begin : begin + _BLOCK] for begin in blocks)
            fitting = [part[self._fits(part, layers, activation, again, backward)] for part in parts]
            options = np.concatenate([options[:0], *fitting])
        picked = range(len(choices))
        times = np.stack([backward[chunk][options[:, chunk]] for chunk in picked], axis=1)
        self._look_at_the_clock()
        options = options[undominated(_groups(choices, options), times)]
        if len(options) > self._most_patterns:
            raise TooManyPatternsError
        stacked = np.stack([layers[chunk][options[:, chunk]] for chunk in picked], axis=1)
        times = np.stack([backward[chunk][options[:, chunk]] for chunk in picked], axis=1)
        found = (stacked @ self._tables.forward_ms, times, stacked @ self._tables.weight_ms)
        return StagePatterns(
            cells=np.array(self._cells),
            layers=stacked.astype(np.int64),
            times_ms=np.stack(found, axis=1) + self._tables.fixed.times_ms[:, self._cells],
            choices=choices,
            options=options,
        )

    def _look_at_the_clock(self) -> None:
        if time.monotonic() > self._deadline:
            raise TooManyPatternsError

    def _options(self, cell: int, fronts: list[CellFronts]) -> list[Option]:
        """Every run that a cell may hold, with every point of its front."""
        problem, entries = self._problem, self._problem.model.bodies
        kind = np.repeat(np.arange(len(entries)), [layer.count for layer in entries])
        times = self._tables.forward_ms + np.where(
            self._tables.considered, self._tables.backward_ms, np.inf
        ).min(axis=1)
        spent = np.concatenate([[0.0], np.cumsum(times[kind])])
        runs: dict[Run, None] = {}  # a set that keeps its order
        for start, stops in cell_runs(problem, cell):
            for stop in stops:
                if spent[stop] - spent[start] + self._fixed_ms > self._slowest_ms:
                    break
                runs[run_between(kind, start, stop)] = None
        options: list[Option] = []
        for known in fronts:
            for run in runs:
                options += [(known, run, point) for point in range(len(known.front(run).activation_mb))]
                if len(options) * len(entries) > _MOST_NUMBERS:
                    raise TooManyPatternsError
                self._look_at_the_clock()
        return options

    def _columns(self, options: list[Option]) -> tuple[Floats, Floats, Floats, Floats]:
        """Layers, activation memory, working set and backward time of every option."""
        layers = np.zeros((len(options), len(self._problem.model.bodies)))
        for row, (_, (first, numbers), _) in zip(layers, options, strict=True):
            row[first : first + len(numbers)] = numbers
        activation = [known.front(run).activation_mb[point] for known, run, point in options]
        backward = [known.front(run).backward_ms[point] for known, run, point in options]
        again = [known.again_mb for known, _, _ in options]
        return layers, np.array(activation), np.array(again), np.array(backward)

    def _fits(
        self,
        options: Ints,
        layers: tuple[Floats, ...],
        activation: tuple[Floats, ...],
        again: tuple[Floats, ...],
        backward: tuple[Floats, ...],
    ) -> NDArray[np.bool_]:
        """Whether the chunks combined so far leave time, memory and layers."""
        self._look_at_the_clock()
        picked = range(options.shape[1])
        total = sum((layers[chunk][options[:, chunk]] for chunk in picked), np.zeros((1, 1)))
        time = self._fixed_ms + total @ self._tables.forward_ms
        memory = (total @ self._tables.parameter_mb)[:, None] + np.zeros(len(self._live.rows))
        for chunk in picked:
            time = time + backward[chunk][options[:, chunk]]
            memory = memory + np.outer(activation[chunk][options[:, chunk]], self._live.rows[:, chunk])
            memory = memory + np.outer(again[chunk][options[:, chunk]], self._live.again == chunk)
        there_are = [layer.count for layer in self._problem.model.bodies]
        fits = (memory <= self._room).all(axis=1) & (total <= there_are).all(axis=1)
        return np.asarray(fits & (time <= self._slowest_ms))


def cell_runs(problem: Problem, cell: int) -> Iterator[tuple[int, range]]:
    """
    List the runs of layers that a cell may hold, whatever they take.

    Yields
    ------
    tuple
        A first layer, and the layers after the last that go with it, ascending.
    """
    if problem.fix is not None and problem.fix.layers is not None:
        start = sum(problem.fix.layers[:cell])
        stop = start + problem.fix.layers[cell]
        yield start, range(stop, stop + 1)
        return
    least = [problem.least_layers(other) for other in range(problem.cells)]
    end = problem.model.body_count - sum(least[cell + 1 :])
    for start in range(sum(least[:cell]), end + 1):
        yield start, range(start + least[cell], end + 1)


def undominated(group: Ints, backward_ms: Floats) -> Ints:
    """
    Find the patterns that no other of their group beats in every chunk, in their order.

    Parameters
    ----------
    group
        The same number for patterns of the same layers; shape (patterns,).
    backward_ms
        Shape (patterns, V).

    Examples
    --------
    >>> undominated(np.array([7, 7, 7, 8]), np.array([[2.0, 2.0], [1.0, 3.0], [2.0, 3.0], [4.0, 4.0]]))
    array([0, 1, 3])
    """
    order = np.lexsort((backward_ms.sum(axis=1), group))
    kept = np.zeros(len(order), dtype=np.bool_)
    # Sums of the same numbers in another order differ in the last bits only.
    sieve(group[order].astype(np.int64), np.ascontiguousarray(backward_ms[order]), 1e-12, kept)
    return np.sort(order[kept])


def _groups(choices: list[list[Option]], options: Ints) -> Ints:
    """Give combinations of the same runs, whatever their recompute, one number; shape (combinations,)."""
    group = np.zeros(len(options), dtype=np.int64)
    for chunk, each in enumerate(choices):
        runs: dict[Run, int] = {}
        number = np.array([runs.setdefault(run, len(runs)) for _, run, _ in each], dtype=np.int64)
        group = group * len(runs) + number[options[:, chunk]]
        _, group = np.unique(group, return_inverse=True)  # small again, however many chunks there are
    return group


def _without_slow(
    problem: Problem, patterns: list[StagePatterns], cutoff_ms: float, deadline: float
) -> list[StagePatterns]:
    """
    Drop patterns that exceed the cutoff with every price of every other stage at its least.

    No path gets longer when a price falls, so this is valid; the least price of an I is that of
    the pattern with the least B - W, which need not have the least B.  Where that takes too
    many ops some slow patterns stay.
    """
    rule, ops, timed = price_rule(problem), sum(map(len, problem.order.rows)), 0
    while all(len(each.layers) for each in patterns):
        timed += ops * sum(len(each.layers) for each in patterns)
        if timed > _MOST_TIMED:
            break
        least = np.empty(rule.shape[:2])
        for each in patterns:
            least[:, each.cells] = _prices(rule, each).min(axis=0)
        fewer = [
            each.kept(_least_makespans(problem, rule, each, least, deadline) <= cutoff_ms * (1 + _ROUNDING))
            for each in patterns
        ]
        before, after = (sum(len(each.layers) for each in some) for some in (patterns, fewer))
        patterns = fewer
        if after > 0.98 * before:
            break
    return patterns


def _prices(rule: Floats, each: StagePatterns) -> Floats:
    """Prices of every kind of op in the cells of a stage; shape (patterns, kinds, V)."""
    return prices(rule[:, each.cells], each.times_ms)


def _least_makespans(
    problem: Problem, rule: Floats, each: StagePatterns, least: Floats, deadline: float
) -> Floats:
    makespans = [np.empty(0)]
    priced = _prices(rule, each)
    for begin in range(0, len(priced), _BATCH):
        if time.monotonic() > deadline:
            raise TooManyPatternsError
        part = priced[begin : begin + _BATCH]
        lists = np.tile(least, (len(part), 1, 1))
        lists[:, :, each.cells] = part
        makespans.append(batched_makespans(problem, lists.reshape(len(part), -1)))
    return np.concatenate(makespans)
