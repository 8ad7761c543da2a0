"""The numbers of the drawings are those of the timeline."""

import numpy as np
import pytest
from hypothesis import given

from sapp_ppb.report import page_data as module
from sapp_ppb.report.blocks import timeline_blocks
from sapp_ppb.report.critical_path import find_waits
from sapp_ppb.report.memory_curve import memory_curve
from sapp_ppb.report.page_data import page_data
from sapp_ppb.simulator import simulate
from tests.report.conftest import hand_plan
from tests.strategies import plans_in_any_mode


def data_of(timeline):
    return page_data(timeline, timeline_blocks(timeline), find_waits(timeline), memory_curve(timeline))


@given(plans_in_any_mode())
def test_every_op_and_every_peak_is_there(plan):
    timeline = simulate(plan)
    data = data_of(timeline)
    problem, near = plan.problem, 1e-7 * timeline.makespan_ms
    cells, k = problem.cells, problem.sequence_chunks
    names = [
        ((op.micro_batch * k + max(op.sequence_chunk, 0)) * cells + op.cell) * 4 + int(op.kind)
        for row in problem.order.rows
        for op in row
    ]
    ops = data["ops"]
    assert (data["sequence_chunks"], ops["name"], len(set(names))) == (k, names, len(names))
    assert ops["row_length"] == [len(row) for row in problem.order.rows]
    assert ops["start_ms"] == pytest.approx(np.concatenate(timeline.start_ms), abs=near)
    takes = np.array([data["duration_ms"][name % 4 * cells + name // 4 % cells] for name in names])
    for op, ms in zip(ops["pair"], ops["pair_ms"], strict=True):
        takes[[op, op + 1]] = ms
    assert ops["start_ms"] + takes == pytest.approx(np.concatenate(timeline.end_ms), abs=2 * near)
    highest = list(map(max, ops["memory_mb"]))
    assert highest == pytest.approx(timeline.peak_memory_mb, abs=1e-7 * max(timeline.peak_memory_mb))


@given(plans_in_any_mode())
def test_a_thinned_page_loses_no_work_and_no_peak(plan):
    timeline = simulate(plan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_OPS", 0)
        data = data_of(timeline)
    bins = data["bins"]
    assert data["ops"] is None
    # Every span is rounded to a percent.
    idle = np.array(bins["idle_percent"]).mean(axis=1) / 100
    assert 1 - idle == pytest.approx(timeline.busy_ms / timeline.makespan_ms, abs=0.006)
    highest = list(map(max, bins["memory_mb"]))
    assert highest == pytest.approx(timeline.peak_memory_mb, abs=1e-7 * max(timeline.peak_memory_mb))


def test_no_limit_is_no_number():
    assert data_of(simulate(hand_plan()))["limit_mb"] is None
    assert data_of(simulate(hand_plan(memory_limit_mb=230)))["limit_mb"] == [230, 230, 230]
