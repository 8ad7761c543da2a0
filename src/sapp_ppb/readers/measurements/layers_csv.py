"""
A model as a table: a CSV with a line for each layer.

The header names the columns: ``name``, ``kind`` (HEAD, BODY or TAIL) and ``forward_ms``, and
any of ``count``, ``backward_ms``, ``parameter_mb``, ``activation_mb``, ``weight_grad_ms``,
``model_name``, and for a recompute type ``activation_full_mb`` and ``backward_full_ms``.
An empty cell is a value that is not given.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from os import PathLike

from sapp_ppb.costs import Layer, LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.costs.checks import LARGEST_COUNT, count_fault, listed, shown, text_fault
from sapp_ppb.costs.model import body_faults, name_faults
from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.notes import warn_of
from sapp_ppb.readers.formats.number_text import number_of
from sapp_ppb.readers.formats.text_file import read_text, refuse_many

_LARGEST_MB = 64
_MOST_LAYERS = 10_000
_MOST_FAULTS = 20  # a file of another format has a fault on every line
_TYPES = tuple(r for r in Recompute if r is not Recompute.NONE)
ACTIVATION = {Recompute.NONE: "activation_mb"} | {r: f"activation_{r.label}_mb" for r in _TYPES}
BACKWARD = {Recompute.NONE: "backward_ms"} | {r: f"backward_{r.label}_ms" for r in _TYPES}
_NEEDED = ("name", "kind", "forward_ms")
_NUMBERS = ("forward_ms", "parameter_mb", "weight_grad_ms", *BACKWARD.values(), *ACTIVATION.values())
COLUMNS = (
    *("name", "kind", "count", "forward_ms", "backward_ms", "parameter_mb"),
    *ACTIVATION.values(),
    *(BACKWARD[r] for r in _TYPES),
    *("weight_grad_ms", "model_name"),
)
_KINDS = tuple(kind.value for kind in LayerKind)


def read_layers_csv(path: str | PathLike[str], *, name: str) -> Model:
    r"""
    Model of a CSV file, its layers in the order of the lines.

    Times are milliseconds and memory MB, of one layer and one micro-batch; those that are
    missing follow as in a model file.

    Parameters
    ----------
    path
        CSV file, UTF-8, with commas between the cells.
    name
        Name of the model.

    Warns
    -----
    FileNote
        For cells without effect.

    Raises
    ------
    InputError
        If the file can not be read, its header names a column that is none, or a cell is
        not allowed; with the lines of all faults at once.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "layers.csv")
    ...     _ = path.write_text("name,kind,count,forward_ms,activation_mb,activation_full_mb\n"
    ...                         "Emb,HEAD,,2,,\nDec,BODY,32,10,600,40\n")
    ...     model = read_layers_csv(path, name="tiny")
    >>> model.body_count, model.bodies[0].backward_ms[Recompute.FULL]  # 1.5 * (2 * 10)
    (32, 30.0)
    """
    text = read_text(path, largest_mb=_LARGEST_MB, format_name="a table of layers")
    refuse_many(str(path), text, lines=2 * _MOST_LAYERS, cells=100 * _MOST_LAYERS)
    faults: list[str] = []
    rows = _rows(text, faults)
    _, header = next(rows, (1, []))
    while header and not header[-1]:  # columns that a spreadsheet left empty
        header.pop()
    faults += _header_faults(header)
    if faults:
        raise InputError(str(path), faults)
    notes: list[str] = []
    layers, names, complete = [], [], True
    for line, cells in rows:
        values = _values(line, header, cells, faults)
        layer = None if values is None else _layer(line, values, faults, notes)
        names += [] if values is None or "name" not in values else [values["name"]]
        layers += [] if layer is None else [layer]
        complete = complete and layer is not None
    faults += name_faults(names)
    if complete and not faults:  # a line with a fault may have been the BODY
        faults += body_faults(layers)
    warn_of(path, notes)
    if faults:
        more = [f"and {len(faults) - _MOST_FAULTS} more faults"] if len(faults) > _MOST_FAULTS else []
        raise InputError(str(path), [*faults[:_MOST_FAULTS], *more])
    return Model(name=name, layers=tuple(layers))


def _rows(text: str, faults: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of every row that is not blank; a quote that is never closed ends them."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = rows.line_num + 1
        try:
            cells = [cell.strip() for cell in next(rows)]
        except StopIteration:
            return
        except csv.Error as error:
            faults.append(f"line {line}: is no line of a CSV ({error}); check its quotes")
            return
        if any(cells):
            yield line, cells


def _header_faults(header: Sequence[str]) -> list[str]:
    """Faults of the names of the columns."""
    for separator, words in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and separator in header[0]:
            return [f"line 1: the cells must have commas between them, and not {words}"]
    faults = []
    for column, times in Counter(header).items():
        if times > 1:
            faults.append(f"line 1: column {shown(column)} stands there {times} times; keep one")
        if column not in COLUMNS:
            near = get_close_matches(column.lower(), COLUMNS, n=1)
            hint = f"the nearest known one is {near[0]}" if near else f"known ones are {', '.join(COLUMNS)}"
            faults.append(f"line 1: column {shown(column)} is unknown; {hint}")
    faults += [f"line 1: column {column} is missing" for column in _NEEDED if column not in header]
    return faults


def _values(
    line: int, header: Sequence[str], cells: Sequence[str], faults: list[str]
) -> dict[str, str] | None:
    """Cells that are not empty, by their column; None for a line of another length."""
    if len(cells) < len(header) or any(cells[len(header) :]):
        faults.append(f"line {line}: must have {len(header)} cells, as the header has (got {len(cells)})")
        return None
    return {column: cell for column, cell in zip(header, cells, strict=False) if cell}


def _layer(line: int, values: Mapping[str, str], faults: list[str], notes: list[str]) -> Layer | None:
    """Layer of a line; None when it has faults."""
    place = f"line {line}"
    wrong = [f"{place}: {column} is missing" for column in _NEEDED if column not in values]
    wrong += [
        fault
        for column in ("name", "model_name")
        if column in values and (fault := text_fault(f"{place}: {column}", values[column]))
    ]
    kind = values.get("kind", _KINDS[0])
    if kind not in _KINDS:
        wrong.append(_kind_fault(place, kind))
    count = _count(place, values.get("count", "1"), wrong)
    numbers = {}
    for column in _NUMBERS:
        if column in values:
            above = column == "forward_ms" and kind == LayerKind.BODY.value
            numbers[column], fault = number_of(f"{place}: {column}", values[column], above_zero=above)
            wrong += [fault] if fault else []
    faults += wrong
    return None if wrong else _built(place, values, count, numbers, faults, notes)


def _built(
    place: str,
    values: Mapping[str, str],
    count: int,
    numbers: Mapping[str, float],
    faults: list[str],
    notes: list[str],
) -> Layer | None:
    """Layer of values that are allowed one by one; None where they are not together."""
    try:
        layer = layer_from_times(
            name=values["name"],
            kind=LayerKind(values["kind"]),
            count=count,
            forward_ms=numbers["forward_ms"],
            explicit={r: numbers[column] for r, column in BACKWARD.items() if column in numbers},
            parameter_mb=numbers.get("parameter_mb", 0.0),
            activation_mb={r: numbers[column] for r, column in ACTIVATION.items() if column in numbers},
            model_name=values.get("model_name"),
            weight_grad_ms=numbers.get("weight_grad_ms"),
        )
    except InputError as error:
        faults += [f"{place}: {fault}" for fault in error.faults]
        return None
    notes += [f"{place}: {note}" for note in _notes(layer, numbers)]
    return layer


def _notes(layer: Layer, numbers: Mapping[str, float]) -> Iterator[str]:
    """Say what of a line has no effect or looks like a slip."""
    if layer.kind is not LayerKind.BODY:
        useless = [table[r] for table in (ACTIVATION, BACKWARD) for r in _TYPES if numbers.get(table[r])]
        if useless:
            yield f"{listed(useless)}: a {layer.kind.value} is never recomputed; ignored"
        return
    zeros = [column for column in ACTIVATION.values() if numbers.get(column) == 0]
    if zeros:
        yield f"{listed(zeros)}: 0 MB counts as not given"
    if Recompute.NONE not in layer.considered:
        yield "activation_mb is not given: no plan can leave this layer without recompute"
    base = layer.backward_ms[Recompute.NONE]
    for r in Recompute:
        if r in layer.considered and layer.backward_ms[r] < base:
            taken = f"takes {layer.backward_ms[r]:g} ms, less than the {base:g} ms without recompute"
            yield f"backward with {r.label} {taken}; {BACKWARD[r]} is the whole backward time"


def _count(place: str, text: str, wrong: list[str]) -> int:
    """Count of a cell, 1 where it is none."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_COUNT))
    fault = count_fault(f"{place}: count", int(text) if is_number else text)
    wrong += [fault] if fault else []
    return 1 if fault else int(text)


def _kind_fault(place: str, kind: str) -> str:
    fault = f"{place}: kind must be one of {', '.join(_KINDS)} (got {shown(kind)})"
    return f"{fault}; write {kind.upper()}" if kind.upper() in _KINDS else fault
