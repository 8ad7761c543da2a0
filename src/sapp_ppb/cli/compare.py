"""``sapp-ppb compare``: the planner's answer beside the baselines and the plans that one has."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sapp_ppb.cli.options.output import Force, Output
from sapp_ppb.cli.options.planning import Gap, Seed, TimeLimit
from sapp_ppb.cli.options.values import share
from sapp_ppb.cli.output import write_document, write_result
from sapp_ppb.cli.output_files import COMPARISON_FILES, free_folder, write_comparison
from sapp_ppb.cli.plan import exit_code, planned
from sapp_ppb.cli.problem import takes_problem
from sapp_ppb.interrupts import held_interrupts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sapp_ppb.plan import Outcome
    from sapp_ppb.problem import Problem
    from sapp_ppb.readers import NamedPlan
    from sapp_ppb.simulator import Timeline

_PLANNER = "planner"
SHORT_HELP = "Compare the best plan with even splits and with your own."
HELP = """
Plan, and compare the answer with what people do without a planner (even splits without and
with full recompute, the bottleneck partition) and with your own plans: plan files, configurations
of frameworks (as 'sapp-ppb check' reads them), lists of layers, or manual YAML files of MindFormers'
offset and recompute lists.

Your plans are timed with the micro-batches, limits and links given here, each under its own
schedule and chunks.  One that exceeds the limit is shown and marked.

\b
Examples:
  sapp-ppb compare llama2_70b.json -s 16 -i 2 -mb 32 -mem 56000
  sapp-ppb compare llama2_70b.json out/plan.json manual.yaml -s 16 -mb 32 -mem 56000 -o out
  sapp-ppb compare llama2_70b.json manual.yaml -s 16 -mb 32 --json > compare.json
"""


@takes_problem
def compare(
    problem: "Problem",
    plans: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PLAN", help="Plan files, configurations, manual YAML files.", show_default=False
        ),
    ] = None,
    time_limit: TimeLimit = 10.0,
    gap: Gap = "0",
    seed: Seed = 0,
    output: Output = None,
    force: Force = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print the comparison as JSON, and nothing else, on stdout.")
    ] = False,
) -> int:
    """Plan, time what else there is, and print one table."""
    from sapp_ppb.planner import baselines
    from sapp_ppb.readers import read_all_plans
    from sapp_ppb.writers import comparison_to_json

    taken = [_PLANNER, *(baseline.name for baseline in baselines(problem))]
    own = read_all_plans(plans or (), problem, taken)
    pictures = {plan.name: plan.file_name for plan in own if plan.file_name is not None}
    folder = None
    if output is not None:
        folder = free_folder(output, force=force, names=(*COMPARISON_FILES, *pictures.values()))
    outcome = planned(problem, time_limit_s=time_limit, gap=share("--gap", gap), seed=seed)
    with held_interrupts():  # a Ctrl-C does not take the plan from the screen
        rows = _rows(outcome, own)
        document = comparison_to_json(problem, rows)
        try:
            if folder is not None:
                timelines = {name: timeline for name, timeline in rows if timeline is not None}
                write_comparison(folder, document, timelines, pictures, force=force)
        finally:  # a full disk does not take the table from the screen, nor a full pipe from the disk
            if json_:
                write_document(document)
            else:
                write_result(_text(outcome, rows))
    return exit_code(outcome)


def _rows(outcome: "Outcome", own: "Sequence[NamedPlan]") -> "list[tuple[str, Timeline | None]]":
    """Name and timeline of every plan: the planner's, the baselines, the user's."""
    from sapp_ppb.planner import baselines
    from sapp_ppb.simulator import simulate

    rows: list[tuple[str, Timeline | None]] = [
        (_PLANNER, None if outcome.plan is None else simulate(outcome.plan))
    ]
    rows += [(baseline.name, simulate(baseline.plan)) for baseline in baselines(outcome.problem)]
    return rows + [(plan.name, simulate(plan.plan)) for plan in own]


def _text(outcome: "Outcome", rows: "Sequence[tuple[str, Timeline | None]]") -> str:
    from sapp_ppb.cli.text.comparison import comparison_text

    return comparison_text(outcome, rows)
