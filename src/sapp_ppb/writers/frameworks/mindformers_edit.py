"""A plan edited into a MindFormers YAML, in which nothing else changes."""

import warnings
from dataclasses import replace

from sapp_ppb.costs.checks import shown
from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.plan import Plan
from sapp_ppb.schedules import MOST_CELLS
from sapp_ppb.targets.mindformers import keys as keys
from sapp_ppb.targets.mindformers.counts import LISTS, counted, types_counted
from sapp_ppb.targets.mindformers.split import Grid, Rows, split_of
from sapp_ppb.writers.frameworks.mindformers_settings import Settings, settings_of
from sapp_ppb.writers.frameworks.yaml_edit import YamlEdit

_LAYER_NAMES = tuple(place.split(".")[-1] for place in keys.LAYERS)


def mindformers_into(text: str, plan: Plan, where: str) -> str:
    """
    Edit a plan into the text of a MindFormers YAML.

    Only what has to change changes: a list that already means the plan keeps its text,
    a key that is not there and whose default is right is not added.

    Parameters
    ----------
    text
        The YAML.
    where
        Its name in messages.

    Warns
    -----
    FileNote
        When the number of stages changes, or a value that an alias refers to.

    Raises
    ------
    InputError
        If MindFormers can not express the plan, the file is for other layers, or it can
        not be edited.
    """
    said = settings_of(plan)
    edit = YamlEdit(text, where)
    layers, mtp = _file_layers(edit, said)
    said = _with_mtp(said, layers, mtp, where)
    if edit.value(keys.SWAPS) is True:
        fault = "swap_config.swap is on, where lists name layers one by one; turn it off to write a plan"
        raise InputError(where, [fault])
    counts_mtp = _counts_mtp(edit, layers, mtp)
    _set_sizes(edit, said)
    _set_offset(edit, said, layers, mtp, counts_mtp=counts_mtp)
    _set_lists(edit, said)
    return edit.result()


def _first(edit: YamlEdit, places: tuple[str, ...]) -> str:
    return next((place for place in places if edit.value(place) is not None), places[0])


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _file_layers(edit: YamlEdit, said: Settings) -> tuple[int, int]:
    """Layers without, and of, multi-token prediction in the file, which the plan's must be."""
    place, mtp_place = _first(edit, keys.LAYERS), _first(edit, keys.MTP_LAYERS)
    mtp = _whole(edit.value(mtp_place) or 0)
    layers = _whole(edit.value(place))
    if mtp is None:
        raise InputError(
            edit.where, [f"{mtp_place} must be a whole number (got {shown(edit.value(mtp_place))})"]
        )
    if layers is None:  # it may come with the pretrained model
        layers = said.layers - said.mtp_layers
    faults = []
    if said.mtp_layers not in (0, mtp):
        faults.append(f"{mtp_place} is {mtp} and the plan has {said.mtp_layers} MTP layers")
    if said.layers not in (layers, layers + mtp) or (said.mtp_layers and said.layers == layers):
        total = f"{layers} + {mtp} of MTP" if mtp else str(layers)
        faults.append(f"{place} gives {total} layers and the plan has {said.layers}")
    if faults:
        raise InputError(edit.where, [f"{fault}; take the file of the planned model" for fault in faults])
    return layers, mtp


def _with_mtp(said: Settings, layers: int, mtp: int, where: str) -> Settings:
    """Add the file's MTP layers to a plan that leaves them to its TAIL, or find them in it."""
    if not mtp:
        return said
    chain = [(place, r) for place in said.grid.chain() for r in said.types[place[0]][place[1]]]
    chunk, stage = list(said.grid.chain())[-1]
    if said.layers == layers:
        rows = [list(row) for row in said.types]
        rows[chunk][stage] += (chain[-1][1],) * mtp
        return replace(said, layers=layers + mtp, mtp_layers=mtp, types=tuple(tuple(row) for row in rows))
    if any((place, r) != ((chunk, stage), chain[layers - 1][1]) for place, r in chain[layers:]):
        fault = (
            f"the last {mtp} of the plan's layers are MTP layers, which stand in the last cell and run as "
            'the layer before them does; mark them in the model file with "mtp": true and plan again'
        )
        raise InputError(where, [fault])
    return replace(said, mtp_layers=mtp)


def _counts_mtp(edit: YamlEdit, layers: int, mtp: int) -> bool:
    """Whether the file's offset counts MTP layers, as MindFormers does where nothing else is known."""
    grid = _file_grid(edit)
    offset = edit.value(keys.OFFSET) or 0
    return grid is None or split_of(offset, layers, mtp, grid).counts_mtp


def _file_grid(edit: YamlEdit) -> Grid | None:
    """Cells that the file has before it is edited; None when that can not be told."""
    given = edit.value(keys.STAGES), edit.value(keys.CHUNKS)
    stages, chunks = (_whole(1 if value is None else value) for value in given)
    interleaves = edit.value(keys.INTERLEAVES)
    is_v = edit.value(keys.SCHEDULER) == "zero_bubble_v" and interleaves is True
    chunks = chunks if interleaves is True else 1
    if not stages or not chunks or (is_v and chunks != 2) or stages * chunks > MOST_CELLS:
        return None
    return Grid(stages=stages, chunks=chunks, is_v=is_v)


def _set(edit: YamlEdit, place: str, value: object, *, usual: object, beside: tuple[str, ...] = ()) -> None:
    """Set a place, unless it is missing and its default is right."""
    if edit.value(place) is not None or value != usual:
        edit.set(place, value, beside=beside)


def _set_sizes(edit: YamlEdit, said: Settings) -> None:
    grid, before = said.grid, edit.value(keys.STAGES)
    if before is not None and before != grid.stages:
        note = f"pipeline_stage changes from {shown(before)} to {grid.stages}, and with it the devices needed"
        warnings.warn(f"{edit.where}: {note}", FileNote, stacklevel=3)
    _set(edit, keys.STAGES, grid.stages, usual=1)
    _set(edit, keys.MICRO_BATCHES, said.micro_batches, usual=1, beside=("pipeline_stage",))
    _set(edit, keys.SEQUENCE_CHUNKS, said.sequence_chunks, usual=1, beside=("micro_batch_num",))
    _set(edit, keys.INTERLEAVES, said.interleaves, usual=False)
    _set(edit, keys.SCHEDULER, said.scheduler, usual="1f1b", beside=("pipeline_interleave",))
    if said.interleaves:  # without, pp_interleave_num is not heeded
        beside = ("offset", *_LAYER_NAMES)
        _set(edit, keys.CHUNKS, grid.chunks, usual=1, beside=beside)


def _set_offset(edit: YamlEdit, said: Settings, layers: int, mtp: int, *, counts_mtp: bool) -> None:
    place, grid = keys.OFFSET, said.grid
    given = edit.value(place)
    now = split_of(0 if given is None else given, layers, mtp, grid)
    if grid.cells == 1 or (now.rows == said.rows and not now.broken):
        return
    rows = [list(row) for row in said.rows]
    if not counts_mtp:
        chunk, stage = list(grid.chain())[-1]
        rows[chunk][stage] -= mtp
    counted_layers = layers + mtp if counts_mtp else layers
    offset = tuple(tuple(number - counted_layers // grid.cells for number in row) for row in rows)
    edit.set(
        place, said.written(offset, nested=_is_nested(given)), beside=("pp_interleave_num", *_LAYER_NAMES)
    )


def _is_nested(value: object) -> bool:
    """Whether a list is written as a list of lists."""
    return isinstance(value, list) and len(value) == 1 and isinstance(value[0], list)


def _set_lists(edit: YamlEdit, said: Settings) -> None:
    """Set the lists that do not mean the plan yet."""
    given = {name: edit.value(f"{keys.RECOMPUTE}.{name}") for name in LISTS}
    now = {name: counted(name, given[name], said.rows, said.grid).rows for name in LISTS}
    known = [rows for rows in now.values() if rows is not None]
    if len(known) == len(LISTS) and types_counted(said.rows, *known) == said.types:
        return
    full = said.counted(LISTS[0])
    for name in LISTS:
        # A layer that recompute counts is FULL, whether the other lists count it or not.
        floor = tuple((0,) * len(row) for row in full) if name == LISTS[0] else full
        rows = now[name]
        if rows is not None and _most(rows, floor) == said.counted(name):
            continue
        written = said.written(said.counted(name), nested=_is_nested(given[name]))
        value = _for_patterns(given[name], written if said.needs(name) else False)
        _set(edit, f"{keys.RECOMPUTE}.{name}", value, usual=False, beside=LISTS[::-1])


def _most(rows: Rows, others: Rows) -> Rows:
    return tuple(tuple(map(max, row, other)) for row, other in zip(rows, others, strict=True))


def _for_patterns(given: object, value: object) -> object:
    """Value for each of the patterns that a list is given for; itself where there are none."""
    patterns: list[str] = []
    if isinstance(given, dict):
        patterns = list(given)
    elif isinstance(given, list) and all(isinstance(pattern, str) for pattern in given):
        patterns = given
    return {pattern: value for pattern in patterns} or value
