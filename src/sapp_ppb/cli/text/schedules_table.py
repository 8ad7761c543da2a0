"""The table of ``--schedule auto``: what every schedule comes to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from sapp_ppb.cli.text.tables import rendered
from sapp_ppb.plan import Outcome, Status
from sapp_ppb.report.words import step_word

if TYPE_CHECKING:
    from sapp_ppb.planner import ScheduleChoice


def schedules_text(choices: "Sequence[ScheduleChoice]") -> str:
    """
    Fill the table, a row a schedule, in the order given; the first row is the one chosen.

    Parameters
    ----------
    choices
        As ``plan_schedules`` gives them.
    """
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("schedule", no_wrap=True)
    for heading in (
        "chunks",
        f"{step_word(choices[0].problem)},\nms",
        "ratio",
        "bubble",
        "highest\npeak, MB",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("gap")
    best_ms = choices[0].step_ms
    for choice in choices:
        problem, outcome = choice.problem, choice.outcome
        name = (problem.schedule_name.value, str(problem.interleave))
        if outcome is None:
            table.add_row(*name, "", "", "", "", Text("no plan found in time", style="yellow"))
        elif outcome.bubble is None:
            table.add_row(*name, "", "", "", "", Text("no plan fits", style="red"))
        else:
            numbers = (
                f"{choice.step_ms:,.1f}",
                f"{choice.step_ms / best_ms:.3f}",
                f"{outcome.bubble.total:.1%}",
                f"{max(outcome.peak_memory_mb):,.0f}",
            )
            table.add_row(*name, *numbers, _distance(outcome))
    return rendered([table])


def _distance(outcome: Outcome) -> str:
    """Say how far a plan can be from the best one under its schedule."""
    if outcome.status is Status.OPTIMAL:
        return "proven optimal"
    return "" if outcome.gap is None else f"at most {outcome.gap:.1%}"
