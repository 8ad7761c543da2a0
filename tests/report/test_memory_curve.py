"""Memory over time against the hand-timed plan, the peaks, and the slow simulator."""

import pytest
from hypothesis import given

from sapp_ppb.report import memory_curve
from sapp_ppb.simulator import simulate
from tests.reference import reference
from tests.report.conftest import hand_plan
from tests.strategies import plans


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
    timeline, held = simulate(plan), reference(plan).held_mb
    for stage, curve in enumerate(memory_curve(timeline)):
        for start, end, expected in zip(
            timeline.start_ms[stage], timeline.end_ms[stage], held[stage], strict=True
        ):
            if end - start > 1e-9 * timeline.makespan_ms:  # an empty cell's ops have no middle
                latest = curve.time_ms.searchsorted((start + end) / 2) - 1
                assert curve.memory_mb[latest] == pytest.approx(expected, rel=1e-9)
