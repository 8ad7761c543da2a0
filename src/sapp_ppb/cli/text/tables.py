"""The table of stages, and the page that an answer fills."""

import math
import shutil
import sys
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from sapp_ppb.cli.output import can_draw_blocks
from sapp_ppb.cli.text.text_timeline import timeline_text
from sapp_ppb.plan import Outcome
from sapp_ppb.problem import Problem
from sapp_ppb.report.summary import (
    baseline_rows,
    cell_text,
    limit_text,
    share_text,
    shortage_rows,
    summary_rows,
    title_text,
)
from sapp_ppb.report.words import step_word
from sapp_ppb.writers import mindformers_lists, mindformers_lists_text
from sapp_ppb.writers.frameworks.exports import EXPORTS

if TYPE_CHECKING:
    from sapp_ppb.simulator import Timeline

_PIPED_COLUMNS = 160  # a pipe has no width; lines shorter than that stay shorter
_BARS = (20, 10)


def outcome_text(
    outcome: Outcome,
    timeline: "Timeline",
    compared: "Sequence[tuple[str, Timeline]]" = (),
    *,
    tokens: int | None = None,
    drawn: bool = False,
) -> str:
    """
    Fill the page of a plan: stages, what is known, what others do, and what to paste.

    Parameters
    ----------
    compared
        Names and timelines of other plans.
    tokens
        Tokens of a micro-batch, if tokens per second are wanted.
    drawn
        Whether the timeline is wanted as text too.
    """
    page: list[RenderableType] = [
        Text(title_text(outcome)),
        Text(),
        stages_table(timeline, widest_bar(timeline)),
        Text(),
    ]
    page.append(pairs_table(summary_rows(outcome, timeline, tokens)))
    if compared:
        page += [Text(), _comparison(outcome, compared)]
    if drawn:
        page += [Text(), timeline_text(timeline, terminal_columns())]
    return f"{rendered(page)}\n{_to_paste(timeline)}"


def _to_paste(timeline: "Timeline") -> str:
    """Say a plan in the words of its target; in MindFormers' lists where it has none."""
    plan = timeline.plan
    form = EXPORTS.get(plan.problem.target or "")
    if form is None or form.name == "mindformers" or form.unsaid(plan):
        return f"MindFormers lists, [chunk][stage]\n{mindformers_lists_text(mindformers_lists(plan))}"
    return f"for {form.title}\n{form.written(plan, timeline)}"


def _comparison(outcome: Outcome, compared: "Sequence[tuple[str, Timeline]]") -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("compared with", overflow="fold")
    table.add_column(f"{step_word(outcome.problem)}, ms", justify="right", no_wrap=True)
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("memory", overflow="fold")
    for row in baseline_rows(outcome, compared):
        table.add_row(*row)
    return table


def infeasible_text(outcome: Outcome) -> str:
    """Fill the page that says why nothing fits."""
    said = "no plan fits the memory"
    page: list[RenderableType] = [Text(title_text(outcome)), Text(), Text(said)]
    if outcome.shortage is not None:
        page.append(pairs_table(shortage_rows(outcome, outcome.shortage)))
    return rendered(page)


def stages_table(timeline: "Timeline", bar: int) -> Table:
    """
    Give each stage a row: its layers, how long it works, and its peak against its limit.

    Parameters
    ----------
    bar
        Characters of the bar that shows the share of the limit; 0 for no bar.
    """
    problem = timeline.plan.problem
    limits = problem.limit_per_stage_mb
    chunks = (
        [f"chunk {chunk}" for chunk in range(problem.interleave)] if problem.interleave > 1 else ["layers"]
    )
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("stage", justify="right")
    for chunk in chunks:
        table.add_column(chunk, overflow="fold")
    uneven = problem.stage_speed is not None
    for heading in (*(["speed"] if uneven else []), "busy", "peak, MB", *_limit_headings(problem)):
        table.add_column(heading, justify="right", no_wrap=True)
    if bar and problem.memory_limit_mb is not None:
        table.add_column(no_wrap=True)
    for stage, (busy, peak) in enumerate(zip(timeline.busy_ms, timeline.peak_memory_mb, strict=True)):
        cells = [cell_text(timeline.plan, stage, chunk) for chunk in range(problem.interleave)]
        used = []
        if problem.memory_limit_mb is not None:
            used = _used(peak, limits[stage], bar, over=stage in timeline.stages_over)
        limit = [limit_text(limits[stage])] if isinstance(problem.memory_limit_mb, tuple) else []
        speed = [f"{problem.speed_per_stage[stage]:.10g}"] if uneven else []
        share = f"{busy / timeline.makespan_ms:.1%}"
        table.add_row(str(stage), *cells, *speed, share, f"{peak:,.0f}", *limit, *used)
    return table


def _limit_headings(problem: Problem) -> list[str]:
    """One limit stands in the heading, several in a column of their own."""
    if problem.memory_limit_mb is None:
        return []
    if isinstance(problem.memory_limit_mb, tuple):
        return ["limit, MB", "of limit"]
    # What a plan may use: the limit without the margin.
    return [f"of {limit_text(problem.limit_per_stage_mb[0])} MB"]


def _used(peak_mb: float, limit_mb: float, bar: int, *, over: bool) -> list[str | Text]:
    """Share of a limit, as a number and as a bar; one that is too long ends in an arrow."""
    used = peak_mb / limit_mb if limit_mb > 0 else math.inf if peak_mb > 0 else 0.0
    full, empty, more = ("█", "░", "▶") if can_draw_blocks() else ("#", ".", ">")
    length = int(min(used, 1.0) * bar)
    drawn = full * length + empty * (bar - length) + (more if over else "")
    style = "red" if over else "green" if used < 0.95 else "yellow"
    share = Text(share_text(used), style="red" if over else "")
    return [share, Text(drawn, style=style)] if bar else [share]


def pairs_table(rows: Sequence[tuple[str, str]]) -> Table:
    """Give each name and its value a row."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return table


def _console(to: StringIO) -> Console:
    """As wide as the terminal and in colour there, plain and wide elsewhere."""
    terminal = sys.stdout.isatty()
    return Console(
        file=to,
        width=terminal_columns(),
        force_terminal=terminal,
        color_system="auto" if terminal else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )


def terminal_columns() -> int:
    """Characters that fit on a line of stdout; many where it is no terminal."""
    if not sys.stdout.isatty():
        return _PIPED_COLUMNS
    return shutil.get_terminal_size((_PIPED_COLUMNS, 24)).columns


def rendered(page: Sequence[RenderableType]) -> str:
    """Text of a page, without the blanks that fill its lines."""
    to = StringIO()
    console = _console(to)
    for part in page:
        console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in to.getvalue().splitlines())


def widest_bar(timeline: "Timeline") -> int:
    """Length of the longest bar for which no row needs a second line; 0 when none does."""
    # A console never measures more than its own width, so one is asked that is wide enough.
    wide = Console(file=StringIO(), width=10_000)
    needed = {bar: wide.measure(stages_table(timeline, bar)).maximum for bar in _BARS}
    return next((bar for bar in _BARS if needed[bar] <= terminal_columns()), 0)
