"""
What MindFormers' recompute lists count: the first layers of every chunk.

Source: ``mindformers/parallel_core/training_graph/transformer/utils.py``, LayerSetting:
``_format_recompute_list``, ``_alloc_recompute_layer``, ``_format_recompute_dict`` and
``set_recompute``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sapp_ppb.costs import Recompute
from sapp_ppb.costs.checks import LARGEST_COUNT, shown
from sapp_ppb.targets.config import BrokenRule, CellTypes
from sapp_ppb.targets.mindformers.split import Grid, Rows

LISTS = Recompute.FULL.mindformers_lists  # FULL is counted in every list


@dataclass(frozen=True, kw_only=True)
class Counted:
    """
    Layers that a recompute list counts from the start of every cell.

    Attributes
    ----------
    rows
        By chunk and stage; None when MindFormers can not read the list.
    broken
        Rules that it breaks.
    notes
        What it says and does not mean, a sentence each.
    """

    rows: Rows | None
    broken: tuple[BrokenRule, ...] = ()
    notes: tuple[str, ...] = ()


def counted(key: str, value: object, layers: Rows, grid: Grid) -> Counted:
    """
    Layers that a recompute list counts, as MindFormers takes it.

    Parameters
    ----------
    key
        Name of the list.
    value
        None for none; a bool; a list of S counts, each dealt over the chunks of its stage
        in turn; V entries that are lists of S or bools; patterns of ops, for all layers;
        or, but for ``recompute``, a mapping of patterns to any of these, of which a layer
        is counted when any counts it.
    layers
        Layers of every cell, by chunk and stage.

    Examples
    --------
    >>> counted("recompute", [5, 1], ((2, 2), (2, 2)), Grid(stages=2, chunks=2))
    Counted(rows=((2, 1), (2, 0)), broken=(), notes=('recompute counts 5 layers on stage 0, which has 4',))
    """
    if isinstance(value, dict) and key != "recompute":
        return _over_patterns(key, value, layers, grid)
    if value is None or isinstance(value, bool):
        return Counted(rows=layers if value else _none_of(layers))
    if _all_of(value, str):
        return Counted(rows=layers if value else _none_of(layers))
    if not isinstance(value, list) or not value:
        return _unread(key, value, grid)
    return _dealt_list(key, value, layers, grid) if _all_of(value, int) else _list(key, value, layers, grid)


def _all_of(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(entry, kind) for entry in value)


def _none_of(layers: Rows) -> Rows:
    return tuple((0,) * len(row) for row in layers)


def _unread(key: str, value: object, grid: Grid) -> Counted:
    one = f"a list of counts, one for each of the {grid.stages} stages"
    many = f"{grid.chunks} lists of counts, one for each of the {grid.stages} stages"
    allowed = many if grid.is_v else one if grid.chunks == 1 else f"{one}, or {many}"
    rule = f"must be true, false or {allowed}"
    return Counted(rows=None, broken=(BrokenRule(key=key, rule=rule, found=shown(value)),))


def _over_patterns(key: str, value: dict[str, object], layers: Rows, grid: Grid) -> Counted:
    """Union over the patterns of a mapping, which count from the same end."""
    parts = [counted(f"{key}.{pattern}", part, layers, grid) for pattern, part in value.items()]
    broken = tuple(rule for part in parts for rule in part.broken)
    notes = tuple(note for part in parts for note in part.notes)
    rows = [part.rows for part in parts if part.rows is not None]
    if len(rows) < len(parts):
        return Counted(rows=None, broken=broken, notes=notes)
    if len(set(rows)) > 1:
        notes += (f"{key} counts other layers for other ops; a layer is taken as any of its ops is",)
    return Counted(rows=_most([_none_of(layers), *rows]), broken=broken, notes=notes)


def _most(rows: Sequence[Rows]) -> Rows:
    return tuple(tuple(map(max, zip(*cells, strict=True))) for cells in zip(*rows, strict=True))


def _dealt_list(key: str, value: list[int], layers: Rows, grid: Grid) -> Counted:
    """List with a count for each stage, dealt over its chunks; what is missing counts none."""
    if grid.is_v or len(value) > grid.stages or not _are_counts(value):
        return _unread(key, value, grid)
    held = [sum(stage) for stage in zip(*layers, strict=True)]
    broken = () if len(value) == grid.stages else _unread(key, value, grid).broken
    notes = _too_many(key, value, held, "stage {}")
    counts = [_count(entry, most) for entry, most in zip(value, held, strict=False)]
    counts += [0] * (grid.stages - len(counts))
    return Counted(rows=dealt(counts, layers), broken=broken, notes=tuple(notes))


def dealt(per_stage: Sequence[int], layers: Sequence[Sequence[int]]) -> Rows:
    """
    Deal the count of each stage over its chunks, one at a time to each that is not full.

    Examples
    --------
    >>> dealt([3, 1], [[1, 2], [4, 2]])  # stage 0: one, one, and the third to the only one with room
    ((1, 1), (2, 0))
    """
    columns = []
    for left, stage in zip(per_stage, zip(*layers, strict=True), strict=True):
        counts = [0] * len(stage)
        while left > 0 and counts != list(stage):
            for chunk, most in enumerate(stage):
                step = int(left > 0 and counts[chunk] < most)
                counts[chunk] += step
                left -= step
        columns.append(counts)
    return tuple(zip(*columns, strict=True))


def _list(key: str, value: list[object], layers: Rows, grid: Grid) -> Counted:
    """List with an entry for each chunk: a bool, or a list with a count for each stage."""
    if len(value) != grid.chunks:
        return _unread(key, value, grid)
    rows, notes = [], list[str]()
    for chunk, (row, held) in enumerate(zip(value, layers, strict=True)):
        entries = [row] * grid.stages if isinstance(row, bool) and not (grid.is_v and chunk) else row
        if not isinstance(entries, list) or len(entries) != grid.stages or not _are_counts(entries):
            return _unread(key, value, grid)
        notes += _too_many(key, entries, held, f"stage {{}} chunk {chunk}")
        rows.append(tuple(_count(entry, most) for entry, most in zip(entries, held, strict=True)))
    return Counted(rows=tuple(rows), notes=tuple(notes))


def _are_counts(row: list[object] | list[int]) -> bool:
    return all(isinstance(entry, int) and 0 <= entry <= LARGEST_COUNT for entry in row)


def _count(entry: int, most: int) -> int:
    """Layers of ``most`` that an entry counts; a bool counts all or none."""
    return most * entry if isinstance(entry, bool) else min(entry, most)


def _too_many(key: str, entries: Sequence[int], held: Sequence[int], place: str) -> list[str]:
    """Say where a list counts more layers than there are: the first place in full, then the others."""
    over = [
        (place.format(stage), entry, most)
        for stage, (entry, most) in enumerate(zip(entries, held, strict=False))
        if not isinstance(entry, bool) and entry > most
    ]
    if not over:
        return []
    (first, entry, most), *others = over
    also = f"; too many on {', '.join(name for name, _, _ in others)} as well" if others else ""
    return [f"{key} counts {entry} layers on {first}, which has {most}{also}"]


def types_counted(layers: Rows, full: Rows, selective: Rows, comm: Rows) -> CellTypes:
    """
    Type of each layer of each cell, when each list counts so many from the first.

    Examples
    --------
    >>> [[r.label for r in cell] for cell in types_counted(((3, 1),), ((1, 0),), ((2, 0),), ((2, 1),))[0]]
    [['full', 'both', 'none'], ['comm']]
    """
    return tuple(
        tuple(
            tuple(_MEANING[k < full[v][s], k < selective[v][s], k < comm[v][s]] for k in range(number))
            for s, number in enumerate(row)
        )
        for v, row in enumerate(layers)
    )


# What a layer runs that is counted in recompute, select_recompute, select_comm_recompute.
_MEANING = {
    (False, False, False): Recompute.NONE,
    (False, True, False): Recompute.SELECTIVE,
    (False, False, True): Recompute.COMM,
    (False, True, True): Recompute.BOTH,
    **{(True, select, comm): Recompute.FULL for select in (False, True) for comm in (False, True)},
}
