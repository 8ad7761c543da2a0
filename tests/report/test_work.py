"""Spans of work and their shares of columns of time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.report import timeline_blocks
from sapp_ppb.report.work import Work, work_shares, work_spans
from sapp_ppb.simulator import simulate
from tests.report.conftest import pair_plan, plans


def test_a_backward_does_its_recompute_first(timeline):
    # Stage 1 recomputes 1 ms at the start of B0 (6 to 11), B1 (13 to 18) and B2 (18 to 23).
    blocks = timeline_blocks(timeline)
    again, rest = (work_spans(blocks)[work] for work in (Work.RECOMPUTE, Work.BACKWARD))
    here = blocks.stage[rest.op] == 1
    assert (again.start_ms.tolist(), again.end_ms.tolist()) == ([6, 13, 18], [7, 14, 19])
    assert (rest.start_ms[here].tolist(), rest.end_ms[here].tolist()) == ([7, 14, 19], [11, 18, 23])


def test_only_the_kinds_of_work_that_there_are_are_given(timeline):
    assert list(work_spans(timeline_blocks(timeline))) == [Work.FORWARD, Work.BACKWARD, Work.RECOMPUTE]


def test_the_shares_of_the_drawn_plan_in_five_columns(timeline):
    # 5 ms each.  Stage 1: F 1-5; B0 6-10, its first ms again; B0 10-11, F2 11-13, B1 13-15,
    # its first ms again; B1 15-18, B2 18-20, its first ms again; B2 20-23.
    shares = work_shares(timeline_blocks(timeline), 5, 25.0)
    assert shares[Work.FORWARD][1] == pytest.approx([0.8, 0, 0.4, 0, 0])
    assert shares[Work.RECOMPUTE][1] == pytest.approx([0, 0.2, 0.2, 0.2, 0])
    assert shares[Work.BACKWARD][1] == pytest.approx([0, 0.6, 0.4, 0.8, 0.6])


def test_two_that_overlap_share_the_stage():
    # Columns of 0.5 ms; the pair runs from 1 to 3.5.
    shares = work_shares(timeline_blocks(simulate(pair_plan())), 11, 5.5)
    assert shares[Work.FORWARD][0] == pytest.approx([1] * 2 + [0.5] * 5 + [0] * 4)
    assert shares[Work.BACKWARD][0] == pytest.approx([0] * 2 + [0.5] * 5 + [1] * 4)


@given(plans(), st.integers(1, 50))
def test_shares_add_up_to_the_busy_time_of_every_stage_and_to_no_more_than_a_column(plan, columns):
    timeline = simulate(plan)
    shares = np.sum(
        list(work_shares(timeline_blocks(timeline), columns, timeline.makespan_ms).values()), axis=0
    )
    assert np.all(shares <= 1 + 1e-9)
    assert shares.sum(axis=1) * timeline.makespan_ms / columns == pytest.approx(timeline.busy_ms, rel=1e-9)
