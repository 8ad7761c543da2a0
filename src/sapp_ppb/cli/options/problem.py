"""Options that say what is planned: the model, its cells, the devices, and for which framework."""

from pathlib import Path
from typing import Annotated

import typer

from sapp_ppb.cli.options.values import one_size

# The frameworks, spelt out, since to import them takes longer than to print a help text.
FRAMEWORKS = "mindformers, megatron, torchtitan, mindspeed, hyperparallel, colossalai, deepspeed, pytorch"
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL.json", help="Model file.", show_default=False)]
PlanPath = Annotated[
    Path,
    typer.Argument(
        metavar="PLAN", help="Plan file, framework's configuration, or manual YAML.", show_default=False
    ),
]
_STAGES = typer.Option("--stages", "-s", metavar="S", help="Pipeline stages.", parser=one_size)
_MICRO_BATCHES = typer.Option(
    "--micro-batches", "-mb", metavar="M", help="Micro-batches of one step.", parser=one_size
)
_INTERLEAVE = typer.Option(
    "--interleave",
    "-i",
    metavar="V",
    help="Chunks (virtual stages) on each stage.  [default: 1; 2 for zbv and dualpipev]",
    parser=one_size,
)
_MIN_LAYERS = typer.Option("--min-layers", metavar="N", help="Fewest layers in a cell.")
_HOP_TIME = typer.Option(
    "--p2p", metavar="MS[,MS...]", help="Time to send from a stage to the next: one, or one a hop."
)
_STAGE_SPEED = typer.Option(
    "--stage-speed",
    metavar="X[,X...]",
    help="Speed of each stage's device, 1 as measured: 0.5 takes twice the time.",
)
_STEP_EXTRA = typer.Option(
    "--step-extra",
    metavar="MS[,MS...]",
    help="Time of each stage after its last op, outside the pipeline: one, or one a stage.",
)
Stages = Annotated[int, _STAGES]
MicroBatches = Annotated[int, _MICRO_BATCHES]
Interleave = Annotated[int | None, _INTERLEAVE]
MinLayers = Annotated[int, _MIN_LAYERS]
HopTime = Annotated[str, _HOP_TIME]
StageSpeed = Annotated[str | None, _STAGE_SPEED]
StepExtra = Annotated[str, _STEP_EXTRA]
# The same for a verb that must know whether they were given.
StagesIfGiven = Annotated[int | None, _STAGES]
MicroBatchesIfGiven = Annotated[int | None, _MICRO_BATCHES]
InterleaveIfGiven = Annotated[int | None, _INTERLEAVE]
MinLayersIfGiven = Annotated[int | None, _MIN_LAYERS]
HopTimeIfGiven = Annotated[str | None, _HOP_TIME]
StepExtraIfGiven = Annotated[str | None, _STEP_EXTRA]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help=f"Framework that must be able to say the plan: {FRAMEWORKS}; also says what that costs.",
    ),
]
