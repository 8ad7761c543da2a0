"""Memory over time against the hand-timed plan, the peaks, and the slow simulator."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.report import memory_curve, timeline_blocks
from sapp_ppb.schedules import OpKind, ScheduleName
from sapp_ppb.simulator import simulate
from tests.reference import reference
from tests.report.conftest import hand_plan, pair_plan, plans


def test_the_curve_of_the_drawn_plan():
    # Stage 1: 50 MB constant, 2 x 100 of parameters, 10 + 1 MB live from the start of each
    # F (1, 3, 11) to the end of its B (11, 18, 23).  At 11 B0 frees before F2 takes.
    curve = memory_curve(simulate(hand_plan(constant_memory_mb=50)))[1]
    assert (curve.constant_mb, curve.parameter_mb) == (50.0, 200.0)
    assert curve.time_ms.tolist() == [0, 1, 3, 11, 11, 18, 23]
    assert curve.memory_mb.tolist() == [250, 261, 272, 261, 272, 261, 250]


def test_memory_for_a_moment_is_there_while_an_op_of_its_cell_runs():
    # One stage, f = 1, b = 2, 10 MB live a micro-batch, 4 MB for a moment: F0 0 - 1, F1 1 - 2, B0 2 - 4,
    # B1 4 - 6 (gpipe).  Between two ops the 4 MB are given back and taken again.
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=1, activation_mb={Recompute.NONE: 10})
    tail = layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=0, transient_mb=4)
    problem = Problem(
        model=Model(name="m", layers=(body, tail)), stages=1, micro_batches=2, schedule=ScheduleName.GPIPE
    )
    [curve] = memory_curve(simulate(plan_from_matrices(problem, {"Dec": {"none": [[1]]}})))
    assert curve.time_ms.tolist() == [0, 0, 1, 1, 2, 2, 4, 4, 6]
    assert curve.memory_mb.tolist() == [0, 14, 10, 24, 20, 24, 10, 14, 0]


def test_the_two_ops_of_a_pair_need_theirs_at_once():
    # F0 0 - 1, the pair 1 - 3.5, B1 3.5 - 5.5; each op needs 4 MB while it runs, the pair 8.
    plan = pair_plan()
    tail = layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=0, transient_mb=4)
    model = replace(plan.problem.model, layers=(*plan.problem.model.layers, tail))
    [curve] = memory_curve(simulate(replace(plan, problem=replace(plan.problem, model=model))))
    assert curve.time_ms.tolist() == [0, 0, 1, 1, 1, 3.5, 3.5, 3.5, 5.5]
    assert curve.memory_mb.tolist() == [0, 4, 0, 4, 8, 4, 0, 4, 0]


@given(plans())
def test_the_highest_value_of_a_curve_is_the_peak_of_its_stage(plan):
    timeline = simulate(plan)
    highest = [curve.memory_mb.max() for curve in memory_curve(timeline)]
    assert highest == pytest.approx(timeline.peak_memory_mb, rel=1e-9)


@given(plans())
def test_a_step_ends_with_what_it_began_with_and_time_never_goes_back(plan):
    for curve in memory_curve(simulate(plan)):
        held = curve.constant_mb + curve.parameter_mb
        assert (curve.memory_mb[0], curve.memory_mb[-1]) == (held, held)
        assert (curve.time_ms[1:] >= curve.time_ms[:-1]).all()


@given(plans())
def test_while_an_op_runs_a_stage_holds_what_the_slow_simulator_says(plan):
    timeline = simulate(plan)
    blocks, held = timeline_blocks(timeline), reference(plan).held_mb
    for stage, curve in enumerate(memory_curve(timeline)):
        here = blocks.stage == stage
        middle_ms = (blocks.start_ms[here] + blocks.end_ms[here]) / 2
        during = curve.memory_mb[np.searchsorted(curve.time_ms, middle_ms, side="right") - 1]
        # What takes no time is over at once, and beside a forward may stand its pair's working set.
        plain = ~blocks.overlapped[here] | (blocks.kind[here] != OpKind.F)
        plain &= blocks.end_ms[here] - blocks.start_ms[here] > 1e-6 * timeline.makespan_ms
        assert during[plain] == pytest.approx(np.array(held[stage])[plain], rel=1e-9)
