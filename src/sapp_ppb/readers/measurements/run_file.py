"""
Real runs, version 1: what PyTorch took for a plan whose cells have given times.

A run says all itself, the times of its cells included, so it needs no model and no plan file.
A file holds one run, or a list of them.
"""

from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from sapp_ppb.costs import Layer, LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.costs.checks import number_fault, shown
from sapp_ppb.errors import InputError, PpbError
from sapp_ppb.files import opened
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.readers.formats.json_file import read_document
from sapp_ppb.readers.formats.notes import warn_of
from sapp_ppb.readers.models.model_notes import unknown_key_notes
from sapp_ppb.readers.plans.plan_entry import PROBLEM_KEYS
from sapp_ppb.schedules import Flavour, P2PMode, ScheduleName
from sapp_ppb.simulator import MeasuredStep

RUN_FORMAT, RUN_VERSION = "sapp-ppb-run", 1
_BEGINNING = 4096  # characters in which the format must be said
_MOST_CELLS = 4096

Check = Callable[[str, object], str | None]


def _times(place: str, value: object, *, above_zero: bool) -> str | None:
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST_CELLS:
        return f"{place} must be a list of milliseconds, one a cell (got {shown(value)})"
    faults = (number_fault(f"{place}[{cell}]", ms, above_zero=above_zero) for cell, ms in enumerate(value))
    return next((fault for fault in faults if fault), None)


_SIZES = ("stages", "interleave", "micro_batches", "schedule", "micro_batch_group", "p2p_mode", "flavour")
_NEEDED: Mapping[str, Check] = {
    **{key: PROBLEM_KEYS[key] for key in ("stages", "micro_batches", "schedule")},
    "forward_ms": partial(_times, above_zero=True),
    "backward_ms": partial(_times, above_zero=False),
    "step_ms": partial(number_fault, above_zero=True),
}
_OPTIONAL: Mapping[str, Check] = {
    **{key: PROBLEM_KEYS[key] for key in ("interleave", "micro_batch_group", "p2p_mode", "flavour")},
    "weight_ms": partial(_times, above_zero=False),
}
# Keys that say more than is needed here.
_OTHERS = ("format", "version", "name", "torch", "layers_per_cell", "steps_ms", "ops")


def is_run_file(path: str | PathLike[str]) -> bool:
    """Whether a file says at its beginning that it holds real runs; False for what can not be read."""
    try:
        with opened(path) as file:
            return f'"{RUN_FORMAT}"'.encode() in file.read(_BEGINNING)
    except (OSError, ValueError):
        return False


def read_run_file(path: str | PathLike[str]) -> list[MeasuredStep]:
    """
    Read the runs of a file, in its order.

    Warns
    -----
    FileNote
        For unknown keys.

    Raises
    ------
    InputError
        If the file can not be read or a run holds what it may not, with all faults at once.
    """
    document = read_document(path)
    listed = document.value if isinstance(document.value, list) else [document.value]
    faults, steps, notes = list(document.faults), list[MeasuredStep](), list[str]()
    if not listed:
        faults.append("holds an empty list; a run is a JSON object")
    for index, raw in enumerate(listed):
        prefix = f"[{index}]." if isinstance(document.value, list) else ""
        wrong = _faults(raw, prefix)
        faults += wrong
        if wrong or not isinstance(raw, dict):
            continue
        notes += unknown_key_notes(list(raw), (*_OTHERS, *_NEEDED, *_OPTIONAL), prefix)
        try:
            steps.append(_step(raw, _name(Path(path), raw, prefix)))
        except InputError as error:
            faults += [f"{prefix}{fault}" for fault in error.faults]
        except PpbError as error:
            faults.append(f"{prefix}{error}")
    warn_of(path, notes)
    if faults:
        raise InputError(str(path), faults)
    return steps


def _faults(raw: object, prefix: str) -> list[str]:
    """One sentence for everything that a run may not hold or lacks."""
    where = prefix.removesuffix(".")
    if not isinstance(raw, dict):
        return [f"{where or 'the document'} must be a JSON object (got {shown(raw)})"]
    if raw.get("format") != RUN_FORMAT or raw.get("version") != RUN_VERSION:
        got = f"{shown(raw.get('format'))} version {shown(raw.get('version'))}"
        return [f"{where or 'the document'} must be {RUN_FORMAT!r} version {RUN_VERSION} (got {got})"]
    faults = [f"{prefix}{key} is missing" for key in _NEEDED if key not in raw]
    checks = {**_NEEDED, **_OPTIONAL}
    found = (check(f"{prefix}{key}", raw[key]) for key, check in checks.items() if key in raw)
    faults += [fault for fault in found if fault]
    if faults:
        return faults
    cells = raw["stages"] * raw.get("interleave", 1)
    return [
        f"{prefix}{key} must list {cells} cells, stages x interleave (got {len(raw[key])})"
        for key in ("forward_ms", "backward_ms", "weight_ms")
        if key in raw and len(raw[key]) != cells
    ]


def _name(path: Path, raw: Mapping[str, Any], prefix: str) -> str:
    """Call a run what it is: its file, and its sizes where a file holds several."""
    if not prefix:
        return path.name
    own = raw.get("name")
    if isinstance(own, str) and own.isprintable() and own:
        return own
    return f"{raw['schedule']} S={raw['stages']} V={raw.get('interleave', 1)} M={raw['micro_batches']}"


def _step(raw: Mapping[str, Any], name: str) -> MeasuredStep:
    """Plan with a layer of its own in every cell, and what a step of it took."""
    cells = len(raw["forward_ms"])
    weights = raw.get("weight_ms", [None] * cells)
    layers = tuple(
        _layer(cell, *times)
        for cell, times in enumerate(zip(raw["forward_ms"], raw["backward_ms"], weights, strict=True))
    )
    values = {key: raw[key] for key in _SIZES if raw.get(key) is not None}
    words = {"schedule": ScheduleName, "p2p_mode": P2PMode, "flavour": Flavour}
    values |= {key: word(values[key]) for key, word in words.items() if key in values}
    problem = Problem(model=Model(name=name, layers=layers), **values)
    counts = np.zeros((cells, len(Recompute), cells), dtype=np.int64)
    counts[range(cells), Recompute.NONE, range(cells)] = 1
    return MeasuredStep(name=name, plan=Plan(problem=problem, counts=counts), step_ms=float(raw["step_ms"]))


def _layer(cell: int, forward_ms: float, backward_ms: float, weight_ms: float | None) -> Layer:
    # Only a split backward needs the weight gradients' time, and then it is judged by the problem.
    usable = weight_ms is not None and weight_ms <= backward_ms
    return layer_from_times(
        name=f"cell {cell}",
        kind=LayerKind.BODY,
        forward_ms=forward_ms,
        backward_ms=backward_ms,
        weight_grad_ms=weight_ms if usable else None,
    )
