"""``sapp-ppb plan``: the fastest plan within the memory limit, and how good it is."""

from typing import TYPE_CHECKING, Annotated

import typer

from sapp_ppb.cli.guard import FITS, NO_PLAN_IN_TIME, NOTHING_FITS, say
from sapp_ppb.cli.options import (
    AsJson,
    ConstantMemory,
    Force,
    GroupOption,
    HopTime,
    Interleave,
    MemoryLimit,
    MemoryMargin,
    MicroBatches,
    ModelPath,
    Output,
    RecomputeTypes,
    ScheduleOption,
    ShowTimeline,
    Stages,
    Tokens,
    memory_margin,
    micro_batch_group,
    numbers,
    recompute_types,
    refuse_with_json,
    schedule_name,
    share,
    tokens_per_micro_batch,
)
from sapp_ppb.cli.output import write_document, write_result
from sapp_ppb.cli.output_files import free_folder, write_folder
from sapp_ppb.cli.progress import ProgressLine

if TYPE_CHECKING:
    from sapp_ppb.plan import Outcome
    from sapp_ppb.problem import Problem
    from sapp_ppb.simulator import Timeline

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
    interleave: Interleave = 1,
    memory_limit: MemoryLimit = None,
    memory_margin_: MemoryMargin = "0",
    constant_memory: ConstantMemory = None,
    p2p: HopTime = "0",
    schedule: ScheduleOption = None,
    micro_batch_group_: GroupOption = None,
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
    timeline_: ShowTimeline = False,
    output: Output = None,
    force: Force = False,
    json_: AsJson = False,
) -> int:
    """Plan, print and write."""
    from sapp_ppb.problem import Problem
    from sapp_ppb.readers import read_model
    from sapp_ppb.simulator import simulate
    from sapp_ppb.writers import plan_to_json

    tokens = tokens_per_micro_batch(tokens)
    refuse_with_json(json_, **{"--explain": explain, "--timeline": timeline_})
    folder = None if output is None else free_folder(output, force=force)
    problem = Problem(
        model=read_model(model),
        stages=stages,
        micro_batches=micro_batches,
        interleave=interleave,
        schedule=schedule_name(schedule),
        micro_batch_group=micro_batch_group(micro_batch_group_),
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
    timeline = None if outcome.plan is None else simulate(outcome.plan)
    try:
        if folder is not None:
            write_folder(folder, outcome, timeline, force=force)
    finally:  # a full disk does not take the plan from the screen, nor a full pipe from the disk
        if json_:
            write_document(plan_to_json(outcome))
        else:
            write_result(_text(outcome, timeline, tokens, drawn=timeline_))
    if explain and _exit_code(outcome) == FITS:
        write_result(_explanation(outcome, time_limit))
    return _exit_code(outcome)


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


def _text(outcome: "Outcome", timeline: "Timeline | None", tokens: int | None, *, drawn: bool) -> str:
    from sapp_ppb.cli.tables import infeasible_text, outcome_text
    from sapp_ppb.planner import baselines
    from sapp_ppb.simulator import simulate

    if timeline is None:
        return infeasible_text(outcome)
    compared = [(baseline.name, simulate(baseline.plan)) for baseline in baselines(outcome.problem)]
    return outcome_text(outcome, timeline, compared, tokens=tokens, drawn=drawn)


def _exit_code(outcome: "Outcome") -> int:
    from sapp_ppb.plan import StoppedBy

    if outcome.plan is None:
        return NOTHING_FITS
    return NO_PLAN_IN_TIME if outcome.stopped_by is StoppedBy.INTERRUPT else FITS
