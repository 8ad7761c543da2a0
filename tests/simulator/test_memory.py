"""Few rows of live micro-batches stand for all prefixes of an order."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.schedules import (
    Op,
    OpKind,
    Schedule,
    ScheduleName,
    build_schedule,
    check_schedule,
    parse_csv,
)
from sapp_ppb.simulator.memory import LiveRows, live_rows
from tests.strategies import random_schedule

# All that need no more than sizes, and whose micro-batches are not cut along the sequence.
UNCUT = [n for n in ScheduleName if n not in (ScheduleName.SEQ1F1B, ScheduleName.CUSTOM)]


def every_row(schedule: Schedule, stage: int) -> list[tuple[int, ...]]:
    """Live micro-batches of each chunk while each op runs, counted one by one."""
    live = [0] * schedule.chunks
    rows = []
    for op in schedule.rows[stage]:
        chunk = op.cell // schedule.stages
        live[chunk] += op.kind is OpKind.F
        rows.append(tuple(live))
        live[chunk] -= op.kind in (OpKind.B, OpKind.W)
    assert live == [0] * schedule.chunks
    return rows


def kept_rows(schedule: Schedule, stage: int) -> list[tuple[int, ...]]:
    return sorted(tuple(int(count) for count in row) for row in live_rows(schedule)[stage].rows)


@st.composite
def schedules(draw):
    stages, chunks, micro_batches = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 20))
    rng = Random(draw(st.integers(0, 999)))
    name, group = random_schedule(rng, stages, chunks, micro_batches, UNCUT)
    return build_schedule(name, stages, chunks, micro_batches, group)


@given(schedules(), st.integers(0, 2**32 - 1))
def test_the_kept_rows_have_the_maximum_of_all_rows(schedule, seed):
    rng = np.random.default_rng(seed)
    for stage, live in enumerate(live_rows(schedule)):
        rows = np.array(every_row(schedule, stage), dtype=float)
        activations = rng.uniform(0, 100, (schedule.chunks, 50))
        # Some chunks hold nothing, as empty cells do, and some directions lie along one chunk.
        activations[rng.random(activations.shape) < 0.3] = 0.0
        np.testing.assert_allclose((live.rows @ activations).max(0), (rows @ activations).max(0), rtol=1e-12)


@given(schedules())
def test_the_kept_rows_are_among_all_rows_and_name_the_first_op_that_reaches_them(schedule):
    for stage, live in enumerate(live_rows(schedule)):
        rows = every_row(schedule, stage)
        assert [rows.index(tuple(row)) for row in live.rows.tolist()] == live.ops.tolist()
        assert {schedule.rows[stage][op].kind for op in live.ops} == {OpKind.F}


@given(schedules())
def test_no_kept_row_is_dominated_by_another_or_by_a_mix_of_two(schedule):
    for stage in range(schedule.stages):
        kept = kept_rows(schedule, stage)
        for row in kept:
            others = [other for other in kept if other != row]
            assert not any(all(a >= b for a, b in zip(other, row, strict=True)) for other in others)
        if schedule.chunks == 2:
            # Along chunk 0 the rows fall in chunk 1 ever faster, else a mix of the outer two
            # would reach the middle one: the turn from one step to the next is to the right.
            steps = np.diff(np.array(kept), axis=0)
            assert all(a[0] * b[1] - a[1] * b[0] < 0 for a, b in pairwise(steps))


@given(schedules())
def test_a_stage_with_one_chunk_keeps_one_row(schedule):
    # Of numbers only the largest can be the maximum.
    if schedule.chunks == 1:
        assert [len(live.rows) for live in live_rows(schedule)] == [1] * schedule.stages


def test_interleaved_with_two_chunks_keeps_two_rows_a_stage() -> None:
    # S = 4, M = 8, groups 0-3 and 4-7; forwards run chunk 0 0-3, chunk 1 0-3, chunk 0 4-7, chunk 1 4-7,
    # backwards the same with chunks exchanged; warm-up 10, 8, 6, 4.  (live in chunk 0, in chunk 1)
    # right after each forward from the last warm-up one on:
    #   stage 0: (6,4) (7,4) (8,3) (8,3) (8,3) (8,3) (7,4)
    #   stage 1: (4,4) (5,4) (6,3) (7,2) (8,1) (8,1) (7,2) (6,3) (5,4)
    #   stage 2: (4,2) (4,3) (4,3) (5,2) (6,1) (7,0) (7,0) (6,1) (5,2) (4,3) (4,3)
    #   stage 3: (4,0) (4,1) four times, (5,0) four times, (4,1) four times
    # All that add up to a stage's largest number lie on a line, so its two ends are kept.
    schedule = build_schedule("interleaved", 4, 2, 8)
    assert [kept_rows(schedule, stage) for stage in range(4)] == [
        [(7, 4), (8, 3)],
        [(5, 4), (8, 1)],
        [(4, 3), (7, 0)],
        [(4, 1), (5, 0)],
    ]
    # (7,4) is reached after ten forwards, and (8,3) two ops later.
    assert live_rows(schedule)[0].ops.tolist() == [10, 12]


def one_stage(text: str) -> Schedule:
    """Read an order of one stage with two chunks, cells 0 and 1."""
    schedule = parse_csv(text)
    check_schedule(schedule)
    assert (schedule.stages, schedule.chunks) == (1, 2)
    return schedule


def told(schedule: Schedule, live: LiveRows) -> set[tuple[str, tuple[float, ...], int, float]]:
    """First op, live counts, chunk that holds something again, and MB for a moment of every row."""
    rows = zip(live.ops, live.rows.tolist(), live.again.tolist(), live.transient_mb.tolist(), strict=True)
    return {(str(schedule.rows[0][op]), tuple(row), again, mb) for op, row, again, mb in rows}


def test_rows_with_memory_for_a_moment_stand_beside_those_without() -> None:
    # gpipe with 3 micro-batches through two chunks of one stage; an op of cell 1 needs 30 MB for a moment.
    # Live are (3,0) after 0F2, with nothing besides, and (3,3) during 1F2 and 1B2, with the 30 MB: that
    # row reaches all others.
    order = one_stage("0F0,0F1,0F2,1F0,1F1,1F2,1B2,0B2,1B1,0B1,1B0,0B0")
    assert told(order, live_rows(order, transient_mb=(0.0, 30.0))[0]) == {("1F2", (3.0, 3.0), -1, 30.0)}
    # Where cell 0 needs them, (3,0) is live during 0F2 and (3,2) during 0B2; (3,3) goes without.
    order = one_stage("0F0,0F1,0F2,1F0,1F1,1F2,1B2,0B2,1B1,0B1,1B0,0B0")
    assert told(order, live_rows(order, transient_mb=(30.0, 0.0))[0]) == {
        ("1F2", (3.0, 3.0), -1, 0.0),
        ("0B2", (3.0, 2.0), -1, 30.0),
    }


def test_a_backward_needs_its_working_set_or_its_memory_for_a_moment_but_not_both() -> None:
    # One micro-batch, one chunk: B holds what recompute holds again, or 30 MB; F holds 30 MB.
    order = parse_csv("0F0,0B0")
    live = live_rows(order, True, (30.0,))[0]
    assert told(order, live) == {("0F0", (1.0,), -1, 30.0), ("0B0", (1.0,), 0, 0.0)}
    assert live.totals(np.array([7.0]), np.array([20.0])).max() == 37.0  # 7 + 30
    assert live.totals(np.array([7.0]), np.array([50.0])).max() == 57.0  # 7 + 50


def test_the_two_ops_of_an_overlapped_pair_need_theirs_at_once() -> None:
    # 30 MB for a moment in the only cell: F1 and B0 run together with two micro-batches live.
    order = parse_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1")
    apart, at_once = (live_rows(order, transient_mb=(30.0,), overlapping=x)[0] for x in (False, True))
    assert told(order, apart) == {("0F1", (2.0,), -1, 30.0)}
    assert told(order, at_once) == {("0B0", (2.0,), -1, 60.0)}
    # What B holds again is there beside what F needs.
    both = live_rows(order, True, (30.0,), overlapping=True)[0]
    assert told(order, both) == {("0B0", (2.0,), -1, 60.0), ("0B0", (2.0,), 0, 30.0)}


def test_dominated_and_mixed_rows_are_dropped() -> None:
    # After the forwards that matter, (live in chunk 0, in chunk 1) is
    #   1F0 (5,1) · 1F2 (4,2) · 1F4 (3,3);
    # all others, such as 0F4 (5,0) and 1F1 (4,1), are less than one of these in both.
    # (4,2) is half of (5,1) and half of (3,3), so it is never the maximum alone.
    schedule = one_stage("0F0,0F1,0F2,0F3,0F4,1F0,1B0,0B0,1F1,1F2,1B1,0B1,1F3,1F4,1B2,0B2,1B3,0B3,1B4,0B4")
    live = live_rows(schedule)[0]
    assert live.rows.tolist() == [[3.0, 3.0], [5.0, 1.0]]
    assert [str(schedule.rows[0][op]) for op in live.ops] == ["1F4", "1F0"]


def test_a_row_above_every_mix_of_the_outer_two_is_kept() -> None:
    # 1F0 (7,1) · 1F4 (6,4) · 1F6 (5,5): half of (7,1) and half of (5,5) is (6,3), less than (6,4).
    schedule = one_stage(
        "0F0,0F1,0F2,0F3,0F4,0F5,0F6,1F0,1B0,0B0,1F1,1F2,1F3,1F4,1B1,0B1,1F5,1F6,"
        "1B2,0B2,1B3,0B3,1B4,0B4,1B5,0B5,1B6,0B6"
    )
    assert kept_rows(schedule, 0) == [(5, 5), (6, 4), (7, 1)]


def test_memory_is_given_back_by_the_weight_gradient_and_not_by_the_input_gradient() -> None:
    # I0 runs before F1 but W0 after it: two micro-batches are live.
    assert kept_rows(parse_csv("0F0,0I0,0F1,0W0,0I1,0W1"), 0) == [(2,)]
    # With W0 before F1 it is one.
    assert kept_rows(parse_csv("0F0,0I0,0W0,0F1,0I1,0W1"), 0) == [(1,)]


def test_a_sequence_chunk_counts_as_its_share_of_a_micro_batch() -> None:
    # 3 of 2 chunks a micro-batch: live after 0F0.0, 0F0.1 and 0F1.0.
    order = parse_csv("0F0.0,0F0.1,0F1.0,0B0.1,0F1.1,0B0.0,0B1.1,0B1.0")
    assert live_rows(order)[0].rows.tolist() == [[1.5]]


@pytest.mark.parametrize("stage", range(4))
def test_1f1b_keeps_the_warm_up_forwards_and_the_next(stage: int) -> None:
    # min(S - 1 - s, M) warm-up forwards and the one of the first pair: S - s live, first after F(S-1-s).
    schedule = build_schedule("1f1b", 4, 1, 8)
    live = live_rows(schedule)[stage]
    assert live.rows.tolist() == [[4.0 - stage]]
    assert schedule.rows[stage][live.ops[0]] == Op(OpKind.F, stage, 3 - stage)
