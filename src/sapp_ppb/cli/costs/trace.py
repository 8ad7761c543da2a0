"""``sapp-ppb costs trace``: times of layers out of profiler timelines."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sapp_ppb.cli.costs.measured import deliver
from sapp_ppb.cli.guard import FITS, say
from sapp_ppb.cli.options.output import Force, ModelJson, ModelOutput
from sapp_ppb.cli.options.problem import MicroBatchesIfGiven
from sapp_ppb.cli.options.values import layer_count
from sapp_ppb.cli.output_files import free_file
from sapp_ppb.cli.progress import ShareLine
from sapp_ppb.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sapp_ppb.costs.measured import TraceContent
    from sapp_ppb.estimation import CellLayers, OpEstimate, TraceEstimate, Wanted

SHORT_HELP = "Times of layers from profiler timelines."
HELP = """
Read profiler timelines and make a model file of the times of the layers: trace_view.json and
msprof.json of Ascend and MindSpore, Kineto traces of PyTorch (.json, .json.gz), and the traces
that this tool writes.  Give the traces of several ranks together, at least of the first and of
the last stage and of one between.

Traces that name layers need --micro-batches.  Traces that time whole ops (PP:0F0 and the like)
need to know which layers each cell holds: --plan (one for all traces, or one for each), or --split
with their number along the chain.

\b
Examples:
  sapp-ppb costs trace traces/ --body DecodeLayer:80 --head Embedding --tail lm_head -mb 16 -o model.json
  sapp-ppb costs trace rank0.json.gz rank7.json.gz --body TransformerBlock --per-layer -mb 8 --json
  sapp-ppb costs trace pp*.json --body Block --split 9,10,10,9 --head Embedding --tail Head -o model.json
"""


def trace(
    traces: Annotated[
        list[Path],
        typer.Argument(metavar="TRACE", help="Trace files, or folders of them.", show_default=False),
    ],
    body: Annotated[
        list[str], typer.Option("--body", metavar="NAME[:COUNT]", help="Layer to balance; may be repeated.")
    ],
    head: Annotated[
        list[str] | None,
        typer.Option("--head", metavar="NAME", help="Layer before them, on the first stage."),
    ] = None,
    tail: Annotated[
        list[str] | None, typer.Option("--tail", metavar="NAME", help="Layer behind them, on the last stage.")
    ] = None,
    micro_batches: MicroBatchesIfGiven = None,
    per_layer: Annotated[
        bool, typer.Option("--per-layer", help="Keep each layer with a time of its own.")
    ] = False,
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="N,N,...", help="BODY layers of each cell, along the chain."),
    ] = None,
    plan: Annotated[
        list[Path] | None,
        typer.Option("--plan", metavar="PLAN.json", help="Plan that ran: one, or one for each trace."),
    ] = None,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the model.")] = "measured",
    output: ModelOutput = None,
    force: Force = False,
    json_: ModelJson = False,
) -> int:
    """Read traces, and write what their layers take."""
    from sapp_ppb.cli.costs.measured_pages import ops_text, scopes_text
    from sapp_ppb.readers.measurements.trace_file import read_trace, trace_files

    if output is not None:
        free_file("--output", output, force=force)
    wanted = _wanted(body, head or [], tail or [])
    cells = _cells(wanted, split, plan or [])
    contents = []
    for path in trace_files(traces):
        with ShareLine(f"reading {path.name}") as line:
            contents.append(read_trace(path, [want.name for want in wanted], line))
    for content in contents:
        for note in content.notes:
            say(f"note: {note}")
    if cells:
        by_op = _from_ops(contents, cells, name)
        deliver(by_op.model, ops_text(by_op), output, force=force, json_=json_)
    else:
        by_scope = _from_scopes(contents, wanted, micro_batches, name, per_layer=per_layer)
        for note in by_scope.notes:
            say(f"note: {note}")
        deliver(by_scope.model, scopes_text(by_scope), output, force=force, json_=json_)
    return FITS


def _wanted(body: "Sequence[str]", head: "Sequence[str]", tail: "Sequence[str]") -> "list[Wanted]":
    """Layers in the order of the chain."""
    from sapp_ppb.costs import LayerKind
    from sapp_ppb.estimation import Wanted

    bodies = [layer_count("--body", text) for text in body]
    return [
        *(Wanted(name=name, kind=LayerKind.HEAD) for name in head),
        *(Wanted(name=name, kind=LayerKind.BODY, count=count) for name, count in bodies),
        *(Wanted(name=name, kind=LayerKind.TAIL) for name in tail),
    ]


def _cells(wanted: "Sequence[Wanted]", split: str | None, plans: "Sequence[Path]") -> "list[CellLayers]":
    """Layers of each cell by --split or --plan; nothing when neither is given."""
    from sapp_ppb.costs import LayerKind
    from sapp_ppb.estimation import CellLayers, cells_of_split
    from sapp_ppb.readers.plans.plan_counts import read_plan_counts

    if split is not None and plans:
        raise InputError("--split", ["says what --plan says too; give one of the two"])
    if split is None and not plans:
        return []
    names = {kind: [want.name for want in wanted if want.kind is kind] for kind in LayerKind}
    for kind in (LayerKind.HEAD, LayerKind.TAIL):
        if len(names[kind]) > 1:
            raise InputError(f"--{kind.value.lower()}", ["ops tell no two of them apart; give one"])
    ends = {kind.value.lower(): next(iter(names[kind]), None) for kind in (LayerKind.HEAD, LayerKind.TAIL)}
    if split is not None:
        if len(names[LayerKind.BODY]) > 1:
            raise InputError("--split", ["counts layers of one kind; give --plan for several"])
        return [cells_of_split("--split", split, names[LayerKind.BODY][0], **ends)]
    cells = []
    for ran in map(read_plan_counts, plans):
        bodies = tuple(layer.name for layer in ran.problem.model.bodies)
        if set(bodies) != set(names[LayerKind.BODY]):
            raise InputError("--body", [f"must name the layers of the plan: {', '.join(bodies)}"])
        cells.append(CellLayers(bodies=bodies, counts=ran.counts, **ends))
    return cells


def _from_ops(contents: "Sequence[TraceContent]", cells: "Sequence[CellLayers]", name: str) -> "OpEstimate":
    from sapp_ppb.estimation import model_from_ops

    found = [content.ops for content in contents if content.ops is not None]
    if not found:
        raise InputError(
            "traces", ["hold no ops such as PP:0F0; leave out --split and --plan to look for layers"]
        )
    return model_from_ops(found, cells, name=name)


def _from_scopes(
    contents: "Sequence[TraceContent]",
    wanted: "Sequence[Wanted]",
    micro_batches: int | None,
    name: str,
    *,
    per_layer: bool,
) -> "TraceEstimate":
    from sapp_ppb.estimation import model_from_scopes

    found = [content.scopes for content in contents if content.scopes is not None]
    if not found:
        raise InputError("traces", [_nothing_found(contents, wanted)])
    if micro_batches is None:
        raise InputError("--micro-batches", ["must be given: it says how often a step runs each layer"])
    return model_from_scopes(found, wanted, micro_batches, name=name, per_layer=per_layer)


def _nothing_found(contents: "Sequence[TraceContent]", wanted: "Sequence[Wanted]") -> str:
    """Say which names there are when none is one that was wanted."""
    if any(content.ops is not None for content in contents):
        return "time whole ops and name no layers; give --split or --plan to divide them"
    counts: dict[str, int] = {}
    for content in contents:
        for seen, times in content.names.items():
            counts[seen] = counts.get(seen, 0) + times
    likely = sorted(counts, key=lambda seen: -counts[seen])[:12]
    names = f"names that look like layers: {', '.join(likely)}" if likely else "no name looks like a layer"
    return f"none of {', '.join(want.name for want in wanted)} is there; {names}"
