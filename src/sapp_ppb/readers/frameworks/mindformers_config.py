"""
The YAML of a MindFormers run, as far as it decides the pipeline.

Keys: ``parallel_config.{pipeline_stage, micro_batch_num, seq_split_num}``,
``parallel.pipeline_config.{pipeline_interleave, pipeline_scheduler}``,
``model.model_config.{num_layers or num_hidden_layers, pp_interleave_num, offset}`` and
the layers of multi-token prediction, ``recompute_config``, ``swap_config.swap``,
``context.max_device_memory``.
"""

import re
from dataclasses import replace
from os import PathLike

from sapp_ppb.costs import RecomputeType
from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.yaml_file import read_yaml_document
from sapp_ppb.readers.frameworks.config_reading import ConfigReading
from sapp_ppb.schedules import MOST_CELLS, ScheduleName
from sapp_ppb.targets.config import CellTypes, PipelineConfig
from sapp_ppb.targets.mindformers import keys as keys
from sapp_ppb.targets.mindformers.counts import LISTS, Counted, counted, types_counted
from sapp_ppb.targets.mindformers.rules import Order, micro_batch_rules, order_of
from sapp_ppb.targets.mindformers.split import Grid, Rows, Split, split_of

# What changes times or memory and is in neither the plan nor the schedule.
_NOT_MODELLED = (
    f"{keys.RECOMPUTE}.parallel_optimizer_comm_recompute",
    f"{keys.RECOMPUTE}.mp_comm_recompute",
    f"{keys.RECOMPUTE}.recompute_slice_activation",
    f"{keys.RECOMPUTE}.select_recompute_exclude",
    f"{keys.RECOMPUTE}.select_comm_recompute_exclude",
    f"{keys.MODEL}.fine_grain_interleave",
    "micro_batch_interleave_num",
)
_OFF: tuple[object, ...] = (None, False, 1, [], {})
_MOST_GB = 10**6


def read_mindformers(path: str | PathLike[str]) -> PipelineConfig:
    """
    Read the pipeline of a MindFormers YAML.

    GB in ``max_device_memory`` are 1,024 MB, as MindSpore takes them.

    Raises
    ------
    InputError
        If the file can not be read, is no YAML, or has none of the sections that
        decide a pipeline.
    """
    document = read_yaml_document(path)
    value = document.value
    named = [section for section in (keys.PARALLEL, keys.RECOMPUTE, "model") if _has(value, section)]
    if not named:
        fault = (
            f"has neither {keys.PARALLEL} nor {keys.RECOMPUTE} nor {keys.MODEL}; is it a MindFormers YAML?"
        )
        raise InputError(str(path), [fault, *document.faults])
    reading = ConfigReading(document)
    faults = [fault for fault in document.faults if _is_about(fault)]
    if faults:
        raise InputError(str(path), faults)
    return _config(str(path), reading)


def _has(value: object, key: str) -> bool:
    return isinstance(value, dict) and key in value


def _is_about(fault: str) -> bool:
    """Whether a fault of the YAML lies in a part that is read."""
    return fault.startswith(("the top level", *(section.split(".")[0] for section in keys.SECTIONS)))


def _config(where: str, reading: ConfigReading) -> PipelineConfig:
    stages = reading.whole(keys.STAGES, 1, most=MOST_CELLS)
    micro_batches = reading.whole(keys.MICRO_BATCHES, 1)
    sequence_chunks = reading.whole(keys.SEQUENCE_CHUNKS, 1)
    interleaves, chunks = _chunks(reading)
    order = _order(reading, interleaves, stages, chunks, sequence_chunks, micro_batches)
    layers, mtp = _layers(reading)
    grid = _grid(stages, chunks, order)
    if grid is not None and grid.cells > MOST_CELLS:
        reading.breaks(keys.CHUNKS, f"times pipeline_stage must be at most {MOST_CELLS}", chunks)
        grid = None
    split = _split(reading, layers, mtp, grid)
    in_pieces = order is not None and order.schedule is ScheduleName.SEQ1F1B
    _note_what_is_not_modelled(reading)
    types = _types(reading, split, mtp or 0, grid)
    return PipelineConfig(
        target="mindformers",
        where=where,
        stages=stages,
        interleave=chunks or 1,
        micro_batches=micro_batches,
        schedule=None if order is None else order.schedule,
        micro_batch_group=None if order is None else order.micro_batch_group,
        sequence_chunks=(sequence_chunks or 1) if in_pieces else 1,
        layers=None if layers is None else layers + (mtp or 0),
        mtp_layers=mtp or 0,
        types=types,
        memory_limit_mb=_memory_limit(reading),
        broken=tuple(reading.broken),
        unknown=tuple(reading.unknown),
        notes=tuple(dict.fromkeys(reading.notes)),
    )


def _chunks(reading: ConfigReading) -> tuple[bool | None, int | None]:
    """``pipeline_interleave``, and the chunks a stage that take effect."""
    interleaves = reading.flag(keys.INTERLEAVES)
    chunks = reading.whole(keys.CHUNKS, 1, most=MOST_CELLS)
    if interleaves is False and chunks is not None and chunks > 1:
        reading.notes.append(
            f"pp_interleave_num {chunks} takes effect only with pipeline_interleave: True; one chunk a stage"
        )
    return interleaves, 1 if interleaves is False else None if interleaves is None else chunks


def _order(
    reading: ConfigReading,
    interleaves: bool | None,
    stages: int | None,
    chunks: int | None,
    sequence_chunks: int | None,
    micro_batches: int | None,
) -> Order | None:
    """Order of the ops; None when not enough is known."""
    scheduler = reading.value(keys.SCHEDULER)
    unknown = reading.is_unknown(keys.SCHEDULER)
    if unknown or interleaves is None or stages is None or chunks is None or sequence_chunks is None:
        return None
    order = order_of(
        "1f1b" if scheduler is None else scheduler,
        interleaves=interleaves,
        stages=stages,
        chunks=chunks,
        sequence_chunks=sequence_chunks,
    )
    for rule in order.broken:
        reading.keep(keys.MODEL if rule.key == "pp_interleave_num" else keys.PIPELINE, [rule])
    reading.notes += order.notes
    if sequence_chunks > 1 and order.schedule not in (ScheduleName.SEQ1F1B, None):
        reading.notes.append("seq_split_num takes effect only with pipeline_scheduler seqpipe")
    if micro_batches is None:
        return order
    group, broken, notes = micro_batch_rules(order.schedule, stages=stages, micro_batches=micro_batches)
    reading.keep(keys.PARALLEL, broken, notes)
    return replace(order, micro_batch_group=group)


def _layers(reading: ConfigReading) -> tuple[int | None, int | None]:
    """Layers without, and layers of, multi-token prediction."""
    place = reading.first(keys.LAYERS)
    mtp = reading.whole(reading.first(keys.MTP_LAYERS), 0, least=0)
    if reading.value(place) is None and not reading.is_unknown(place):
        reading.unknown.append(f"{place} is not given; write it, also where pretrained_model_dir has it")
        return None, mtp
    return reading.whole(place, 1), mtp


def _grid(stages: int | None, chunks: int | None, order: Order | None) -> Grid | None:
    if stages is None or chunks is None or order is None:
        return None
    is_v = order.schedule is ScheduleName.ZBV
    return None if is_v and chunks != 2 else Grid(stages=stages, chunks=chunks, is_v=is_v)


def _split(reading: ConfigReading, layers: int | None, mtp: int | None, grid: Grid | None) -> Split | None:
    """Layers of every cell; None when not enough is known."""
    place = keys.OFFSET
    offset = reading.value(place)
    if layers is None or mtp is None or grid is None or reading.is_unknown(place):
        return None
    split = split_of(0 if offset is None else offset, layers, mtp, grid)
    reading.keep(keys.MODEL, split.broken)
    if not split.counts_mtp:
        reading.notes.append(
            f"offset counts {layers} layers, without the {mtp} of multi-token prediction, "
            "which are taken to run behind the last"
        )
    return split


def _types(reading: ConfigReading, split: Split | None, mtp: int, grid: Grid | None) -> CellTypes | None:
    """Type of each layer of each cell; None when not enough is known."""
    if reading.flag(keys.SWAPS):
        reading.unknown.append(
            f"{reading.document.at(keys.SWAPS)}: with swap on, recompute lists name layers one by one "
            "and activations leave the device, which is not modelled; turn it off to check"
        )
        return None
    if grid is None:
        return None
    layers = None if split is None else split.rows
    lists = _lists(reading, layers, grid)
    if layers is None or lists is None:
        return None
    types = types_counted(layers, *lists)
    as_run = _mtp_as_before(types, mtp, grid)
    if as_run != types:
        reading.notes.append("MTP layers are taken to run as the layer before them, whatever the lists count")
    return as_run


def _lists(reading: ConfigReading, split: Rows | None, grid: Grid) -> list[Rows] | None:
    """Layers that each of the three lists counts; their forms are checked without a split too."""
    layers = ((0,) * grid.stages,) * grid.chunks if split is None else split
    whole = reading.value(keys.RECOMPUTE)
    parts = [
        Counted(rows=layers if whole and key == LISTS[0] else tuple((0,) * grid.stages for _ in layers))
        if isinstance(whole, bool)
        else counted(key, reading.value(f"{keys.RECOMPUTE}.{key}"), layers, grid)
        for key in LISTS
    ]
    for part in parts:
        reading.keep(keys.RECOMPUTE, part.broken, () if split is None else part.notes)
    known = not any(reading.is_unknown(f"{keys.RECOMPUTE}.{key}") for key in LISTS)
    rows = [part.rows for part in parts if part.rows is not None]
    return rows if known and len(rows) == len(parts) else None


def _mtp_as_before(types: CellTypes, mtp: int, grid: Grid) -> CellTypes:
    """Let layers of multi-token prediction run as the last layer before them does."""
    chain = [(place, r) for place in grid.chain() for r in types[place[0]][place[1]]]
    ordinary = len(chain) - mtp
    if not mtp or ordinary < 1:
        return types
    cells: dict[tuple[int, int], list[RecomputeType]] = {place: [] for place in grid.chain()}
    for k, (place, r) in enumerate(chain):
        cells[place].append(r if k < ordinary else chain[ordinary - 1][1])
    return tuple(
        tuple(tuple(cells[chunk, stage]) for stage in range(grid.stages)) for chunk in range(grid.chunks)
    )


def _note_what_is_not_modelled(reading: ConfigReading) -> None:
    values = {place: reading.value(place) for place in _NOT_MODELLED}
    # True == 1, and an interleave of 1 is none.
    found = [place.split(".")[-1] for place, value in values.items() if value is True or value not in _OFF]
    if found:
        reading.notes.append(f"not modelled: {', '.join(found)}; give times and memory measured with them")


def _memory_limit(reading: ConfigReading) -> float | None:
    """MB that a device may use."""
    place = keys.MEMORY
    value = reading.value(place)
    if value is None:
        return None
    number = re.fullmatch(r"(\d{1,9}(?:\.\d{0,9})?)GB", value) if isinstance(value, str) else None
    if number is None or not 0 < float(number[1]) <= _MOST_GB:
        reading.breaks(place, f'must be a number of GB such as "58GB", at most {_MOST_GB:,}', value)
        return None
    return float(number[1]) * 1024
