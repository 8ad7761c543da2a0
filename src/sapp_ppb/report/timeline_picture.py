"""Pictures of when every stage does what: of one timeline, or of several on one axis of time."""

from collections.abc import Mapping, Sequence
from os import PathLike

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D, IdentityTransform
from numpy.typing import ArrayLike

from sapp_ppb.errors import InputError
from sapp_ppb.report import canvas
from sapp_ppb.report.blocks import Blocks, Floats, timeline_blocks
from sapp_ppb.report.colours import HATCHED, IDLE, PAPER, shade, text_colour
from sapp_ppb.report.words import (
    EXTRA_NAME,
    added_text,
    estimate_text,
    over_text,
    problem_text,
    step_text,
    time_text,
)
from sapp_ppb.report.work import Spans, Work, work_shares, work_spans
from sapp_ppb.schedules import OpKind
from sapp_ppb.simulator import Timeline

_LEAST_DOTS = 4.0  # an average op that is narrower is not drawn apart
_COLUMN_DOTS, _FEWEST_COLUMNS, _OPS_A_COLUMN = 2, 100, 10  # fewer ops a column show as noise
_MOMENT = 1e-9  # of a step
_BETWEEN_IN = 0.75
_TOO_NARROW = (0.1, 0.5, 0.8)  # share of the ops of a kind that may have no number
_LARGEST_TEXT, _SMALLEST_TEXT, _DIGIT = 7.0, 4.5, 0.66  # points, and a digit's width as a share


def draw_timeline(timeline: Timeline, path: str | PathLike[str], force: bool = False) -> None:
    """
    Draw a row for each stage: what it does when, chunk by chunk, and when it is idle.

    A step of so many ops that they would not be seen apart is drawn as the shares of
    each kind of work in narrow columns of time; the picture says so.

    Parameters
    ----------
    timeline
        What to draw.
    path
        File to write, PNG or SVG by its ending; missing folders are made.
    force
        Replace a file that exists.

    Raises
    ------
    InputError
        If the ending is another, the file exists and ``force`` is not set, or it can
        not be written.
    """
    canvas.save_picture(lambda: _one(timeline), path, force)


def draw_comparison(
    timelines: Mapping[str, Timeline], path: str | PathLike[str], force: bool = False
) -> None:
    """
    Draw timelines below each other on one axis of time.

    Parameters
    ----------
    timelines
        What to draw under which name, at least one; drawn in this order.
    path, force
        As of ``draw_timeline``.

    Raises
    ------
    InputError
        As of ``draw_timeline``, and if there is no timeline.
    """
    if not timelines:
        raise InputError("comparison", ["needs at least one timeline (got none)"])
    canvas.save_picture(lambda: _several(timelines), path, force)


def _one(timeline: Timeline) -> Figure:
    stages = timeline.plan.problem.stages
    figure = canvas.new_figure(stages * canvas.row_height_in(stages, total=5.5, least=0.14, most=0.5))
    canvas.fix_margins(figure)
    axes = figure.subplots()
    note = _draw_rows(axes, timeline, timeline.step_ms)
    canvas.write_heading(axes, problem_text(timeline.plan.problem), f"{step_text(timeline)}{note}")
    canvas.draw_legend(axes, _legend([timeline], apart=not note))
    return figure


def _several(timelines: Mapping[str, Timeline]) -> Figure:
    until_ms = max(timeline.step_ms for timeline in timelines.values())
    stages = [timeline.plan.problem.stages for timeline in timelines.values()]
    row_in = canvas.row_height_in(max(stages), total=3.2, least=0.1, most=0.35)
    figure = canvas.new_figure(sum(stages) * row_in + (len(stages) - 1) * _BETWEEN_IN)
    canvas.fix_margins(figure)
    figure.subplots_adjust(hspace=_BETWEEN_IN / (row_in * sum(stages) / len(stages)))
    every = figure.subplots(len(stages), 1, squeeze=False, height_ratios=stages)[:, 0]
    notes = []
    for axes, (name, timeline) in zip(every, timelines.items(), strict=True):
        notes.append(_draw_rows(axes, timeline, until_ms))
        over = f", {over_text(timeline)}" if timeline.stages_over else ""
        guessed = estimate_text(timeline.plan.problem)
        canvas.write_heading(axes, f"{name}{over}", f"{step_text(timeline)}{notes[-1]}{guessed}")
        axes.axvline(timeline.step_ms, color="#000000", linewidth=0.8)
        if axes is not every[-1]:
            axes.set_xlabel("")
    canvas.draw_legend(every[-1], _legend(list(timelines.values()), apart=not all(notes)))
    return figure


def _draw_rows(axes: Axes, timeline: Timeline, until_ms: float) -> str:
    """Draw the rows of a timeline; what must be said of the way it is drawn."""
    blocks, stages = timeline_blocks(timeline), timeline.plan.problem.stages
    canvas.label_stages(axes, stages)
    canvas.label_across(axes, until_ms, "ms")
    dots_per_ms = axes.get_window_extent().width / until_ms
    if timeline.extra_ms:
        begin_ms, done_ms = np.array(timeline.extra_ms).T
        canvas.draw_hatched(axes, begin_ms, done_ms, np.arange(stages), canvas.ROW)
    busy_ms = float((blocks.end_ms - blocks.start_ms).sum())
    if busy_ms / len(blocks.stage) * dots_per_ms >= _LEAST_DOTS:
        _draw_ops(axes, blocks, timeline.plan.problem.interleave, dots_per_ms)
        return ""
    columns = int(axes.get_window_extent().width / _COLUMN_DOTS)
    columns = min(columns, max(_FEWEST_COLUMNS, len(blocks.stage) // stages // _OPS_A_COLUMN))
    _draw_shares(axes, blocks, columns, until_ms)
    return f"; each column is the mean over {time_text(until_ms / columns)}"


def _draw_ops(axes: Axes, blocks: Blocks, chunks: int, dots_per_ms: float) -> None:
    """Draw every op as a box, its recompute part and its chunk in shades of their own."""
    rows = np.arange(int(blocks.stage[-1]) + 1)
    background = canvas.boxes(0.0, float(blocks.end_ms.max()), rows - canvas.ROW / 2, rows + canvas.ROW / 2)
    axes.add_patch(PathPatch(background, facecolor=IDLE, linewidth=0))
    line = min(0.5, 0.05 * dots_per_ms * float(np.median(blocks.end_ms - blocks.start_ms)))
    for work, spans in work_spans(blocks).items():
        for chunk in range(chunks):
            here = blocks.chunk[spans.op] == chunk
            middle, half = _middle(blocks, spans)[here], canvas.ROW / 2 * spans.share[here]
            outline = canvas.boxes(spans.start_ms[here], spans.end_ms[here], middle - half, middle + half)
            axes.add_patch(
                PathPatch(outline, facecolor=shade(work, chunk, chunks), edgecolor=PAPER, linewidth=line)
            )
    _write_numbers(axes, blocks, dots_per_ms)


def _write_numbers(axes: Axes, blocks: Blocks, dots_per_ms: float) -> None:
    """Write the micro-batch into the ops that are wide enough, beside their recompute part."""
    points_per_ms = dots_per_ms * canvas.POINTS_PER_IN / canvas.DOTS_PER_IN
    row_points = axes.get_window_extent().height * points_per_ms / dots_per_ms / (int(blocks.stage[-1]) + 1)
    digits = len(str(int(blocks.micro_batch.max())))
    for work, spans in work_spans(blocks).items():
        width = (spans.end_ms - spans.start_ms) * points_per_ms - 1
        narrow = np.quantile(width, _TOO_NARROW).tolist()
        tall = 0.6 * row_points * float(spans.share.min())
        sizes = [min(_LARGEST_TEXT, tall, w / digits / _DIGIT) for w in narrow]
        size = next((size for size in sizes if size >= _SMALLEST_TEXT), 0.0)
        if work is Work.RECOMPUTE or not size:
            continue
        fits = width >= _DIGIT * size * digits
        middle = np.stack([(spans.start_ms + spans.end_ms) / 2, _middle(blocks, spans)], axis=1)
        numbers = blocks.micro_batch[spans.op]
        for number in np.unique(numbers[fits]).tolist():
            _write(axes, str(number), size, middle[fits & (numbers == number)], text_colour(work))


def _middle(blocks: Blocks, spans: Spans) -> Floats:
    """Find the height at which each span is drawn: of two that overlap, the forward is above."""
    aside = np.where(blocks.kind[spans.op] == OpKind.F, -0.25, 0.25) * canvas.ROW
    return np.asarray(blocks.stage[spans.op] + np.where(spans.share < 1.0, aside, 0.0))


def _write(axes: Axes, text: str, size: float, places: Floats, colour: str) -> None:
    """Write one text centred on many places, which costs far less than a text for each."""
    outline = TextPath((0, 0), text, size=size)
    box = outline.get_extents()
    centred = outline.transformed(Affine2D().translate(-(box.x0 + box.x1) / 2, -(box.y0 + box.y1) / 2))
    collection = PathCollection([centred], sizes=[1], offsets=places, offset_transform=axes.transData)
    collection.set_transform(IdentityTransform())
    collection.set(facecolor=colour, linewidth=0)
    axes.add_collection(collection, autolim=False)


def _draw_shares(axes: Axes, blocks: Blocks, columns: int, until_ms: float) -> None:
    """Draw what a stage does in each column of time from below: a share of its height for each kind."""
    ends_ms = np.arange(1, columns + 1) * until_ms / columns
    step = (ends_ms <= float(blocks.end_ms.max()) * (1 + _MOMENT)).astype(float)
    layers: list[tuple[ArrayLike, ArrayLike, str]] = [(0.0, step, IDLE)]
    below = np.zeros(1)
    for work, share in work_shares(blocks, columns, until_ms).items():
        layers.append((below, below + share, shade(work)))
        below = below + share
    canvas.draw_strips(axes, until_ms, layers)


def _legend(timelines: Sequence[Timeline], *, apart: bool) -> list[canvas.Entry]:
    """Explain every kind of work that there is, in all its shades where ops are drawn apart."""
    chunks = max(timeline.plan.problem.interleave for timeline in timelines) if apart else 1
    there = {work for timeline in timelines for work in work_spans(timeline_blocks(timeline))}
    added = added_text(timeline.plan for timeline in timelines)
    of_chunks = f", chunk 0 to {chunks - 1}" if chunks > 1 else ""
    entries: list[canvas.Entry] = [
        (
            [shade(work, chunk, chunks) for chunk in range(chunks)],
            f"{added if work is Work.RECOMPUTE else work.value}{of_chunks}",
        )
        for work in Work
        if work in there
    ]
    extra = [(HATCHED, EXTRA_NAME)] if any(timeline.extra_ms for timeline in timelines) else []
    return [*entries, ([IDLE], "idle"), *extra]
