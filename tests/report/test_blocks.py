"""Blocks and messages against the hand-timed plan, and against the slow simulator."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.report import messages, timeline_blocks
from sapp_ppb.schedules import Op, OpKind, P2PMode, Placement, Schedule, ScheduleName, parse_csv
from sapp_ppb.simulator import simulate
from tests.reference import reference, stage_of
from tests.strategies import plans, random_plan, random_problem, with_order

SPLIT = Path(__file__).parents[1] / "golden" / "schedules" / "torch"


def names(blocks, places=slice(None)):
    columns = (blocks.kind[places], blocks.cell[places], blocks.micro_batch[places])
    return [Op(OpKind(k), c, m) for k, c, m in zip(*(column.tolist() for column in columns), strict=True)]


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
    blocks, order = timeline_blocks(simulate(plan)), plan.problem.order
    sent = {
        (ops[0], ops[1])
        for pair in messages(simulate(plan)).tolist()
        for ops in [names(blocks, np.array(pair))]
    }
    hops = [
        (cell, cell + 1)
        for cell in range(plan.problem.cells - 1)
        if stage_of(order, cell) != stage_of(order, cell + 1)
    ]
    micro_batches = range(plan.problem.micro_batches)
    forward = {(Op(OpKind.F, a, m), Op(OpKind.F, b, m)) for a, b in hops for m in micro_batches}
    backward = {(Op(OpKind.B, b, m), Op(OpKind.B, a, m)) for a, b in hops for m in micro_batches}
    assert sent == forward | backward


def unit_timeline(**sizes):
    """One layer a cell, F 1 and B 2."""
    cells = sizes["stages"] * sizes["interleave"]
    layer = layer_from_times(name="Dec", kind=LayerKind.BODY, count=cells, forward_ms=1)
    problem = Problem(model=Model(name="unit", layers=(layer,)), **sizes)
    counts = {"Dec": {"none": [[1] * sizes["stages"]] * sizes["interleave"]}}
    return simulate(plan_from_matrices(problem, counts))


def test_a_message_that_is_held_back_leaves_with_the_backward_behind_its_forward():
    # S 2, V 2, M 4: stage 0 runs 0F0 0F1 2F0 2F1 0F2 2B0 ...; 0F1 is followed by a forward.
    timeline = unit_timeline(stages=2, interleave=2, micro_batches=4, p2p_mode=P2PMode.BLOCKING)
    blocks, places = timeline_blocks(timeline), messages(timeline)
    with_what = dict(zip(names(blocks, places[:, 1]), names(blocks, places[:, 0]), strict=True))
    assert with_what[Op(OpKind.F, 1, 1)] == Op(OpKind.F, 0, 1)
    assert with_what[Op(OpKind.F, 1, 2)] == Op(OpKind.B, 2, 0)
    assert np.all(blocks.start_ms[places[:, 1]] >= blocks.end_ms[places[:, 0]])


def test_the_ops_of_a_pair_that_overlaps_have_a_half_of_the_row_each():
    sizes = {"stages": 2, "interleave": 2, "micro_batches": 4, "schedule": ScheduleName.DUALPIPEV}
    blocks = timeline_blocks(unit_timeline(**sizes, overlap_factor=0.5))
    halves = {
        str(op): (low, high)
        for op, low, high in zip(names(blocks), blocks.low.tolist(), blocks.high.tolist(), strict=True)
    }
    # Stage 0 runs 0F0 .. (0F3;3B1) (3F2;0B0) 3B2 ..
    assert (halves["0F3"], halves["3B1"], halves["3B2"]) == ((0.5, 1.0), (0.0, 0.5), (0.0, 1.0))
    one_by_one = timeline_blocks(unit_timeline(**sizes))
    assert (one_by_one.low.max(), one_by_one.high.min()) == (0.0, 1.0)


@pytest.mark.parametrize("path", sorted(SPLIT.glob("*ZeroBubble_*.csv")), ids=lambda path: path.stem)
def test_split_backwards_have_their_recompute_in_the_input_gradient(path):
    placement = Placement.V if "ZBV" in path.stem else Placement.LOOP
    order = parse_csv(path.read_text(encoding="utf-8"), placement)
    timeline = simulate(split_plan(order))
    blocks, slow = timeline_blocks(timeline), reference(timeline.plan)
    assert {op.kind for op in names(blocks)} >= {OpKind.F, OpKind.I, OpKind.W}
    assert not blocks.recompute_ms[(blocks.kind == OpKind.F) | (blocks.kind == OpKind.W)].any()
    assert np.all(blocks.recompute_ms <= blocks.end_ms - blocks.start_ms)
    assert blocks.end_ms.max() == pytest.approx(slow.makespan_ms, rel=1e-9)


def split_plan(order: Schedule):
    """Random plan under an order with split backwards."""
    rng = Random(1)
    problem = random_problem(rng, stages=order.stages, chunks=order.chunks, micro_batches=order.micro_batches)
    return random_plan(rng, with_order(problem, order))
