"""
Random problems and random valid plans, of every schedule that takes their sizes.

``random_problem`` and ``random_plan`` draw from a seeded generator, for loops
over a thousand cases; ``problems`` and ``plans`` are the same for hypothesis.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
from hypothesis import strategies as st

from sapp_ppb.costs import Layer, LayerKind, LayerStrategy, Model, Recompute, layer_from_times
from sapp_ppb.costs.per_stage import PerStage
from sapp_ppb.errors import ScheduleError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import (
    Flavour,
    MicroBatchGroup,
    OrderFile,
    P2PMode,
    Schedule,
    ScheduleName,
    build_schedule,
    parse_csv,
)
from sapp_ppb.simulator.graph import graph_of

MOST_STAGES, MOST_CHUNKS, MOST_MICRO_BATCHES = 6, 4, 20
# Schedules of whole backwards and whole micro-batches, on a loop.
UNSPLIT = (
    ScheduleName.GPIPE,
    ScheduleName.ONE_F_ONE_B,
    ScheduleName.INTERLEAVED,
    ScheduleName.INTERLEAVED_LESS_MEMORY,
)


def random_layer(rng: Random, name: str, kind: LayerKind, count: int = 1) -> Layer:
    """Layer with any mix of recompute types; HEAD and TAIL with and without activation memory."""
    types = [r for r in Recompute if rng.random() < 0.6] if kind is LayerKind.BODY else [Recompute.NONE]
    none_mb = rng.uniform(1, 100)
    # More recompute keeps less: the shares descend with the type.
    shares = sorted((rng.uniform(0.02, 1) for _ in types), reverse=True)
    activation = {r: share * none_mb for r, share in zip(types, shares, strict=True)}
    # Where coefficients are given they ascend, as more is done again.
    given = rng.random() < 0.3
    coefficients = dict(zip(Recompute, sorted(rng.uniform(0, 0.6) for _ in Recompute), strict=True))
    return layer_from_times(
        name=name,
        kind=kind,
        count=count,
        forward_ms=rng.uniform(0.5, 20),
        backward_ms=rng.choice([None, rng.uniform(20, 40)]),
        coefficients=coefficients if given else None,
        parameter_mb=rng.choice([0.0, rng.uniform(1, 500)]),
        activation_mb=activation if rng.random() < 0.8 else None,
    )


def random_model(rng: Random, bodies: int, *, strategies: bool = False) -> Model:
    """
    Model of 1 to 3 BODY kinds that make ``bodies`` layers, with or without HEAD and TAIL.

    With ``strategies`` about a third of the models have some beside recomputation.
    """
    kinds = min(rng.randint(1, 3), bodies)
    bounds = [0, *sorted(rng.sample(range(1, bodies), kinds - 1)), bodies]
    layers = [
        random_layer(rng, f"body{index}", LayerKind.BODY, high - low)
        for index, (low, high) in enumerate(pairwise(bounds))
    ]
    for kind in (LayerKind.HEAD, LayerKind.TAIL):
        for index in range(rng.choice([0, 1, 1, 2])):
            layer = random_layer(rng, f"{kind.value}{index}", kind, rng.randint(1, 2))
            layers.insert(rng.randint(0, len(layers)), layer)
    if strategies:
        layers = with_strategies(layers, beside_types=False)
    return Model(name="random", layers=tuple(layers), constant_memory_mb=rng.choice([0.0, 50.0]))


def with_strategies(layers: Sequence[Layer], *, beside_types: bool, share: float = 1 / 3) -> list[Layer]:
    """
    Give a share of the models one or two strategies, each to some BODY layers.

    Which, and what they cost, follows from the layers alone, so that everything else is
    drawn as it was before there were strategies.

    Parameters
    ----------
    beside_types
        Leave layers alone that have no recompute type with a memory, so that each can do
        without strategies.
    share
        Of the models.
    """
    rng = Random(repr([(layer.name, layer.forward_ms, layer.activation_mb) for layer in layers]))
    names = rng.sample(["swap", "offload", "away to the host"], rng.randint(1, 2))
    if rng.random() < 1 - share:
        return list(layers)
    return [
        layer.offering([_strategy(rng, layer, name) for name in names if rng.random() < 0.7])
        if layer.kind is LayerKind.BODY and (not beside_types or any(layer.activation_mb))
        else layer
        for layer in layers
    ]


def _strategy(rng: Random, layer: Layer, name: str) -> LayerStrategy:
    """Draw a strategy that is often of use: it adds less than a forward, and holds less than NONE does."""
    base = layer.backward_ms[Recompute.NONE]
    most_mb = max(mb or 0.0 for mb in layer.activation_mb) or 100.0
    added = rng.choice(
        [0.0, layer.forward_ms / 4, layer.forward_ms * rng.uniform(0.0, 0.6), rng.uniform(0, 30)]
    )
    held = rng.choice([0.0, 0.25, rng.random(), rng.uniform(0.9, 1.2)])
    return LayerStrategy(name=name, backward_ms=base + added, activation_mb=held * most_mb)


def random_schedule(
    rng: Random,
    stages: int,
    chunks: int,
    micro_batches: int,
    names: Sequence[ScheduleName] = UNSPLIT,
) -> tuple[ScheduleName, MicroBatchGroup]:
    """One of the schedules and micro-batch groups that accept the sizes."""
    groups: list[MicroBatchGroup] = [None, None, "remainder-first", *range(1, micro_batches + 1)]
    while True:
        # All refused choices are cheap to try again; one of gpipe and interleaved always accepts.
        name, group = rng.choice(names), rng.choice(groups)
        try:
            build_schedule(name, stages, chunks, micro_batches, group)
        except ScheduleError:
            continue
        return name, group


def random_problem(
    rng: Random,
    *,
    stages: int | None = None,
    chunks: int | None = None,
    micro_batches: int | None = None,
    strategies: bool = False,
) -> Problem:
    """Problem of any sizes up to the largest here; what is given is kept."""
    stages = stages or rng.randint(1, MOST_STAGES)
    chunks = chunks or rng.randint(1, MOST_CHUNKS)
    # Small steps are faster to time and find as much, so large ones are fewer.
    micro_batches = micro_batches or rng.randint(1, rng.choice([2, 4, 6, MOST_MICRO_BATCHES]))
    least, cells = rng.choice([0, 1, 1]), stages * chunks
    model = random_model(rng, max(1, least * cells) + rng.randint(0, 2 * cells), strategies=strategies)
    name, group = random_schedule(rng, stages, chunks, micro_batches)
    every_none = all(Recompute.NONE in layer.considered for layer in model.bodies)
    sends: list[PerStage] = [0.0, rng.uniform(0, 10), _list(rng, stages, 0, 10)]
    return Problem(
        model=model,
        stages=stages,
        interleave=chunks,
        micro_batches=micro_batches,
        schedule=name,
        micro_batch_group=group,
        memory_limit_mb=rng.choice([None, rng.uniform(1e3, 1e5), _list(rng, stages, 1e3, 1e5)]),
        constant_memory_mb=rng.choice([None, rng.uniform(0, 100), _list(rng, stages, 0, 100)]),
        p2p_ms=rng.choice(sends),
        min_layers_per_cell=least,
        recompute_working_set=every_none and rng.random() < 0.5,
    )


def with_overheads(rng: Random, problem: Problem) -> Problem:
    """Give a problem's model an overhead of every op, a time of every hop, or both."""
    overhead_ms, hop_ms = rng.choice([(1, 0), (0, 1), (1, 1)])
    model = replace(
        problem.model,
        op_overhead_ms=overhead_ms * rng.choice([1.0, rng.uniform(0, 10)]),
        hop_ms=hop_ms * rng.choice([1.0, rng.uniform(0, 10)]),
    )
    return replace(problem, model=model)


def with_special_layers(rng: Random, problem: Problem) -> Problem:
    """Give some HEADs and TAILs memory for a moment, and tie some of them to one another."""
    layers = [
        replace(layer, transient_mb=rng.choice([0.0, 1.0, 10.0]) * rng.choice([10.0, rng.uniform(1, 60)]))
        if layer.kind is not LayerKind.BODY
        else layer
        for layer in problem.model.layers
    ]
    fixed = [at for at, layer in enumerate(layers) if layer.kind is not LayerKind.BODY]
    tied = rng.sample(fixed, rng.choice([0, len(fixed), len(fixed)]))
    for at in tied[1:]:  # only layers that stand alone can share
        layers[tied[0]] = replace(layers[tied[0]], count=1)
        layers[at] = replace(layers[at], count=1, tied_to=layers[tied[0]].name)
    return replace(problem, model=replace(problem.model, layers=tuple(layers)))


def with_devices(rng: Random, problem: Problem, *, both: bool = False) -> Problem:
    """Give a problem's stages speeds, something to do after their last op, or both, as ``both`` wants."""
    two, any_ = (rng.choice([1.0, 0.5]) for _ in range(problem.stages)), rng.uniform(0.4, 1.5)
    speeds: list[PerStage] = [tuple(two), any_, _list(rng, problem.stages, 0.3, 2)]
    extras: list[PerStage] = [rng.uniform(0, 50), _list(rng, problem.stages, 0, 50)]
    extras.append(tuple(rng.choice([0.0, 30.0]) for _ in range(problem.stages)))
    speed, extra = rng.choice(speeds), rng.choice(extras)
    with_speed, with_extra = rng.choice([(True, False), (False, True), (True, True)])
    if both:
        speed, with_speed, with_extra = rng.choice([speeds[0], speeds[2]]), True, True
    problem = replace(problem, stage_speed=speed) if with_speed else problem
    return replace(problem, step_extra_ms=extra) if with_extra else problem


def random_mode(rng: Random, problem: Problem) -> Problem:
    """
    Put a problem under any schedule that takes its sizes, and run it in any way.

    Layers get times for their weight gradients; messages may be held back where that runs.
    """
    names = [n for n in ScheduleName if accepts(n, problem)]
    # Few sizes have pairs, so those that do have them often.
    name = rng.choice([*names, *[n for n in names if n is ScheduleName.DUALPIPEV] * 10])
    order = random_file(rng, problem) if name is ScheduleName.CUSTOM else None
    chunks = parse_csv(order.text).sequence_chunks if order else rng.randint(2, 4) if name == "seq1f1b" else 1
    changed = replace(
        problem,
        model=replace(problem.model, layers=tuple(with_weights(rng, x) for x in problem.model.layers)),
        schedule=name,
        micro_batch_group=None,
        order_file=order,
        sequence_chunks=chunks,
        flavour=rng.choice([None, Flavour.TORCH]),
    )
    if changed.order.pairs:
        changed = replace(changed, overlap_factor=rng.choice([0.0, rng.random(), 1.0]))
    held = replace(changed, p2p_mode=P2PMode.BLOCKING)
    return held if rng.random() < 0.5 and runs(held) else changed


def accepts(name: ScheduleName, problem: Problem) -> bool:
    """Whether a schedule takes a problem's sizes; a custom order of them can always be written."""
    if name is ScheduleName.CUSTOM:
        return True
    k = 2 if name is ScheduleName.SEQ1F1B else 1
    sizes = (problem.stages, problem.interleave, problem.micro_batches)
    try:
        build_schedule(name, *sizes, sequence_chunks=k)
        return k == 1 or all(build_schedule(name, *sizes, sequence_chunks=k) for k in (3, 4))
    except ScheduleError:
        return False


def runs(problem: Problem) -> bool:
    """Whether a problem's order runs with its messages."""
    try:
        graph_of(problem)
    except ScheduleError:
        return False
    return True


def random_file(rng: Random, problem: Problem) -> OrderFile:
    """Write the order of another schedule as a custom one, with idle entries here and there."""
    names = [n for n in ScheduleName if n is not ScheduleName.CUSTOM and accepts(n, problem)]
    name = rng.choice(names)
    k = rng.randint(2, 4) if name is ScheduleName.SEQ1F1B else 1
    sizes = (problem.stages, problem.interleave, problem.micro_batches)
    text = build_schedule(name, *sizes, sequence_chunks=k).to_csv()
    return OrderFile(
        path="order.csv", text="".join(c + "," * (c == "," and rng.random() < 0.1) for c in text)
    )


def with_weights(rng: Random, layer: Layer) -> Layer:
    """Layer whose weight gradients have, or have not, a time of their own."""
    least = min(layer.backward_ms[r] for r in layer.considered)
    return replace(layer, weight_grad_ms=rng.choice([None, rng.uniform(0, least)]))


def random_plan(rng: Random, problem: Problem) -> Plan:
    """Cut the chain of BODY layers anywhere that the problem allows, and recompute at random."""
    layers = [index for index, layer in enumerate(problem.model.bodies) for _ in range(layer.count)]
    sizes = [problem.least_layers(cell) for cell in range(problem.cells)]
    for _ in range(len(layers) - sum(sizes)):
        sizes[rng.randrange(problem.cells)] += 1
    counts = np.zeros((len(problem.model.bodies), len(problem.model.types), problem.cells), dtype=np.int64)
    chain = iter(layers)
    for cell, size in enumerate(sizes):
        for _ in range(size):
            layer = next(chain)
            counts[layer, rng.choice(problem.considered(problem.model.bodies[layer])), cell] += 1
    return Plan(problem=problem, counts=counts)


def with_order(problem: Problem, order: Schedule) -> Problem:
    """Have a problem run an order that no generator makes; changes the problem given."""
    assert (order.stages, order.chunks, order.micro_batches) == (
        problem.stages,
        problem.interleave,
        problem.micro_batches,
    )
    vars(problem)["order"] = order
    return problem


@st.composite
def problems(draw, *, chunks: int | None = None, most_micro_batches: int = MOST_MICRO_BATCHES) -> Problem:
    """Draw a problem: hypothesis chooses, and shrinks, the sizes; a seed chooses the rest."""
    return random_problem(
        Random(draw(st.integers(0, 2**32 - 1))),
        stages=draw(st.integers(1, MOST_STAGES)),
        chunks=chunks or draw(st.integers(1, MOST_CHUNKS)),
        micro_batches=draw(st.integers(1, most_micro_batches)),
        strategies=True,
    )


@st.composite
def plans(draw, *, chunks: int | None = None, most_micro_batches: int = MOST_MICRO_BATCHES) -> Plan:
    """Draw a valid plan of a drawn problem."""
    problem = draw(problems(chunks=chunks, most_micro_batches=most_micro_batches))
    return random_plan(Random(draw(st.integers(0, 2**32 - 1))), problem)


@st.composite
def plans_in_any_mode(draw) -> Plan:
    """Draw a valid plan under any schedule, run in any way."""
    problem = draw(problems())
    rng = Random(draw(st.integers(0, 2**32 - 1)))
    return random_plan(rng, random_mode(rng, problem))


def _list(rng: Random, length: int, low: float, high: float) -> tuple[float, ...]:
    return tuple(rng.uniform(low, high) for _ in range(length))
