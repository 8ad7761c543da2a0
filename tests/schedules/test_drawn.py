"""Drawn table, text form and generator agree."""

import sys

import pytest

from sapp_ppb.schedules import Op, OpKind, Schedule, build_schedule


def draw(schedule: Schedule) -> list[str]:
    """Slots of a schedule whose ops all take one slot, found by asking in every slot what can start."""
    done: set[tuple[bool, int, int]] = set()
    queues = [list(row) for row in schedule.rows]
    lines = [f"    stage {stage} | " for stage in range(schedule.stages)]
    while any(queues):
        free = [queue.pop(0) if queue and ready(queue[0], done, schedule.cells) else None for queue in queues]
        done |= {(op.kind is OpKind.F, op.cell, op.micro_batch) for op in free if op}
        lines = [line + (f"{op} " if op else " .  ") for line, op in zip(lines, free, strict=True)]
    return [line.rstrip(" .") for line in lines]


def ready(op: Op, done: set[tuple[bool, int, int]], cells: int) -> bool:
    if op.kind is OpKind.F:
        return op.cell == 0 or (True, op.cell - 1, op.micro_batch) in done
    if op.cell == cells - 1:
        return (True, op.cell, op.micro_batch) in done
    return (False, op.cell + 1, op.micro_batch) in done


@pytest.mark.parametrize(
    ("module", "name", "stages", "chunks"),
    [
        ("gpipe", "gpipe", 3, 1),
        ("one_f_one_b", "1f1b", 3, 1),
        ("interleaved", "interleaved", 2, 2),
        ("interleaved_less_memory", "interleaved-less-memory", 2, 2),
    ],
)
def test_the_drawn_table_of_each_schedule_is_what_its_generator_gives(
    module: str, name: str, stages: int, chunks: int
) -> None:
    text = sys.modules[f"sapp_ppb.schedules.{module}"].__doc__ or ""
    drawn = [line for line in text.splitlines() if line.startswith("    stage ")]
    assert drawn == draw(build_schedule(name, stages, chunks, 4))
