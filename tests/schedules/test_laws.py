"""Laws that hold for all sizes."""

from itertools import accumulate

from hypothesis import event, given, settings
from hypothesis import strategies as st

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules import (
    MicroBatchGroup,
    OpKind,
    Schedule,
    check_schedule,
    dualpipev,
    gpipe,
    interleaved,
    interleaved_less_memory,
    interleaved_zero_bubble,
    looped_bfs,
    one_f_one_b,
    parse_csv,
    seq1f1b,
    zbv,
)
from sapp_ppb.schedules.groups import accepted_sizes

STAGES = st.integers(1, 6)
CHUNKS = st.integers(2, 4)
MICRO_BATCHES = st.integers(1, 24)


def judge(schedule: Schedule) -> None:
    check_schedule(schedule)
    assert parse_csv(schedule.to_csv(), schedule.placement, schedule.name) == schedule


def live(schedule: Schedule) -> list[int]:
    return [
        max(accumulate((op.kind is OpKind.F) - (op.kind in (OpKind.B, OpKind.W)) for op in row))
        for row in schedule.rows
    ]


@st.composite
def interleaved_sizes(draw: st.DrawFn) -> tuple[int, int, int, MicroBatchGroup]:
    stages, micro_batches = draw(STAGES), draw(MICRO_BATCHES)
    groups: list[MicroBatchGroup] = [*accepted_sizes(stages, micro_batches)]
    if micro_batches >= stages:
        groups.append("remainder-first")
    if micro_batches <= stages or micro_batches % stages == 0:
        groups.append(None)
    return stages, draw(CHUNKS), micro_batches, draw(st.sampled_from(groups))


@settings(deadline=None)
@given(STAGES, MICRO_BATCHES)
def test_gpipe_runs_and_keeps_every_micro_batch_alive(stages: int, micro_batches: int) -> None:
    schedule = gpipe(stages, micro_batches)
    judge(schedule)
    assert live(schedule) == [micro_batches] * stages


@settings(deadline=None)
@given(STAGES, MICRO_BATCHES)
def test_1f1b_runs_and_keeps_s_minus_stage_micro_batches_alive(stages: int, micro_batches: int) -> None:
    schedule = one_f_one_b(stages, micro_batches)
    judge(schedule)
    # min(S-1-s, M) forwards in the warm-up and one more of the first pair, if there is one.
    assert live(schedule) == [min(stages - stage, micro_batches) for stage in range(stages)]


@settings(deadline=None)
@given(interleaved_sizes())
def test_interleaved_runs_with_every_group_it_accepts(sizes: tuple[int, int, int, MicroBatchGroup]) -> None:
    judge(interleaved(*sizes))


@settings(deadline=None)
@given(STAGES, CHUNKS, st.integers(1, 4))
def test_less_memory_runs_and_never_keeps_more_alive(stages: int, chunks: int, rounds: int) -> None:
    schedule = interleaved_less_memory(stages, chunks, rounds * stages)
    judge(schedule)
    longer = interleaved(stages, chunks, rounds * stages)
    assert all(less <= more for less, more in zip(live(schedule), live(longer), strict=True))


@settings(deadline=None)
@given(STAGES, st.integers(1, 4), MICRO_BATCHES)
def test_looped_bfs_runs_and_keeps_everything_alive(stages: int, chunks: int, micro_batches: int) -> None:
    schedule = looped_bfs(stages, chunks, micro_batches)
    judge(schedule)
    assert live(schedule) == [chunks * micro_batches] * stages


@settings(deadline=None)
@given(STAGES, MICRO_BATCHES)
def test_zb_h1_runs_and_keeps_on_every_stage_what_1f1b_keeps_on_its_first(
    stages: int, micro_batches: int
) -> None:
    schedule = interleaved_zero_bubble(stages, 1, micro_batches)
    judge(schedule)
    assert live(schedule) == [min(stages, micro_batches)] * stages


@settings(deadline=None)
@given(STAGES, CHUNKS, MICRO_BATCHES, st.data())
def test_interleaved_zero_bubble_runs_with_every_group_it_accepts(
    stages: int, chunks: int, micro_batches: int, data: st.DataObject
) -> None:
    group = data.draw(st.sampled_from(accepted_sizes(stages, micro_batches)))
    judge(interleaved_zero_bubble(stages, chunks, micro_batches, group))


@settings(deadline=None)
@given(STAGES, MICRO_BATCHES)
def test_zbv_runs_with_any_number_of_micro_batches(stages: int, micro_batches: int) -> None:
    schedule = zbv(stages, 2, micro_batches)
    judge(schedule)
    assert max(live(schedule)) <= 2 * stages


@settings(deadline=None)
@given(STAGES, st.integers(0, 12))
def test_dualpipev_runs_also_where_pairs_overlap(stages: int, more: int) -> None:
    schedule = dualpipev(stages, 2, 2 * stages + more)
    judge(schedule)
    check_schedule(schedule, overlapping=True)
    assert live(schedule) == [2 * stages + 1] * stages


@settings(deadline=None)
@given(STAGES, MICRO_BATCHES, st.integers(2, 5))
def test_seq1f1b_runs_and_keeps_k_minus_1_chunks_more_than_1f1b(
    stages: int, micro_batches: int, k: int
) -> None:
    schedule = seq1f1b(stages, 1, micro_batches, k)
    judge(schedule)
    # Warm-up S-1-s + k-1 and one more of the first pair, if there are as many.
    assert live(schedule) == [min(stages - stage + k - 1, micro_batches * k) for stage in range(stages)]


@settings(deadline=None)
@given(STAGES, CHUNKS, MICRO_BATCHES, st.integers(2, 5), st.data())
def test_interleaved_seq1f1b_runs_with_every_group_it_accepts(
    stages: int, chunks: int, micro_batches: int, k: int, data: st.DataObject
) -> None:
    group = data.draw(st.none() | st.integers(1, micro_batches))
    try:
        schedule = seq1f1b(stages, chunks, micro_batches, k, group)
    except ScheduleError:
        event("refused")
        return
    judge(schedule)
