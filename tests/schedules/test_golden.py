"""Generators against orders that were made outside this package."""

import re
from pathlib import Path

import pytest

from sapp_ppb.schedules import (
    MicroBatchGroup,
    Placement,
    Schedule,
    build_schedule,
    check_schedule,
    interleaved_less_memory,
    parse_csv,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "schedules"
ORDERS = sorted(GOLDEN.glob("*/*.csv"))

NAMES = {
    "1f1b": "1f1b",
    "interleaved": "interleaved",
    "ScheduleGPipe": "gpipe",
    "Schedule1F1B": "1f1b",
    "ScheduleInterleaved1F1B": "interleaved",
    "ScheduleLoopedBFS": "looped-bfs",
    "ScheduleInterleavedZeroBubble": "interleaved-zero-bubble",
    "ScheduleZBVZeroBubble": "zbv",
    "ScheduleDualPipeV": "dualpipev",
    "dualpipev": "dualpipev",
}


def sizes(path: Path) -> tuple[str, int, int, int, MicroBatchGroup]:
    found = re.fullmatch(r"(\w+?)_pp(\d+)_v(\d+)_m(\d+)(?:_n(\d+))?", path.stem)
    assert found
    stages, chunks, micro_batches = (int(text) for text in found.groups()[1:4])
    group = int(found[5]) if found[5] else None
    if found[1] == "ScheduleInterleaved1F1B":
        # PyTorch runs M // S rounds, at least one, of equally many micro-batches.
        group = micro_batches // max(1, micro_batches // stages)
    return found[1], stages, chunks, micro_batches, group


def test_the_golden_folder_is_complete() -> None:
    # 17 1F1B and 60 interleaved of Megatron; of PyTorch 15 GPipe, 12 1F1B, 28 interleaved, 45 looped
    # breadth-first, 42 interleaved zero bubble, 15 ZBV and 7 DualPipeV; 9 DualPipeV of DeepSeek's rule.
    assert len(ORDERS) == 17 + 60 + 15 + 12 + 28 + 45 + 42 + 15 + 7 + 9


@pytest.mark.parametrize("path", ORDERS, ids=lambda path: path.stem)
def test_the_generator_writes_the_golden_order(path: Path) -> None:
    name, stages, chunks, micro_batches, group = sizes(path)
    schedule = build_schedule(NAMES[name], stages, chunks, micro_batches, group)
    assert schedule.to_csv().splitlines() == path.read_text().splitlines()


@pytest.mark.parametrize("path", ORDERS, ids=lambda path: path.stem)
def test_the_judge_accepts_the_golden_order_and_its_text_is_kept(path: Path) -> None:
    _, stages, chunks, micro_batches, _ = sizes(path)
    schedule = parse_csv(path.read_text())
    check_schedule(schedule)
    check_schedule(schedule, overlapping=True)
    assert schedule.placement is (Placement.V if on_a_v(path) else Placement.LOOP)
    assert (schedule.stages, schedule.chunks, schedule.micro_batches) == (stages, chunks, micro_batches)
    assert schedule.to_csv().splitlines() == path.read_text().splitlines()


def on_a_v(path: Path) -> bool:
    return "ZBV" in path.stem or "ualPipeV" in path.stem or "dualpipev" in path.stem


def live(schedule: Schedule) -> list[int]:
    """Most micro-batches alive on each stage, from F to B or W."""
    step = {"F": 1, "B": -1, "I": 0, "W": -1}
    counts = [[step[op.kind.name] for op in row] for row in schedule.rows]
    return [max(sum(row[: end + 1]) for end in range(len(row))) for row in counts]


def test_zero_bubble_schedules_keep_what_their_papers_say() -> None:
    # ZB-H1 as many on every stage as 1F1B on its first, S; with two chunks S + (2-1)N, N = S; ZBV 2S
    # of half the size; DualPipeV one more.
    assert live(build_schedule("interleaved-zero-bubble", 4, 1, 8)) == [4, 4, 4, 4]
    assert live(build_schedule("interleaved-zero-bubble", 4, 2, 8)) == [8, 8, 8, 8]
    assert live(build_schedule("zbv", 4, 2, 8)) == [8, 8, 8, 8]
    assert live(build_schedule("dualpipev", 4, 2, 8)) == [9, 9, 9, 9]


@pytest.mark.parametrize("name", ["pp2_v2_m4", "pp2_v4_m8", "pp4_v2_m8", "pp4_v4_m12"])
def test_less_memory_is_interleaved_zero_bubble_without_the_split(name: str) -> None:
    # PyTorch's InterleavedZeroBubble warms up with (S-1-s) + (V-1)N forwards, N = S when S divides M;
    # its W's only fill gaps, so leaving them out and reading I as a whole backward gives the other order.
    path = GOLDEN / "torch" / f"ScheduleInterleavedZeroBubble_{name}.csv"
    _, stages, chunks, micro_batches, _ = sizes(path)
    kept = [
        ",".join(op.replace("I", "B") for op in line.split(",") if "W" not in op)
        for line in path.read_text().splitlines()
    ]
    assert interleaved_less_memory(stages, chunks, micro_batches).to_csv().splitlines() == kept
