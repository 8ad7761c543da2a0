"""
What all pictures share: how they look whatever the user's settings, and how they become files.

Everything is drawn on figures of its own, never through pyplot, and the same timeline
gives the same bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path as Outline
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike

from sapp_ppb.errors import InputError
from sapp_ppb.files import whole_file
from sapp_ppb.report.colours import HATCHED, PAPER

Entry = tuple[Sequence[str] | Mapping[str, Any], str]
"""Colours, or how a line or a hatched box looks, and what they mean."""

WIDTH_IN, DOTS_PER_IN, POINTS_PER_IN = 14.0, 150, 72
LEFT_IN, RIGHT_IN, TOP_IN, BOTTOM_IN = 0.6, 0.3, 0.75, 0.9
_LEGEND_IN = 0.45  # below the axes
ROW = 0.86  # share of a stage's height that is drawn on
_LEVELS = 48  # dots of a strip's height
_MOST_TALL_IN = 60.0  # beyond, a renderer gives up
_LONGEST = 120  # characters of a line that fit
_MOST_EMPTY, _LEAST_MB = 5, 1e-9  # times the highest peak that a limit may be above; never a scale of 0
_MOST_LABELS = 128  # stages that are all numbered

_FONT = "DejaVu Sans"  # comes with matplotlib
_LOOK: dict[str, Any] = {
    "font.family": [_FONT],
    "font.size": 8,
    "text.parse_math": False,  # a model's name may hold a $
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "sapp-ppb",
    "svg.fonttype": "path",
}
_ABOVE: dict[str, Any] = {
    "xycoords": "axes fraction",
    "textcoords": "offset points",
    "annotation_clip": False,
}
# What would change from version to version or from day to day is left out.
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}


def save_picture(draw: Callable[[], Figure], path: str | PathLike[str], force: bool = False) -> None:
    """
    Draw a figure and write it as PNG or SVG, whichever the name of the file ends in.

    Parameters
    ----------
    draw
        Makes the figure, under the look that all pictures share.
    path
        File to write; missing folders are made.
    force
        Replace a file that exists.

    Raises
    ------
    InputError
        If the name ends in neither, the file exists and ``force`` is not set, or it
        can not be written.
    """
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in _METADATA:
        raise InputError(str(path), ["a picture's name must end in .png or .svg"])
    picture = BytesIO()
    with matplotlib.style.context(["default", _LOOK]):
        figure = draw()
        FigureCanvasAgg(figure)
        figure.savefig(picture, format=form, metadata=_METADATA[form])
    with whole_file(path, force) as file:
        file.write(picture.getbuffer())


def new_figure(height_in: float) -> Figure:
    """Make an empty figure of the common width, and so high within margins."""
    tall_in = TOP_IN + min(height_in, _MOST_TALL_IN) + BOTTOM_IN
    return Figure(figsize=(WIDTH_IN, tall_in), dpi=DOTS_PER_IN)


def row_height_in(stages: int, *, total: float, least: float, most: float) -> float:
    """Inches of a stage's row: as many as a total leaves for each, within limits."""
    return min(max(total / stages, least), most)


def fix_margins(figure: Figure, *, left_in: float = LEFT_IN, right_in: float = RIGHT_IN) -> None:
    """Give the axes all that the margins leave, which are in inches whatever the size."""
    width_in, tall_in = figure.get_size_inches()
    figure.subplots_adjust(
        left=left_in / width_in,
        right=1 - right_in / width_in,
        bottom=BOTTOM_IN / tall_in,
        top=1 - TOP_IN / tall_in,
    )


def write_heading(axes: Axes, *lines: str) -> None:
    """Put lines of plain text above axes, the first in bold."""
    first, *rest = (shortened(drawable(line)) for line in lines)
    axes.annotate(first, (0, 1), (0, 8 + 13 * len(rest)), **_ABOVE, fontsize=10, fontweight="bold")
    for index, line in enumerate(reversed(rest)):
        axes.annotate(line, (0, 1), (0, 8 + 13 * index), **_ABOVE, fontsize=9)


def drawable(text: str) -> str:
    r"""
    Escape what the font does not have, which would be drawn as an empty box.

    Examples
    --------
    >>> drawable("Schicht-层 é")
    'Schicht-\\u5c42 é'
    """
    known = get_font(findfont(FontProperties(family=_FONT)))
    return "".join(c if known.get_char_index(ord(c)) else ascii(c)[1:-1] for c in text)


def shortened(text: str) -> str:
    """
    Leave out what does not fit from the middle, because sizes stand at the end of a line.

    Examples
    --------
    >>> len(shortened("x" * 300)), shortened("x" * 200 + " on 4 stages")[-15:]
    (120, 'xxx on 4 stages')
    """
    half = (_LONGEST - 3) // 2
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3 - half]}...{text[-half:]}"


def memory_scale_mb(peaks_mb: Sequence[float], limits_mb: Sequence[float]) -> float:
    """
    Most that a picture of memory shows: every peak, and limits unless they are far above all of them.

    Examples
    --------
    >>> memory_scale_mb([30.0, 20.0], [50.0, float("inf")]), memory_scale_mb([30.0], [1e6])
    (50.0, 30.0)
    """
    highest = max(peaks_mb)
    shown = [limit for limit in limits_mb if limit <= _MOST_EMPTY * highest]
    return max(highest, *shown, _LEAST_MB)


def labelled(stages: int) -> range:
    """
    Stages that have room for text: all, or each so many.

    Examples
    --------
    >>> len(labelled(64)), labelled(300)  # 300 / 128 rounded up
    (64, range(0, 300, 3))
    """
    return range(0, stages, -(-stages // _MOST_LABELS))


def label_stages(axes: Axes, stages: int) -> None:
    """Give each row the number of its stage, from stage 0 at the top."""
    axes.set_ylim(stages - 0.5, -0.5)
    axes.set_yticks(labelled(stages))
    axes.tick_params(axis="y", length=0, labelsize=7)
    axes.set_ylabel("stage")


def label_across(axes: Axes, until: float, name: str) -> None:
    """Count from 0 on the left to a number on the right, and say what is counted."""
    axes.set_xlim(0, until)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.set_xlabel(name)


def write_beside(axes: Axes, stage: int, text: str, *, strong: bool = False) -> None:
    """Write a short text to the right of a stage's row."""
    axes.annotate(
        text,
        (1, stage),
        (6, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        verticalalignment="center",
        fontsize=7,
        fontweight="bold" if strong else "normal",
        annotation_clip=False,
    )


def draw_legend(axes: Axes, entries: Sequence[Entry]) -> None:
    """Explain colours and lines below axes: shades of one kind side by side, and what they are."""
    handles = [_mark(mark) if isinstance(mark, Mapping) else tuple(map(_patch, mark)) for mark, _ in entries]
    axes.legend(
        handles,
        [label for _, label in entries],
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=axes.transAxes + ScaledTranslation(0, -_LEGEND_IN, axes.figure.dpi_scale_trans),
        borderaxespad=0,
        borderpad=0,
        ncols=len(entries),
        frameon=False,
        fontsize=8,
        handlelength=2.4,
        columnspacing=2.0,
    )


def draw_strips(axes: Axes, until: float, layers: Sequence[tuple[ArrayLike, ArrayLike, str]]) -> None:
    """
    Paint a strip of equal columns for each stage, dot by dot, whatever the number of ops.

    Parameters
    ----------
    until
        End of the last column.
    layers
        What is painted over what came before: from and to which share of a strip's
        height, 0 at its foot and 1 at its head, in which colour; the shares of shape
        (S, columns), or what becomes one.
    """
    shape = np.broadcast_shapes(*(np.shape(share) for low, high, _ in layers for share in (low, high)))
    stages, columns = shape
    margin = round(_LEVELS * (1 - ROW) / 2)
    image = np.full((stages, _LEVELS + 2 * margin, columns, 3), to_rgb(PAPER))
    drawn = image[:, margin : margin + _LEVELS]
    height = (np.arange(_LEVELS)[::-1, None] + 0.5) / _LEVELS  # of each dot, from the head
    for low, high, colour in layers:
        above = height >= np.broadcast_to(low, shape)[:, None]
        drawn[above & (height < np.broadcast_to(high, shape)[:, None])] = to_rgb(colour)
    extent = (0.0, until, stages - 0.5, -0.5)
    # Scaled by whoever shows it, so that the bytes do not grow with the picture.
    axes.imshow(image.reshape(-1, columns, 3), extent=extent, aspect="auto", interpolation="none")


def _mark(look: Mapping[str, Any]) -> Line2D | Patch:
    return Patch(**look) if "hatch" in look else Line2D([], [], **look)


def draw_hatched(axes: Axes, left: ArrayLike, right: ArrayLike, rows: ArrayLike, height: float) -> None:
    """Draw what stages do after their last op, a box in each row."""
    middle = np.asarray(rows)
    outline = boxes(left, right, middle - height / 2, middle + height / 2)
    axes.add_patch(PathPatch(outline, **HATCHED, zorder=3))


def _patch(colour: str) -> Patch:
    return Patch(facecolor=colour, edgecolor="#888888", linewidth=0.4)


def boxes(left: ArrayLike, right: ArrayLike, low: ArrayLike, high: ArrayLike) -> Outline:
    """
    Outline of many boxes at once, which is faster to draw and shorter to write than each alone.

    Parameters
    ----------
    left, right, low, high
        Sides of the boxes; shape (boxes,), or one number for all.
    """
    left, right, low, high = np.broadcast_arrays(left, right, low, high)
    around = ((left, low), (right, low), (right, high), (left, high), (left, low))
    return Outline.make_compound_path_from_polys(
        np.stack([np.stack(corner, axis=-1) for corner in around], axis=1)
    )
