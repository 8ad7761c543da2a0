"""
Every plan of a small problem, timed and weighed, and random problems small enough for it.

Nothing of the planner is used.  Live micro-batches are counted here from the order of
ops, at every forward, so that only the makespan is shared with what is tested; a sample
of plans is compared with the slow reference simulator in ``test_bounds.py``.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Layer, LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.costs.per_stage import PerStage
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import OpKind
from sapp_ppb.simulator.price import LayerTables, layer_tables, price_lists, price_rule
from sapp_ppb.simulator.timeline import batched_makespans
from sapp_ppb.targets import target_named
from tests.reference import reference
from tests.strategies import (
    random_mode,
    random_plan,
    random_schedule,
    with_devices,
    with_overheads,
    with_special_layers,
    with_strategies,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_PLANS = 100_000
# Memory fits within this share of its limit, as the simulator says.
_SLACK = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class AllPlans:
    """
    All plans of a problem.

    Attributes
    ----------
    splits
        Layers of each cell; shape (splits, cells).
    split_of, choice_of
        Split of each plan, and its number among the recompute choices of that split; shape (plans,).
    makespan_ms
        Of each plan, with what stages do after their last op; shape (plans,).
    peak_mb
        Of each plan and stage; shape (plans, S).
    """

    problem: Problem
    nested: bool
    splits: Ints
    split_of: Ints
    choice_of: Ints
    makespan_ms: Floats
    peak_mb: Floats

    @property
    def number(self) -> int:
        """How many plans there are."""
        return len(self.makespan_ms)

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Whether each plan keeps every stage within its limit; shape (plans,)."""
        limits = np.array(self.problem.limit_per_stage_mb)
        return np.asarray(np.all(self.peak_mb <= limits * (1 + _SLACK), axis=1))

    @property
    def optimum_ms(self) -> float:
        """Least makespan of a plan that fits; infinite when none does."""
        return float(np.min(self.makespan_ms, where=self.fits, initial=math.inf))

    @property
    def least_over_mb(self) -> float:
        """Least excess of the worst stage over its limit; negative when there is room."""
        return float((self.peak_mb - np.array(self.problem.limit_per_stage_mb)).max(axis=1).min())

    @property
    def smallest_limit_mb(self) -> float:
        """Smallest limit, one for all stages, within which some plan fits."""
        return float(self.peak_mb.max(axis=1).min())

    def plan(self, index: int) -> Plan:
        """One of the plans."""
        runs = _Runs(self.problem, nested=self.nested)
        cells = runs.of_split(self.splits[self.split_of[index]])
        chosen = np.unravel_index(int(self.choice_of[index]), [len(run.backward_ms) for run in cells])
        counts = np.stack([run.counts[at] for run, at in zip(cells, chosen, strict=True)], axis=-1)
        return Plan(problem=self.problem, counts=counts)


def all_plans(problem: Problem, *, nested: bool = False) -> AllPlans:
    """
    Enumerate and evaluate every plan.

    Parameters
    ----------
    nested
        Whether every layer of a cell must run again a part of what the one before it runs.
    """
    runs = _Runs(problem, nested=nested)
    splits = list(_splits(problem))
    blocks = [_costs(runs.of_split(split)) for split in splits]
    costs = np.concatenate(blocks, axis=1)
    sizes = [block.shape[1] for block in blocks]
    fixed = layer_tables(problem).fixed
    times = np.stack([costs[part] + fixed.times_ms[part] for part in range(3)], axis=1)
    return AllPlans(
        problem=problem,
        nested=nested,
        splits=np.array(splits),
        split_of=np.repeat(np.arange(len(splits)), sizes),
        choice_of=np.concatenate([np.arange(size) for size in sizes]),
        makespan_ms=batched_makespans(problem, price_lists(price_rule(problem), times))
        if len(times)
        else np.empty(0),
        peak_mb=_peaks(problem, costs[3] + fixed.activation_mb, costs[4] + fixed.parameter_mb),
    )


def count_plans(problem: Problem) -> int:
    """Count the plans without listing them: ways to fill cell after cell up to each layer."""
    bounds = [0, *itertools.accumulate(layer.count for layer in problem.model.bodies)]
    types = [len(problem.considered(layer)) for layer in problem.model.bodies]
    total = problem.model.body_count
    ways = [1] + [0] * total
    for cell in range(problem.cells):
        least = problem.least_layers(cell)
        ways = [
            sum(ways[i] * _choices_of_run(bounds, types, i, j) for i in range(j - least + 1))
            for j in range(total + 1)
        ]
    return ways[total]


def _choices_of_run(bounds: list[int], types: list[int], first: int, last: int) -> int:
    """Multisets of types for layers first..last-1: n layers of t types have C(n + t - 1, n)."""
    choices = 1
    for low, high, t in zip(bounds, bounds[1:], types, strict=False):
        n = max(0, min(last, high) - max(first, low))
        choices *= math.comb(n + t - 1, n)
    return choices


def _splits(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Layers of each cell, every way that leaves no cell too empty."""
    least = [problem.least_layers(cell) for cell in range(problem.cells)]
    spare, cells = problem.model.body_count - sum(least), problem.cells
    # Bars between stars: where the C - 1 bars stand among spare + C - 1 places.
    for bars in itertools.combinations(range(spare + cells - 1), cells - 1):
        edges = (-1, *bars, spare + cells - 1)
        yield tuple(
            low + after - before - 1 for low, before, after in zip(least, edges, edges[1:], strict=False)
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Run:
    """A run of layers in a cell, and every choice of types for it (first axis)."""

    forward_ms: float
    weight_ms: float
    parameter_mb: float
    backward_ms: Floats
    activation_mb: Floats
    counts: Ints  # shape (choices, BODY layers, types)


class _Runs:
    """Every run of layers that was asked for, priced once."""

    def __init__(self, problem: Problem, *, nested: bool) -> None:
        self._problem, self._bodies = problem, problem.model.bodies
        self._entry = np.repeat(np.arange(len(self._bodies)), [layer.count for layer in self._bodies])
        self._nested = nested
        self._tables = layer_tables(problem)
        self._known: dict[tuple[int, int], _Run] = {}

    def of_split(self, split: Ints | tuple[int, ...]) -> list[_Run]:
        """Run of every cell."""
        bounds = [0, *itertools.accumulate(int(size) for size in split)]
        return [self._of(first, last) for first, last in itertools.pairwise(bounds)]

    def _of(self, first: int, last: int) -> _Run:
        if (first, last) not in self._known:
            sizes = np.bincount(self._entry[first:last], minlength=len(self._bodies))
            self._known[first, last] = _priced(self._tables, self._choices(sizes.tolist()))
        return self._known[first, last]

    def _choices(self, sizes: list[int]) -> Ints:
        per_entry = [
            [
                np.bincount(np.array(types, dtype=np.int64), minlength=len(self._problem.model.types))
                for types in itertools.combinations_with_replacement(self._problem.considered(layer), size)
            ]
            for layer, size in zip(self._bodies, sizes, strict=True)
        ]
        choices = np.array(list(itertools.product(*per_entry)), dtype=np.int64)
        return choices[[not self._nested or _is_nested(each) for each in choices]]


# What a layer of each type runs again, in the order of Recompute.
_RUNS_AGAIN = ("", "s", "c", "sc", "scf")


def _is_nested(counts: Ints) -> bool:
    """Whether the layers of a cell can be put in order, kind after kind, each within the one before."""
    lists = []
    for of_kind in counts.tolist():
        for recompute in sorted(Recompute, reverse=True):
            lists += [set(_RUNS_AGAIN[recompute])] * of_kind[recompute]
    return all(before >= after for before, after in itertools.pairwise(lists))


def _priced(tables: LayerTables, counts: Ints) -> _Run:
    size = counts.sum(axis=2)[:1].sum(axis=0)
    return _Run(
        forward_ms=float(tables.forward_ms @ size),
        weight_ms=float(tables.weight_ms @ size),
        parameter_mb=float(tables.parameter_mb @ size),
        backward_ms=np.einsum("lr,plr->p", tables.backward_ms, counts),
        activation_mb=np.einsum("lr,plr->p", tables.activation_mb, counts),
        counts=counts,
    )


def _costs(cells: list[_Run]) -> Floats:
    """F, B, W, activation and parameters of all plans of a split; shape (5, plans, cells)."""
    chosen = np.indices([len(run.backward_ms) for run in cells]).reshape(len(cells), -1)
    costs = np.empty((5, chosen.shape[1], len(cells)))
    for cell, (run, at) in enumerate(zip(cells, chosen, strict=True)):
        costs[0, :, cell] = run.forward_ms
        costs[1, :, cell] = run.backward_ms[at]
        costs[2, :, cell] = run.weight_ms
        costs[3, :, cell] = run.activation_mb[at]
        costs[4, :, cell] = run.parameter_mb
    return costs


def _peaks(problem: Problem, activation_mb: Floats, parameter_mb: Floats) -> Floats:
    peaks = np.empty((len(activation_mb), problem.stages))
    stage_of = [problem.order.placement.stage_of(cell, problem.stages) for cell in range(problem.cells)]
    for stage, (rows, transient_mb) in enumerate(_live(problem)):
        held = problem.constant_per_stage_mb[stage] + parameter_mb[:, np.equal(stage_of, stage)].sum(axis=1)
        totals = [activation_mb @ row + mb for row, mb in zip(rows, transient_mb, strict=True)]
        peaks[:, stage] = held + np.max(totals, axis=0)
    return peaks


def _live(problem: Problem) -> list[tuple[Floats, Floats]]:
    """
    Live micro-batches of every cell, in pieces, and MB for a moment, during each op of a stage.

    Shapes (ops, cells) and (ops,) a stage.
    """
    needs = _transients(problem)
    stages = []
    for stage, row in enumerate(problem.order.rows):
        pairs = problem.order.pairs_of(stage) if problem.overlap_factor > 0.0 else ()
        live, rows = np.zeros(problem.cells), set()
        for at, op in enumerate(row):
            live[op.cell] += op.kind is OpKind.F
            beside = needs[row[at - 1].cell] if at - 1 in pairs else 0.0
            rows.add((*live.tolist(), needs[op.cell] + beside))
            live[op.cell] -= op.kind in (OpKind.B, OpKind.W)
        table = np.array(sorted(rows)) / problem.sequence_chunks
        stages.append((table[:, :-1], table[:, -1]))
    return stages


def _transients(problem: Problem) -> list[float]:
    """MB for a moment of an op of every cell, for a whole micro-batch."""
    needs = [0.0] * problem.cells
    for layer in problem.model.heads:
        needs[0] = max(needs[0], layer.transient_mb)
    for layer in problem.model.tails:
        needs[-1] = max(needs[-1], layer.transient_mb)
    return needs


def check_sample(plans: AllPlans, rng: Random, size: int) -> None:
    """Compare some plans with the slow reference simulator."""
    for index in [rng.randrange(plans.number) for _ in range(size)]:
        told = reference(plans.plan(index))
        assert math.isclose(told.step_ms, plans.makespan_ms[index], rel_tol=1e-9)
        assert np.allclose(told.peak_mb, plans.peak_mb[index], rtol=1e-9)


def small_problem(
    rng: Random,
    *,
    most_plans: int = MOST_PLANS,
    target: str | None = None,
    runs: bool = False,
    devices: bool = False,
    together: bool = False,
) -> Problem:
    """
    Random problem with few plans: every schedule, 1 to 3 BODY entries, M below and above S.

    About a third have one or two strategies beside recomputation.

    Memory limits are drawn around the peaks of a random plan: hopeless, exact to
    the last bit, loose or none, for all stages or one a stage.  With ``runs`` it is one
    whose schedule the target has, with ``devices`` one whose stages differ in speed or work on
    after their last op, with ``together`` one that has that, HEAD and TAIL made special, and
    strategies at once.
    """
    while True:
        problem = _made_special(_drawn(rng, target, together=together), always=together)
        if runs and target and problem is not None and target_named(target).refuses(problem):
            continue
        if problem is not None and count_plans(problem) <= most_plans:
            limited = _limited(rng, problem)
            limited = with_overheads(rng, limited) if rng.random() < 0.4 else limited
            return with_devices(rng, limited, both=together) if devices or together else limited


def _made_special(problem: Problem | None, *, always: bool) -> Problem | None:
    """Give some problems, or all, special layers; all others stay as they were drawn."""
    if problem is None:
        return None
    own = Random(repr([layer.forward_ms for layer in problem.model.layers]))
    return with_special_layers(own, problem) if own.random() < 0.4 or always else problem


def _drawn(rng: Random, target: str | None, *, together: bool) -> Problem | None:
    """Draw a problem without a limit; None when its schedule can not run what was drawn."""
    stages, chunks = rng.choice([1, 2, 2, 3, 3, 4]), rng.choice([1, 1, 1, 2, 2, 3])
    micro_batches, least = rng.randint(1, rng.choice([stages, 2 * stages + 3])), rng.choice([0, 1, 1])
    name, group = random_schedule(rng, stages, chunks, micro_batches)
    bodies = max(1, least * stages * chunks) + rng.randint(0, 4)
    hops: list[PerStage] = [0.0, 0.0, rng.uniform(0, 5), _per_stage(rng, stages, 0, 5)]
    problem = Problem(
        model=_model(rng, bodies, together=together),
        stages=stages,
        interleave=chunks,
        micro_batches=micro_batches,
        schedule=name,
        micro_batch_group=group,
        constant_memory_mb=rng.choice([None, 7.0, _per_stage(rng, stages, 0, 100)]),
        p2p_ms=rng.choice(hops),
        min_layers_per_cell=least,
        target=target,
    )
    if rng.random() < 0.5:
        try:
            problem = random_mode(rng, problem)
        except InputError:  # a layer with a backward too short to be split
            return None
    return problem


def _model(rng: Random, bodies: int, *, together: bool) -> Model:
    kinds = min(rng.choice([1, 1, 2, 2, 3]), bodies)
    bounds = [0, *sorted(rng.sample(range(1, bodies), kinds - 1)), bodies]
    # Whole numbers tie often, and fill a limit to the last bit.
    whole = rng.random() < 0.4
    counts = [high - low for low, high in itertools.pairwise(bounds)]
    layers = [_layer(rng, f"body{k}", LayerKind.BODY, count, whole=whole) for k, count in enumerate(counts)]
    if rng.random() < 0.5 or together:
        layers.insert(0, _layer(rng, "head", LayerKind.HEAD, rng.randint(1, 2), whole=whole))
    if rng.random() < 0.5 or together:
        layers.append(_layer(rng, "tail", LayerKind.TAIL, 1, whole=whole))
    layers = with_strategies(layers, beside_types=True, share=1.0 if together else 1 / 3)
    return Model(name="small", layers=tuple(layers))


def _layer(rng: Random, name: str, kind: LayerKind, count: int, *, whole: bool) -> Layer:
    def number(low: int, high: int) -> float:
        return float(rng.randint(low, high)) if whole else rng.uniform(low, high)

    # Any set of types, NONE or all of them missing too; in any order of time and memory.
    most = rng.choice([1, 2, 2, 3, 5])
    types = rng.sample(list(Recompute), rng.choice([0, most, most, most]))
    if kind is not LayerKind.BODY:
        types = rng.choice([[], [Recompute.NONE]])
    ordered = rng.random() < 0.7
    memory = [number(1, 100) for _ in types]
    extra = [rng.choice([0.0, number(0, 4) / 4]) for _ in Recompute]
    return layer_from_times(
        name=name,
        kind=kind,
        count=count,
        forward_ms=number(1, 20),
        backward_ms=rng.choice([None, None, number(0, 40)]),
        coefficients=dict(zip(Recompute, sorted(extra) if ordered else extra, strict=True)),
        parameter_mb=rng.choice([0.0, number(1, 200)]),
        activation_mb=dict(
            zip(sorted(types), sorted(memory, reverse=True) if ordered else memory, strict=True)
        ),
    )


def _limited(rng: Random, problem: Problem) -> Problem:
    """Give a problem a limit near what one of its plans holds."""
    peaks = reference(random_plan(rng, problem)).peak_mb
    factor = rng.choice([0.6, 0.9, 1.0, 1.0, rng.uniform(0.8, 1.6), 2.0])
    limit: PerStage | None = rng.choice(
        [
            None,
            max(peaks) * factor,
            max(peaks) * factor,
            tuple(peak * factor for peak in peaks),
            tuple(peak * rng.uniform(0.7, 1.5) for peak in peaks),
        ]
    )
    return Problem(
        **{name: getattr(problem, name) for name in problem.__dataclass_fields__} | {"memory_limit_mb": limit}
    )


def _per_stage(rng: Random, stages: int, low: float, high: float) -> tuple[float, ...]:
    return tuple(rng.uniform(low, high) for _ in range(stages))
