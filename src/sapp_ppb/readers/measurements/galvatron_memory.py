"""
The memory of a Galvatron profile: ``memory_profiling_*.json``, in MB.

``layertype_0`` is a layer, ``other_memory_pp_on_first`` and ``other_memory_pp_on_last`` what
the first and the last stage hold besides; ``_sp`` stands behind the keys of what was
measured with sequence parallelism.  The measurements from which Galvatron made them
(``1_2_4_sp``: pipeline, tensor and data parallel sizes) are not read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike

from sapp_ppb.costs.checks import listed, shown
from sapp_ppb.costs.profiled import ProfiledMemory
from sapp_ppb.readers.measurements.galvatron_keys import (
    LENGTH,
    SEQUENCES,
    Findings,
    open_profile,
    sequences_of,
)

STATES = 4  # model states in units of parameter_size: Galvatron divides what it measures by this
_CHECKPOINT, _NOT_MEASURED = "checkpoint", -1
_LAYER = re.compile(r"layertype_(\d{1,3})(_sp)?")
_END = re.compile(r"other_memory_pp_(off|on_first|on_last)(_sp)?")
_RAW = re.compile(r"\d+_\d+_\d+(_vtp)?(_c)?(_sp)?")
_LENGTH = re.compile(LENGTH)
_LENGTHS = re.compile(SEQUENCES)
_SIZE = re.compile(r"[1-9]\d{0,5}")


@dataclass(kw_only=True)
class GalvatronMemory:
    """Memory of layers, by kind and sequence length, and of the two ends, by sequence lengths."""

    sequence_parallel: bool
    layers: dict[tuple[int, int], ProfiledMemory] = field(default_factory=dict)
    first: dict[tuple[int, ...], ProfiledMemory] = field(default_factory=dict)
    last: dict[tuple[int, ...], ProfiledMemory] = field(default_factory=dict)


def read_galvatron_memory(
    path: str | PathLike[str], sequence_parallel: bool | None = None
) -> GalvatronMemory:
    """
    Memory of layers and of the first and last stage.

    Parameters
    ----------
    path
        JSON file.
    sequence_parallel
        Whether to read what was measured with sequence parallelism; None for whichever the
        file has.

    Warns
    -----
    FileNote
        For keys that are not read.

    Raises
    ------
    InputError
        If the file can not be read, has not what is wanted, or a value is not allowed;
        with all faults at once.
    """
    raw, found = open_profile(path)
    forms = sorted({match[2] is not None for key in raw if (match := _LAYER.fullmatch(key))})
    if not forms:
        found.faults.append(_nothing(raw))
    elif sequence_parallel is None and len(forms) > 1:
        found.faults.append(
            "has memory with and without sequence parallelism; give --sequence-parallel or "
            "--no-sequence-parallel"
        )
    elif sequence_parallel not in (None, *forms):
        wanted = "with" if sequence_parallel else "without"
        found.faults.append(f"has no memory {wanted} sequence parallelism, only that of the other sort")
    found.finish()
    memory = GalvatronMemory(sequence_parallel=forms[0] if sequence_parallel is None else sequence_parallel)
    suffix = "_sp" if memory.sequence_parallel else ""
    for key, value in raw.items():
        if (layer := _LAYER.fullmatch(key)) and (layer[2] or "") == suffix:
            memory.layers |= _layers(key, int(layer[1]), value, found)
        elif not (layer or _END.fullmatch(key) or _RAW.fullmatch(key)):
            found.unknown.append(key)
    for end, where in ((memory.first, "on_first"), (memory.last, "on_last")):
        key = f"other_memory_pp_{where}{suffix}"
        if key in raw:
            end |= _ends(key, raw[key], found)
        else:
            found.faults.append(f"{key} is missing; let Galvatron profile with pipeline stages too")
    found.finish()
    return memory


def _layers(key: str, kind: int, value: object, found: Findings) -> dict[tuple[int, int], ProfiledMemory]:
    """Memory of a kind of layer, for each sequence length."""
    layers = {}
    for length, entry in found.objects(key, value).items():
        place = f"{key}.{length}"
        if _LENGTH.fullmatch(length) is None:
            found.faults.append(f"{key} must hold sequence lengths (got {shown(length)})")
            continue
        content = found.objects(place, entry)
        if content:
            layers[kind, int(length)] = _layer(place, content, found)
    return layers


def _layer(place: str, content: Mapping[str, object], found: Findings) -> ProfiledMemory:
    for name in ("parameter_size", "tp_activation_per_bsz_dict"):
        if name not in content:
            found.faults.append(f"{place}.{name} is missing")
    parameter_mb = 0.0
    if "parameter_size" in content:
        parameter_mb = found.number(f"{place}.parameter_size", content["parameter_size"])
    activation, checkpoint = {}, None
    if "tp_activation_per_bsz_dict" in content:
        place = f"{place}.tp_activation_per_bsz_dict"
        given = dict(found.objects(place, content["tp_activation_per_bsz_dict"]))
        kept = given.pop(_CHECKPOINT, _NOT_MEASURED)
        if isinstance(kept, bool) or kept != _NOT_MEASURED:
            checkpoint = found.number(f"{place}.{_CHECKPOINT}", kept)
        activation = _by_size(place, given, found)
    states = {size: STATES * parameter_mb / size for size in activation}
    return ProfiledMemory(states_mb=states, activation_mb=activation, checkpoint_mb=checkpoint)


def _ends(key: str, value: object, found: Findings) -> dict[tuple[int, ...], ProfiledMemory]:
    """Memory that a stage holds besides its layers, for all sequence lengths."""
    ends = {}
    for lengths, entry in found.objects(key, value).items():
        if _LENGTHS.fullmatch(lengths) is None:
            found.faults.append(f"{key} must hold sequence lengths (got {shown(lengths)})")
            continue
        content = found.objects(f"{key}.{lengths}", entry)
        tables = []
        for name in ("model_states", "activation"):
            place = f"{key}.{lengths}.{name}"
            if content and name not in content:
                found.faults.append(f"{place} is missing")
            table = found.objects(place, content[name]) if name in content else {}
            tables.append(_by_size(place, table, found))
        ends[sequences_of(lengths)] = ProfiledMemory(states_mb=tables[0], activation_mb=tables[1])
    return ends


def _by_size(place: str, table: Mapping[str, object], found: Findings) -> dict[int, float]:
    """Numbers of a table whose keys are tensor-parallel sizes."""
    numbers = {}
    for size, value in table.items():
        if _SIZE.fullmatch(size) is None:
            found.faults.append(f"{place} must hold tensor-parallel sizes (got {shown(size)})")
        else:
            numbers[int(size)] = found.number(f"{place}.{size}", value)
    return numbers


def _nothing(raw: Mapping[str, object]) -> str:
    """Say what a file without memory of layers seems to be."""
    if any(key.startswith(("layertype_", "layernum")) for key in raw):
        return "holds no memory; is it the profile of times, which --computation takes?"
    measured = [key for key in raw if _RAW.fullmatch(key)]
    if measured:
        names = listed(measured, 3)
        return f"has measurements alone ({names}); let Galvatron process them, which adds layertype_0"
    return "has no memory of layers, which is named layertype_0 or layertype_0_sp"
