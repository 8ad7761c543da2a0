"""``sapp-ppb simulate``: what a plan that exists takes."""

from typing import TYPE_CHECKING, Annotated

import typer

from sapp_ppb.cli.guard import FITS, NOTHING_FITS, say
from sapp_ppb.cli.options import (
    AsJson,
    Force,
    ModelPath,
    Output,
    PlanPath,
    ShowTimeline,
    Tokens,
    refuse_with_json,
    tokens_per_micro_batch,
)
from sapp_ppb.cli.output import write_document, write_result
from sapp_ppb.cli.output_files import free_file, free_folder, write_folder

if TYPE_CHECKING:
    from pathlib import Path

    from sapp_ppb.simulator import Timeline

SHORT_HELP = "Time a plan that exists."
HELP = """
Time a plan that exists and find the peak memory of every stage.

Exits with 1 when a stage needs more than the memory limit in the plan file.

\b
Examples:
  sapp-ppb simulate llama2_70b.json out/plan.json
  sapp-ppb simulate llama2_70b.json out/plan.json --json
  sapp-ppb simulate llama2_70b.json out/plan.json --emit-trace trace.json
"""


def simulate(
    model: ModelPath,
    plan: PlanPath,
    tokens: Tokens = None,
    timeline_: ShowTimeline = False,
    output: Output = None,
    emit_trace: Annotated[
        str | None,
        typer.Option("--emit-trace", metavar="FILE", help="Write the trace alone, for Perfetto."),
    ] = None,
    force: Force = False,
    json_: AsJson = False,
) -> int:
    """Time a plan file."""
    from sapp_ppb.cli.tables import outcome_text
    from sapp_ppb.readers import read_model, read_plan
    from sapp_ppb.simulator import retime
    from sapp_ppb.writers import plan_to_json

    tokens = tokens_per_micro_batch(tokens)
    refuse_with_json(json_, **{"--timeline": timeline_})
    folder = None if output is None else free_folder(output, force=force, read=plan)
    trace = None if emit_trace is None else free_file("--emit-trace", emit_trace, force=force)
    timeline, outcome = retime(read_plan(plan, read_model(model)), str(plan))
    try:
        if folder is not None:
            write_folder(folder, outcome, timeline, force=force, read=plan)
        if trace is not None:
            _write_trace(timeline, trace, force=force)
    finally:  # a full disk does not take the result from the screen, nor a full pipe from the disk
        if json_:
            write_document(plan_to_json(outcome))
        else:
            write_result(outcome_text(outcome, timeline, tokens=tokens, drawn=timeline_))
    return FITS if timeline.fits_memory else NOTHING_FITS


def _write_trace(timeline: "Timeline", path: "Path", *, force: bool) -> None:
    from sapp_ppb.report import write_trace

    write_trace(timeline, path, force)
    say(f"wrote {path}")
