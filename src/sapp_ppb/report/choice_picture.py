"""Picture of the shortest step for each number of stages and of chunks."""

from collections.abc import Mapping, Sequence
from os import PathLike

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from sapp_ppb.errors import InputError
from sapp_ppb.report import canvas
from sapp_ppb.report.colours import IDLE, shade
from sapp_ppb.report.work import Work

_ROW_IN, _LEAST_IN = 0.8, 1.6
_LEAST_SCALE, _SCALE = 1.05, 2.0  # times the best at which the colours end: slower ones share the last
_SIZE, _MOST_COLUMNS = 8.0, 14  # points of a text, and columns that have room for it


def draw_choice(
    best_ms: Mapping[tuple[int, int], float | str],
    heading: str,
    path: str | PathLike[str],
    force: bool = False,
) -> None:
    """
    Draw a field for each pair of stages and chunks: the shorter the step, the lighter.

    Parameters
    ----------
    best_ms
        Milliseconds of the best plan for each pair, or a word on why there is none; at
        least one is a number.
    heading
        What all plans have in common.
    path, force
        As of ``draw_timeline``.

    Raises
    ------
    InputError
        As of ``draw_timeline``, and if there is no number.
    """
    if not any(isinstance(value, float) for value in best_ms.values()):
        raise InputError("choice", ["needs at least one plan (got none)"])
    canvas.save_picture(lambda: _figure(best_ms, heading), path, force)


def _figure(best_ms: Mapping[tuple[int, int], float | str], heading: str) -> Figure:
    stages, chunks = (sorted({pair[index] for pair in best_ms}) for index in (0, 1))
    figure = canvas.new_figure(max(_ROW_IN * len(chunks), _LEAST_IN))
    canvas.fix_margins(figure)
    axes = figure.subplots()
    least = min(value for value in best_ms.values() if isinstance(value, float))
    ratios = _ratios(best_ms, stages, chunks, least)
    axes.imshow(
        ratios,
        cmap=_colours(),
        vmin=1.0,
        vmax=min(max(float(ratios.max()), _LEAST_SCALE), _SCALE),
        aspect="auto",
        interpolation="none",
    )
    for (stage, chunk), value in best_ms.items():
        _write(axes, stages.index(stage), chunks.index(chunk), value, least, len(stages))
    axes.set_facecolor(IDLE)  # of a field without a plan
    axes.set_xticks(range(len(stages)), [str(number) for number in stages])
    axes.set_yticks(range(len(chunks)), [str(number) for number in chunks])
    axes.tick_params(length=0)
    axes.set_xlabel("stages")
    axes.set_ylabel("chunks a stage")
    best = f"shortest step for each number of stages and chunks, ms; the least is {least:,.1f} ms"
    canvas.write_heading(axes, heading, best)
    return figure


def _ratios(
    best_ms: Mapping[tuple[int, int], float | str],
    stages: Sequence[int],
    chunks: Sequence[int],
    least: float,
) -> np.ma.MaskedArray[tuple[int, ...], np.dtype[np.float64]]:
    """Makespan over the shortest, by chunk and stage; masked where there is none."""
    ratios = np.full((len(chunks), len(stages)), np.nan)
    for (stage, chunk), value in best_ms.items():
        if isinstance(value, float):
            ratios[chunks.index(chunk), stages.index(stage)] = value / least
    return np.ma.masked_invalid(ratios)


def _colours() -> LinearSegmentedColormap:
    return LinearSegmentedColormap.from_list("times", [shade(Work.FORWARD), shade(Work.BACKWARD)])


def _write(axes: Axes, column: int, row: int, value: float | str, least: float, columns: int) -> None:
    size = min(_SIZE, _SIZE * _MOST_COLUMNS / columns)
    known = isinstance(value, float)
    text = f"{value:,.0f}\nx {value / least:.3f}" if isinstance(value, float) else canvas.drawable(value)
    axes.text(
        column,
        row,
        text,
        ha="center",
        va="center",
        fontsize=size,
        fontweight="bold" if known and value == least else "normal",
    )
