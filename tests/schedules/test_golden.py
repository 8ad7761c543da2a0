"""Generators against orders that were made outside this package."""

import re
from pathlib import Path

import pytest

from sapp_ppb.schedules import (
    MicroBatchGroup,
    Placement,
    build_schedule,
    check_schedule,
    interleaved_less_memory,
    parse_csv,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "schedules"
SPLIT = sorted([*GOLDEN.glob("torch/*ZeroBubble_*"), *GOLDEN.glob("torch/*ZBV*")])
WHOLE = sorted({*GOLDEN.glob("*/*.csv")} - {*SPLIT})

NAMES = {
    "1f1b": "1f1b",
    "interleaved": "interleaved",
    "ScheduleGPipe": "gpipe",
    "Schedule1F1B": "1f1b",
    "ScheduleInterleaved1F1B": "interleaved",
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
    # 17 1F1B and 60 interleaved of Megatron; 15 GPipe, 12 1F1B and 28 interleaved of PyTorch.
    assert len(WHOLE) == 17 + 60 + 15 + 12 + 28
    assert len(SPLIT) == 8 + 2


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_the_generator_writes_the_golden_order(path: Path) -> None:
    name, stages, chunks, micro_batches, group = sizes(path)
    schedule = build_schedule(NAMES[name], stages, chunks, micro_batches, group)
    assert schedule.to_csv().splitlines() == path.read_text().splitlines()


@pytest.mark.parametrize("path", WHOLE + SPLIT, ids=lambda path: path.stem)
def test_the_judge_accepts_the_golden_order_and_its_text_is_kept(path: Path) -> None:
    _, stages, chunks, micro_batches, _ = sizes(path)
    placement = Placement.V if "ZBV" in path.stem else Placement.LOOP
    schedule = parse_csv(path.read_text(), placement)
    check_schedule(schedule)
    assert (schedule.stages, schedule.chunks, schedule.micro_batches) == (stages, chunks, micro_batches)
    assert schedule.to_csv().splitlines() == path.read_text().splitlines()


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
