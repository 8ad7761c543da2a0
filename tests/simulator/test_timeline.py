"""
Timelines that were worked out by hand, and numbers that other programs found.

In a drawing every column is one millisecond, ``F0`` is the forward of
micro-batch 0, ``B`` a backward, and ``..`` an idle millisecond.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from sapp_ppb.costs import Layer, LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Op, OpKind, Placement, Schedule, ScheduleName, parse_csv
from sapp_ppb.simulator import Timeline, simulate
from tests.strategies import with_order

HERE = Path(__file__).parents[1]
UNIT_COSTS = json.loads((HERE / "golden" / "unit_cost.json").read_text())["orders"]


def body(count: int) -> Layer:
    """Layers of the hand-timed plans: f = 1, b = 2, with FULL (1 + 0.5) x 2 = 3."""
    return layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=count,
        forward_ms=1,
        parameter_mb=100,
        activation_mb={Recompute.NONE: 10, Recompute.FULL: 1},
    )


def plan_of(per_cell: Sequence[Mapping[Recompute, int]], **sizes) -> Plan:
    """Plan of one BODY kind from the layers a type in each cell."""
    count = sum(sum(cell.values()) for cell in per_cell)
    problem = Problem(model=Model(name="hand", layers=(body(count),)), **sizes)
    counts = np.zeros((1, len(Recompute), len(per_cell)), dtype=int)
    for cell, layers in enumerate(per_cell):
        for recompute, number in layers.items():
            counts[0, recompute, cell] = number
    return Plan(problem=problem, counts=counts)


def drawn(drawing: str) -> list[list[tuple[str, float, float]]]:
    """Name, start and end of every op in the drawing, a list a stage."""
    stages = []
    for line in drawing.strip().splitlines():
        columns = line.split("|")[1].split()
        at, ops = 0, []
        for name, same in groupby(columns):
            end = at + len(list(same))
            if name != "..":
                ops.append((name, float(at), float(end)))
            at = end
        stages.append(ops)
    return stages


def timed(timeline: Timeline, *, with_cell: bool) -> list[list[tuple[str, float, float]]]:
    """Say the same of a timeline; cells are named only where a stage has several."""
    return [
        [
            (str(op) if with_cell else str(op).lstrip("0123456789"), start, end)
            for op, start, end in zip(row, starts.tolist(), ends.tolist(), strict=True)
        ]
        for row, starts, ends in zip(
            timeline.plan.problem.order.rows, timeline.start_ms, timeline.end_ms, strict=True
        )
    ]


def test_a_small_1f1b_plan_runs_as_drawn() -> None:
    # Stage 0: 1 layer, f = 1, b = 2.  Stage 1: 2 layers, one of them FULL, f = 2, b = 2 + 3 = 5.
    # Stage 2: 1 layer, f = 1, b = 2.  S = 3, M = 3, sends free; warm-up forwards 2, 1, 0.
    # Stage 1 has B0 wait for stage 2 until 6, and is never idle again: F2 6+5 = 11-13,
    # B1 13-18, B2 18-23.  Stage 0 ends with B2 at 23-25.
    drawing = """
    0 |F0 F1 F2 .. .. .. .. .. .. .. .. B0 B0 .. .. .. .. .. B1 B1 .. .. .. B2 B2
    1 |.. F0 F0 F1 F1 .. B0 B0 B0 B0 B0 F2 F2 B1 B1 B1 B1 B1 B2 B2 B2 B2 B2
    2 |.. .. .. F0 B0 B0 F1 B1 B1 .. .. .. .. F2 B2 B2
    """
    none, full = Recompute.NONE, Recompute.FULL
    timeline = simulate(plan_of([{none: 1}, {none: 1, full: 1}, {none: 1}], stages=3, micro_batches=3))
    # B0 on stage 2 ends at 6; F1 there needs stage 1's F1, which ends at 5: it starts at 6.
    assert timed(timeline, with_cell=False) == drawn(drawing)
    assert timeline.makespan_ms == 25.0
    # Live at most 3, 2, 1 micro-batches of 10, 10 + 1 and 10 MB, beside 100, 200 and 100 of parameters.
    assert timeline.peak_memory_mb == (100 + 3 * 10, 200 + 2 * 11, 100 + 1 * 10)
    # First reached with the last warm-up forward and the one of the first pair.
    assert [str(peak.op) for peak in timeline.peaks] == ["0F2", "1F1", "2F0"]
    # Busy 3 x 3, 3 x 7, 3 x 3.
    assert timeline.busy_ms.tolist() == [9.0, 21.0, 9.0]


def test_the_bubble_of_the_drawn_1f1b_plan_is_split_as_worked_out_by_hand() -> None:
    # The same plan.  U = 3 x (4 layers x 3) = 36, T0 = 25.
    # T1, the FULL layer with b = 2 (stage 1: f = 2, b = 4):
    #   stage 1: F0 1-3, F1 3-5, B0 6-10, F2 10-12, B1 12-16, B2 16-20; stage 0 ends B2 at 22.
    # T2 = T1, sends are free.  T3: every stage f = 4/3, b = 8/3: (3 + 3 - 1) x 4 = 20.
    # recompute 3(25 - 22)/36, imbalance 3(22 - 20)/36, fill and drain (3 x 20 - 36)/36.
    none, full = Recompute.NONE, Recompute.FULL
    plan = plan_of([{none: 1}, {none: 1, full: 1}, {none: 1}], stages=3, micro_batches=3)
    bubble = simulate(plan).bubble
    assert bubble.recompute == pytest.approx(9 / 36, rel=1e-9)
    assert bubble.communication == 0.0
    assert bubble.imbalance == pytest.approx(6 / 36, rel=1e-9)
    assert bubble.fill_drain == pytest.approx(24 / 36, rel=1e-9)
    # (3 x 25 - 36) / 36
    assert bubble.total == pytest.approx(39 / 36, rel=1e-9)


def test_a_small_interleaved_plan_with_sends_runs_as_drawn() -> None:
    # Cells 0 to 3 on stages 0 1 0 1: 1, 2, 1, 1 layers, that of cell 2 FULL:
    # f = 1, 2, 1, 1 and b = 2, 4, 3, 2.  S = 2, V = 2, M = 2; stage 0 warms up with
    # min(2(2-1-0) + (2-1)2, 4) = 4 forwards, stage 1 with 2.
    # A send between neighbours takes 1, the wrap (cell 1 to 2, and back) takes 2:
    # 1F0 needs 0F0 (1) + 1 = 2;     2F0 needs 1F0 (4) + 2 = 6;    2F1 needs 1F1 (6) + 2 = 8;
    # 3F0 needs 2F0 (7) + 1 = 8;     3F1 needs 2F1 (9) + 1 = 10, stage 1 is free at 11;
    # 2B0 needs 3B0 (11) + 1 = 12;   2B1 needs 3B1 (14) + 1 = 15;
    # 1B0 needs 2B0 (15) + 2 = 17;   1B1 needs 2B1 (18) + 2 = 20, stage 1 is free at 21;
    # 0B0 needs 1B0 (21) + 1 = 22;   0B1 needs 1B1 (25) + 1 = 26.
    drawing = """
    0 |0F0 0F1 .. .. .. .. 2F0 .. 2F1 .. .. .. 2B0 2B0 2B0 2B1 2B1 2B1 .. .. .. .. 0B0 0B0 .. .. 0B1 0B1
    1 |.. .. 1F0 1F0 1F1 1F1 .. .. 3F0 3B0 3B0 3F1 3B1 3B1 .. .. .. 1B0 1B0 1B0 1B0 1B1 1B1 1B1 1B1
    """
    none, full = Recompute.NONE, Recompute.FULL
    plan = plan_of(
        [{none: 1}, {none: 2}, {full: 1}, {none: 1}],
        stages=2,
        interleave=2,
        micro_batches=2,
        p2p_ms=(1.0, 2.0),
    )
    timeline = simulate(plan)
    assert timed(timeline, with_cell=True) == drawn(drawing)
    assert timeline.makespan_ms == 28.0
    # Stage 0 has 2 of 10 and 2 of 1 MB live after 2F1, stage 1 has 2 of 20 and 1 of 10 MB after
    # 3F0; parameters are 2 x 100 and 3 x 100.
    assert timeline.peak_memory_mb == (200 + 2 * 10 + 2 * 1, 300 + 2 * 20 + 10)
    assert [str(peak.op) for peak in timeline.peaks] == ["2F1", "3F0"]


def test_a_chain_on_a_v_turns_without_a_send_and_comes_back_over_the_same_edges() -> None:
    # Cells 0 1 2 3 on stages 0 1 1 0, one layer each (f = 1, b = 2), M = 1, a send takes 5:
    # 0F 0-1, 1F 6-7, 2F 7-8 (the turn), 3F 13-14, 3B 14-16, 2B 21-23, 1B 23-25, 0B 30-32.
    rows = parse_csv("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", Placement.V)
    plan = plan_of([{Recompute.NONE: 1}] * 4, stages=2, interleave=2, micro_batches=1, p2p_ms=5.0)
    timeline = simulate(Plan(problem=with_order(plan.problem, rows), counts=plan.counts))
    assert [starts.tolist() for starts in timeline.start_ms] == [[0, 13, 14, 30], [6, 7, 21, 23]]
    assert timeline.makespan_ms == 32.0


def test_head_and_tail_are_in_the_first_and_last_cell_with_time_and_memory() -> None:
    # HEAD 2 x (f 3, b 6, 7 MB parameters, 4 MB live), TAIL f 5, b 10, 9 MB parameters, not live.
    # S = 2, M = 1, one BODY layer a stage (f 1, b 2): 7 + 6 forward, 12 + 14 backward.
    layers = (
        layer_from_times(
            name="Head",
            kind=LayerKind.HEAD,
            count=2,
            forward_ms=3,
            parameter_mb=7,
            activation_mb={Recompute.NONE: 4},
        ),
        body(2),
        layer_from_times(name="Tail", kind=LayerKind.TAIL, forward_ms=5, parameter_mb=9),
    )
    model = Model(name="ends", layers=layers, constant_memory_mb=1000)
    counts = np.zeros((1, len(Recompute), 2), dtype=int)
    counts[0, Recompute.NONE] = 1
    timeline = simulate(Plan(problem=Problem(model=model, stages=2, micro_batches=1), counts=counts))
    assert timeline.makespan_ms == 7 + 6 + (10 + 2) + (12 + 2)
    # constant + parameters + one live micro-batch.
    assert timeline.peak_memory_mb == (1000 + 14 + 100 + 8 + 10, 1000 + 100 + 9 + 10)


def test_a_plan_fits_up_to_its_limit_and_not_beyond() -> None:
    # Peaks are 130, 222 and 110 MB, see the drawn 1F1B plan.
    none, full = Recompute.NONE, Recompute.FULL
    cells = [{none: 1}, {none: 1, full: 1}, {none: 1}]

    def fits(limit):
        return simulate(plan_of(cells, stages=3, micro_batches=3, memory_limit_mb=limit)).fits_memory

    assert fits(None)
    assert fits(222)
    assert not fits(221.9)
    assert fits((130, 222, 110))
    assert not fits((130, 222, 109.9))


def test_the_older_tools_time_of_its_own_plan_is_met() -> None:
    # The older tool's test (mindspore-lab/mindformers, tests/st/test_pipeline_balance, Apache-2.0,
    # test.json): S = 16, V = 1, M = 16 with this offset and these FULL layers takes 111,510.
    described = json.loads((HERE / "data" / "sapp" / "test.json").read_text())["layers_description"]
    layers = tuple(
        layer_from_times(
            name=entry["name"],
            kind=LayerKind(entry["type"]),
            count=entry["nb_layer"],
            forward_ms=entry["time"],
            coefficients={r: entry[r.coefficient_key] for r in Recompute if r.coefficient_key in entry},
            parameter_mb=entry["memory_parameter"],
            activation_mb={r: entry[r.memory_key] for r in Recompute if r.memory_key in entry},
        )
        for entry in described
    )
    offset = np.array([-1, 0, -1, -1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0])
    recomputed = np.array([3, 3, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0])
    problem = Problem(model=Model(name="test", layers=layers), stages=16, micro_batches=16)
    counts = np.zeros((1, len(Recompute), 16), dtype=int)
    counts[0, Recompute.FULL] = recomputed
    counts[0, Recompute.NONE] = 96 // 16 + offset - recomputed
    plan = Plan(problem=problem, counts=counts)
    assert plan.offset.tolist() == [offset.tolist()]
    assert simulate(plan).makespan_ms == 111_510.0


def unit_plan(order: Schedule | None = None, **sizes) -> Plan:
    """One layer a cell, F 1, B 2 (I 1, W 1), one MB live a micro-batch and cell."""
    cells = sizes["stages"] * sizes.get("interleave", 1)
    layer = layer_from_times(
        name="Dec", kind=LayerKind.BODY, count=cells, forward_ms=1, activation_mb={Recompute.NONE: 1}
    )
    problem = Problem(model=Model(name="unit", layers=(layer,)), **sizes)
    if order is not None:
        with_order(problem, order)
    counts = np.zeros((1, len(Recompute), cells), dtype=int)
    counts[0, Recompute.NONE] = 1
    return Plan(problem=problem, counts=counts)


# 1F1B and GPipe: (M + S - 1)(1 + 2) = 11 x 3.  Interleaved: V M (1 + 2) of work, and filling
# and draining once over one chunk, (S - 1)(1 + 2) = 9: 48 + 9 and 96 + 9.
# Live: 1F1B S - s, GPipe M; interleaved the warm-up 2(S-1-s) + (V-1)N and one.
@pytest.mark.parametrize(
    ("sizes", "makespan", "live"),
    [
        ({"schedule": ScheduleName.ONE_F_ONE_B}, 33, (4, 3, 2, 1)),
        ({"schedule": ScheduleName.GPIPE}, 33, (8, 8, 8, 8)),
        ({"interleave": 2}, 57, (11, 9, 7, 5)),
        ({"interleave": 2, "micro_batch_group": 8}, 57, (15, 13, 11, 9)),
        ({"interleave": 4}, 105, (19, 17, 15, 13)),
    ],
    ids=["1f1b", "gpipe", "interleaved-2", "interleaved-2-group-8", "interleaved-4"],
)
def test_four_stages_and_eight_micro_batches_of_unit_costs_take_the_known_times(sizes, makespan, live):
    timeline = simulate(unit_plan(stages=4, micro_batches=8, **sizes))
    assert timeline.makespan_ms == makespan
    assert timeline.peak_memory_mb == live


@pytest.mark.parametrize("known", UNIT_COSTS, ids=lambda known: Path(known["file"]).stem)
def test_orders_made_elsewhere_take_the_times_found_elsewhere(known) -> None:
    text = (HERE / "golden" / "schedules" / known["file"]).read_text()
    order = parse_csv(text)
    plan = unit_plan(
        order,
        stages=order.stages,
        interleave=order.chunks,
        micro_batches=order.micro_batches,
        # Any group would do, for the order is replaced; one of all micro-batches always exists.
        micro_batch_group=order.micro_batches if order.chunks > 1 else None,
    )
    timeline = simulate(plan)
    assert timeline.makespan_ms == known["makespan"]
    assert timeline.busy_ms.tolist() == [known["busy"]] * order.stages
    assert timeline.peak_memory_mb == tuple(known["live"])


def test_every_known_time_has_its_golden_order() -> None:
    folder = HERE / "golden" / "schedules"
    golden = {path.relative_to(folder).as_posix() for path in folder.glob("*/*.csv")}
    assert {known["file"] for known in UNIT_COSTS} == golden


def test_the_peak_names_the_first_op_that_reaches_it() -> None:
    # S = 4, V = 2, M = 8, interleaved: stage 0 runs 10 forwards, then 0F6 as its eleventh: 7 + 4 = 11
    # live.  After 0F7 it has 8 + 3 = 11 again; the first one counts.
    timeline = simulate(unit_plan(stages=4, micro_batches=8, interleave=2))
    assert timeline.peaks[0].op == Op(OpKind.F, 0, 6)


def test_a_stage_of_half_the_speed_takes_twice_the_time_for_its_layers_and_not_for_its_overhead() -> None:
    # One layer a stage, f = 1 and b = 2, stage 1 at 0.5: f = 2 and b = 4.  M = 1, an op has 0.25 more:
    # 1 + 2 + 4 + 2 and four overheads.
    plan = plan_of([{Recompute.NONE: 1}] * 2, stages=2, micro_batches=1, stage_speed=(1, 0.5))
    problem = replace(plan.problem, model=replace(plan.problem.model, op_overhead_ms=0.25))
    timeline = simulate(Plan(problem=problem, counts=plan.counts))
    assert timeline.makespan_ms == timeline.step_ms == 1 + 2 + 4 + 2 + 4 * 0.25
    assert timeline.busy_ms.tolist() == [3.5, 6.5]


def test_head_and_tail_take_the_speed_of_their_stage() -> None:
    # HEAD f 3, b 6 at 0.5 on stage 0, TAIL f 5, b 10 at 2 on stage 1, no BODY time of note:
    # one layer a stage of f 1, b 2: (4 + 8) / 0.5 + (6 + 12) / 2.
    layers = (
        layer_from_times(name="Head", kind=LayerKind.HEAD, forward_ms=3),
        body(2),
        layer_from_times(name="Tail", kind=LayerKind.TAIL, forward_ms=5),
    )
    counts = np.zeros((1, len(Recompute), 2), dtype=int)
    counts[0, Recompute.NONE] = 1
    problem = Problem(
        model=Model(name="ends", layers=layers), stages=2, micro_batches=1, stage_speed=(0.5, 2)
    )
    assert simulate(Plan(problem=problem, counts=counts)).makespan_ms == 24 + 9


def test_the_step_ends_when_every_stage_has_done_what_comes_after_its_last_op() -> None:
    # One layer a stage, M = 1: stage 1 ends at 1 + 1 + 2 = 4, stage 0 at 6.
    def step(*extra_ms: float) -> tuple[float, float]:
        plan = plan_of([{Recompute.NONE: 1}] * 2, stages=2, micro_batches=1, step_extra_ms=extra_ms)
        timeline = simulate(plan)
        return timeline.makespan_ms, timeline.step_ms

    assert step(0, 0) == (6, 6)
    assert step(1, 0) == (6, 7)
    assert step(0, 1.5) == (6, 6)  # hidden: 4 + 1.5 < 6
    assert step(1, 5) == (6, 9)
    plan = plan_of([{Recompute.NONE: 1}] * 2, stages=2, micro_batches=1, step_extra_ms=(1, 5))
    assert simulate(plan).extra_ms == ((6, 7), (4, 9))


def test_work_spread_by_speed_has_no_imbalance() -> None:
    # 4 layers at speed 1 and 2 at 0.5 take 12 ms each: T = (4 + 2 - 1) x 12 = 60.  Useful work is
    # 4 x 18 ms at the mean speed of 0.75: 96.  (2 x 60 - 96) / 96 = 1/4 = (S - 1) / M.
    plan = plan_of(
        [{Recompute.NONE: 4}, {Recompute.NONE: 2}], stages=2, micro_batches=4, stage_speed=(1, 0.5)
    )
    timeline = simulate(plan)
    assert timeline.makespan_ms == 60
    assert timeline.bubble.fill_drain == timeline.bubble.total == pytest.approx(0.25)
    assert timeline.bubble.imbalance == pytest.approx(0.0)


def test_work_spread_evenly_over_unequal_stages_is_imbalance() -> None:
    # 3 + 3 layers take 9 and 18 ms: stage 1 works 4 x 18 behind a forward of 3 and before a backward
    # of 6: T = 81.  (2 x 81 - 96) / 96, of which the equal cells of the test above have 1/4.
    plan = plan_of(
        [{Recompute.NONE: 3}, {Recompute.NONE: 3}], stages=2, micro_batches=4, stage_speed=(1, 0.5)
    )
    timeline = simulate(plan)
    assert timeline.makespan_ms == 81
    assert timeline.bubble.fill_drain == pytest.approx(0.25)
    assert timeline.bubble.imbalance == pytest.approx((2 * 81 - 96) / 96 - 0.25)


def test_what_comes_after_the_last_ops_is_no_part_of_the_bubble() -> None:
    none, full = Recompute.NONE, Recompute.FULL
    cells = [{none: 1}, {none: 1, full: 1}, {none: 1}]
    without = simulate(plan_of(cells, stages=3, micro_batches=3)).bubble
    assert simulate(plan_of(cells, stages=3, micro_batches=3, step_extra_ms=(5, 0, 90))).bubble == without
