"""
Where MindFormers puts layers: what ``offset`` means, and the rules that it must keep.

Every cell gets N div (S x V) layers and its offset.  N counts the layers of multi-token
prediction too; files for releases that do not count them exist.  Source: ``mindformers/
parallel_core/training_graph/transformer/utils.py``, LayerSetting, and
``transformer_block.py``, which adds ``mtp_num_layers``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sapp_ppb.costs.checks import LARGEST_COUNT, shown
from sapp_ppb.targets.config import BrokenRule

Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """
    The cells that a configuration has.

    Attributes
    ----------
    stages, chunks
        S and V.
    is_v
        Whether chunk 1 runs back from the last stage, as under ``zero_bubble_v``.
    """

    stages: int
    chunks: int = 1
    is_v: bool = False

    def chain(self) -> Iterator[tuple[int, int]]:
        """
        Chunk and stage of every cell, in the order of the chain.

        Examples
        --------
        >>> list(Grid(stages=2, chunks=2, is_v=True).chain())
        [(0, 0), (0, 1), (1, 1), (1, 0)]
        """
        for chunk in range(self.chunks):
            back = self.is_v and chunk % 2 == 1
            stages = reversed(range(self.stages)) if back else iter(range(self.stages))
            yield from ((chunk, stage) for stage in stages)

    @property
    def cells(self) -> int:
        """S x V."""
        return self.stages * self.chunks


@dataclass(frozen=True, kw_only=True)
class Split:
    """
    Layers of every cell.

    Attributes
    ----------
    rows
        Layers, those of multi-token prediction included, by chunk and stage; None when
        they can not be told.
    counts_mtp
        Whether ``offset`` counts the layers of multi-token prediction.
    broken
        Rules that the offset breaks.
    """

    rows: Rows | None
    counts_mtp: bool = True
    broken: tuple[BrokenRule, ...] = ()


def split_of(offset: object, layers: int, mtp: int, grid: Grid) -> Split:
    """
    Layers of every cell, as MindFormers takes an offset.

    Parameters
    ----------
    offset
        An integer, or a list of S, which then hold for every chunk, or V lists of S.
    layers, mtp
        Layers without, and layers of, multi-token prediction.

    Returns
    -------
    Split
        Where there are more places than layers, the last cells come short; where there
        are fewer, and where a cell would hold less than nothing, no rows.

    Examples
    --------
    >>> split_of([1, 0], 5, 0, Grid(stages=2)).rows  # 5 div 2 = 2 each
    ((3, 2),)
    >>> print(split_of([1, 1], 5, 0, Grid(stages=2)).broken[0])
    offset: must add up to 5 mod 2 = 1, so that each layer has a place (got 2); change a number
    """
    wrong = _shape_fault(offset, grid)
    if wrong:
        return Split(rows=None, broken=(wrong,))
    rows = ((0,),) if grid.cells == 1 else _rows(offset, grid)
    counts_mtp = _counts_mtp(rows, offset, layers, mtp, grid)
    counted = layers + mtp if counts_mtp else layers
    broken = [*_sum_faults(rows, offset, layers, mtp, grid), *_cell_faults(rows, counted, grid)]
    places = [[counted // grid.cells + number for number in row] for row in rows]
    filled = _filled(places, counted, grid)
    if filled is not None and not counts_mtp:
        chunk, stage = list(grid.chain())[-1]
        filled[chunk][stage] += mtp
    if filled is not None and mtp:
        broken += _mtp_faults(filled, mtp, grid)
    found = None if filled is None else tuple(tuple(row) for row in filled)
    return Split(rows=found, counts_mtp=counts_mtp, broken=tuple(broken))


def _shape_fault(offset: object, grid: Grid) -> BrokenRule | None:
    """MindFormers' check of the shape; a single cell takes anything."""
    right = grid.cells == 1 or _is_whole(offset) or _is_row(offset, grid.stages)
    if not right and isinstance(offset, list):
        right = len(offset) == grid.chunks and all(_is_row(row, grid.stages) for row in offset)
    if right:
        return None
    chunks = f", or {grid.chunks} such lists, one a chunk" if grid.chunks > 1 else ""
    rule = f"must be a whole number or a list of one for each of the {grid.stages} stages{chunks}"
    return BrokenRule(key="offset", rule=rule, found=shown(offset))


def _is_row(value: object, stages: int) -> bool:
    return isinstance(value, list) and len(value) == stages and all(_is_whole(number) for number in value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_COUNT


def _rows(offset: object, grid: Grid) -> Rows:
    """Lay an offset of a known shape out by chunk and stage."""
    if not isinstance(offset, list):
        return ((_number(offset),) * grid.stages,) * grid.chunks
    rows = offset if any(isinstance(row, list) for row in offset) else [offset] * grid.chunks
    return tuple(tuple(row) for row in rows)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _added(rows: Rows, offset: object, grid: Grid) -> int:
    """Sum as MindFormers takes it: of what is written, before it holds for every chunk."""
    if grid.cells == 1:
        return 0
    if not isinstance(offset, list):
        return _number(offset)
    written = rows if any(isinstance(row, list) for row in offset) else rows[:1]
    return sum(map(sum, written))


def _counts_mtp(rows: Rows, offset: object, layers: int, mtp: int, grid: Grid) -> bool:
    """Whether an offset counts MTP layers, or at least does not leave them out."""
    added = _added(rows, offset, grid)
    return added == (layers + mtp) % grid.cells or added != layers % grid.cells


def _sum_faults(rows: Rows, offset: object, layers: int, mtp: int, grid: Grid) -> list[BrokenRule]:
    """MindFormers' check of the sum, and the layers that it lets go short where one list holds for all."""
    added, cells = _added(rows, offset, grid), grid.cells
    counts = [layers + mtp, layers] if mtp else [layers]
    if added not in [count % cells for count in counts]:
        wanted = " or ".join(f"{count} mod {cells} = {count % cells}" for count in counts)
        with_mtp = f" (with and without the {mtp} of MTP)" if mtp else ""
        rule = f"must add up to {wanted}{with_mtp}, so that each layer has a place"
        return [BrokenRule(key="offset", rule=rule, found=str(added), mend="change a number")]
    everywhere = sum(map(sum, rows)) if grid.cells > 1 else 0
    if everywhere == added:
        return []
    counted = next(count for count in counts if count % cells == added)
    rule = (
        "what is written once holds for every chunk" if isinstance(offset, list) else "holds for every cell"
    )
    mend = f"write {'a list' if grid.chunks == 1 else f'{grid.chunks} lists, one a chunk'}"
    found = (
        f"places for {counted + everywhere - added} layers; there are {counted}, so the last cells go short"
    )
    return [BrokenRule(key="offset", rule=rule, found=found, mend=mend)]


def _cell_faults(rows: Rows, counted: int, grid: Grid) -> list[BrokenRule]:
    """MindFormers' check of the cells: the first and the last may be empty, no other."""
    each, faults = counted // grid.cells, []
    for chunk, row in enumerate(rows):
        for stage, number in enumerate(row):
            at_an_end = (chunk, stage) in ((0, 0), (grid.chunks - 1, grid.stages - 1))
            least = 0 if at_an_end else 1
            if each + number < least:
                which = "may be empty but not less" if at_an_end else "must hold a layer"
                rule = (
                    f"stage {stage} chunk {chunk} {which}: {counted} div {grid.cells} = {each} and {number}"
                )
                found = f"{each + number} layers"
                mend = f"give at least {least - each}"
                faults.append(BrokenRule(key="offset", rule=rule, found=found, mend=mend))
    return faults


def _filled(places: list[list[int]], counted: int, grid: Grid) -> list[list[int]] | None:
    """Layers of every cell when the chain of layers fills the places; None when some stay out."""
    if any(place < 0 for row in places for place in row) or sum(map(sum, places)) < counted:
        return None
    filled, left = [[0] * grid.stages for _ in range(grid.chunks)], counted
    for chunk, stage in grid.chain():
        filled[chunk][stage] = min(places[chunk][stage], left)
        left -= filled[chunk][stage]
    return filled


def _mtp_faults(filled: list[list[int]], mtp: int, grid: Grid) -> list[BrokenRule]:
    chunk, stage = list(grid.chain())[-1]
    missing = mtp - filled[chunk][stage]
    if missing <= 0:
        return []
    rule = f"the {mtp} MTP layers must stand in the last cell, stage {stage} chunk {chunk}, with the loss"
    found = f"{missing} of them before it"
    mend = f"give that cell {missing} more"
    return [BrokenRule(key="offset", rule=rule, found=found, mend=mend)]
