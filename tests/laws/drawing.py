"""
Random problems of every size that people plan, each made of its number alone.

A number is a problem, its time limit and its seed, on every machine: what breaks a law is told
by its number.  Most problems are small enough for all their plans to be listed.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Any

from sapp_ppb.costs import Layer, LayerKind, Model
from sapp_ppb.costs.per_stage import PerStage
from sapp_ppb.errors import InputError, ScheduleError
from sapp_ppb.fix import Fix
from sapp_ppb.plan import Plan
from sapp_ppb.planner.planning import check_fix, type_sets
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets import TARGETS, target_named
from tests.laws.units import with_memory, with_times
from tests.planner.brute_force import small_problem
from tests.reference import reference
from tests.strategies import (
    random_layer,
    random_mode,
    random_plan,
    random_schedule,
    with_devices,
    with_overheads,
    with_special_layers,
    with_strategies,
)

MOST_STAGES, MOST_CHUNKS, MOST_MICRO_BATCHES, MOST_KINDS = 16, 4, 64, 4
SIZES = ("small", "middle", "large")
# Plans of a small problem: all are listed, and those that fit are looked for by the slow reference.
MOST_PLANS = 1_500
# Schedules of which the sizes choose; the others of all sizes come by ``random_mode``.
_LOOPS = (
    ScheduleName.GPIPE,
    ScheduleName.ONE_F_ONE_B,
    ScheduleName.INTERLEAVED,
    ScheduleName.INTERLEAVED_LESS_MEMORY,
    ScheduleName.LOOPED_BFS,
)
# Ops above which a problem counts as large.
_LARGE = 1_000


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """
    A problem and how it is planned.

    Attributes
    ----------
    number
        What it was made of.
    size
        ``small`` where all plans can be listed, else ``middle`` or ``large``.
    seconds, options
        Time limit and options of ``plan_pipeline``.
    """

    number: int
    size: str
    problem: Problem
    seconds: float
    options: Mapping[str, Any]

    @property
    def reorders(self) -> bool:
        """Whether the planner chooses which device does the work of which stage."""
        return bool(self.options["reorder_stages"])


def drawn(number: int) -> Drawn:
    """Make the problem of a number; the same at any time."""
    rng = Random(f"problem {number}")
    is_small = rng.random() < 0.6
    problem = _in_other_units(rng, _small(rng) if is_small else _any_size(rng))
    ops = sum(len(row) for row in problem.order.rows)
    differ = isinstance(problem.stage_speed, tuple) and problem.fix is None and problem.stages <= 4
    return Drawn(
        number=number,
        size="small" if is_small else "middle" if ops < _LARGE else "large",
        problem=problem,
        # Long enough for a search and some branching; the work is sized to it, and some takes longer.
        seconds=rng.choice([0.01, 0.01, 0.01, 0.02, 0.02, 0.02, 0.05, 0.05, 0.2]),
        options={
            "seed": rng.randrange(2**32),
            "reorder_stages": differ and rng.random() < 0.3,
            "threads": rng.choice([1] * 15 + [3]),
            "gap": rng.choice([0.0] * 15 + [0.05]),
        },
    )


def _in_other_units(rng: Random, problem: Problem) -> Problem:
    """Give a fifth of the problems times and memory of other orders of magnitude, as of other units."""
    if rng.random() >= 0.2:
        return problem
    share = rng.choice([1e-4, 1e-2, 1e3, 1e5])
    return with_memory(with_times(problem, rng.choice([1e-4, 1e-2, 1e3, 1e5])), share)


def _small(rng: Random) -> Problem:
    """Problem of few plans; every fourth for MindFormers, whose rules the list of all plans knows."""
    while True:
        kind = rng.choice([{}, {"devices": True}, {"together": True}])
        target = rng.choice([None, None, None, "mindformers"])
        problem = small_problem(rng, most_plans=MOST_PLANS, target=target, runs=True, **kind)
        restricted = _restricted(rng, problem)
        if restricted is not None:
            return restricted


def _any_size(rng: Random) -> Problem:
    """Problem of any size, under any schedule that takes it, with everything that a problem can have."""
    while True:
        try:
            problem = _special(rng, _plain(rng))
        except InputError:  # a backward that is too short to be split, say
            continue
        problem = _limited(rng, problem)
        restricted = _restricted(rng, problem)
        if restricted is not None:
            return _for_a_target(rng, restricted)


def _plain(rng: Random) -> Problem:
    """Sizes, a model and a schedule that takes whole micro-batches."""
    stages, chunks = _size(rng, MOST_STAGES), rng.choice([1, 1, 2, 2, 3, MOST_CHUNKS])
    micro_batches, least = _size(rng, MOST_MICRO_BATCHES), rng.choice([0, 1, 1, 1])
    cells = stages * chunks
    bodies = max(1, least * cells) + rng.randint(0, rng.choice([4, cells, 3 * cells]))
    names = [name for name in _LOOPS if chunks > 1 or name not in _LOOPS[2:]]
    name, group = random_schedule(rng, stages, chunks, micro_batches, names)
    hops: list[PerStage] = [0.0, 0.0, rng.uniform(0, 5), tuple(rng.uniform(0, 5) for _ in range(stages))]
    return Problem(
        model=_model(rng, bodies),
        stages=stages,
        interleave=chunks,
        micro_batches=micro_batches,
        schedule=name,
        micro_batch_group=group,
        constant_memory_mb=rng.choice([None, 7.0, tuple(rng.uniform(0, 100) for _ in range(stages))]),
        p2p_ms=rng.choice(hops),
        min_layers_per_cell=least,
    )


def _size(rng: Random, most: int) -> int:
    """Draw 1 to a largest number: small ones as often as large ones."""
    return min(most, int(math.exp(rng.uniform(0.0, math.log(most + 1)))))


def _model(rng: Random, bodies: int) -> Model:
    """Chain of one to four kinds, even or uneven, with and without HEAD and TAIL."""
    kinds = min(rng.randint(1, MOST_KINDS), bodies)
    bounds = [0, *sorted(rng.sample(range(1, bodies), kinds - 1)), bodies]
    layers = [
        random_layer(rng, f"body{kind}", LayerKind.BODY, high - low)
        for kind, (low, high) in enumerate(pairwise(bounds))
    ]
    if rng.random() < 0.3:  # whole numbers tie, and fill a limit to the last bit
        layers = [_rounded(layer) for layer in layers]
    for kind, place in ((LayerKind.HEAD, 0), (LayerKind.TAIL, len(layers))):
        if rng.random() < 0.6:
            layers.insert(place, random_layer(rng, kind.value, kind, rng.randint(1, 2)))
    return Model(name="drawn", layers=tuple(with_strategies(layers, beside_types=True)))


def _rounded(layer: Layer) -> Layer:
    return replace(
        layer,
        forward_ms=math.ceil(layer.forward_ms),
        backward_ms=tuple(math.ceil(ms) for ms in layer.backward_ms),
        parameter_mb=math.ceil(layer.parameter_mb),
        activation_mb=tuple(None if mb is None else math.ceil(mb) for mb in layer.activation_mb),
    )


def _special(rng: Random, problem: Problem) -> Problem:
    """Give shares of the problems what others lack."""
    shares: list[tuple[float, Callable[[Random, Problem], Problem]]] = [
        (0.5, random_mode),
        (0.3, with_special_layers),
        (0.25, with_overheads),
        (0.35, with_devices),
    ]
    for share, change in shares:
        if rng.random() < share:
            problem = change(rng, problem)
    return problem


def _limited(rng: Random, problem: Problem) -> Problem:
    """Give a problem limits, from hopeless to none, around what two of its plans hold."""
    peaks = [max(pair) for pair in zip(*(_peaks(rng, problem) for _ in range(2)), strict=True)]
    factor = rng.choice([0.4, 0.8, 0.9, 1.0, 1.0, rng.uniform(0.7, 1.6), 2.0])
    limits: list[PerStage | None] = [
        None,
        max(peaks) * factor,
        max(peaks) * factor,
        max(peaks) * factor,
        tuple(peak * factor for peak in peaks),
        tuple(peak * rng.uniform(0.7, 1.5) for peak in peaks),
    ]
    limit = rng.choice(limits)
    margins: list[float | str] = [0.0, 0.0, 0.0, "5%" if limit is not None else 0.0]
    return replace(problem, memory_limit_mb=limit, memory_margin=rng.choice(margins))


def _peaks(rng: Random, problem: Problem) -> tuple[float, ...]:
    return reference(random_plan(rng, problem)).peak_mb


def _restricted(rng: Random, problem: Problem) -> Problem | None:
    """Add restrictions to about half of the problems; None where one can not have them."""
    changes: dict[str, object] = {}
    if rng.random() < 0.2:
        changes["recompute_working_set"] = True
    if rng.random() < 0.15:
        changes["max_recompute_types"] = rng.randint(0, 2)
    if rng.random() < 0.15:
        types = problem.model.types
        changes["recompute"] = tuple(rng.sample(types, rng.randint(1, len(types))))
    try:
        problem = replace(problem, **changes)  # type: ignore[arg-type]
        type_sets(problem)  # refuses a number of types with which some layer has none
        if rng.random() < 0.1:
            problem = replace(problem, fix=_fix(rng, random_plan(rng, problem)))
            check_fix(problem)  # refuses what the target can not say
        return None if _is_refused(problem) else problem
    except InputError:
        return None


def _is_refused(problem: Problem) -> bool:
    """Whether what is fixed leaves a cell empty that the target wants filled, say."""
    return problem.target is not None and bool(target_named(problem.target).refuses(problem))


def _fix(rng: Random, plan: Plan) -> Fix:
    return rng.choice([plan.split, plan.recompute])


def _for_a_target(rng: Random, problem: Problem) -> Problem:
    """Plan some problems for a framework that has words for their schedule."""
    if rng.random() >= 0.15:
        return problem
    for name in rng.sample(TARGETS, len(TARGETS)):
        try:
            said = replace(problem, target=name)
            if not target_named(name).refuses(said) and target_named(name).ways(said):
                check_fix(said)
                return said
        except (InputError, ScheduleError):
            continue
    return problem
