"""``sapp-ppb costs galvatron``, ``pipedream`` and ``csv``: models out of profiles of other planners."""

from pathlib import Path
from typing import Annotated

import typer

from sapp_ppb.cli.costs.measured import deliver
from sapp_ppb.cli.guard import FITS
from sapp_ppb.cli.options.output import Force, ModelJson, ModelOutput
from sapp_ppb.cli.options.values import whole_numbers
from sapp_ppb.cli.output_files import free_file

GALVATRON_SHORT_HELP = "Times and memory from a profile of Galvatron."
GALVATRON_HELP = """
Read the two files of a Galvatron profile.  Layers become BODY layers; the memory that the first
and the last stage hold besides is that of a HEAD and of a TAIL.  A size that was profiled once is
taken; of one that was profiled several times, say which.

The forward of B samples takes B times that of one, divided by the tensor-parallel size; the
communication that this adds is not in the profile.  The backward takes twice the forward.  Model
states are as profiled, four times parameter_size, until --dp and --zero divide them.  Layers are
kept whole, or recomputed in full where the profile has their checkpoint.

\b
Examples:
  sapp-ppb costs galvatron --computation computation_profiling_bf16_llama2-7b_all.json
      --memory memory_profiling_bf16_llama2-7b_all.json --layers 32 --tp 2 --micro-batch 8 -o model.json
"""
PIPEDREAM_SHORT_HELP = "Times and memory from a graph.txt of PipeDream."
PIPEDREAM_HELP = """
Read the graph of operators that PipeDream's profiler writes, and make a chain of it.

The operators are put in order, each behind its inputs.  A cut is made between two neighbours
where all that is still needed later is the output of one operator; what lies between two cuts is
a BODY layer.  Operators without inputs whose description begins with Input only bring the data
and are left out.  An operator that leads nowhere stays with its last input, and one that takes no
time with those before it.

\b
Examples:
  sapp-ppb costs pipedream profiles/vgg16/graph.txt -o model.json
  sapp-ppb costs pipedream graph.txt --states-per-parameter 3 --json
"""
CSV_SHORT_HELP = "Times and memory from a table of layers."
CSV_HELP = """
Read a CSV with a line for each layer.  The header names the columns: name, kind (HEAD, BODY or
TAIL) and forward_ms, and any of count, backward_ms, parameter_mb, activation_mb and, for the
recompute types selective, comm, both and full, activation_full_mb and backward_full_ms; also
weight_grad_ms and model_name.  An empty cell is a value that is not given.

\b
Examples:
  sapp-ppb costs csv layers.csv -o model.json
  sapp-ppb costs csv layers.csv --name llama --json
"""

Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Name of the model.  [default: after the file]"),
]
_TIMES_PREFIX = "computation_profiling_"


def galvatron(
    computation: Annotated[
        Path, typer.Option("--computation", metavar="FILE", help="computation_profiling_*.json.")
    ],
    memory: Annotated[Path, typer.Option("--memory", metavar="FILE", help="memory_profiling_*.json.")],
    layers: Annotated[
        str | None,
        typer.Option("--layers", "-l", metavar="N[,N...]", help="Layers of the model, of each kind."),
    ] = None,
    tp: Annotated[int | None, typer.Option("--tp", metavar="T", help="Tensor-parallel size.")] = None,
    sequence: Annotated[
        str | None,
        typer.Option("--sequence", metavar="L[,L...]", help="Sequence length: one, or one a kind of layer."),
    ] = None,
    micro_batch: Annotated[
        int | None, typer.Option("--micro-batch", metavar="B", help="Samples of a micro-batch.")
    ] = None,
    sequence_parallel: Annotated[
        bool | None,
        typer.Option(
            "--sequence-parallel/--no-sequence-parallel", help="Which memory to take where the file has both."
        ),
    ] = None,
    dp: Annotated[
        int, typer.Option("--dp", metavar="D", help="Data-parallel devices over which ZeRO divides.")
    ] = 1,
    zero: Annotated[
        int,
        typer.Option("--zero", metavar="STAGE", help="ZeRO: 1 divides optimizer state, 2 gradients, 3 all."),
    ] = 0,
    head_share: Annotated[
        float,
        typer.Option(
            "--head-share",
            metavar="A",
            help="Share of the time outside the layers that is the first stage's, 0 to 1.",
        ),
    ] = 0.0,
    name: Name = None,
    output: ModelOutput = None,
    force: Force = False,
    json_: ModelJson = False,
) -> int:
    """Read a profile of Galvatron, and write the model that it tells of."""
    from sapp_ppb.cli.costs.profile_pages import model_text
    from sapp_ppb.estimation import GalvatronSizes, model_from_galvatron
    from sapp_ppb.readers.measurements.galvatron_profile import read_galvatron

    if output is not None:
        free_file("--output", output, force=force)
    sizes = GalvatronSizes(
        layers=None if layers is None else whole_numbers("--layers", layers),
        tp=tp,
        sequence=None if sequence is None else whole_numbers("--sequence", sequence),
        micro_batch=micro_batch,
        dp=dp,
        zero=zero,
        head_share=head_share,
    )
    profile = read_galvatron(computation, memory, sequence_parallel=sequence_parallel)
    named = computation.stem.removeprefix(_TIMES_PREFIX) if name is None else name
    model = model_from_galvatron(profile, sizes, name=named)
    deliver(model, model_text(model), output, force=force, json_=json_)
    return FITS


def pipedream(
    graph: Annotated[Path, typer.Argument(metavar="GRAPH.txt", help="graph.txt.", show_default=False)],
    states_per_parameter: Annotated[
        float,
        typer.Option(
            "--states-per-parameter",
            metavar="N",
            help="Memory of weights, gradients and optimizer state, in units of the weights': 4 for Adam, "
            "3 for SGD with momentum.",
        ),
    ] = 4.0,
    name: Name = None,
    output: ModelOutput = None,
    force: Force = False,
    json_: ModelJson = False,
) -> int:
    """Read a graph of PipeDream, and write the chain that it makes."""
    from sapp_ppb.cli.costs.profile_pages import model_text
    from sapp_ppb.estimation import model_from_graph
    from sapp_ppb.readers.measurements.pipedream_graph import read_operator_graph

    if output is not None:
        free_file("--output", output, force=force)
    operators = read_operator_graph(graph)
    named = graph.stem if name is None else name
    model = model_from_graph(operators, name=named, states_per_parameter=states_per_parameter)
    facts = [("operators", f"{len(operators.nodes)}, of which the cuts make {len(model.layers)} layers")]
    deliver(model, model_text(model, facts), output, force=force, json_=json_)
    return FITS


def table(
    path: Annotated[Path, typer.Argument(metavar="LAYERS.csv", help="Table.", show_default=False)],
    name: Name = None,
    output: ModelOutput = None,
    force: Force = False,
    json_: ModelJson = False,
) -> int:
    """Read a table of layers, and write the model that it is."""
    from sapp_ppb.cli.costs.profile_pages import model_text
    from sapp_ppb.readers.measurements.layers_csv import read_layers_csv

    if output is not None:
        free_file("--output", output, force=force)
    model = read_layers_csv(path, name=path.stem if name is None else name)
    deliver(model, model_text(model), output, force=force, json_=json_)
    return FITS
