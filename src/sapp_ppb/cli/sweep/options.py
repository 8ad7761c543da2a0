"""Options of ``sapp-ppb sweep``, as text: what each may hold is said where grids are read."""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapp_ppb.cli.options.memory import WorkingSet
from sapp_ppb.cli.options.problem import ModelPath

if TYPE_CHECKING:
    from sapp_ppb.costs import RecomputeType
    from sapp_ppb.sweep import Grid
    from sapp_ppb.sweep.work import Effort

GridPath = Annotated[
    Path | None,
    typer.Option(
        "--grid",
        metavar="GRID.yaml",
        help="The options below as keys, such as global-batch: 512; there a memory limit may be a list, "
        "one a stage.",
    ),
]
Devices = Annotated[int | None, typer.Option("--devices", metavar="N", help="Devices to train on.")]
GlobalBatch = Annotated[int | None, typer.Option("--global-batch", metavar="G", help="Samples of one step.")]
StagesToTry = Annotated[
    str | None,
    typer.Option(
        "--stages",
        "-s",
        metavar="S[,S...]",
        help="Pipeline stages: 4,8,16 or 2-8.  [default: all that divide the devices]",
    ),
]
ChunksToTry = Annotated[
    str | None,
    typer.Option("--interleave", "-i", metavar="V[,V...]", help="Chunks on each stage.  [default: 1,2]"),
]
SchedulesToTry = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        metavar="NAME[,NAME...]",
        help="Schedules as of plan; auto tries every one that takes the sizes.  "
        "[default: 1f1b, with chunks interleaved]",
    ),
]
LimitsToTry = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        "-mem",
        metavar="MB[,MB...]",
        help="Memory limits to plan for, each for all stages: 56000,64000 or 40000:64000:4000 "
        "(first:last:step).",
    ),
]
SizesToTry = Annotated[
    str | None,
    typer.Option(
        "--micro-batch-size",
        metavar="B[,B...]",
        help="Samples of a micro-batch; times and activations are scaled, an estimate.  "
        "[default: the model's]",
    ),
]
ModelSize = Annotated[
    int | None,
    typer.Option(
        "--model-micro-batch-size",
        metavar="B",
        help="Samples that the model file's times and memory are of.  [default: 1]",
    ),
]
TensorToTry = Annotated[
    str | None,
    typer.Option(
        "--tensor-parallel",
        metavar="T[,T...]",
        help="Devices of a stage; the model file's costs are those of one device at that number.  "
        "[default: 1]",
    ),
]
Margin = Annotated[
    str | None,
    typer.Option(
        "--memory-margin", metavar="MB|PERCENT", help="Part of the limits to keep free: 2000 or 5%."
    ),
]
Constant = Annotated[
    float | None,
    typer.Option(
        "--constant-memory",
        "-mc",
        metavar="MB",
        help="Memory that each stage holds besides its layers.  [default: the model file's]",
    ),
]
Hop = Annotated[
    float | None,
    typer.Option(
        "--p2p", metavar="MS", help="Time to send a micro-batch of the model file from a stage to the next."
    ),
]
HopMode = Annotated[
    str | None, typer.Option("--p2p-mode", metavar="MODE", help="async or blocking, as of plan.")
]
Speeds = Annotated[
    str | None,
    typer.Option(
        "--stage-speed",
        metavar="F,F[,F...]",
        help="Speed of every stage, as of plan, for problems of so many stages.",
    ),
]
Extra = Annotated[
    str | None,
    typer.Option(
        "--step-extra",
        metavar="MS[,MS...]",
        help="Time after the last op of a stage, as of plan: one, or one a stage.",
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--micro-batch-group", metavar="N", help="As of plan, for the problems with several chunks."
    ),
]
Pieces = Annotated[
    int | None,
    typer.Option("--sequence-chunks", metavar="K", help="Pieces of every micro-batch, for seq1f1b."),
]
Overlap = Annotated[
    float | None,
    typer.Option("--overlap-factor", metavar="A", help="Share that an overlapped pair of dualpipev saves."),
]
FlavourName = Annotated[str | None, typer.Option("--flavour", metavar="NAME", help="torch, as of plan.")]
Types = Annotated[
    str | None,
    typer.Option("--recompute", metavar="TYPE[,TYPE...]", help="Recompute types to choose from."),
]
MostTypes = Annotated[
    int | None, typer.Option("--max-recompute-types", metavar="N", help="Most recompute types to mix.")
]
LeastLayers = Annotated[
    int | None, typer.Option("--min-layers", metavar="N", help="Fewest layers in a cell.  [default: 1]")
]
TargetName = Annotated[
    str | None,
    typer.Option("--target", metavar="NAME", help="Framework that must be able to say the plans."),
]
Seconds = Annotated[
    float | None,
    typer.Option("--time-limit", "-t", metavar="SECONDS", help="Time for each problem.  [default: 10]"),
]
GapOfEach = Annotated[
    str | None,
    typer.Option("--gap", metavar="G", help="Stop each problem this close to its best.  [default: 0]"),
]
SeedOfAll = Annotated[
    int | None, typer.Option("--seed", metavar="N", help="The same seed gives the same plans.  [default: 0]")
]
Everything = Annotated[
    bool, typer.Option("--no-cut", help="Plan also what its bound shows to be slower than what is found.")
]
Backend = Annotated[
    str, typer.Option("--backend", metavar="NAME", help="local, or a cluster that is there: dask or ray.")
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        help="Of the cluster: tcp://HOST:8786 of Dask, HOST:6379 or auto of Ray.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", help="Processes of this machine.  [default: one a core]"),
]


def given_grid(
    types: "Sequence[RecomputeType]",
    grid: GridPath = None,
    devices: Devices = None,
    global_batch: GlobalBatch = None,
    stages: StagesToTry = None,
    interleave: ChunksToTry = None,
    schedule: SchedulesToTry = None,
    memory_limit: LimitsToTry = None,
    micro_batch_size: SizesToTry = None,
    model_micro_batch_size: ModelSize = None,
    tensor_parallel: TensorToTry = None,
    memory_margin: Margin = None,
    constant_memory: Constant = None,
    p2p: Hop = None,
    p2p_mode: HopMode = None,
    stage_speed: Speeds = None,
    step_extra: Extra = None,
    micro_batch_group: Group = None,
    sequence_chunks: Pieces = None,
    overlap_factor: Overlap = None,
    flavour: FlavourName = None,
    recompute: Types = None,
    max_recompute_types: MostTypes = None,
    recompute_working_set: WorkingSet = False,
    min_layers: LeastLayers = None,
    target: TargetName = None,
    time_limit: Seconds = None,
    gap: GapOfEach = None,
    seed: SeedOfAll = None,
) -> "tuple[Grid, Effort]":
    """
    Read the grid, and how hard its problems are tried, from the file and the options together.

    Parameters
    ----------
    types
        What ``--recompute`` may name.

    Raises
    ------
    InputError
        If the file or an option is not what it must be.
    """
    given = {
        name.replace("_", "-"): value for name, value in locals().items() if name not in ("grid", "types")
    }
    given["recompute-working-set"] = recompute_working_set or None  # a flag that is not given is none
    from sapp_ppb.sweep.grid_options import read_grid

    return read_grid(grid, given, types)


def takes_grid(verb: Callable[..., int]) -> Callable[..., int]:
    """Give a verb whose first three parameters are a model, a grid and an effort the options of them."""
    asked = dict(inspect.signature(given_grid).parameters)
    own = dict(inspect.signature(verb).parameters)
    model = own.pop("model").replace(annotation=ModelPath)
    del own["grid"], own["effort"], asked["types"]

    @wraps(verb)
    def command(**options: Any) -> int:
        from sapp_ppb.readers import read_model

        loaded = read_model(options.pop("model"))
        grid, effort = given_grid(loaded.types, **{name: options.pop(name) for name in asked})
        return verb(loaded, grid, effort, **options)

    parameters = [model, *asked.values(), *own.values()]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command
