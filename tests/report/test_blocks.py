"""Blocks and messages against the hand-timed plan, and against the slow simulator."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import find, given

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.report import messages, timeline_blocks
from sapp_ppb.schedules import (
    Flavour,
    Op,
    OpKind,
    OrderFile,
    P2PMode,
    Placement,
    Schedule,
    ScheduleName,
    parse_csv,
)
from sapp_ppb.simulator import simulate
from tests.reference import held_back, reference, stage_of
from tests.report.conftest import plans
from tests.strategies import random_plan, random_problem, with_order

SPLIT = Path(__file__).parents[1] / "golden" / "schedules" / "torch"


def names(blocks, places=slice(None)):
    every = (blocks.kind, blocks.cell, blocks.micro_batch, blocks.sequence_chunk)
    columns = [column[places].tolist() for column in every]
    return [Op(OpKind(kind), *where) for kind, *where in zip(*columns, strict=True)]


def test_blocks_are_the_ops_of_the_drawing(timeline):
    blocks = timeline_blocks(timeline)
    stage_1 = np.flatnonzero(blocks.stage == 1)
    assert [str(op) for op in names(blocks, stage_1)] == ["1F0", "1F1", "1B0", "1F2", "1B1", "1B2"]
    assert blocks.start_ms[stage_1].tolist() == [1, 3, 6, 11, 13, 18]
    assert blocks.end_ms[stage_1].tolist() == [3, 5, 11, 13, 18, 23]


def test_the_recompute_part_is_what_a_backward_takes_beyond_one_without(timeline):
    # Stage 1 takes 2 + 3 with one layer in full, 2 + 2 without: 1 ms in each of its backwards.
    blocks = timeline_blocks(timeline)
    again = [
        (str(op), ms) for op, ms in zip(names(blocks), blocks.recompute_ms.tolist(), strict=True) if ms > 0
    ]
    assert again == [("1B0", 1.0), ("1B1", 1.0), ("1B2", 1.0)]


def test_a_recomputed_layer_that_is_said_to_be_faster_has_no_recompute_part():
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=1,
        forward_ms=1,
        explicit={Recompute.FULL: 1.5},
        activation_mb={Recompute.FULL: 1},
    )
    problem = Problem(model=Model(name="m", layers=(body,)), stages=1, micro_batches=1)
    blocks = timeline_blocks(simulate(plan_from_matrices(problem, {"Dec": {"full": [[1]]}})))
    assert blocks.end_ms.tolist() == [1.0, 2.5]  # 1 + 1.5
    assert blocks.recompute_ms.tolist() == [0.0, 0.0]


@given(plans())
def test_every_op_is_a_block_where_and_when_the_slow_simulator_has_it(plan):
    blocks, slow = timeline_blocks(simulate(plan)), reference(plan)
    ops, order = names(blocks), plan.problem.order
    assert ops == [op for row in order.rows for op in row]
    tolerance = 1e-9 * slow.makespan_ms
    assert np.abs(blocks.start_ms - [slow.start_ms[op] for op in ops]).max() <= tolerance
    assert np.abs(blocks.end_ms - [slow.end_ms[op] for op in ops]).max() <= tolerance
    assert blocks.stage.tolist() == [stage_of(order, op.cell) for op in ops]
    assert blocks.chunk.tolist() == [op.cell // plan.problem.stages for op in ops]


@given(plans())
def test_a_message_goes_from_cell_to_cell_along_the_chain_wherever_the_stage_changes(plan):
    plan = replace(plan, problem=replace(plan.problem, p2p_mode=P2PMode.ASYNC))
    blocks, order = timeline_blocks(simulate(plan)), plan.problem.order
    ops = names(blocks)
    sent = [(ops[sender], ops[receiver]) for sender, receiver in messages(simulate(plan)).tolist()]
    # Every forward to the next cell, every backward or input gradient to the one before.
    there = {(op.kind is OpKind.F, op.cell, *op[2:]): op for op in ops if op.kind is not OpKind.W}
    blocking = plan.problem.p2p_mode is P2PMode.BLOCKING and order.chunks > 1
    held = held_back(order) if blocking else {}
    expected = set()
    for op in there.values():
        towards = op.cell - 1 if op.kind is OpKind.F else op.cell + 1
        sender = there.get((op.kind is OpKind.F, towards, *op[2:]))
        if sender is not None and stage_of(order, sender.cell) != stage_of(order, op.cell):
            expected.add((held.get(sender, sender), op))
    assert set(sent) == expected
    assert len(sent) == len(expected)


@given(plans())
def test_ops_overlap_in_pairs_that_begin_and_end_together(plan):
    blocks = timeline_blocks(simulate(plan))
    forward = np.flatnonzero(blocks.overlapped & (blocks.kind == OpKind.F))
    assert np.array_equal(np.flatnonzero(blocks.overlapped), np.sort([*forward, *(forward + 1)]))
    assert np.array_equal(blocks.start_ms[forward], blocks.start_ms[forward + 1])
    assert np.array_equal(blocks.end_ms[forward], blocks.end_ms[forward + 1])
    pairs = sum(len(plan.problem.order.pairs_of(stage)) for stage in range(plan.problem.stages))
    assert len(forward) == (pairs if plan.problem.overlap_factor > 0 else 0)


def test_the_plans_that_are_drawn_overlap_and_cut_sequences():
    # Guards the laws: a generator that stopped making one kind would hide it.
    found = [find(plans(), condition).problem for condition in (overlaps, cuts_sequences, holds_working_sets)]
    assert found[0].order.pairs


def overlaps(plan):
    return plan.problem.overlap_factor > 0


def cuts_sequences(plan):
    return plan.problem.sequence_chunks > 1


def holds_working_sets(plan):
    return plan.problem.recompute_working_set


def test_pytorchs_first_cell_recomputes_in_its_weight_gradient():
    # One stage, f = 1, b = 3 under FULL: I takes nothing, W all 3, of which 1 is recompute.
    body = layer_from_times(
        name="Dec", kind=LayerKind.BODY, count=1, forward_ms=1, activation_mb={Recompute.FULL: 1}
    )
    problem = Problem(
        model=Model(name="m", layers=(body,)),
        stages=1,
        micro_batches=1,
        schedule=ScheduleName.CUSTOM,
        order_file=OrderFile(path="order.csv", text="0F0,0I0,0W0\n"),
        flavour=Flavour.TORCH,
    )
    blocks = timeline_blocks(simulate(plan_from_matrices(problem, {"Dec": {"full": [[1]]}})))
    assert blocks.end_ms.tolist() == [1, 1, 4]
    assert blocks.recompute_ms.tolist() == [0, 0, 1]


def test_a_message_that_is_held_back_leaves_with_the_backward_behind_its_forward():
    # S 2, V 2, M 4: stage 0 runs 0F0 0F1 2F0 2F1 0F2 2B0 ...; 0F1 is followed by a forward.
    layer = layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=1)
    problem = Problem(
        model=Model(name="held", layers=(layer,)),
        stages=2,
        interleave=2,
        micro_batches=4,
        p2p_mode=P2PMode.BLOCKING,
    )
    timeline = simulate(plan_from_matrices(problem, {"Dec": {"none": [[1, 1], [1, 1]]}}))
    blocks, places = timeline_blocks(timeline), messages(timeline)
    with_what = dict(zip(names(blocks, places[:, 1]), names(blocks, places[:, 0]), strict=True))
    assert with_what[Op(OpKind.F, 1, 1)] == Op(OpKind.F, 0, 1)
    assert with_what[Op(OpKind.F, 1, 2)] == Op(OpKind.B, 2, 0)
    assert np.all(blocks.start_ms[places[:, 1]] >= blocks.end_ms[places[:, 0]])


@pytest.mark.parametrize("path", sorted(SPLIT.glob("*ZeroBubble_*.csv")), ids=lambda path: path.stem)
def test_split_backwards_have_their_recompute_in_the_input_gradient(path):
    placement = Placement.V if "ZBV" in path.stem else Placement.LOOP
    order = parse_csv(path.read_text(encoding="utf-8"), placement)
    timeline = simulate(split_plan(order))
    blocks, slow = timeline_blocks(timeline), reference(timeline.plan)
    assert {op.kind for op in names(blocks)} >= {OpKind.F, OpKind.I, OpKind.W}
    assert not blocks.recompute_ms[(blocks.kind == OpKind.F) | (blocks.kind == OpKind.W)].any()
    assert blocks.recompute_ms[blocks.kind == OpKind.I].any()
    assert np.all(blocks.recompute_ms <= blocks.end_ms - blocks.start_ms)
    assert blocks.end_ms.max() == pytest.approx(slow.makespan_ms, rel=1e-9)


def split_plan(order: Schedule):
    """Random plan that recomputes, under an order with split backwards."""
    sizes: dict[str, Any] = {
        "stages": order.stages,
        "chunks": order.chunks,
        "micro_batches": order.micro_batches,
    }
    for seed in count():
        rng = Random(seed)
        plan = random_plan(rng, with_order(random_problem(rng, **sizes), order))
        if plan.recomputed_layers:
            return plan
    raise AssertionError
