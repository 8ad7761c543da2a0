"""The simulator against the slow one: every start, the makespan and every peak."""

import re
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Flavour, OpKind, OrderFile, P2PMode, Schedule, ScheduleName, parse_csv
from sapp_ppb.simulator import Timeline, simulate
from sapp_ppb.simulator.price import price
from tests.reference import reference
from tests.strategies import (
    MOST_CHUNKS,
    MOST_STAGES,
    UNSPLIT,
    random_layer,
    random_mode,
    random_plan,
    random_problem,
    with_devices,
    with_order,
    with_overheads,
    with_special_layers,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "schedules" / "torch"
SPLIT = sorted([*GOLDEN.glob("*ZeroBubble_*.csv")])
CASES, BATCHES = 1000, 10


def assert_same(timeline: Timeline, plan: Plan) -> None:
    """Compare makespan, starts, ends and peaks to 1e-9 relative to the makespan or peak."""
    slow = reference(plan)
    tolerance = 1e-9 * slow.makespan_ms
    assert timeline.makespan_ms == pytest.approx(slow.makespan_ms, rel=1e-9)
    assert timeline.step_ms == pytest.approx(slow.step_ms, rel=1e-9)
    ops = [op for row in plan.problem.order.rows for op in row]
    starts, ends = np.concatenate(timeline.start_ms), np.concatenate(timeline.end_ms)
    assert np.abs(starts - [slow.start_ms[op] for op in ops]).max() <= tolerance
    assert np.abs(ends - [slow.end_ms[op] for op in ops]).max() <= tolerance
    assert timeline.peak_memory_mb == pytest.approx(slow.peak_mb, rel=1e-9)
    for row, peak, held in zip(plan.problem.order.rows, timeline.peaks, slow.held_mb, strict=True):
        assert held[row.index(peak.op)] == pytest.approx(max(held), rel=1e-9)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_thousand_random_plans_take_what_the_slow_simulator_says(batch: int) -> None:
    for seed in range(batch, CASES, BATCHES):
        rng = Random(seed)
        plan = random_plan(rng, random_problem(rng))
        assert_same(simulate(plan), plan)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_thousand_random_plans_of_every_schedule_take_what_the_slow_simulator_says(batch: int) -> None:
    for seed in range(batch, CASES, BATCHES):
        rng = Random(seed)
        plan = random_plan(rng, random_mode(rng, random_problem(rng)))
        assert_same(simulate(plan), plan)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_thousand_random_plans_with_overheads_take_what_the_slow_simulator_says(batch: int) -> None:
    for seed in range(batch, CASES, BATCHES):
        rng = Random(seed)
        plan = random_plan(rng, with_overheads(rng, random_mode(rng, random_problem(rng))))
        assert_same(simulate(plan), plan)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_thousand_random_plans_of_special_layers_hold_what_the_slow_simulator_says(batch: int) -> None:
    for seed in range(batch, CASES, BATCHES):
        rng = Random(seed)
        plan = random_plan(rng, with_special_layers(rng, random_mode(rng, random_problem(rng))))
        assert_same(simulate(plan), plan)


def test_the_random_special_layers_are_of_every_kind() -> None:
    # Guards the test above: peaks at a transient in F and in B, ties on one stage and between two.
    seen: set[str] = set()
    for seed in range(CASES // 2):
        rng = Random(seed)
        problem = with_special_layers(rng, random_mode(rng, random_problem(rng)))
        plan = random_plan(rng, problem)
        layers = {layer.name: layer for layer in problem.model.layers}
        for layer in problem.model.layers:
            if layer.tied_to is not None:
                both = {layer.kind, layers[layer.tied_to].kind}
                one_stage = 0 in problem.cells_of(0) and problem.cells - 1 in problem.cells_of(0)
                seen.add(f"tie of {len(both)} on {'one stage' if one_stage else 'two'}")
        for stage, peak in enumerate(simulate(plan).peaks):
            needs_mb = max((layer.transient_mb for layer in problem.model.tails), default=0.0)
            if needs_mb and peak.op.cell == problem.cells - 1 and problem.overlap_factor == 0:
                seen.add(f"peak in {peak.op.kind.name}")
            if problem.overlap_factor > 0 and problem.order.pairs_of(stage):
                seen.add("pairs")
    assert seen >= {f"tie of {n} on {places}" for n in (1, 2) for places in ("one stage", "two")}
    assert seen >= {"peak in F", "peak in B", "pairs"}


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_thousand_random_plans_on_unequal_devices_take_what_the_slow_simulator_says(batch: int) -> None:
    for seed in range(batch, CASES, BATCHES):
        rng = Random(seed)
        problem = with_devices(rng, random_mode(rng, random_problem(rng)))
        plan = random_plan(rng, with_overheads(rng, problem) if rng.random() < 0.5 else problem)
        assert_same(simulate(plan), plan)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_thousand_random_plans_with_everything_at_once_are_what_the_slow_simulator_says(batch: int) -> None:
    # Strategies, some with a working set, special layers, unequal devices and what comes after the last op.
    for seed in range(batch, CASES, BATCHES):
        rng = Random(f"together {seed}")
        problem = random_mode(rng, random_problem(rng, strategies=True))
        problem = with_devices(rng, with_special_layers(rng, problem))
        problem = with_overheads(rng, problem) if rng.random() < 0.5 else problem
        plan = random_plan(rng, problem)
        assert_same(simulate(plan), plan)


def test_the_random_modes_are_of_every_kind() -> None:
    # Guards the test above, as the next one does for problems.
    problems = []
    for seed in range(CASES // 2):
        rng = Random(seed)
        problems.append(random_mode(rng, random_problem(rng)))
    assert {problem.schedule_name for problem in problems} == set(ScheduleName)
    assert {problem.sequence_chunks for problem in problems} == {1, 2, 3, 4}
    assert {problem.flavour for problem in problems} == {None, Flavour.TORCH}
    assert any(problem.p2p_mode is P2PMode.BLOCKING and problem.interleave > 1 for problem in problems)
    factors = {problem.overlap_factor for problem in problems if problem.order.pairs}
    assert factors > {0.0, 1.0}


def test_the_random_problems_are_of_every_kind() -> None:
    # Guards the test above: a generator that stopped making one kind would hide it.
    problems = [random_problem(Random(seed)) for seed in range(CASES // 4)]
    assert {problem.schedule_name for problem in problems} == set(UNSPLIT)
    assert {type(problem.micro_batch_group) for problem in problems} == {type(None), int, str}
    assert {problem.stages for problem in problems} == set(range(1, MOST_STAGES + 1))
    assert {problem.interleave for problem in problems} == set(range(1, MOST_CHUNKS + 1))
    assert {len(problem.model.bodies) for problem in problems} == {1, 2, 3}
    assert {problem.min_layers_per_cell for problem in problems} == {0, 1}
    assert {type(problem.p2p_ms) for problem in problems} == {float, tuple}
    # The wrap itself, with its own time.
    assert any(problem.interleave > 1 and isinstance(problem.p2p_ms, tuple) for problem in problems)


def sizes(path: Path) -> tuple[int, int, int]:
    found = re.search(r"_pp(\d+)_v(\d+)_m(\d+)", path.stem)
    assert found
    stages, chunks, micro_batches = (int(text) for text in found.groups())
    return stages, chunks, micro_batches


def golden_order(path: Path) -> Schedule:
    return parse_csv(path.read_text())


@pytest.mark.parametrize("path", SPLIT, ids=lambda path: path.stem)
def test_split_backwards_take_what_the_slow_simulator_says(path: Path) -> None:
    stages, chunks, micro_batches = sizes(path)
    order = golden_order(path)
    assert {op.kind for row in order.rows for op in row} == {OpKind.F, OpKind.I, OpKind.W}
    for seed in range(5):
        rng = Random(seed)
        cells = stages * chunks
        model = Model(
            name="split",
            layers=(
                random_layer(rng, "head", LayerKind.HEAD),
                random_layer(rng, "body", LayerKind.BODY, 3 * cells),
                random_layer(rng, "tail", LayerKind.TAIL),
            ),
        )
        problem = Problem(
            model=model,
            stages=stages,
            interleave=chunks,
            micro_batches=micro_batches,
            micro_batch_group=micro_batches if chunks > 1 and micro_batches > stages else None,
            p2p_ms=tuple(rng.uniform(0, 5) for _ in range(stages)),
        )
        plan = random_plan(rng, with_order(problem, order))
        assert_same(simulate(plan), plan)


def test_a_split_backward_does_the_weights_in_the_forwards_time_and_the_recompute_with_the_inputs() -> None:
    # forward 4, backward 2 x 4 = 8, with FULL (1 + 0.5) x 8 = 12: W = 4, I = 12 - 4 = 8.
    # One stage, one micro-batch: F 0-4, I 4-12, W 12-16.
    problem = with_order(single_stage_problem(backward_ms=None), parse_csv("0F0,0I0,0W0"))
    counts = np.zeros((1, 5, 1), dtype=int)
    counts[0, Recompute.FULL, 0] = 1
    plan = Plan(problem=problem, counts=counts)
    timeline = simulate(plan)
    assert [times.tolist() for times in timeline.start_ms] == [[0.0, 4.0, 12.0]]
    assert timeline.makespan_ms == 16.0
    assert price(plan).price_list(problem).tolist() == [4.0, 12.0, 8.0, 4.0]  # F, B, I, W
    assert_same(timeline, plan)


def test_a_backward_shorter_than_its_forward_can_not_be_split() -> None:
    # forward 4 and backward 3 would leave I = 3 - 4 < 0.
    problem = single_stage_problem(backward_ms=3.0)
    words = (
        r"custom splits the backward, and layer 'Dec' does not let it: weight_grad_ms must be at most the "
        r"backward time with none, 3 ms \(got 4 ms, the forward time\); give weight_grad_time"
    )
    with pytest.raises(InputError, match=words):
        replace(
            problem,
            schedule=ScheduleName.CUSTOM,
            order_file=OrderFile(path="order.csv", text="0F0,0I0,0W0"),
        )


def single_stage_problem(backward_ms: float | None) -> Problem:
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        forward_ms=4,
        backward_ms=backward_ms,
        activation_mb={Recompute.NONE: 9, Recompute.FULL: 5},
    )
    return Problem(model=Model(name="one", layers=(body,)), stages=1, micro_batches=1)
