"""
What HyperParallel's PPOptimizer is given, and what it answers.

A YAML with ``pipeline_config`` holds sizes and limits, and no split, which PPOptimizer
finds; a JSON is its result.  Its layers are the model file.
"""

import math
from os import PathLike

from sapp_ppb.costs.checks import LARGEST_COUNT, shown
from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.yaml_file import read_yaml_document
from sapp_ppb.readers.frameworks.config_reading import ConfigReading
from sapp_ppb.readers.frameworks.hyperparallel_result import read_hyperparallel_result
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.config import PipelineConfig

_SECTION = "pipeline_config"
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read_hyperparallel(path: str | PathLike[str]) -> PipelineConfig:
    """
    Read a result of PPOptimizer (``.json``), or the YAML that it is given.

    Raises
    ------
    InputError
        If the file can not be read as what its name says.
    """
    if str(path).lower().endswith(".json"):
        return read_hyperparallel_result(path)
    document = read_yaml_document(path)
    section = document.value.get(_SECTION) if isinstance(document.value, dict) else None
    faults = list(document.faults)
    if not isinstance(section, dict):
        found = shown(section if isinstance(document.value, dict) else document.value)
        faults.append(
            f"must be a mapping with {_SECTION}, itself a mapping, as PPOptimizer reads it (got {found})"
        )
    if faults:
        raise InputError(str(path), faults)
    return _of_inputs(str(path), ConfigReading(document))


def _of_inputs(where: str, reading: ConfigReading) -> PipelineConfig:
    stages, micro_batches = _needed(reading, "pipeline_num"), _needed(reading, "micro_batch_num")
    chunks = _whole(reading, "num_of_interleave", 1)
    layers = _whole(reading, "num_layer", 0)
    less_memory = _bool(reading, "vpp_less_memory")
    limit_mb, constant_mb = _whole(reading, "memory_limit", 0, 0), _whole(reading, "constant_memory", 0, 0)
    if limit_mb == 0:
        reading.breaks(f"{_SECTION}.memory_limit", "must be above 0 MB for PPOptimizer to balance", 0)
    level = _whole(reading, "optimization_level", 1, 0)
    if level is not None and level > 2:
        reading.breaks(f"{_SECTION}.optimization_level", "must be 0, 1 or 2", level)
    for name in ("enable_simulation", "use_backward_time"):
        _bool(reading, name)
    _note_of_costs(reading, constant_mb)
    sizes = [("-s", stages), ("-i", chunks if chunks != 1 else None), ("-mb", micro_batches)]
    sizes.append(("-mem", limit_mb or None))
    words = " ".join(f"{flag} {number}" for flag, number in sizes if number is not None)
    reading.unknown.append(
        "the split is not in the file, since PPOptimizer is to find it; "
        f"'sapp-ppb plan MODEL.json {words}' finds one"
    )
    loops = ScheduleName.INTERLEAVED_LESS_MEMORY if less_memory else ScheduleName.INTERLEAVED
    return PipelineConfig(
        target="hyperparallel",
        where=where,
        stages=stages,
        interleave=chunks or 1,
        micro_batches=micro_batches,
        schedule=ScheduleName.ONE_F_ONE_B if chunks in (None, 1) else loops,
        layers=layers or None,
        memory_limit_mb=float(limit_mb) if limit_mb else None,
        broken=tuple(reading.broken),
        unknown=tuple(reading.unknown),
        notes=tuple(reading.notes),
    )


def _whole(reading: ConfigReading, name: str, default: int, least: int = 1) -> int | None:
    return reading.whole(f"{_SECTION}.{name}", default, least=least)


def _needed(reading: ConfigReading, name: str) -> int | None:
    """Whole number that PPOptimizer does not do without."""
    place = f"{_SECTION}.{name}"
    if reading.value(place) is None and not reading.is_unknown(place):
        reading.breaks(place, f"must be given, a whole number from 1 to {LARGEST_COUNT}", None)
        return None
    return _whole(reading, name, 1)


def _bool(reading: ConfigReading, name: str) -> bool:
    """Bool as PPOptimizer takes one: 0 and 1, and a few words, too."""
    value = reading.value(f"{_SECTION}.{name}")
    if value is None or isinstance(value, bool):
        return bool(value)
    found = _WORDS.get(str(value).strip().lower().removesuffix(".0"))
    if found is None:
        reading.breaks(f"{_SECTION}.{name}", "must be true or false", value)
    return bool(found)


def _note_of_costs(reading: ConfigReading, constant_mb: int | None) -> None:
    """Say which costs of the file are options here."""
    place = f"{_SECTION}.sim_comm_time"
    hop_ms = reading.value(place)
    given = [] if not constant_mb else [f"--constant-memory {constant_mb}"]
    if hop_ms is not None:
        is_number = isinstance(hop_ms, int | float) and not isinstance(hop_ms, bool)
        if not is_number or not math.isfinite(float(str(hop_ms))) or float(str(hop_ms)) < 0:
            reading.breaks(place, "must be a finite number of milliseconds, at least 0", hop_ms)
        elif hop_ms:
            given.append(f"--p2p {hop_ms}")
    if given:
        reading.notes.append(f"give {' '.join(given)} for its constant_memory and sim_comm_time")
