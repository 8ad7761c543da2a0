"""
The least time that a run of layers takes on a stage, V = 1, memory included.

For every stage and every run of layers i..j-1 of the chain: the shortest
forward + backward time of one micro-batch under the stage's memory limit, with
the choice of recompute types relaxed to shares of layers.  The relaxation is the
linear multiple-choice knapsack, solved by taking steps along each layer's lower
hull of time against activation memory, cheapest first.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.fix import PlaceRule
from sapp_ppb.planner.proof.chain_kernel import price_runs
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.memory import problem_rows
from sapp_ppb.simulator.price import LayerTables, layer_tables, least_share_worked

# Beyond this many numbers a table of all runs takes more memory than it is worth: a third of a gigabyte.
_LARGEST_TABLE = 40_000_000

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Memory fits within this share of its limit, as the simulator says.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Segments:
    """
    Times of every run of layers on every stage.

    Attributes
    ----------
    forward_ms, total_ms
        Forward, and least forward + backward; shape (S, N + 1, N + 1), indexed
        [stage][first layer][layer after the last]; infinite where the run does not fit.
    is_whole
        Whether no run was left out for being slow.
    """

    forward_ms: Floats
    total_ms: Floats
    is_whole: bool = True


def has_few_runs(problem: Problem) -> bool:
    """Whether tables of all runs of a problem with one chunk can be held in memory."""
    return problem.stages * (problem.model.body_count + 1) ** 2 <= _LARGEST_TABLE


def chain_segments(problem: Problem, makespan_ms: float = math.inf) -> Segments:
    """
    Price every run of layers on every stage of a problem with one chunk.

    O(S N L), N layers of which a stage can hold L within the makespan, and so many more steps as
    their recompute takes to fit.

    Parameters
    ----------
    makespan_ms
        Runs that a stage works on for longer are infinite too.
    """
    tables = layer_tables(problem)
    if problem.fix is not None and problem.fix.places is not None:
        return _placed_segments(problem, tables, problem.fix.places)
    size = problem.model.body_count + 1
    forward_ms, total_ms = (np.full((problem.stages, size, size), np.inf) for _ in range(2))
    per_stage = [*_fixed(tables), _longest_ms(problem, makespan_ms)]
    cut = price_runs(
        kinds(problem), *_hulls(tables), *_rooms(problem, tables), np.array(per_stage), _allowed(problem),
        forward_ms, total_ms,
    )  # fmt: skip
    return Segments(forward_ms=forward_ms, total_ms=total_ms, is_whole=not cut)


def kinds(problem: Problem) -> Ints:
    """BODY entry of every layer, in chain order; shape (N,)."""
    bodies = problem.model.bodies
    return np.repeat(np.arange(len(bodies), dtype=np.int64), [layer.count for layer in bodies])


def _fixed(tables: LayerTables) -> tuple[Floats, Floats, Floats]:
    return tables.fixed.forward_ms, tables.fixed.backward_ms, tables.fixed.activation_mb


def _longest_ms(problem: Problem, makespan_ms: float) -> Floats:
    """Longest time of a run that each stage has time for, on a device as measured; shape (S,)."""
    overhead_ms = 2 * problem.sequence_chunks * problem.model.op_overhead_ms
    worked = problem.micro_batches * least_share_worked(problem)
    return np.asarray((makespan_ms / worked - overhead_ms) * np.array(problem.speed_per_stage))


def _rooms(problem: Problem, tables: LayerTables) -> tuple[Ints, Floats]:
    """Where each stage's rows begin, and of each the room that it leaves and its live micro-batches."""
    room = _roomy_limits(problem) - problem.constant_per_stage_mb - tables.fixed.parameter_mb
    live = problem_rows(problem)
    row_start = np.cumsum([0, *(len(each.rows) for each in live)], dtype=np.int64)
    nothing = np.zeros(1)
    free = [room[stage] - each.totals(nothing, nothing) for stage, each in enumerate(live)]
    return row_start, np.array([np.concatenate(free), np.concatenate([each.rows[:, 0] for each in live])])


def _allowed(problem: Problem) -> Ints:
    """Fewest layers of each stage, and the run that it is to hold, -1 for any; shape (3, S)."""
    least = [problem.least_layers(stage) for stage in range(problem.stages)]
    starts = stops = np.full(problem.stages, -1)
    if problem.fix is not None and problem.fix.layers is not None:
        least = [0] * problem.stages
        stops = np.cumsum(problem.fix.layers)
        starts = stops - problem.fix.layers
    return np.array([least, starts, stops], dtype=np.int64)


def _hulls(tables: LayerTables) -> tuple[Floats, Ints, Ints, Floats]:
    """Lay out what a layer of each entry takes at its fastest, and the steps of its lower hull."""
    hulls = [
        lower_hull(tables.activation_mb[k][usable], tables.backward_ms[k][usable])
        for k, usable in enumerate(tables.considered)
    ]
    fastest = np.array([[hull[0][1], hull[0][0]] for hull in hulls]).T
    steps = [
        (_rate(before, after), k, before[0] - after[0])
        for k, hull in enumerate(hulls)
        for before, after in pairwise(hull)
    ]
    step_start = np.cumsum([0, *(len(hull) - 1 for hull in hulls)], dtype=np.int64)
    order = sorted(range(len(steps)), key=steps.__getitem__)
    rank = np.empty(len(steps), dtype=np.int64)
    rank[order] = np.arange(len(steps))
    columns = np.array([(rate, saved_mb, k) for rate, k, saved_mb in (steps[at] for at in order)])
    per_entry = np.array([tables.forward_ms, tables.parameter_mb, *fastest])
    return per_entry, step_start, rank, columns.reshape(-1, 3).T.copy()


def _placed_segments(problem: Problem, tables: LayerTables, rule: PlaceRule) -> Segments:
    """Price runs whose recompute a rule of places decides."""
    kind = kinds(problem)
    held = _placed(rule, tables.activation_mb, kind)
    lacking = _placed(rule, (~tables.considered).astype(float), kind)
    time = np.where(lacking > 0, np.inf, _placed(rule, tables.backward_ms, kind))
    forward, allowed = _runs(tables.forward_ms[kind]), allowed_runs(problem)
    forward_ms, total_ms = np.empty(allowed.shape), np.empty(allowed.shape)
    first, last = np.ogrid[: len(forward), : len(forward)]
    for stage in range(problem.stages):
        share_mb = shares(problem, tables, stage, first, last)
        forward_ms[stage] = forward + tables.fixed.forward_ms[stage]
        backward_ms = np.where(held <= share_mb, time, np.inf) + tables.fixed.backward_ms[stage]
        run_ms = forward_ms[stage] + backward_ms
        total_ms[stage] = np.where(allowed[stage], run_ms, np.inf)
    return Segments(forward_ms=forward_ms, total_ms=total_ms)


def _placed(rule: PlaceRule, by_type: Floats, kind: Ints) -> Floats:
    """
    Sum of what the layers of each run cost under a rule of places; shape (N + 1, N + 1).

    ``by_type`` has shape (BODY layers, types).
    """
    layers = len(kind)
    none, more = by_type[:, Recompute.NONE], by_type[:, rule.recompute] - by_type[:, Recompute.NONE]
    extra = np.where(kind < len(by_type) - rule.entries_left, more[kind], 0.0)
    total = _runs(none[kind])
    for start in range(layers):
        picked = np.zeros(layers)
        places = rule.picked(start, layers)
        picked[places] = extra[places]
        total[start, 1:] += np.cumsum(picked)
    return total


def allowed_runs(problem: Problem) -> NDArray[np.bool_]:
    """Find the runs that each stage may hold, by their layers alone; shape (S, N + 1, N + 1)."""
    layers = np.arange(problem.model.body_count + 1)
    lengths = layers[None, :] - layers[:, None]
    if problem.fix is not None and problem.fix.layers is not None:
        stops = np.cumsum(problem.fix.layers)
        starts = stops - problem.fix.layers
        at = np.arange(problem.stages)
        allowed = np.zeros((problem.stages, *lengths.shape), dtype=bool)
        allowed[at, starts, stops] = True
        return allowed
    least = np.array([problem.least_layers(stage) for stage in range(problem.stages)])
    return np.asarray(lengths >= least[:, None, None])


def shares(
    problem: Problem, tables: LayerTables, stage: int, first: Ints, last: Ints, again_mb: float = 0.0
) -> Floats:
    """
    Activation memory that one micro-batch of each run may hold on a stage.

    With one chunk the live micro-batches share what limit, constant, parameters and
    the fixed layers' activations leave, less the working set where it counts, and less what
    an op needs for a moment.

    Parameters
    ----------
    first, last
        First layer of each run, and the layer after its last.

    Returns
    -------
    ndarray
        Of the shape that ``first`` and ``last`` have together.
    """
    upto = np.concatenate([[0.0], np.cumsum(tables.parameter_mb[kinds(problem)])])
    parameters = np.maximum(upto[last] - upto[first], 0.0)
    room = _roomy_limits(problem)[stage] - problem.constant_per_stage_mb[stage]
    room -= float(tables.fixed.parameter_mb[stage])
    share = np.full(parameters.shape, np.inf)
    live = problem_rows(problem)[stage]
    besides = live.totals(np.zeros(1), np.array([again_mb]))
    for lives, mb in zip(live.rows[:, 0], besides, strict=True):
        share = np.minimum(share, (room - parameters - mb) / lives)
    return np.asarray(share - tables.fixed.activation_mb[stage])


def _runs(each: Floats) -> Floats:
    """Sum of the layers i..j-1 of every run, 0 for none; shape (N + 1, N + 1)."""
    upto = np.concatenate([[0.0], np.cumsum(each)])
    return np.asarray(np.maximum(upto[None, :] - upto[:, None], 0.0))


def _roomy_limits(problem: Problem) -> Floats:
    """
    Limits with what fits by rounding alone, as the simulator has it; shape (S,).

    It is a share of the limit, which may be much more than one of what a run is left of it.
    """
    return np.multiply(problem.limit_per_stage_mb, 1 + _ROUNDING)


def lower_hull(memory_mb: Floats, time_ms: Floats) -> list[tuple[float, float]]:
    """
    Corners of the lower convex hull, from the fastest point to the one with least memory.

    Examples
    --------
    >>> lower_hull(np.array([10.0, 6.0, 5.0, 1.0]), np.array([1.0, 4.0, 2.0, 5.0]))
    [(10.0, 1.0), (5.0, 2.0), (1.0, 5.0)]
    """
    points = sorted(zip(time_ms.tolist(), memory_mb.tolist(), strict=True))
    hull: list[tuple[float, float]] = []
    for time, memory in points:
        if hull and memory >= hull[-1][0]:
            continue
        while len(hull) >= 2 and _rate(hull[-2], hull[-1]) >= _rate(hull[-1], (memory, time)):
            hull.pop()
        hull.append((memory, time))
    return hull


def _rate(before: tuple[float, float], after: tuple[float, float]) -> float:
    """Milliseconds paid for a MB saved."""
    return (after[1] - before[1]) / (before[0] - after[0])
