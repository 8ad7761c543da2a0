"""The table of a comparison: a row a plan."""

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sapp_ppb.cli.text.tables import rendered, terminal_columns
from sapp_ppb.plan import Outcome
from sapp_ppb.problem import Problem
from sapp_ppb.report.summary import estimate_rows, limit_text, title_text
from sapp_ppb.report.words import step_word

if TYPE_CHECKING:
    from sapp_ppb.simulator import Timeline

    Rows = Sequence[tuple[str, Timeline | None]]

_PARTS = {
    "fill_drain": "fill,\ndrain",
    "imbalance": "imbal-\nance",
    "recompute": "recom-\npute",
    "communication": "send-\ning",
}
_WIDEST = 10_000  # a console never measures more than its own width


def comparison_text(outcome: Outcome, rows: "Rows") -> str:
    """
    Fill the page of a comparison.

    Parameters
    ----------
    outcome
        The planner's answer.
    rows
        Name and timeline of each plan, the planner's first; None where there is no plan.
    """
    problem = outcome.problem
    runs = _runs(problem, rows)
    tables = [_table(problem, rows, runs, times=True, parts=True)]
    if Console(file=StringIO(), width=_WIDEST).measure(tables[0]).maximum > terminal_columns():
        # Cut in two rather than squeezed: names and numbers stay whole.
        tables = [_table(problem, rows, runs, times=times, parts=not times) for times in (True, False)]
    legend = [Text(line) for line in _legend(outcome, rows)]
    return rendered(
        [Text(title_text(outcome)), *(part for table in tables for part in (Text(), table)), Text(), *legend]
    )


def _table(problem: Problem, rows: "Rows", runs: Sequence[str], *, times: bool, parts: bool) -> Table:
    """Give each plan a row, with its time and memory, the parts of its bubble and how it runs, or both."""
    limited = problem.memory_limit_mb is not None
    best = next((timeline.step_ms for _, timeline in rows[:1] if timeline is not None), 0.0)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("plan", overflow="fold")
    numbers = [
        *([f"{step_word(problem)},\nms", "ratio"] if times else []),
        "bubble",
        *(_PARTS.values() if parts else []),
    ]
    for heading in [*numbers, *(["highest\npeak, MB"] if times else [])]:
        table.add_column(heading, justify="right", no_wrap=True)
    if times and limited:
        table.add_column("memory", no_wrap=True)
    if times:
        table.add_column("layers\nrecomputed", justify="right", no_wrap=True)
    if parts and any(runs):
        table.add_column("runs as", overflow="fold")
    for (name, timeline), run in zip(rows, runs, strict=True):
        if timeline is None:
            table.add_row(Text(name), Text("no plan fits" if times else "", style="red"))
            continue
        before, after = _times(timeline, best, limited=limited) if times else ([], [])
        shares = [
            _percent(getattr(timeline.bubble, part)) for part in (["total", *_PARTS] if parts else ["total"])
        ]
        table.add_row(Text(name), *before, *shares, *after, *([run] if parts and any(runs) else []))
    return table


def _times(timeline: "Timeline", best_ms: float, *, limited: bool) -> tuple[list[str], list[str | Text]]:
    """Cells before the bubble, and those behind it."""
    over = len(timeline.stages_over)
    memory = Text(f"over on {over}", style="red") if over else Text("fits", style="green")
    ratio = f"{timeline.step_ms / best_ms:.3f}" if best_ms else ""
    after: list[str | Text] = [f"{max(timeline.peak_memory_mb):,.0f}", *([memory] if limited else [])]
    return [f"{timeline.step_ms:,.1f}", ratio], [*after, _recomputed(timeline)]


def _recomputed(timeline: "Timeline") -> str:
    """Say how many layers are recomputed, and how many are under a strategy, by its name."""
    plan = timeline.plan
    words = [f"{layers} {name}" for name, layers in plan.strategy_layers.items()]
    return " + ".join([str(plan.recomputed_layers), *words])


def _percent(share: float) -> str:
    # Rounding first, so that a tiny negative share is no "-0.0%".
    return f"{round(100 * share, 1) + 0.0:.1f}%"


def _runs(problem: Problem, rows: "Rows") -> list[str]:
    """Schedule and chunks of every plan where they differ; nothing where all run as the problem does."""
    problems = [problem if timeline is None else timeline.plan.problem for _, timeline in rows]
    found = [_run(theirs) for theirs in problems]
    return found if set(found) - {_run(problem)} else [""] * len(found)


def _run(problem: Problem) -> str:
    chunks = f" x {problem.interleave}" if problem.interleave > 1 else ""
    return problem.schedule_name.value + chunks


def _legend(outcome: Outcome, rows: "Rows") -> list[str]:
    """Say what the numbers are shares of, which limit counts, and who beats the planner."""
    problem = outcome.problem
    lines = ["bubble and its parts are shares of useful work; ratio is to the planner's answer"]
    if outcome.plan is None:
        lines = ["no plan fits; 'sapp-ppb plan' with the same options says what would do"]
    if problem.memory_limit_mb is not None:
        limits = sorted(set(problem.limit_per_stage_mb))
        said = " to ".join(limit_text(limit) for limit in dict.fromkeys((limits[0], limits[-1])))
        lines.append(f"over on n: n of {problem.stages} stages need more than the limit of {said} MB")
    lines += [f"{name}: {said}" for name, said in estimate_rows(problem)]
    best = outcome.step_ms
    faster = [
        name
        for name, timeline in rows[1:]
        if timeline is not None
        and timeline.fits_memory
        and best is not None
        and timeline.step_ms < best * (1 - 1e-9)
    ]
    return [*lines, f"faster than the planner's answer, and fits: {', '.join(faster)}"] if faster else lines
