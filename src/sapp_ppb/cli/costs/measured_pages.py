"""Pages that say what measurements came to, and how far they can be trusted."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sapp_ppb.cli.text.tables import pairs_table, rendered

if TYPE_CHECKING:
    from sapp_ppb.estimation import MemoryEstimate, OpEstimate, TraceEstimate
    from sapp_ppb.simulator import ObservedRun


def scopes_text(estimate: "TraceEstimate") -> str:
    """Fill the page of layers that were found in timelines."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("layer", overflow="fold")
    table.add_column("kind")
    for heading in ("count", "seen", "forward,\nms", "least", "most", "backward,\nms", "least", "most"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in estimate.measured:
        forward, backward = row.forward_ms, row.backward_ms
        table.add_row(
            Text(row.layer.name),
            row.layer.kind.value,
            str(row.layer.count),
            str(row.seen),
            *(_ms(value) for value in (row.layer.forward_ms, forward[0], forward[2])),
            *(_ms(value) for value in (row.layer.backward_ms[0], backward[0], backward[2])),
        )
    steps = sorted(set(estimate.steps))
    said = f"{steps[0]}" if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
    rows = [
        ("traces", f"{len(estimate.steps)}, of {len(estimate.stages)} stages"),
        ("steps", f"{said} in each"),
    ]
    rows += [(f"stage {at}", ", ".join(sources)) for at, sources in enumerate(estimate.stages[:16])]
    page: list[RenderableType] = [
        Text(f"{estimate.model.name}: times of one micro-batch"),
        Text(),
        table,
        Text(),
        pairs_table(rows),
    ]
    return rendered(page)


def ops_text(estimate: "OpEstimate") -> str:
    """Fill the page of layers that were told from whole ops."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("layer", overflow="fold")
    table.add_column("kind")
    for heading in ("count", "forward, ms", "backward, ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    for layer in estimate.model.layers:
        table.add_row(
            Text(layer.name),
            layer.kind.value,
            str(layer.count),
            _ms(layer.forward_ms),
            _ms(layer.backward_ms[0]),
        )
    rows = [
        ("ops", f"{estimate.ops:,}"),
        ("forward", _fit_text(estimate.forward.residuals.tolist(), estimate.forward.condition, "ms")),
        ("backward", _fit_text(estimate.backward.residuals.tolist(), estimate.backward.condition, "ms")),
    ]
    title = Text(f"{estimate.model.name}: times of one micro-batch")
    return rendered([title, Text(), table, Text(), pairs_table(rows)])


def _fit_text(residuals: Sequence[float], condition: float, unit: str) -> str:
    largest = max((abs(value) for value in residuals), default=0.0)
    within = f"rebuilt within {largest:.4g} {unit} in each of {len(residuals)} cells"
    return f"{within}, condition number {condition:.3g}"


def _ms(value: float) -> str:
    return f"{value:,.4g}" if value < 1000 else f"{value:,.1f}"


def memory_text(estimate: "MemoryEstimate", runs: "Sequence[ObservedRun]") -> str:
    """Fill the page of memory that was told from peaks."""
    fit = estimate.fit
    unknowns = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    unknowns.add_column("memory", overflow="fold")
    for heading in ("MB", "± (95 %)"):
        unknowns.add_column(heading, justify="right", no_wrap=True)
    widths = [math.nan] * len(fit.names) if fit.half_width is None else fit.half_width.tolist()
    for name, value, width in zip(fit.names, fit.values.tolist(), widths, strict=True):
        unknowns.add_row(Text(name), f"{value:,.1f}", "" if math.isnan(width) else f"{width:,.1f}")
    peaks = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("round", "stage", "measured, MB", "rebuilt, MB", "residual, MB"):
        peaks.add_column(heading, justify="right", no_wrap=True)
    for (run, stage), residual in zip(estimate.places, fit.residuals.tolist(), strict=True):
        measured = runs[run].peak_mb[stage]
        cells = [f"{value:,.1f}" for value in (measured, measured - residual, round(residual, 1) + 0.0)]
        peaks.add_row(str(run + 1), str(stage), *cells)
    largest = max(abs(residual) for residual in fit.residuals.tolist())
    spare = len(fit.residuals) - int((fit.values > 0).sum())
    rows = [
        ("rebuilt within", f"{largest:,.1f} MB in each of {len(fit.residuals)} peaks"),
        ("condition", f"{fit.condition:.3g}, which is how many times an error of the peaks can grow"),
        ("spare peaks", f"{spare}" if spare > 0 else "none: no interval can be given"),
    ]
    title = Text("memory of a layer, from peaks of stages")
    page: list[RenderableType] = [title, Text(), unknowns, Text(), peaks, Text(), pairs_table(rows)]
    return rendered(page)
