"""Laws that hold for all sizes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sapp_ppb.schedules import (
    MicroBatchGroup,
    OpKind,
    Schedule,
    check_schedule,
    gpipe,
    interleaved,
    interleaved_less_memory,
    one_f_one_b,
    parse_csv,
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
        max(sum(1 if op.kind is OpKind.F else -1 for op in row[: end + 1]) for end in range(len(row)))
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
