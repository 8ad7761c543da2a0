"""
Result of HyperParallel's PPOptimizer, as JSON of the fields of its ``PPStrategyResult``.

``json.dumps(dataclasses.asdict(result))`` writes such a file, with a number for each
recompute type; names of types are read as well.
"""

from dataclasses import replace
from os import PathLike

from sapp_ppb.costs import Recompute
from sapp_ppb.costs.checks import LARGEST_COUNT, shown
from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.json_file import read_document
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.config import PipelineConfig
from sapp_ppb.targets.hyperparallel.rules import offset_rules, partition_rules, types_of_partition
from sapp_ppb.targets.hyperparallel.target import TYPE_NAMES

_TYPES = {name: recompute for recompute, name in TYPE_NAMES.items()}
Cells = list[list[tuple[int, Recompute]]]


class _Fields:
    """Fields of a result, and what is wrong with them."""

    def __init__(self, raw: dict[str, object], faults: list[str]) -> None:
        self.raw, self.faults = raw, faults

    def whole(self, key: str, default: int | None = None) -> int:
        """Whole number of at least 1; 1 where it is none, which is kept as a fault."""
        value = self.raw.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_COUNT:
            self.faults.append(f"{key} must be a whole number from 1 to {LARGEST_COUNT} (got {shown(value)})")
            return 1
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Bool of a field."""
        value = self.raw.get(key, default)
        if not isinstance(value, bool):
            self.faults.append(f"{key} must be true or false (got {shown(value)})")
            return default
        return value

    def partition(self) -> Cells:
        """Layers of every cell: numbers and types."""
        cells = self.raw.get("stage_partition")
        if not isinstance(cells, list) or not all(isinstance(cell, list) for cell in cells):
            self.faults.append(f"stage_partition must be a list of lists of layers (got {shown(cells)})")
            return []
        return [
            [self._layer(f"stage_partition[{k}][{place}]", layer) for place, layer in enumerate(cell)]
            for k, cell in enumerate(cells)
        ]

    def _layer(self, place: str, layer: object) -> tuple[int, Recompute]:
        """Take one layer: its number and its type."""
        if isinstance(layer, list) and len(layer) == 2 and _is_number(layer[0]):
            recompute = _type_of(layer[1])
            if recompute is not None:
                return layer[0], recompute
        names = ", ".join(TYPE_NAMES.values())
        self.faults.append(
            f"{place} must be a layer's number and its type, 0 to 4 or one of {names} (got {shown(layer)})"
        )
        return 0, Recompute.NONE

    def offset(self) -> dict[str, list[list[int]]]:
        """Offsets of every group."""
        offset = self.raw.get("layer_offset", {})
        if not isinstance(offset, dict) or not all(map(_is_matrix, offset.values())):
            self.faults.append(
                f"layer_offset must give lists of lists of whole numbers by name (got {shown(offset)})"
            )
            return {}
        return offset


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_COUNT


def _is_matrix(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(row, list) and all(map(_is_number, row)) for row in value
    )


def _type_of(value: object) -> Recompute | None:
    if isinstance(value, str):
        return _TYPES.get(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(Recompute):
        return None
    return Recompute(value)


def read_hyperparallel_result(path: str | PathLike[str]) -> PipelineConfig:
    """
    Read a result of PPOptimizer as a configuration.

    Raises
    ------
    InputError
        If the file is no JSON of its fields, with every fault.
    """
    document = read_document(path)
    if not isinstance(document.value, dict):
        raise InputError(str(path), [*document.faults, "must be an object, a result of PPOptimizer"])
    fields = _Fields(document.value, list(document.faults))
    stages, chunks = fields.whole("pp_degree"), fields.whole("num_of_interleave", 1)
    micro_batches = fields.whole("micro_batch_num", 1)
    less_memory = fields.flag("vpp_less_memory", default=False)
    partition, offset, fits = fields.partition(), fields.offset(), fields.flag("is_feasible", default=False)
    if fields.faults:
        raise InputError(str(path), fields.faults)
    loops = ScheduleName.INTERLEAVED_LESS_MEMORY if less_memory else ScheduleName.INTERLEAVED
    config = PipelineConfig(
        target="hyperparallel",
        where=str(path),
        stages=stages,
        interleave=chunks,
        micro_batches=micro_batches,
        schedule=ScheduleName.ONE_F_ONE_B if chunks == 1 else loops,
        notes=tuple(_notes(document.value)),
    )
    return _with_layers(config, partition, offset, _why_not(document.value) if not fits else None)


def _with_layers(
    config: PipelineConfig, partition: Cells, offset: dict[str, list[list[int]]], why_not: str | None
) -> PipelineConfig:
    """Put the layers in, where there are any and they are in order."""
    if why_not is not None and not partition:
        return replace(config, unknown=(f"is_feasible is false, and there is no partition: {why_not}",))
    stages, chunks = config.stages or 1, config.interleave
    broken = partition_rules(partition, stages=stages, chunks=chunks)
    if broken:
        return replace(config, broken=tuple(broken))
    types = types_of_partition(partition, stages=stages)
    return replace(
        config,
        types=types,
        layers=sum(len(cell) for row in types for cell in row),
        broken=tuple(offset_rules(offset, types)),
        notes=(*config.notes, *((f"is_feasible is false: {why_not}",) if why_not is not None else ())),
    )


def _why_not(raw: dict[str, object]) -> str:
    details = raw.get("infeasibility_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return shown(reason)[1:-1] if isinstance(reason, str) else "no reason is given"


def _notes(raw: dict[str, object]) -> list[str]:
    """Say what its own simulator found."""
    status, error = raw.get("simulation_status", "not_run"), raw.get("simulation_error")
    if status == "failed":
        return [f"its own simulation failed: {shown(error)}"]
    if status != "success":
        return []
    note = f"its own simulation took {_number(raw.get('simulator_end_time'), ',.1f')} ms a step"
    if raw.get("pipeline_bubble") is not None:
        note += f", a bubble of {_number(raw['pipeline_bubble'], '.1%')} of useful work"
    peaks = raw.get("simulator_peak_memory")
    if isinstance(peaks, list) and peaks and all(isinstance(peak, int | float) for peak in peaks):
        note += f", and held {max(peaks):,.0f} MB at most"
    return [note]


def _number(value: object, form: str) -> str:
    return format(value, form) if isinstance(value, int | float) else shown(value)
