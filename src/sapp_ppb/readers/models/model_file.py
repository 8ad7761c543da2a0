"""
The model file, in the JSON of the older SAPP tool, which people have on disk.

``layers_description`` rules; the other sections only repeat it.  All faults of a
file are raised at once, what is merely odd is a warning of class FileNote.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike

from pydantic import ValidationError

from sapp_ppb.costs.checks import number_fault, shown
from sapp_ppb.costs.cost import NOTHING
from sapp_ppb.costs.layer import Layer, LayerKind
from sapp_ppb.costs.layer_times import layer_from_times
from sapp_ppb.costs.model import Model, body_faults, name_faults
from sapp_ppb.costs.recompute import Recompute
from sapp_ppb.costs.tied import tied_faults
from sapp_ppb.errors import InputError
from sapp_ppb.plan import PLAN_FORMAT
from sapp_ppb.readers.formats.json_file import read_document
from sapp_ppb.readers.formats.notes import warn_of
from sapp_ppb.readers.models.model_entry import (
    LAYER_KEYS,
    TOP_KEYS,
    LayerEntry,
    TopLevel,
    faults_in_our_words,
)
from sapp_ppb.readers.models.model_notes import entry_notes, partition_notes, unknown_key_notes
from sapp_ppb.readers.models.strategy_entry import StrategyEntries

_MOST_ENTRIES = 10_000
_BLANK_KEY = "recompute_time "  # the older tool looked for this spelling only

_OTHERWISE = "a model file is, and sapp-ppb costs makes one: costs csv of a table, costs trace of timelines"
_HF_KEYS = frozenset(("model_type", "num_hidden_layers"))


@dataclass
class _Findings:
    """What reading gathers on its way through one file."""

    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_model(path: str | PathLike[str]) -> Model:
    """
    Model of a model file.

    ``time`` is the forward time of one layer unless ``forward_time`` is given; times
    are milliseconds, memory MB.

    Parameters
    ----------
    path
        JSON file.

    Returns
    -------
    Model
        Its layers in the order of the chain.

    Warns
    -----
    FileNote
        For unknown keys, counts that contradict each other, and keys without effect.

    Raises
    ------
    InputError
        If the file can not be read or a value is not allowed, with all faults at once.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> entry = '{"name": "Dec", "type": "BODY", "time": 10, "nb_layer": 4, "memory_activation": 60}'
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.json")
    ...     _ = path.write_text(f'{{"name": "tiny", "layers_description": [{entry}]}}')
    ...     model = read_model(path)
    >>> model.body_count, model.bodies[0].backward_ms[0]  # 2 x the forward's 10
    (4, 20.0)
    """
    document = read_document(path, _OTHERWISE)
    raw = document.value
    if isinstance(raw, dict) and _HF_KEYS.issubset(raw) and "layers_description" not in raw:
        fault = "is a config.json of Hugging Face, not a model file; sapp-ppb costs hf makes one of it"
        raise InputError(str(path), [fault])
    if not isinstance(raw, dict):
        raise InputError(str(path), [f"must hold a JSON object (got {shown(raw)})", *document.faults])
    if raw.get("format") == PLAN_FORMAT:
        raise InputError(
            str(path), ["is a plan file, not a model file; the model comes first, then the plan"]
        )
    found = _Findings(faults=list(document.faults))
    top = _top_level(raw, found)
    layers = _layers(raw, found)
    warn_of(path, found.notes)
    if found.faults or top is None:
        raise InputError(str(path), found.faults)
    return Model(
        name=top.name,
        layers=layers,
        constant_memory_mb=top.stage_const_mem or 0.0,
        op_overhead_ms=top.op_overhead_ms or 0.0,
        hop_ms=top.hop_ms or 0.0,
    )


def _top_level(raw: Mapping[str, object], found: _Findings) -> TopLevel | None:
    """Top level without the layers; None when it has faults."""
    found.notes += unknown_key_notes(raw, TOP_KEYS, "")
    try:
        return TopLevel.model_validate(raw)
    except ValidationError as error:
        found.faults += faults_in_our_words(error, raw, "")
        return None


def _layers(raw: Mapping[str, object], found: _Findings) -> tuple[Layer, ...]:
    """Layers that can be read; what keeps the others from it is found."""
    if "layers_description" not in raw:
        found.faults.append("layers_description is missing")
        return ()
    entries = raw["layers_description"]
    if not isinstance(entries, list) or not entries:
        found.faults.append(
            f"layers_description must be a list of at least one object (got {shown(entries)})"
        )
        return ()
    if len(entries) > _MOST_ENTRIES:
        found.faults.append(
            f"layers_description holds {len(entries):,} entries, and at most {_MOST_ENTRIES:,} are read; "
            "say equal layers as one, with nb_layer"
        )
        return ()
    layers = [_layer(entry, f"layers_description[{index}]", found) for index, entry in enumerate(entries)]
    objects = [entry for entry in entries if isinstance(entry, dict)]
    found.faults += name_faults([name for entry in objects if isinstance(name := entry.get("name"), str)])
    found.notes += partition_notes(raw, {str(e.get("name")): e.get("nb_layer", 0) for e in objects})
    readable = tuple(layer for layer in layers if layer is not None)
    if len(readable) == len(entries):  # an entry with a fault may have been the BODY, or what one is tied to
        found.faults += body_faults(readable) + tied_faults(readable)
    return readable


def _layer(raw: object, place: str, found: _Findings) -> Layer | None:
    """Layer of one object; None when it has faults."""
    if not isinstance(raw, dict):
        found.faults.append(f"{place} must be an object (got {shown(raw)})")
        return None
    prefix = f"{place}."
    before = len(found.faults)
    values = _with_one_recompute_time(raw, prefix, found)
    found.notes += unknown_key_notes(values, LAYER_KEYS, prefix)
    _check_forward(values, prefix, found)
    strategies = StrategyEntries()
    strategies.read(values.get("strategies"), f"{prefix}strategies")
    found.faults += strategies.faults
    found.notes += strategies.notes
    try:
        entry = LayerEntry.model_validate(values)
        layer = _layer_of(entry, strategies) if len(found.faults) == before else None
    except ValidationError as error:
        found.faults += faults_in_our_words(error, values, prefix)
        return None
    except InputError as error:  # times that are too large only when computed
        found.faults += [f"{place}: {fault}" for fault in error.faults]
        return None
    if layer is not None:
        found.notes += entry_notes(entry, layer, prefix)
    return layer


def _with_one_recompute_time(raw: Mapping[str, object], prefix: str, found: _Findings) -> dict[str, object]:
    """Values under the proper spelling of ``recompute_time``."""
    values = {key: value for key, value in raw.items() if key != _BLANK_KEY}
    if raw.get(_BLANK_KEY) is None:
        return values
    proper = values.get("recompute_time")
    if proper is not None and proper != raw[_BLANK_KEY]:
        both = f"{shown(proper)}, and with a trailing blank {shown(raw[_BLANK_KEY])}"
        found.faults.append(f"{prefix}recompute_time is given twice and differs ({both}); keep one")
    return values | {"recompute_time": raw[_BLANK_KEY] if proper is None else proper}


def _check_forward(values: Mapping[str, object], prefix: str, found: _Findings) -> None:
    """Find a forward time that is missing, or 0 where work must take time."""
    key = "time" if values.get("forward_time") is None else "forward_time"
    value = values.get(key)
    if value is None:
        found.faults.append(f"{prefix}time is missing")
    elif values.get("type") == LayerKind.BODY.value and number_fault(key, value) is None and value == 0:
        found.faults.append(f"{prefix}{key} must be a number above 0 for a BODY layer (got {shown(value)})")


def _layer_of(entry: LayerEntry, strategies: StrategyEntries) -> Layer:
    """Layer of an entry in which every key is allowed."""
    given = {key: value for key, value in entry if value is not None}
    layer = layer_from_times(
        name=entry.name,
        kind=LayerKind(entry.type),
        count=entry.nb_layer,
        forward_ms=given["forward_time"] if "forward_time" in given else given["time"],
        backward_ms=entry.backward_time,
        coefficients={r: given[r.coefficient_key] for r in Recompute if r.coefficient_key in given},
        explicit={r: given[r.time_key] for r in Recompute if r.time_key in given},
        parameter_mb=entry.memory_parameter or 0.0,
        activation_mb={r: given[r.memory_key] for r in Recompute if r.memory_key in given},
        model_name=entry.model_name,
        weight_grad_ms=entry.weight_grad_time,
        is_mtp=entry.mtp or False,
        transient_mb=entry.transient_mb or 0.0,
        tied_to=entry.tied_to,
        estimated=entry.source or NOTHING,
    )
    return layer.offering([strategy.of(layer) for strategy in strategies.entries])
