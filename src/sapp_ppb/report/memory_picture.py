"""The picture of what every stage holds over time, against its limit."""

from collections.abc import Sequence
from os import PathLike

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from sapp_ppb.report import canvas
from sapp_ppb.report.blocks import Floats
from sapp_ppb.report.colours import ACTIVATIONS, BETWEEN, CONSTANT, IDLE, LIMIT_LINE, OVER_LIMIT, PARAMETERS
from sapp_ppb.report.memory_curve import StageMemory, memory_curve
from sapp_ppb.report.words import memory_text, peak_text, problem_text, time_text
from sapp_ppb.simulator import Timeline

_COLUMN_DOTS = 2
_MOMENT = 1e-9  # of the step
_LABEL_IN = 1.9


def draw_memory(timeline: Timeline, path: str | PathLike[str], force: bool = False) -> None:
    """
    Draw a row for each stage: what it holds when, and its limit, all on one scale.

    Where memory changes faster than can be seen apart, the least and the most that a
    stage holds in narrow columns of time are drawn; the picture says so.

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
    canvas.save_picture(lambda: _figure(timeline), path, force)


def _figure(timeline: Timeline) -> Figure:
    problem = timeline.plan.problem
    row_in = canvas.row_height_in(problem.stages, total=8.0, least=0.2, most=0.9)
    figure = canvas.new_figure(problem.stages * row_in)
    canvas.fix_margins(figure, right_in=_LABEL_IN)
    axes = figure.subplots()
    canvas.label_stages(axes, problem.stages)
    canvas.label_across(axes, timeline.makespan_ms, "ms")
    curves, limits = memory_curve(timeline), problem.limit_per_stage_mb
    most_mb = canvas.memory_scale_mb(timeline.peak_memory_mb, limits)
    columns = int(axes.get_window_extent().width / _COLUMN_DOTS)
    dense = max(len(curve.time_ms) for curve in curves) > columns
    if dense:
        _draw_columns(axes, timeline, most_mb, columns)
    else:
        for stage, (curve, limit_mb) in enumerate(zip(curves, limits, strict=True)):
            _draw_steps(axes, stage, curve, limit_mb, most_mb)
    _draw_limits(axes, timeline, most_mb)
    note = f"; each column is {time_text(timeline.makespan_ms / columns)} wide" if dense else ""
    canvas.write_heading(axes, problem_text(problem), f"{memory_text(timeline)}{note}")
    canvas.draw_legend(axes, _legend(timeline, curves, dense=dense, limited=min(limits) <= most_mb))
    return figure


def _draw_steps(axes: Axes, stage: int, curve: StageMemory, limit_mb: float, most_mb: float) -> None:
    """Stack what a stage holds throughout and what lives for a while, from the foot of its row."""
    until_ms = axes.get_xlim()[1]
    time_ms, memory_mb = _lasting(curve, until_ms)
    time_ms, memory_mb = np.append(time_ms, until_ms), np.append(memory_mb, memory_mb[-1])
    held_mb = curve.constant_mb + curve.parameter_mb
    for layer in _layers(curve.constant_mb, held_mb, memory_mb, memory_mb, limit_mb, most_mb):
        low, high = (np.broadcast_to(share, time_ms.shape) for share in layer[:2])
        if np.any(high > low):
            foot, head = (stage + canvas.ROW * (0.5 - share) for share in (low, high))
            axes.fill_between(time_ms, foot, head, step="post", color=layer[2], linewidth=0)


def _draw_columns(axes: Axes, timeline: Timeline, most_mb: float, columns: int) -> None:
    """Draw the least and the most that every stage holds in equal columns of time."""
    curves, until_ms = memory_curve(timeline), timeline.makespan_ms
    constant_mb = np.array([[curve.constant_mb] for curve in curves])
    held_mb = constant_mb + np.array([[curve.parameter_mb] for curve in curves])
    least_mb, highest_mb = np.array([_ranges(curve, until_ms, columns) for curve in curves]).swapaxes(0, 1)
    limit_mb = np.array(timeline.plan.problem.limit_per_stage_mb)[:, None]
    layers = _layers(constant_mb, held_mb, least_mb, highest_mb, limit_mb, most_mb)
    canvas.draw_strips(axes, until_ms, layers)


def _layers(
    constant_mb: ArrayLike,
    held_mb: ArrayLike,
    least_mb: Floats,
    highest_mb: Floats,
    limit_mb: ArrayLike,
    most_mb: float,
) -> list[tuple[ArrayLike, ArrayLike, str]]:
    """Say from and to which share of a row's height what is drawn in which colour."""
    layers = (
        (0.0, most_mb, IDLE),
        (0.0, constant_mb, CONSTANT),
        (constant_mb, held_mb, PARAMETERS),
        (held_mb, least_mb, ACTIVATIONS),
        (least_mb, highest_mb, BETWEEN),
        (np.minimum(limit_mb, highest_mb), highest_mb, OVER_LIMIT),
    )
    return [(np.divide(low, most_mb), np.divide(high, most_mb), colour) for low, high, colour in layers]


def _ranges(curve: StageMemory, until_ms: float, columns: int) -> tuple[Floats, Floats]:
    """Least and most that a stage holds in each of equal columns of time, MB; shape (columns,)."""
    time_ms, memory_mb = _lasting(curve, until_ms)
    step = np.searchsorted(time_ms, np.linspace(0.0, until_ms, columns + 1), side="right") - 1
    # Steps that begin before the column ends, the one that lasts into it included.
    last_mb = memory_mb[step[1:]]
    return (
        np.minimum(np.minimum.reduceat(memory_mb, step[:-1]), last_mb),
        np.maximum(np.maximum.reduceat(memory_mb, step[:-1]), last_mb),
    )


def _lasting(curve: StageMemory, until_ms: float) -> tuple[Floats, Floats]:
    """Leave out what lasts no time, which can not be seen."""
    lasts = np.append(np.diff(curve.time_ms) > _MOMENT * until_ms, True)
    return curve.time_ms[lasts], curve.memory_mb[lasts]


def _draw_limits(axes: Axes, timeline: Timeline, most_mb: float) -> None:
    """Draw each stage's limit as a line, and say its peak beside its row."""
    until_ms, stages = axes.get_xlim()[1], timeline.plan.problem.stages
    pairs = zip(timeline.peak_memory_mb, timeline.plan.problem.limit_per_stage_mb, strict=True)
    for stage, (peak_mb, limit_mb) in enumerate(pairs):
        if limit_mb <= most_mb:
            axes.plot([0, until_ms], [stage + canvas.ROW * (0.5 - limit_mb / most_mb)] * 2, **LIMIT_LINE)
        if stage in canvas.labelled(stages):
            over = stage in timeline.stages_over
            canvas.write_beside(axes, stage, peak_text(peak_mb, limit_mb, over=over), strong=over)


def _legend(
    timeline: Timeline, curves: Sequence[StageMemory], *, dense: bool, limited: bool
) -> list[canvas.Entry]:
    """Explain the colours that there are."""
    entries: list[canvas.Entry] = []
    if any(curve.constant_mb for curve in curves):
        entries.append(([CONSTANT], "constant"))
    if any(curve.parameter_mb for curve in curves):
        entries.append(([PARAMETERS], "parameters"))
    entries.append(([ACTIVATIONS], "activations"))
    if dense:
        entries.append(([BETWEEN], "activations, for a part of each column"))
    if timeline.stages_over:
        entries.append(([OVER_LIMIT], "over the limit"))
    if limited:
        entries.append((LIMIT_LINE, "limit"))
    return entries
