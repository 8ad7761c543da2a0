"""The picture of how time and memory are spread over the stages: the table of stages as bars."""

from os import PathLike

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch

from sapp_ppb.report import canvas
from sapp_ppb.report.blocks import Floats, timeline_blocks
from sapp_ppb.report.colours import ACTIVATIONS, CONSTANT, HATCHED, LIMIT_LINE, OVER_LIMIT, PARAMETERS, shade
from sapp_ppb.report.memory_curve import memory_curve
from sapp_ppb.report.words import EXTRA_NAME, added_text, memory_text, peak_text, problem_text, step_text
from sapp_ppb.report.work import Work, work_spans
from sapp_ppb.simulator import Timeline

_BAR, _MARK = 0.8, 0.96  # shares of a stage's height
_LABEL_IN = 1.9


def draw_stages(timeline: Timeline, path: str | PathLike[str], force: bool = False) -> None:
    """
    Draw two bars for each stage: the work of a step against its makespan, and the peak against the limit.

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
    row_in = canvas.row_height_in(problem.stages, total=5.5, least=0.16, most=0.5)
    figure = canvas.new_figure(problem.stages * row_in)
    canvas.fix_margins(figure, right_in=_LABEL_IN)
    figure.subplots_adjust(wspace=0.22)
    time_axes, memory_axes = figure.subplots(1, 2)
    _draw_time(time_axes, timeline)
    _draw_memory(memory_axes, timeline)
    canvas.write_heading(time_axes, problem_text(problem), step_text(timeline))
    canvas.write_heading(memory_axes, "", memory_text(timeline))
    return figure


def _draw_time(axes: Axes, timeline: Timeline) -> None:
    """Stack the kinds of work of every stage."""
    stages, blocks = timeline.plan.problem.stages, timeline_blocks(timeline)
    canvas.label_stages(axes, stages)
    canvas.label_across(axes, timeline.step_ms, "ms of a step")
    done_ms, entries = np.zeros(stages), list[canvas.Entry]()
    for work, spans in work_spans(blocks).items():
        lasts_ms = np.bincount(blocks.stage[spans.op], spans.busy_ms, stages).astype(float)
        done_ms = _stack(axes, done_ms, lasts_ms, shade(work))
        word = added_text([timeline.plan]) if work is Work.RECOMPUTE else work.value
        entries.append(([shade(work)], word))
    if timeline.extra_ms:
        lasts_ms = np.array(timeline.plan.problem.extra_per_stage_ms)
        canvas.draw_hatched(axes, done_ms, done_ms + lasts_ms, np.arange(stages), _BAR)
        entries.append((HATCHED, EXTRA_NAME))
    axes.axvline(timeline.makespan_ms, color="#000000", linewidth=0.8)
    busy = timeline.busy_ms / timeline.makespan_ms
    for stage in canvas.labelled(stages):
        canvas.write_beside(axes, stage, f"{busy[stage]:.1%} busy")
    canvas.draw_legend(axes, entries)


def _draw_memory(axes: Axes, timeline: Timeline) -> None:
    """Stack what every stage holds at its peak."""
    problem, curves = timeline.plan.problem, memory_curve(timeline)
    peaks, limits = timeline.peak_memory_mb, problem.limit_per_stage_mb
    most_mb = canvas.memory_scale_mb(peaks, limits)
    shown = np.flatnonzero(np.array(limits) <= most_mb)
    canvas.label_stages(axes, problem.stages)
    canvas.label_across(axes, most_mb * 1.02, "MB at the peak")
    constant = np.array([curve.constant_mb for curve in curves])
    held = constant + np.array([curve.parameter_mb for curve in curves])
    parts = ((constant, CONSTANT, "constant"), (held, PARAMETERS, "parameters"))
    below, entries = np.zeros(problem.stages), list[canvas.Entry]()
    for until, colour, name in (*parts, (np.array(peaks), ACTIVATIONS, "activations")):
        if np.any(until > below):
            below = _stack(axes, below, until - below, colour)
            entries.append(([colour], name))
    if timeline.stages_over:
        _stack(axes, np.array(limits), np.maximum(below - np.array(limits), 0.0), OVER_LIMIT)
        entries.append(([OVER_LIMIT], "over the limit"))
    for stage in canvas.labelled(problem.stages):
        over = stage in timeline.stages_over
        canvas.write_beside(axes, stage, peak_text(peaks[stage], limits[stage], over=over), strong=over)
    if len(shown):
        axes.vlines(np.array(limits)[shown], shown - 0.5 * _MARK, shown + 0.5 * _MARK, **LIMIT_LINE)
        entries.append((LIMIT_LINE, "limit"))
    canvas.draw_legend(axes, entries)


def _stack(axes: Axes, left: Floats, width: Floats, colour: str) -> Floats:
    """Add a part to the bar of every stage; where the bars end now."""
    rows = np.arange(len(left))
    outline = canvas.boxes(left, left + width, rows - _BAR / 2, rows + _BAR / 2)
    axes.add_patch(PathPatch(outline, facecolor=colour, linewidth=0))
    return left + width
