"""
Ways of running an order: held messages, overlapped pairs, sequence chunks, split backwards.

Drawn by hand, as in ``test_timeline.py``: every column is one millisecond.
"""

from dataclasses import replace

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError, ScheduleError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Flavour, OrderFile, P2PMode, ScheduleName, build_schedule, parse_csv
from sapp_ppb.simulator import simulate
from sapp_ppb.simulator.graph import build_graph
from sapp_ppb.simulator.price import price, without_recompute
from tests.reference import reference
from tests.simulator.test_timeline import drawn, plan_of, timed, unit_plan

EACH = {Recompute.NONE: 1}  # a layer with F 1 and B 2


def interleaved(mode: P2PMode) -> Plan:
    # S = 2, V = 2, M = 4, a send takes 1, the wrap too.  Stage 0 warms up with 2(2-1-0) + (2-1)2 = 4
    # forwards, stage 1 with 2; then forwards and backwards in turn.
    return plan_of([EACH] * 4, stages=2, interleave=2, micro_batches=4, p2p_ms=1.0, p2p_mode=mode)


def test_asynchronous_messages_leave_at_once_as_drawn() -> None:
    # 2B0 needs 3B0 (9) + 1 = 10.  1F2 needs 0F2 (7) + 1 = 8, stage 1 is free at 12; 2F2 needs 1F2 (13) + 1,
    # stage 0 is free at 15; 1F3 needs 0F3 (13) + 1, stage 1 is free at 15; 2F3 needs 1F3 (16) + 1,
    # stage 0 is free at 18.  From 18 on stage 1 is never idle until 3B3 ends at 24.
    drawing = """
    0 |0F0 0F1 .. .. 2F0 2F1 0F2 .. .. .. 2B0 2B0 0F3 2B1 2B1 2F2 0B0 0B0 2F3 0B1 0B1 .. 2B2 2B2 .. 2B3 2B3 .. 0B2 0B2 .. 0B3 0B3
    1 |.. .. 1F0 1F1 .. .. 3F0 3B0 3B0 3F1 3B1 3B1 1F2 1B0 1B0 1F3 1B1 1B1 3F2 3B2 3B2 3F3 3B3 3B3 .. 1B2 1B2 .. 1B3 1B3
    """  # noqa: E501  a drawing
    timeline = simulate(interleaved(P2PMode.ASYNC))
    assert timed(timeline, with_cell=True) == drawn(drawing)
    assert timeline.makespan_ms == 33.0


def test_blocking_messages_leave_after_the_backward_behind_as_drawn() -> None:
    # 0F2 is followed by 2B0 (12), so 1F2 starts at 12 + 1 = 13;  0F3 by 2B1 (15): 1F3 at 16;
    # 1F2 by 1B0 (16): 2F2 at 17;  1F3 by 1B1 (19): 2F3 at 20;  2F2 by 0B0 (20): 3F2 at 21;
    # 2F3 by 0B1 (23): 3F3 at 24.  2F1 is followed by 0F2, a forward, and 3F1 starts as before.
    # 2B2 needs 3B2 (24) + 1 = 25, 2B3 3B3 (27) + 1 = 28, 1B2 2B2 (27) + 1 = 28, and so on.
    drawing = """
    0 |0F0 0F1 .. .. 2F0 2F1 0F2 .. .. .. 2B0 2B0 0F3 2B1 2B1 .. .. 2F2 0B0 0B0 2F3 0B1 0B1 .. .. 2B2 2B2 .. 2B3 2B3 .. 0B2 0B2 .. 0B3 0B3
    1 |.. .. 1F0 1F1 .. .. 3F0 3B0 3B0 3F1 3B1 3B1 .. 1F2 1B0 1B0 1F3 1B1 1B1 .. .. 3F2 3B2 3B2 3F3 3B3 3B3 .. 1B2 1B2 .. 1B3 1B3
    """  # noqa: E501  a drawing
    timeline = simulate(interleaved(P2PMode.BLOCKING))
    assert timed(timeline, with_cell=True) == drawn(drawing)
    assert timeline.makespan_ms == 36.0


def test_with_one_chunk_blocking_messages_leave_at_once_too() -> None:
    # Megatron's 1F1B sends an output and receives a gradient between the forward and the backward.
    sizes = {"stages": 3, "micro_batches": 5, "p2p_ms": 1.0}
    times = {mode: simulate(plan_of([EACH] * 3, p2p_mode=mode, **sizes)).makespan_ms for mode in P2PMode}
    assert times[P2PMode.ASYNC] == times[P2PMode.BLOCKING]


def test_a_stage_that_runs_all_forwards_first_holds_none_back() -> None:
    # Breadth-first: no forward stands between two backwards, so nothing is exchanged in turn.
    sizes = {"stages": 2, "interleave": 2, "micro_batches": 3, "schedule": ScheduleName.LOOPED_BFS}
    times = {mode: simulate(plan_of([EACH] * 4, p2p_mode=mode, **sizes)).makespan_ms for mode in P2PMode}
    assert times[P2PMode.ASYNC] == times[P2PMode.BLOCKING]


def test_messages_that_wait_for_each_other_are_refused_with_the_ops() -> None:
    # Chunk 1 of stage 0 wants micro-batch 1 back from stage 1 before 2B0, which 1F1 is sent with:
    # 0F1 leaves with 2B0, 1F1 needs 0F1, and 3F0 2B0 come only behind 1F1.
    order = parse_csv("0F0,2F0,0F1,2B0,2F1,2B1,0B0,0B1\n1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1")
    build_graph(order)
    with pytest.raises(
        ScheduleError, match=r"^with p2p-mode blocking these ops wait for each other: 2B0, 1F1$"
    ):
        build_graph(order, P2PMode.BLOCKING)


# Unit costs, S = 4, M = 8: work 8 x 2 x 3 = 48 a stage.
@pytest.mark.parametrize(("factor", "makespan"), [(0.0, 51.0), (0.5, 49.0), (1.0, 44.0)])
def test_dualpipev_takes_the_known_times_at_every_overlap(factor: float, makespan: float) -> None:
    plan = unit_plan(
        stages=4, interleave=2, micro_batches=8, schedule=ScheduleName.DUALPIPEV, overlap_factor=factor
    )
    timeline = simulate(plan)
    assert timeline.makespan_ms == makespan
    assert reference(plan).makespan_ms == makespan
    assert timeline.peak_memory_mb == (9.0, 9.0, 9.0, 9.0)


def test_an_overlapped_pair_begins_with_both_inputs_and_gives_both_results_at_its_end() -> None:
    # One stage, cells 0 and 1 on it; 0F1 and 1B0 together, a = 0.25.  F 1, B 2: 1 + 2 - 0.25 x 1 = 2.75.
    # 0F0 0-1, 1F0 1-2, the pair 2-4.75, then 1F1 5.75, 1B1 7.75, 0B0 9.75, 0B1 11.75.
    text = "0F0,1F0,(0F1;1B0)OVERLAP_F_B,1F1,1B1,0B0,0B1"
    plan = plan_of(
        [EACH] * 2,
        stages=1,
        interleave=2,
        micro_batches=2,
        order_file=OrderFile(path="order.csv", text=text),
        overlap_factor=0.25,
    )
    timeline = simulate(plan)
    assert timeline.start_ms[0].tolist() == [0.0, 1.0, 2.0, 2.0, 4.75, 5.75, 7.75, 9.75]
    assert timeline.end_ms[0].tolist() == [1.0, 2.0, 4.75, 4.75, 5.75, 7.75, 9.75, 11.75]
    # The pair counts once: 11.75 of work, and no idle time.
    assert timeline.busy_ms.tolist() == [11.75]
    assert timeline.bubble.total == pytest.approx(0.0, abs=1e-12)


def test_a_pair_whose_backward_needs_its_forward_runs_only_without_overlap() -> None:
    text = "(0F0;0B0)OVERLAP_F_B"
    plan = plan_of([EACH], stages=1, micro_batches=1, order_file=OrderFile(path="order.csv", text=text))
    assert simulate(plan).makespan_ms == 3.0
    together = replace(plan, problem=replace(plan.problem, overlap_factor=0.5))
    with pytest.raises(ScheduleError, match="with overlapped pairs these ops wait for each other: 0F0"):
        simulate(together)


def test_overlap_without_pairs_is_refused() -> None:
    with pytest.raises(
        InputError, match="overlap-factor is for schedules with overlapped pairs, and 1f1b has"
    ):
        plan_of([EACH], stages=1, micro_batches=1, overlap_factor=0.5)


def test_sequence_chunks_take_a_share_of_the_time_and_hold_a_share_of_the_memory() -> None:
    # F 0.5 and B 1 a chunk, 16 of them: (16 + 4 - 1) x 1.5 = 28.5.  S - s + k - 1 chunks are live, and
    # each holds half of a micro-batch's 1 MB.
    plan = unit_plan(stages=4, micro_batches=8, schedule=ScheduleName.SEQ1F1B, sequence_chunks=2)
    timeline = simulate(plan)
    assert timeline.makespan_ms == 28.5
    assert timeline.peak_memory_mb == (5 / 2, 4 / 2, 3 / 2, 2 / 2)
    assert [str(peak.op) for peak in timeline.peaks] == ["0F2.0", "1F1.1", "2F1.0", "3F0.1"]


def test_more_sequence_chunks_fill_the_pipeline_sooner() -> None:
    # (M k + S - 1) x 3 / k: 11 x 3, 19 x 1.5, 35 x 0.75.
    times = [
        simulate(unit_plan(stages=4, micro_batches=8, schedule=name, sequence_chunks=k)).makespan_ms
        for name, k in ((ScheduleName.ONE_F_ONE_B, 1), (ScheduleName.SEQ1F1B, 2), (ScheduleName.SEQ1F1B, 4))
    ]
    assert times == [33.0, 28.5, 26.25]


def test_interleaved_sequence_chunks_warm_up_with_k_minus_1_more() -> None:
    # S 4, V 2, M 8, k 2, N = 4 / 2 = 2: 2(3-s) + (2-1) x 2 x 2 + 1 forwards before the first pair.
    rows = build_schedule("seq1f1b", 4, 2, 8, sequence_chunks=2).rows
    assert ["".join(op.kind.name for op in row).index("B") - 1 for row in rows] == [11, 9, 7, 5]
    # Filling and draining over a half of a half: 48 of work and 3 x 3 / 2.
    plan = unit_plan(
        stages=4, interleave=2, micro_batches=8, schedule=ScheduleName.SEQ1F1B, sequence_chunks=2
    )
    assert simulate(plan).makespan_ms == 48 + 4.5


def split_plan(**more) -> Plan:
    """One micro-batch on two stages, F 4, B 8 (12 with FULL on stage 0), W 3, I 5 (9)."""
    layer = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=2,
        forward_ms=4,
        weight_grad_ms=3,
        activation_mb={Recompute.NONE: 10, Recompute.FULL: 1},
    )
    problem = Problem(
        model=Model(name="split", layers=(layer,)),
        stages=2,
        micro_batches=1,
        schedule=ScheduleName.INTERLEAVED_ZERO_BUBBLE,
        **more,
    )
    counts = np.zeros((1, len(Recompute), 2), dtype=int)
    counts[0, Recompute.FULL, 0] = counts[0, Recompute.NONE, 1] = 1
    return Plan(problem=problem, counts=counts)


def test_weight_gradients_take_the_time_that_the_layer_gives_and_recompute_is_in_the_other_part() -> None:
    # 0F0 0-4, 1F0 4-8, 1I0 8-13, 1W0 13-16; 0I0 needs 1I0: 13-22, 0W0 22-25.
    timeline = simulate(split_plan())
    assert [starts.tolist() for starts in timeline.start_ms] == [[0.0, 13.0, 22.0], [4.0, 8.0, 13.0]]
    assert timeline.makespan_ms == 25.0


def test_pytorch_does_all_of_the_first_cells_backward_in_its_weight_gradient() -> None:
    # 0I0 takes nothing, 0W0 the whole 12; both wait for 1I0 as before, and stage 1 is as before.
    timeline = simulate(split_plan(flavour=Flavour.TORCH))
    assert [starts.tolist() for starts in timeline.start_ms] == [[0.0, 13.0, 13.0], [4.0, 8.0, 13.0]]
    assert timeline.end_ms[0].tolist() == [4.0, 13.0, 25.0]


def test_pytorch_runs_an_unsplit_backward_like_anyone_else() -> None:
    plan = unit_plan(stages=4, micro_batches=8, flavour=Flavour.TORCH)
    assert simulate(plan).makespan_ms == 33.0


def test_a_backward_that_any_stage_splits_is_seen() -> None:
    order = parse_csv("0F0,0B0\n1F0,1I0,1W0")
    assert order.splits_backward
    assert not build_schedule("1f1b", 2, 1, 4).splits_backward


def test_a_layer_that_must_be_recomputed_may_be_given_less_without_than_its_weights_take() -> None:
    # F 4; B 3 with NONE, which no plan may use, and 6 with FULL: W 4 and I 2.  Without recompute the
    # weight gradients are all that is left, 4, and not I = 3 - 4 < 0.
    layer = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        forward_ms=4,
        explicit={Recompute.NONE: 3, Recompute.FULL: 6},
        activation_mb={Recompute.FULL: 1},
    )
    problem = Problem(
        model=Model(name="full", layers=(layer,)),
        stages=1,
        micro_batches=1,
        schedule=ScheduleName.INTERLEAVED_ZERO_BUBBLE,
    )
    counts = np.zeros((1, len(Recompute), 1), dtype=int)
    counts[0, Recompute.FULL] = 1
    plan = Plan(problem=problem, counts=counts)
    assert price(plan).price_list(problem).tolist() == [4.0, 6.0, 2.0, 4.0]
    assert without_recompute(plan).price_list(problem).tolist() == [4.0, 4.0, 0.0, 4.0]
    # Useful 4 + 4, recompute 6 - 4.
    assert simulate(plan).bubble.recompute == 2 / 8


def test_a_v_turns_on_its_stage_and_its_tail_is_on_stage_0() -> None:
    # TAIL f 5, b 10, 7 MB, in the last cell: that is cell 3, on stage 0.
    layers = (
        layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=1),
        layer_from_times(name="Tail", kind=LayerKind.TAIL, forward_ms=5, parameter_mb=7),
    )
    problem = Problem(
        model=Model(name="v", layers=layers), stages=2, micro_batches=4, schedule=ScheduleName.ZBV
    )
    assert problem.interleave == 2
    counts = np.zeros((1, len(Recompute), 4), dtype=int)
    counts[0, Recompute.NONE] = 1
    timeline = simulate(Plan(problem=problem, counts=counts))
    assert timeline.peak_memory_mb == (7.0, 0.0)
    # Stage 0 works 4 x (3 + 3 + 15).
    assert timeline.busy_ms.tolist() == [84.0, 24.0]


def test_a_custom_order_is_timed_like_the_schedule_that_it_repeats() -> None:
    order = build_schedule("zbv", 4, 2, 8)
    plan = unit_plan(stages=4, interleave=2, micro_batches=8, schedule=ScheduleName.ZBV)
    custom = unit_plan(
        stages=4,
        interleave=2,
        micro_batches=8,
        order_file=OrderFile(path="order.csv", text=order.to_csv()),
    )
    assert custom.problem.schedule_name is ScheduleName.CUSTOM
    assert simulate(custom).makespan_ms == simulate(plan).makespan_ms == 51.0
