"""Picture of throughput against memory: every plan of a sweep, and the front that none beats."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sapp_ppb.errors import InputError
from sapp_ppb.report import canvas
from sapp_ppb.report.colours import ACTIVATIONS, CONSTANT, PARAMETERS

_TALL_IN = 6.5
_MOST_NAMED = 20  # points of the front that have room for their name
_MARGIN = 0.06  # of an axis, beyond the outermost points


@dataclass(frozen=True, kw_only=True)
class PlanPoint:
    """
    One plan of a sweep.

    Attributes
    ----------
    name
        What was chosen.
    samples_per_s
        Throughput of all devices.
    peak_memory_mb
        Highest peak of all stages.
    on_front
        Whether no other plan is as fast with as little memory.
    """

    name: str
    samples_per_s: float
    peak_memory_mb: float
    on_front: bool


def draw_front(
    points: Sequence[PlanPoint], heading: str, path: str | PathLike[str], force: bool = False
) -> None:
    """
    Draw a dot for each plan, those of the front joined and named.

    Parameters
    ----------
    points
        At least one.
    heading
        What all plans have in common.
    path, force
        As of ``draw_timeline``.

    Raises
    ------
    InputError
        As of ``draw_timeline``, and if there is no point.
    """
    if not points:
        raise InputError("front", ["needs at least one plan (got none)"])
    canvas.save_picture(lambda: _figure(points, heading), path, force)


def _figure(points: Sequence[PlanPoint], heading: str) -> Figure:
    figure = canvas.new_figure(_TALL_IN)
    canvas.fix_margins(figure, left_in=0.9)
    axes = figure.subplots()
    front = sorted(
        (point for point in points if point.on_front), key=lambda point: (point.peak_memory_mb, point.name)
    )
    others = [point for point in points if not point.on_front]
    _scale(axes, points)
    axes.plot(
        [point.peak_memory_mb for point in others],
        [point.samples_per_s for point in others],
        linestyle="none",
        marker="o",
        markersize=5,
        color=PARAMETERS,
    )
    axes.step(
        [point.peak_memory_mb for point in front],
        [point.samples_per_s for point in front],
        where="post",
        color=ACTIVATIONS,
        linewidth=1.2,
        marker="o",
        markersize=7,
    )
    _name(axes, front)
    said = f"{len(points)} plans, {len(front)} of them on the front"
    canvas.write_heading(axes, heading, f"{said}: no other is as fast with as little memory")
    look = {"linestyle": "none", "marker": "o"}
    canvas.draw_legend(
        axes,
        [
            ({"color": ACTIVATIONS, "marker": "o", "linewidth": 1.2}, "front"),
            (look | {"color": PARAMETERS}, "beaten by a plan of the front"),
        ],
    )
    return figure


def _scale(axes: Axes, points: Sequence[PlanPoint]) -> None:
    axes.set_xlim(*_range([point.peak_memory_mb for point in points]))
    axes.set_ylim(*_range([point.samples_per_s for point in points]))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    axes.set_xlabel("highest peak of all stages, MB")
    axes.set_ylabel("samples per second")
    axes.grid(color=PARAMETERS, linewidth=0.3)
    axes.set_axisbelow(True)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Least and most, with room around them; room too where all are equal."""
    least, most = min(values), max(values)
    room = (most - least) or 0.1 * most or 1.0
    return least - _MARGIN * room, most + _MARGIN * room


def _name(axes: Axes, front: Sequence[PlanPoint]) -> None:
    """Write the names of the front below its dots, towards the middle; of equal dots one after the other."""
    step = -(-len(front) // _MOST_NAMED)
    middle = sum(axes.get_xlim()) / 2
    at: dict[tuple[float, float], int] = {}
    for point in front[::step]:
        place = (point.peak_memory_mb, point.samples_per_s)
        at[place] = at.get(place, 0) + 1
        is_right = point.peak_memory_mb > middle
        axes.annotate(
            canvas.drawable(point.name),
            place,
            (-7 if is_right else 7, -3 - 9 * at[place]),
            textcoords="offset points",
            ha="right" if is_right else "left",
            fontsize=7,
            color=CONSTANT,
        )
