"""``sapp-ppb check``: the rules of a framework's configuration, its price, and what would gain."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapp_ppb.cli.given import given_fields
from sapp_ppb.cli.guard import FITS, NOTHING_FITS, say
from sapp_ppb.cli.options.memory import ConstantMemory, MemoryLimit
from sapp_ppb.cli.options.order import GroupOption, ScheduleOption
from sapp_ppb.cli.options.planning import Seed
from sapp_ppb.cli.options.problem import (
    FRAMEWORKS,
    HopTimeIfGiven,
    MicroBatchesIfGiven,
    MinLayersIfGiven,
    StagesIfGiven,
    StageSpeed,
    StepExtraIfGiven,
)
from sapp_ppb.cli.output import write_document, write_result
from sapp_ppb.errors import InputError, NoPlanFoundError, PpbError, ScheduleError

if TYPE_CHECKING:
    from sapp_ppb.costs import Model
    from sapp_ppb.plan import Outcome, Plan
    from sapp_ppb.targets import BrokenRule, PipelineConfig
    from sapp_ppb.writers.check_file import Checked

# Frameworks that run no cell without a layer.
_FULL_CELLS = ("torchtitan", "colossalai", "deepspeed", "pytorch")
SHORT_HELP = "Check a framework's configuration, and price it."
HELP = """
Check a framework's configuration, or a list of layers: every rule that it breaks in the rule's
words, and what of it is not known.  With --model also its makespan and peaks, and what the planner
would change and gain within what the framework can say.

Options count before what the file says; give those that it does not say.  Exits with 1 when a rule is
broken, a stage needs more than the memory limit or a needed value is not known, and with 2 when the
file can not be read.

\b
Examples:
  sapp-ppb check pretrain.yaml
  sapp-ppb check pretrain.yaml --model deepseek3.json -mem 56000
  sapp-ppb check model_config.yaml --model llama2_70b.json -mb 32 --json
"""


def check(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="Configuration to check.", show_default=False)
    ],
    model: Annotated[
        Path | None, typer.Option("--model", metavar="MODEL.json", help="Model file, to price it with.")
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NAME",
            help=f"Whose it is: {FRAMEWORKS}, csv or json.  [default: told by the file]",
        ),
    ] = None,
    stages: StagesIfGiven = None,
    micro_batches: MicroBatchesIfGiven = None,
    memory_limit: MemoryLimit = None,
    memory_margin_: Annotated[
        str | None,
        typer.Option(
            "--memory-margin", metavar="MB|PERCENT", help="Part of the memory limit to keep free: 2000 or 5%."
        ),
    ] = None,
    constant_memory: ConstantMemory = None,
    p2p: HopTimeIfGiven = None,
    stage_speed: StageSpeed = None,
    step_extra: StepExtraIfGiven = None,
    p2p_mode_: Annotated[
        str | None,
        typer.Option("--p2p-mode", metavar="MODE", help="async, or blocking.  [default: async]"),
    ] = None,
    schedule: ScheduleOption = None,
    micro_batch_group_: GroupOption = None,
    sequence_chunks: Annotated[
        int | None,
        typer.Option("--sequence-chunks", metavar="K", help="Pieces of every micro-batch's sequence."),
    ] = None,
    min_layers: MinLayersIfGiven = None,
    time_limit: Annotated[
        float, typer.Option("--time-limit", "-t", metavar="SECONDS", help="Time to plan in.")
    ] = 5.0,
    seed: Seed = 0,
    no_plan: Annotated[bool, typer.Option("--no-plan", help="Price only; do not plan.")] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print the check as JSON, and nothing else, on stdout.")
    ] = False,
) -> int:
    """Check a configuration, price it, plan for it."""
    from sapp_ppb.readers import read_model
    from sapp_ppb.readers.frameworks.framework import read_config
    from sapp_ppb.writers.check_file import check_to_json

    given = given_fields(
        stages=stages,
        micro_batches=micro_batches,
        memory_limit=memory_limit,
        memory_margin_=memory_margin_,
        constant_memory=constant_memory,
        p2p=p2p,
        stage_speed=stage_speed,
        step_extra=step_extra,
        p2p_mode_=p2p_mode_,
        schedule=schedule,
        micro_batch_group_=micro_batch_group_,
        sequence_chunks=sequence_chunks,
        min_layers=min_layers,
    )
    known = None if model is None else read_model(model)
    layers = None if known is None else known.body_count
    read = read_config(config, from_, layers=layers, micro_batches=micro_batches, model=known)
    planning = None if no_plan else {"time_limit_s": time_limit, "seed": seed}
    checked = _checked(read, known, given, planning)
    if json_:
        write_document(check_to_json(checked))
    else:
        write_result(_text(checked))
    return FITS if checked.is_fine else NOTHING_FITS


def _text(checked: "Checked") -> str:
    from sapp_ppb.cli.text.check_text import check_text

    return check_text(checked)


def _checked(
    config: "PipelineConfig", model: "Model | None", given: dict[str, Any], planning: dict[str, Any] | None
) -> "Checked":
    """Price a configuration as far as that can be, and plan for it."""
    from dataclasses import replace

    from sapp_ppb.readers.config_plan import missing_for_price, plan_of_config, still_unknown
    from sapp_ppb.simulator import simulate
    from sapp_ppb.writers.check_file import Checked

    unknown = still_unknown(config, given)
    checked = Checked(config=config, broken=config.broken, unknown=unknown)
    if model is None:
        return checked
    missing = missing_for_price(config, given)
    if missing:  # what a price needs is needed
        return replace(checked, unknown=unknown or tuple(missing), unpriced="; ".join(missing))
    try:
        plan = plan_of_config(config, model, given)
    except ScheduleError as error:
        rule = _no_order(error, given.get("micro_batches", config.micro_batches))
        unpriced = "there is no order of the ops for these sizes"
        return replace(checked, broken=config.broken or (rule,), unpriced=unpriced)
    except InputError as error:
        if not config.broken:
            raise
        return replace(checked, unpriced="; ".join(error.faults))
    if config.memory_limit_mb is not None and "memory_limit_mb" not in given:
        say(f"note: {config.where}: the memory limit is the file's; -mem gives another")
    broken = (*config.broken, *_broken_by(plan, config, given))
    priced = replace(checked, broken=broken, timeline=simulate(plan))
    if planning is None:
        return priced
    outcome, why = _planned(plan, config, given, planning)
    return replace(priced, better=outcome, unplanned=why)


def _no_order(error: ScheduleError, micro_batches: int | None) -> "BrokenRule":
    from sapp_ppb.targets import BrokenRule

    return BrokenRule(key="schedule", rule=str(error), found=f"{micro_batches} micro-batches")


def _broken_by(plan: "Plan", config: "PipelineConfig", given: dict[str, Any]) -> "tuple[BrokenRule, ...]":
    """Rules of the framework that sizes given as options break."""
    from sapp_ppb.targets import TARGETS, BrokenRule, target_named

    own = {"micro_batches": config.micro_batches, "schedule": None, "micro_batch_group": None}
    options = [name for name in own if name in given and given[name] != own[name]]
    if config.target not in TARGETS or not options or plan.problem.stages == 1:
        return ()
    option = options[0]
    found = str(given[option])
    return tuple(
        BrokenRule(key="--" + option.replace("_", "-"), rule=sentence, found=found)
        for sentence in target_named(config.target).refuses(plan.problem)
    )


def _planned(
    plan: "Plan", config: "PipelineConfig", given: dict[str, Any], planning: dict[str, Any]
) -> "tuple[Outcome | None, str | None]":
    """Plan for the same framework, beginning with what it runs; else say why there is no answer."""
    from sapp_ppb.cli.plan import planned
    from sapp_ppb.cli.problem import note_missing_memory
    from sapp_ppb.targets import TARGETS

    try:
        target = config.target if config.target in TARGETS else None
        least = (
            {} if "min_layers_per_cell" in given or target not in _FULL_CELLS else {"min_layers_per_cell": 1}
        )
        problem = plan.problem.changed(target=target, **least)
        outcome = planned(problem, **planning, warm_start=_as_start(plan, problem))
        note_missing_memory(problem)
        return outcome, None
    except NoPlanFoundError as error:
        return None, f"no answer in time: {error}"
    except PpbError as error:
        return None, f"no answer: {error}"


def _as_start(plan: "Plan", problem: Any) -> "Plan | None":
    """Read what runs today as a plan of the planner's problem; None where it is none."""
    from sapp_ppb.plan import Plan

    try:
        return Plan(problem=problem, counts=plan.counts)
    except InputError:
        return None
