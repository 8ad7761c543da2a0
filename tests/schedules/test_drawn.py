"""Drawn table, text form and generator agree."""

import sys

import pytest

from sapp_ppb.schedules import Op, OpKind, OrderFile, Schedule, build_schedule

# What an op makes: an output or a gradient of a cell for one piece of a micro-batch.
Made = tuple[bool, int, int, int]


def draw(schedule: Schedule) -> list[str]:
    """Slots of a schedule whose ops all take one slot, found by asking in every slot what can start."""
    done: set[Made] = set()
    queues = [list(row) for row in schedule.rows]
    lines = [f"    stage {stage} | " for stage in range(schedule.stages)]
    width = max(len(str(op)) for row in schedule.rows for op in row)
    while any(queues):
        free = [queue.pop(0) if queue and ready(queue[0], done, schedule.cells) else None for queue in queues]
        done |= {made(op) for op in free if op}
        entries = [str(op).ljust(width) if op else ".".center(width) for op in free]
        lines = [f"{line}{entry} " for line, entry in zip(lines, entries, strict=True)]
    return [line.rstrip(" .") for line in lines]


def made(op: Op) -> Made:
    return (op.kind is OpKind.F, op.cell, op.micro_batch, op.sequence_chunk)


def ready(op: Op, done: set[Made], cells: int) -> bool:
    if op.kind is OpKind.F:
        return op.cell == 0 or made(op._replace(cell=op.cell - 1)) in done
    if op.kind is OpKind.W:
        return made(op) in done
    if op.cell == cells - 1:
        return made(op._replace(kind=OpKind.F)) in done
    return made(op._replace(cell=op.cell + 1)) in done


def drawn_in(module: str) -> list[str]:
    text = sys.modules[f"sapp_ppb.schedules.{module}"].__doc__ or ""
    return [line for line in text.splitlines() if line.startswith("    stage ")]


@pytest.mark.parametrize(
    ("module", "name", "sizes"),
    [
        ("gpipe", "gpipe", (3, 1, 4)),
        ("one_f_one_b", "1f1b", (3, 1, 4)),
        ("interleaved", "interleaved", (2, 2, 4)),
        ("interleaved_less_memory", "interleaved-less-memory", (2, 2, 4)),
        ("looped_bfs", "looped-bfs", (2, 2, 4)),
        ("interleaved_zero_bubble", "interleaved-zero-bubble", (3, 1, 4)),
        ("zbv", "zbv", (2, 2, 3)),
        ("dualpipev", "dualpipev", (2, 2, 4)),
        ("zb_auto", "zb-auto", (3, 1, 4)),
    ],
)
def test_the_drawn_table_of_each_schedule_is_what_its_generator_gives(
    module: str, name: str, sizes: tuple[int, int, int]
) -> None:
    assert drawn_in(module) == draw(build_schedule(name, *sizes))


def test_the_drawn_table_of_sequence_chunks_is_what_the_generator_gives() -> None:
    assert drawn_in("seq1f1b") == draw(build_schedule("seq1f1b", 2, 1, 2, sequence_chunks=2))


def test_the_drawn_table_of_a_custom_order_is_what_the_file_beside_it_gives() -> None:
    lines = (sys.modules["sapp_ppb.schedules.custom"].__doc__ or "").splitlines()
    text = "\n".join(line.strip() for line in lines if line.startswith(("    0F", "    1F")))
    file = OrderFile(path="order.csv", text=text)
    assert drawn_in("custom") == draw(build_schedule("custom", 2, 1, 2, order=file))
