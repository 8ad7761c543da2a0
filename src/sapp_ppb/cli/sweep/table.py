"""The page that a sweep fills: its fastest plans, what became of the others, and why."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sapp_ppb.cli.text.tables import rendered
from sapp_ppb.sweep.answer import RowStatus
from sapp_ppb.sweep.row import Row
from sapp_ppb.sweep.table import counts

if TYPE_CHECKING:
    from sapp_ppb.sweep import Grid, Sweep

_SHOWN, _REASONS = 12, 8
Cell = Callable[[Row], str]
_WORDS = {"not-found": "without a plan in time", "cut": "cut by bound", "skipped": "skipped"}


def sweep_text(found: "Sweep", grid: "Grid") -> str:
    """Fill the page: the fastest rows, the number of each kind, and the commonest reasons."""
    planned = [row for row in found.rows if row.answer.step_ms is not None]
    page: list[RenderableType] = []
    if planned:
        page += [_table(planned), Text()]
        if len(planned) > _SHOWN:
            page += [Text(f"and {len(planned) - _SHOWN} more plans, which sweep.csv of -o has"), Text()]
    page.append(Text(_counts_text(found.rows)))
    page += [Text(f"  {line}") for line in _reasons(found.rows)]
    page += [Text(line) for line in _scaled_text(found.rows, grid)]
    return rendered(page)


def _table(planned: Sequence[Row]) -> Table:
    """List the fastest, with a column for each thing that is not the same for all."""
    best_ms = planned[0].answer.step_ms or 1.0
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("stages", justify="right", no_wrap=True)
    columns: list[tuple[str, Cell]] = [
        ("chunks", lambda row: str(row.inputs["interleave"])),
        ("micro-\nbatches", lambda row: str(row.inputs["micro_batches"])),
        ("data\nparallel", lambda row: str(row.inputs["data_parallel"])),
    ]
    optional: tuple[tuple[str, str], ...] = (
        ("micro-\nbatch size", "micro_batch_size"),
        ("tensor\nparallel", "tensor_parallel"),
        ("memory\nlimit, MB", "memory_limit_mb"),
    )
    for heading, name in optional:
        if len({str(row.inputs[name]) for row in planned}) > 1:
            columns.append((heading, lambda row, name=name: _number(row.inputs[name])))  # type: ignore[misc]
    columns += [
        (_step_heading(planned), lambda row: f"{row.answer.step_ms:,.1f}"),
        ("ratio", lambda row: f"{(row.answer.step_ms or 0.0) / best_ms:.3f}"),
        ("ms a\nsample", lambda row: f"{row.cells['ms_per_sample']:,.2f}"),
        ("bubble", lambda row: f"{row.cells['bubble']:.1%}"),
        ("highest\npeak, MB", lambda row: f"{row.peak_memory_mb:,.0f}"),
    ]
    for heading, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("front", "schedule", "gap"):
        table.add_column(heading, no_wrap=True)
    for row in planned[:_SHOWN]:
        words = ("*" if row.pareto else "", str(row.inputs["schedule"]), _gap(row))
        table.add_row(str(row.inputs["stages"]), *(cell(row) for _, cell in columns), *words)
    return table


def _step_heading(planned: Sequence[Row]) -> str:
    has_extra = any(row.answer.step_ms != row.answer.makespan_ms for row in planned)
    return "step,\nms" if has_extra else "makespan,\nms"


def _number(value: object) -> str:
    """Value of an input: a number, or the least of one for each stage."""
    if isinstance(value, tuple):
        return f"from {min(value):,.10g}"
    return "none" if value is None else f"{value:,.10g}"


def _gap(row: Row) -> str:
    from sapp_ppb.report.summary import rounded_up

    if row.answer.status is RowStatus.OPTIMAL:
        return "proven optimal"
    return "" if row.answer.gap is None else f"at most {rounded_up(row.answer.gap)}"


def _counts_text(rows: Sequence[Row]) -> str:
    """
    Say how many problems came to what.

    Examples
    --------
    >>> _counts_text([])
    '0 problems'
    """
    problems = sum(row.candidate is not None for row in rows)
    found = counts(rows)
    skipped = found.pop("skipped", 0)
    words = ", ".join(f"{number} {_WORDS.get(status, status)}" for status, number in found.items())
    text = f"{problems} problems" + (f": {words}" if words else "")
    return text + (f"; {skipped} combinations skipped" if skipped else "")


def _reasons(rows: Sequence[Row]) -> list[str]:
    """Say the commonest reasons for having no plan."""
    reasons = Counter(
        (row.answer.status, row.answer.reason)
        for row in rows
        if row.answer.reason and row.answer.status is not RowStatus.CUT
    )
    lines = [
        f"{number} {_WORDS.get(status.value, status.value)}: {reason}"
        for (status, reason), number in reasons.most_common(_REASONS)
    ]
    more = len(reasons) - len(lines)
    return [*lines, *([f"and {more} more reasons, which sweep.csv of -o has"] if more else [])]


def _scaled_text(rows: Sequence[Row], grid: "Grid") -> list[str]:
    sizes = {row.candidate.micro_batch_size for row in rows if row.candidate is not None}
    if sizes <= {grid.model_micro_batch_size}:
        return []
    return [
        "times, sends and activations at other micro-batch sizes are those of the model's "
        f"({grid.model_micro_batch_size}) in proportion, an estimate"
    ]
