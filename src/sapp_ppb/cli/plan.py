"""``sapp-ppb plan``: the fastest plan within the memory limit, and how good it is."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sapp_ppb.cli.guard import FITS, NO_PLAN_IN_TIME, NOTHING_FITS, say
from sapp_ppb.cli.options import (
    AsJson,
    ConstantMemory,
    FlavourOption,
    GroupOption,
    HopTime,
    Interleave,
    MemoryLimit,
    MemoryMargin,
    MicroBatches,
    ModelPath,
    OrderPath,
    OverlapFactor,
    P2PModeOption,
    RecomputeTypes,
    ScheduleOption,
    SequenceChunks,
    Stages,
    Tokens,
    flavour,
    memory_margin,
    micro_batch_group,
    numbers,
    order_file,
    p2p_mode,
    recompute_types,
    schedule_name,
    share,
    tokens_per_micro_batch,
)
from sapp_ppb.cli.output import write_document, write_result
from sapp_ppb.cli.progress import ProgressLine

if TYPE_CHECKING:
    from sapp_ppb.plan import Outcome
    from sapp_ppb.problem import Problem

SHORT_HELP = "Find the shortest step that fits the memory."
HELP = """
Find the plan with the shortest training step within the memory limit: the layers of every
stage and chunk, and how they are recomputed.  Says how far it can be from the best plan.

\b
Examples:
  sapp-ppb plan llama2_70b.json -s 16 -i 2 -mb 32 -mem 56000
  sapp-ppb plan llama2_70b.json -s 8 -mb 64 -mem 50000 -t 30 -o out
  sapp-ppb plan demo.json -s 16 -mb 16 -mem 56000 --target mindformers --json > plan.json
"""


def plan(
    model: ModelPath,
    stages: Stages,
    micro_batches: MicroBatches,
    interleave: Interleave = None,
    memory_limit: MemoryLimit = None,
    memory_margin_: MemoryMargin = "0",
    constant_memory: ConstantMemory = None,
    p2p: HopTime = "0",
    schedule: ScheduleOption = None,
    micro_batch_group_: GroupOption = None,
    sequence_chunks: SequenceChunks = 1,
    order: OrderPath = None,
    p2p_mode_: P2PModeOption = "async",
    overlap_factor: OverlapFactor = 0.0,
    flavour_: FlavourOption = None,
    recompute: RecomputeTypes = None,
    min_layers: Annotated[
        int, typer.Option("--min-layers", metavar="N", help="Fewest layers in a cell.")
    ] = 1,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="NAME", help="Framework that must be able to say the plan: mindformers."
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option("--time-limit", "-t", metavar="SECONDS", help="Time to plan in.")
    ] = 10.0,
    gap: Annotated[
        str, typer.Option("--gap", metavar="G", help="Stop this close to the best possible: 0.01 or 1%.")
    ] = "0",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same plan.")] = 0,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what limits the plan; takes the time again.")
    ] = False,
    tokens: Tokens = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="DIR", help="Folder to write plan.json to.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a plan.json that exists.")] = False,
    json_: AsJson = False,
) -> int:
    """Plan, print and write."""
    from sapp_ppb.problem import Problem
    from sapp_ppb.readers import read_model
    from sapp_ppb.schedules import usual_chunks
    from sapp_ppb.writers import plan_to_json, write_plan

    tokens = tokens_per_micro_batch(tokens)
    _refuse_both(explain=explain, json_=json_)
    path = None if output is None else _free(_folder(output) / "plan.json", force=force)
    name = schedule_name(schedule)
    problem = Problem(
        model=read_model(model),
        stages=stages,
        micro_batches=micro_batches,
        interleave=usual_chunks(name) if interleave is None else interleave,
        schedule=name,
        micro_batch_group=micro_batch_group(micro_batch_group_),
        sequence_chunks=sequence_chunks,
        order_file=order_file(order),
        p2p_mode=p2p_mode(p2p_mode_),
        overlap_factor=overlap_factor,
        flavour=flavour(flavour_),
        memory_limit_mb=None if memory_limit is None else numbers("--memory-limit", memory_limit, "MB"),
        constant_memory_mb=None
        if constant_memory is None
        else numbers("--constant-memory", constant_memory, "MB"),
        memory_margin=memory_margin(memory_margin_),
        recompute=recompute_types(recompute),
        p2p_ms=numbers("--p2p", p2p, "ms"),
        min_layers_per_cell=min_layers,
        target=target,
    )
    outcome = _planned(problem, time_limit, share("--gap", gap), seed)
    try:
        if path is not None:
            write_plan(outcome, path, force)
            say(f"wrote {path}")
    finally:  # a full disk does not take the plan from the screen, nor a full pipe from the disk
        if json_:
            write_document(plan_to_json(outcome))
        else:
            write_result(_text(outcome, tokens))
    if explain and _exit_code(outcome) == FITS:
        write_result(_explanation(outcome, time_limit))
    return _exit_code(outcome)


def _refuse_both(*, explain: bool, json_: bool) -> None:
    from sapp_ppb.errors import InputError

    if explain and json_:
        raise InputError(
            "--explain", ["adds to the table, and --json prints the plan file alone; give one of the two"]
        )


def _folder(output: str) -> Path:
    """Refuse an empty name, which would be the folder that one happens to be in."""
    from sapp_ppb.errors import InputError

    if not output.strip():
        raise InputError("--output", [f"must name a folder (got {output!r}); this one is named ."])
    return Path(output)


def _free(path: Path, *, force: bool) -> Path:
    """Refuse a file that exists or can not be written before any time is spent on its content."""
    from sapp_ppb.errors import InputError

    if path.is_dir():
        raise InputError(str(path), ["is a folder where plan.json should be; give another --output"])
    if path.exists() and not force:
        raise InputError(str(path), ["the file exists; give --force to replace it"])
    # Folders that are missing are made, in the nearest one that is there.
    there = next((folder for folder in path.parents if folder.exists()), path.parent)
    if not there.is_dir():
        raise InputError(str(there), ["is no folder; give --output a folder"])
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(str(there), ["the folder may not be written to; give another --output"])
    return path


def _planned(problem: "Problem", time_limit: float, gap: float, seed: int) -> "Outcome":
    """Plan, and show the progress."""
    from sapp_ppb.errors import NoPlanFoundError
    from sapp_ppb.planner import needs_compiling, plan_pipeline
    from sapp_ppb.targets import may_mix_selective_and_comm

    may_mix_selective_and_comm(problem.target)  # refuses an unknown one before anything is compiled
    if needs_compiling():
        say("compiling the search, about 20 s; later runs do without")
    try:
        with ProgressLine() as line:
            return plan_pipeline(problem, time_limit_s=time_limit, gap=gap, seed=seed, watch=line)
    except KeyboardInterrupt:
        raise NoPlanFoundError("interrupted before any plan was found") from None


def _explanation(outcome: "Outcome", seconds: float) -> str:
    from sapp_ppb.cli.explanation import explanation_text
    from sapp_ppb.planner import explain

    with ProgressLine():
        return explanation_text(outcome, explain(outcome, seconds))


def _text(outcome: "Outcome", tokens: int | None) -> str:
    from sapp_ppb.cli.tables import infeasible_text, outcome_text
    from sapp_ppb.planner import baselines
    from sapp_ppb.simulator import simulate

    if outcome.plan is None:
        return infeasible_text(outcome)
    compared = [(baseline.name, simulate(baseline.plan)) for baseline in baselines(outcome.problem)]
    return outcome_text(outcome, simulate(outcome.plan), compared, tokens=tokens)


def _exit_code(outcome: "Outcome") -> int:
    from sapp_ppb.plan import StoppedBy

    if outcome.plan is None:
        return NOTHING_FITS
    return NO_PLAN_IN_TIME if outcome.stopped_by is StoppedBy.INTERRUPT else FITS
