"""Memory over time against the hand-timed plan, the peaks, and the slow simulator."""

import numpy as np
import pytest
from hypothesis import given

from sapp_ppb.report import memory_curve, timeline_blocks
from sapp_ppb.schedules import OpKind
from sapp_ppb.simulator import simulate
from tests.reference import reference
from tests.report.conftest import hand_plan, plans


def test_the_curve_of_the_drawn_plan():
    # Stage 1: 50 MB constant, 2 x 100 of parameters, 10 + 1 MB live from the start of each
    # F (1, 3, 11) to the end of its B (11, 18, 23).  At 11 B0 frees before F2 takes.
    curve = memory_curve(simulate(hand_plan(constant_memory_mb=50)))[1]
    assert (curve.constant_mb, curve.parameter_mb) == (50.0, 200.0)
    assert curve.time_ms.tolist() == [0, 1, 3, 11, 11, 18, 23]
    assert curve.memory_mb.tolist() == [250, 261, 272, 261, 272, 261, 250]


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
