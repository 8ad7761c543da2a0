"""``sapp-ppb simulate``: what a plan that exists takes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapp_ppb.cli.guard import FITS, NOTHING_FITS, say
from sapp_ppb.cli.options.memory import ConstantMemory, MemoryLimit
from sapp_ppb.cli.options.order import GroupOption, ScheduleOption
from sapp_ppb.cli.options.output import (
    AsJson,
    Force,
    Output,
    ShowTimeline,
    Tokens,
    refuse_with_json,
    tokens_per_micro_batch,
)
from sapp_ppb.cli.options.problem import (
    HopTimeIfGiven,
    InterleaveIfGiven,
    MicroBatchesIfGiven,
    MinLayersIfGiven,
    ModelPath,
    PlanPath,
    StagesIfGiven,
    StageSpeed,
    StepExtraIfGiven,
)
from sapp_ppb.cli.output import write_document, write_result
from sapp_ppb.cli.output_files import free_file, free_folder, write_folder
from sapp_ppb.cli.problem import given_problem
from sapp_ppb.errors import InputError

if TYPE_CHECKING:
    from sapp_ppb.plan import Outcome
    from sapp_ppb.simulator import Timeline

SHORT_HELP = "Time a plan that exists."
HELP = """
Time a plan that exists and find the peak memory of every stage.

A plan file holds its problem.  So does a configuration of a framework that 'sapp-ppb check' reads, and
a list of layers: give what it does not say; 'sapp-ppb check' says more of it.  A manual YAML file
(offset and recompute lists of MindFormers under a name) does not: give stages, micro-batches and what
else differs from the defaults, and --entry when it holds several plans.  Exits with 1 when a stage
needs more than the memory limit.

\b
Examples:
  sapp-ppb simulate llama2_70b.json out/plan.json
  sapp-ppb simulate llama2_70b.json out/plan.json --json
  sapp-ppb simulate llama2_70b.json model_config.yaml -mb 32 -mem 56000
  sapp-ppb simulate llama2_70b.json manual.yaml --entry manual1 -s 16 -mb 32 -mem 56000
  sapp-ppb simulate llama2_70b.json out/plan.json --emit-trace trace.json
"""


def simulate(
    model: ModelPath,
    plan: PlanPath,
    entry: Annotated[
        str | None, typer.Option("--entry", metavar="NAME", help="Plan of a manual YAML to time.")
    ] = None,
    stages: StagesIfGiven = None,
    micro_batches: MicroBatchesIfGiven = None,
    interleave: InterleaveIfGiven = None,
    memory_limit: MemoryLimit = None,
    constant_memory: ConstantMemory = None,
    p2p: HopTimeIfGiven = None,
    schedule: ScheduleOption = None,
    micro_batch_group_: GroupOption = None,
    min_layers: MinLayersIfGiven = None,
    stage_speed: StageSpeed = None,
    step_extra: StepExtraIfGiven = None,
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
    """Time the plan of a plan file, of a configuration, or one of a manual YAML."""
    from sapp_ppb.cli.text.tables import outcome_text
    from sapp_ppb.readers import is_yaml, read_model, read_plan
    from sapp_ppb.readers.frameworks.framework import framework_of
    from sapp_ppb.simulator import retime
    from sapp_ppb.writers import plan_to_json

    tokens = tokens_per_micro_batch(tokens)
    refuse_with_json(json_, **{"--timeline": timeline_})
    folder = None if output is None else free_folder(output, force=force, read=plan)
    trace = None if emit_trace is None else free_file("--emit-trace", emit_trace, force=force)
    options = {
        "stages": stages,
        "micro_batches": micro_batches,
        "interleave": interleave,
        "memory_limit": memory_limit,
        "constant_memory": constant_memory,
        "p2p": p2p,
        "schedule": schedule,
        "micro_batch_group_": micro_batch_group_,
        "min_layers": min_layers,
        "stage_speed": stage_speed,
        "step_extra": step_extra,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if framework_of(plan) is not None:
        if entry is not None:
            raise InputError("--entry", [f"names a plan of a manual YAML, and {plan} is none; leave it out"])
        timeline, outcome = _configured(model, plan, given)
    elif is_yaml(plan):
        timeline, outcome = _manual(model, plan, entry, given)
    else:
        _refuse_options(plan, [*given, *(["entry"] if entry is not None else [])])
        timeline, outcome = retime(read_plan(plan, read_model(model)), str(plan))
    try:
        if folder is not None:
            write_folder(folder, outcome, timeline, force=force, read=plan, tokens=tokens)
        if trace is not None:
            _write_trace(timeline, trace, force=force)
    finally:  # a full disk does not take the result from the screen, nor a full pipe from the disk
        if json_:
            write_document(plan_to_json(outcome))
        else:
            write_result(outcome_text(outcome, timeline, tokens=tokens, drawn=timeline_))
    return FITS if timeline.fits_memory else NOTHING_FITS


def _refuse_options(plan: Path, names: list[str]) -> None:
    if names:
        options = ", ".join("--" + name.rstrip("_").replace("_", "-") for name in names)
        fault = f"is a plan file, which says its problem itself; leave out {options}, or use sapp-ppb compare"
        raise InputError(str(plan), [fault])


def _configured(model: Path, path: Path, given: dict[str, Any]) -> "tuple[Timeline, Outcome]":
    """Time the plan that a framework's configuration runs."""
    from sapp_ppb.cli.given import given_fields
    from sapp_ppb.readers import read_config_plan, read_model
    from sapp_ppb.simulator import simulate, timed

    timeline = simulate(read_config_plan(path, read_model(model), given_fields(**given)))
    return timeline, timed(timeline)


def _manual(model: Path, plan: Path, entry: str | None, given: dict[str, Any]) -> "tuple[Timeline, Outcome]":
    """Time one plan of a manual YAML."""
    from sapp_ppb.readers import read_user_plans
    from sapp_ppb.simulator import simulate, timed

    missing = [f"--{name.replace('_', '-')}" for name in ("stages", "micro_batches") if name not in given]
    if missing:
        raise InputError(str(plan), [f"does not say how many; give {' and '.join(missing)}"])
    named = {found.name: found for found in read_user_plans(plan, given_problem(model, **given))}
    if entry is None and len(named) > 1:
        raise InputError(str(plan), [f"holds {len(named)} plans; give --entry, one of {', '.join(named)}"])
    if entry is not None and entry not in named:
        raise InputError("--entry", [f"{entry!r} is not in {plan}; one of {', '.join(named)}"])
    timeline = simulate(named[next(iter(named)) if entry is None else entry].plan)
    return timeline, timed(timeline)


def _write_trace(timeline: "Timeline", path: "Path", *, force: bool) -> None:
    from sapp_ppb.report import write_trace

    write_trace(timeline, path, force)
    say(f"wrote {path}")
