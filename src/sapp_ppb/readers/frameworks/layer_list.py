"""
A plan with one line a layer: a CSV with a header, or JSON with sizes and schedule.

Indices count all layers along the chain, in any order of the lines.  A line without
recompute is of a HEAD, before the first that has one, or of a TAIL, behind the last.
Where two chunks lie on a V is told by the schedule, or seen from the layers.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

from sapp_ppb.costs import Model, Recompute, RecomputeType
from sapp_ppb.costs.checks import count_fault, printable, shown
from sapp_ppb.errors import InputError, ScheduleError
from sapp_ppb.readers.formats.json_file import read_document
from sapp_ppb.readers.formats.text_file import read_text, refuse_many
from sapp_ppb.readers.frameworks.layer_lines import LayerLine, LayerLines
from sapp_ppb.readers.plans.order_file import read_order
from sapp_ppb.schedules import Placement, ScheduleName, ops_fault, parse_csv
from sapp_ppb.targets.config import (
    LAYERS_COLUMNS,
    LAYERS_FORMAT,
    LAYERS_VERSION,
    BrokenRule,
    CellTypes,
    PipelineConfig,
)

_LARGEST_MB = 64
MOST_LAYERS = 100_000
_SHOWN_FAULTS = 20
_ON_A_V = (ScheduleName.ZBV, ScheduleName.DUALPIPEV)
_KEYS = {
    "format",
    "version",
    "stages",
    "interleave",
    "micro_batches",
    "schedule",
    "micro_batch_group",
    "order",
    "layers",
}
_NEEDED = ("stages", "interleave", "micro_batches", "schedule", "layers")


def read_layer_list(path: str | PathLike[str], model: Model | None = None) -> PipelineConfig:
    r"""
    Read a list of layers, CSV or JSON (``.json``).

    Parameters
    ----------
    model
        Model whose strategies the lines may name; None: recompute types only.

    Raises
    ------
    InputError
        If the file can not be read, or a line is none of a layer; all faults at once,
        each with its line.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> text = "index,name,stage,chunk,recompute\n0,Dec,0,0,full\n1,Dec,1,0,none\n"
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "layers.csv").write_text(text)
    ...     config = read_layer_list(Path(folder, "layers.csv"))
    >>> config.stages, config.layers, [[r.label for r in cell] for cell in config.types[0]]
    (2, 2, [['full'], ['none']])
    """
    types = tuple(Recompute) if model is None else model.types
    read = _read_json if str(path).lower().endswith(".json") else _read_csv
    return read(path, types)


def _read_csv(path: str | PathLike[str], types: Sequence[RecomputeType]) -> PipelineConfig:
    where, lines = str(path), LayerLines(from_text=True, types=types)
    text = read_text(path, largest_mb=_LARGEST_MB, format_name="a table of layers")
    refuse_many(where, text, lines=2 * MOST_LAYERS, cells=20 * MOST_LAYERS)
    rows = _rows(where, text)
    number, header = next(rows, (1, []))
    if tuple(cell.strip() for cell in header) != LAYERS_COLUMNS:
        wanted = ",".join(LAYERS_COLUMNS)
        fault = f"line {number}: the columns must be {wanted} (got {shown(','.join(header))})"
        raise InputError(where, [fault])
    for number, row in rows:
        if len(row) == len(LAYERS_COLUMNS):
            lines.add(f"line {number}", dict(zip(LAYERS_COLUMNS, map(str.strip, row), strict=True)))
        else:
            lines.faults.append(f"line {number}: must have {len(LAYERS_COLUMNS)} values (got {len(row)})")
    layers = lines.in_order()
    stages = max((layer.stage for layer in layers), default=0) + 1
    chunks = max((layer.chunk for layer in layers), default=0) + 1
    _refuse(where, lines.faults, stages, chunks)
    placement = _seen(layers, stages, chunks)
    unknown = ["micro-batches are not known: a table of layers does not say them"]
    if placement is Placement.V:
        unknown.append("the schedule is not known: the layers lie on a V, as under zbv or dualpipev")
    return _config("csv", where, layers, stages, chunks, placement, unknown=tuple(unknown))


def _rows(where: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """Lines that hold something, with their numbers."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error as error:
        raise InputError(where, [f"the CSV is broken at line {reader.line_num}: {error}"]) from None


def _read_json(path: str | PathLike[str], types: Sequence[RecomputeType]) -> PipelineConfig:
    where, document = str(path), read_document(path)
    faults = [*document.faults, *_top_faults(document.value)]
    if faults or not isinstance(document.value, dict):
        raise InputError(where, _cut(faults))
    values, lines = document.value, LayerLines(from_text=False, types=types)
    for at, entry in enumerate(values["layers"]):
        if isinstance(entry, dict) and set(entry) == set(LAYERS_COLUMNS):
            lines.add(f"layers[{at}]", entry)
        else:
            keys = ", ".join(LAYERS_COLUMNS)
            lines.faults.append(f"layers[{at}] must be an object of {keys} (got {shown(entry)})")
    layers, stages, chunks = lines.in_order(), values["stages"], values["interleave"]
    lines.faults += [
        f"{layer.place}: {key} must be below {size} (got {found})"
        for layer in layers
        for key, size, found in (("stage", stages, layer.stage), ("chunk", chunks, layer.chunk))
        if found >= size
    ]
    _refuse(where, lines.faults, stages, chunks)
    schedule, order, unknown = ScheduleName(values["schedule"]), None, []
    placement = Placement.V if schedule in _ON_A_V else Placement.LOOP
    if schedule is ScheduleName.CUSTOM:
        placement = _seen(layers, stages, chunks)
    if "order" in values:
        try:
            order = read_order(values["order"]["path"], values["order"]["sha256"], Path(path).parent)
            placement = parse_csv(order.text, name=order.path).placement
        except (InputError, ScheduleError) as error:
            unknown.append(f"the order is not known: {error}")
    return _config(
        "json",
        where,
        layers,
        stages,
        chunks,
        placement,
        micro_batches=values["micro_batches"],
        schedule=schedule,
        micro_batch_group=values.get("micro_batch_group"),
        order_file=order,
        unknown=tuple(unknown),
    )


def _top_faults(value: object) -> list[str]:
    """Faults of everything but the layers."""
    if not isinstance(value, dict) or value.get("format") != LAYERS_FORMAT:
        return [f"must be an object whose format is {LAYERS_FORMAT!r} (got {shown(value)})"]
    if value.get("version") != LAYERS_VERSION or isinstance(value.get("version"), bool):
        return [f"version must be {LAYERS_VERSION} (got {shown(value.get('version'))})"]
    faults = [
        f"{printable(key)} is unknown; the keys are {', '.join(sorted(_KEYS))}"
        for key in sorted(value.keys() - _KEYS)
    ]
    faults += [f"{key} is missing" for key in _NEEDED if key not in value]
    sizes = ("stages", "interleave", "micro_batches")
    found = [count_fault(key, value[key]) for key in sizes if key in value]
    if "schedule" in value and value["schedule"] not in list(ScheduleName):
        found.append(f"schedule must be one of {', '.join(ScheduleName)} (got {shown(value['schedule'])})")
    if "layers" in value and (not isinstance(value["layers"], list) or not value["layers"]):
        found.append(f"layers must be a list with an object for each layer (got {shown(value['layers'])})")
    elif "layers" in value and len(value["layers"]) > MOST_LAYERS:
        found.append(f"layers must have at most {MOST_LAYERS:,} entries (got {len(value['layers']):,})")
    group = value.get("micro_batch_group")
    if group not in (None, "remainder-first") and count_fault("micro_batch_group", group):
        found.append(f"micro_batch_group must be a number or 'remainder-first' (got {shown(group)})")
    order = value.get("order", {"path": "", "sha256": ""})
    if not isinstance(order, dict) or not all(isinstance(order.get(key), str) for key in ("path", "sha256")):
        found.append(f"order must be an object of path and sha256 (got {shown(order)})")
    return faults + [fault for fault in found if fault]


def _refuse(where: str, faults: Sequence[str], stages: int, chunks: int) -> None:
    too_many = [] if faults else [fault for fault in [ops_fault(stages, chunks, 1)] if fault]
    if faults or too_many:
        raise InputError(where, _cut([*faults, *too_many]))


def _cut(faults: Sequence[str]) -> list[str]:
    hidden = len(faults) - _SHOWN_FAULTS
    return list(faults) if hidden <= 0 else [*faults[:_SHOWN_FAULTS], f"and {hidden} more"]


def _seen(layers: Sequence[LayerLine], stages: int, chunks: int) -> Placement:
    """See from the layers where the cells live: on a V only where a loop can not be."""
    if chunks != 2 or _first_back(layers, stages, Placement.LOOP) is None:
        return Placement.LOOP
    return Placement.V if _first_back(layers, stages, Placement.V) is None else Placement.LOOP


def _first_back(layers: Sequence[LayerLine], stages: int, placement: Placement) -> int | None:
    """Find the first layer whose cell comes before that of the layer before it."""
    cells = [placement.cell_of(layer.stage, layer.chunk, stages) for layer in layers]
    return next((at for at in range(1, len(cells)) if cells[at] < cells[at - 1]), None)


def _config(
    target: str,
    where: str,
    layers: Sequence[LayerLine],
    stages: int,
    chunks: int,
    placement: Placement,
    **known: object,
) -> PipelineConfig:
    """Say the pipeline, and the rules that the layers break."""
    bodies = [layer for layer in layers if layer.recompute is not None]
    return PipelineConfig(
        target=target,
        where=where,
        stages=stages,
        interleave=chunks,
        layers=len(bodies),
        types=_types(bodies, stages, chunks),
        broken=tuple(_broken(layers, stages, chunks, placement)),
        **known,  # type: ignore[arg-type]
    )


def _types(layers: Sequence[LayerLine], stages: int, chunks: int) -> CellTypes:
    cells: list[list[list[RecomputeType]]] = [[[] for _ in range(stages)] for _ in range(chunks)]
    for layer in layers:
        if layer.recompute is not None:
            cells[layer.chunk][layer.stage].append(layer.recompute)
    return tuple(tuple(map(tuple, row)) for row in cells)


def _broken(
    layers: Sequence[LayerLine], stages: int, chunks: int, placement: Placement
) -> Iterator[BrokenRule]:
    """Find layers that go back along the chain, and ends that stand elsewhere."""
    back = _first_back(layers, stages, placement)
    if back is not None:
        here, before = layers[back], layers[back - 1]
        yield BrokenRule(
            key=here.place,
            rule=f"the cells of layers rise along the chain, on a {placement.value}",
            found=f"{_cell(here)} behind {_cell(before)}",
        )
    last = stages * chunks - 1
    for ends, cell, word in (
        (_before_bodies(layers), 0, "HEAD stands in the first cell"),
        (_before_bodies(layers[::-1]), last, "TAIL stands in the last cell"),
    ):
        wrong = [end for end in ends if placement.cell_of(end.stage, end.chunk, stages) != cell]
        if wrong:
            yield BrokenRule(key=wrong[0].place, rule=word, found=_cell(wrong[0]))


def _before_bodies(layers: Sequence[LayerLine]) -> list[LayerLine]:
    first = next((at for at, layer in enumerate(layers) if layer.recompute is not None), 0)
    return list(layers[:first])


def _cell(layer: LayerLine) -> str:
    return f"stage {layer.stage} chunk {layer.chunk}"
