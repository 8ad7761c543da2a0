"""A small timeline in text: a row a stage, a character a moment."""

from typing import TYPE_CHECKING

import numpy as np
from rich.style import Style
from rich.text import Text

from sapp_ppb.report.blocks import Floats
from sapp_ppb.report.colours import EXTRA, shade, text_colour
from sapp_ppb.report.words import EXTRA_NAME, added_text, time_text
from sapp_ppb.report.work import WORK_OF_KIND, Work
from sapp_ppb.schedules import OpKind
from sapp_ppb.schedules.op import WHOLE

if TYPE_CHECKING:
    from sapp_ppb.report import Blocks
    from sapp_ppb.simulator import Timeline

_IDLE, _RECOMPUTE, _EXTRA = ".", "r", "/"


def timeline_text(timeline: "Timeline", columns: int) -> Text:
    """
    Draw a timeline in so many columns, or say where to look when it is too long for them.

    An op is its kind and micro-batch as far as they fit, with its cell before them
    where a stage has several, filled up with the small letter of its kind: ``F3f``;
    ``r`` is recompute, or what a strategy adds, and ``.`` idle.
    """
    from sapp_ppb.report import timeline_blocks

    blocks, stages = timeline_blocks(timeline), timeline.plan.problem.stages
    names = [f"stage {stage} ".rjust(len(f"stage {stages - 1} ")) for stage in range(stages)]
    width = columns - len(names[0])
    lasts_ms = (blocks.end_ms - blocks.start_ms)[blocks.kind == OpKind.F]
    if float(np.median(lasts_ms)) * width < timeline.step_ms:
        ops = len(blocks.stage) // stages
        return Text(
            f"timeline: {ops} ops a stage do not fit {columns} columns; "
            "look at timeline.png, which --output writes"
        )
    rows = [Text(name) + _row(timeline, blocks, stage, width) for stage, name in enumerate(names)]
    heading = f"timeline, a column is {time_text(timeline.step_ms / width)}"
    return Text("\n").join([Text(heading), *rows, Text(_legend(timeline, blocks))])


def _row(timeline: "Timeline", blocks: "Blocks", stage: int, width: int) -> Text:
    """Draw the ops of one stage one after the other."""
    scale, chunks = width / timeline.step_ms, timeline.plan.problem.interleave
    ops = np.flatnonzero(blocks.stage == stage)
    places = [np.rint(time_ms[ops] * scale).astype(int).tolist() for time_ms in _side_by_side(blocks)]
    row = Text()
    for op, start, again, end in zip(ops, *places, strict=True):
        work, chunk = WORK_OF_KIND[OpKind(blocks.kind[op])], int(blocks.chunk[op])
        row.append(_IDLE * (start - len(row)))
        start = len(row)  # by rounding an op may start before the one before it has ended
        again = max(again, start)
        row.append(_RECOMPUTE * (again - start), _style(Work.RECOMPUTE, chunk, chunks))
        row.append(_op_text(blocks, op, max(end - again, 0), chunks), _style(work, chunk, chunks))
    if timeline.extra_ms:
        end = round(timeline.extra_ms[stage][1] * scale)
        row.append(_EXTRA * (end - len(row)), Style(bgcolor=EXTRA))
    return row.append(_IDLE * (width - len(row)))


def _side_by_side(blocks: "Blocks") -> tuple[Floats, Floats, Floats]:
    """Start, end of recompute and end of each op; two that overlap have a half of their time each."""
    middle_ms, forward = (blocks.start_ms + blocks.end_ms) / 2, blocks.kind == OpKind.F
    start_ms = np.where(blocks.overlapped & ~forward, middle_ms, blocks.start_ms)
    end_ms = np.where(blocks.overlapped & forward, middle_ms, blocks.end_ms)
    return start_ms, np.minimum(start_ms + blocks.recompute_ms, end_ms), end_ms


def _op_text(blocks: "Blocks", op: int, width: int, chunks: int) -> str:
    """Say an op as far as it fits."""
    piece = "" if blocks.sequence_chunk[op] == WHOLE else f".{blocks.sequence_chunk[op]}"
    letter, micro_batch = OpKind(blocks.kind[op]).name, f"{blocks.micro_batch[op]}{piece}"
    whole = f"{blocks.cell[op]}{letter}{micro_batch}" if chunks > 1 else f"{letter}{micro_batch}"
    names = (whole, f"{letter}{micro_batch}", letter, "")
    return next(name for name in names if len(name) <= width).ljust(width, letter.lower())


def _style(work: Work, chunk: int, chunks: int) -> Style:
    return Style(color=text_colour(work), bgcolor=shade(work, chunk, chunks))


def _legend(timeline: "Timeline", blocks: "Blocks") -> str:
    """Explain the letters that there are."""
    there = [
        f"{kind.name} {work.value}" for kind, work in WORK_OF_KIND.items() if np.any(blocks.kind == kind)
    ]
    again = [f"{_RECOMPUTE} {added_text([timeline.plan])}"] if np.any(blocks.recompute_ms) else []
    pairs = ["two that overlap side by side"] if np.any(blocks.overlapped) else []
    extra = [f"{_EXTRA} {EXTRA_NAME}"] if timeline.extra_ms else []
    return ", ".join([*there, *again, f"{_IDLE} idle", *pairs, *extra])
