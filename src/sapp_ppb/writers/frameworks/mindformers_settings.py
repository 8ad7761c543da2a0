"""What a plan sets in the YAML of a MindFormers run, before it is laid out."""

from dataclasses import dataclass

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.schedules import Placement, ScheduleName
from sapp_ppb.targets import CellTypes, cell_types
from sapp_ppb.targets.mindformers.counts import LISTS
from sapp_ppb.targets.mindformers.split import Grid, Rows
from sapp_ppb.targets.mindformers.target import MINDFORMERS, SCHEDULES

# Types of which a list must count a layer; it counts FULL too, which changes nothing.
_OWN_TYPES = {
    name: {r for r in Recompute if name in r.mindformers_lists} - {Recompute.FULL} for name in LISTS
}
_OWN_TYPES[LISTS[0]] = {Recompute.FULL}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """
    A plan in MindFormers' terms.

    Attributes
    ----------
    grid
        Its cells.
    micro_batches
        M.
    scheduler, interleaves
        ``pipeline_scheduler`` and ``pipeline_interleave``.
    sequence_chunks
        ``seq_split_num``.
    layers, mtp_layers
        Layers, those of multi-token prediction included, and these.
    types
        Type of each layer of each cell.
    """

    grid: Grid
    micro_batches: int
    scheduler: str
    interleaves: bool
    sequence_chunks: int
    layers: int
    mtp_layers: int
    types: CellTypes

    @property
    def rows(self) -> Rows:
        """Layers of every cell, by chunk and stage."""
        return tuple(tuple(len(cell) for cell in row) for row in self.types)

    def offset(self) -> Rows:
        """Layers of every cell less N div (S x V)."""
        each = self.layers // self.grid.cells
        return tuple(tuple(number - each for number in row) for row in self.rows)

    def counted(self, name: str) -> Rows:
        """Layers of every cell that a list counts, FULL ones in every list."""
        return tuple(
            tuple(sum(name in r.mindformers_lists for r in cell) for cell in row) for row in self.types
        )

    def needs(self, name: str) -> bool:
        """Whether a list counts any layer that no other list counts more of."""
        return any(_OWN_TYPES[name] & set(cell) for row in self.types for cell in row)

    def written(self, rows: Rows, *, nested: bool = False) -> list[object]:
        """Rows as a list of S with one chunk, else, or when ``nested``, as V lists of S."""
        lists: list[object] = [list(row) for row in rows]
        return list(rows[0]) if len(rows) == 1 and not nested else lists


def settings_of(plan: Plan) -> Settings:
    """
    Say a plan in MindFormers' terms.

    Raises
    ------
    InputError
        If MindFormers can not express it, with every reason.
    """
    unsaid = MINDFORMERS.unsaid(plan)
    if unsaid:
        raise InputError("plan", unsaid)
    problem = plan.problem
    scheduler, interleaves = SCHEDULES[problem.schedule_name]
    is_v = problem.order.placement is not Placement.LOOP
    return Settings(
        grid=Grid(stages=problem.stages, chunks=problem.interleave, is_v=is_v),
        micro_batches=problem.micro_batches,
        scheduler=scheduler,
        interleaves=interleaves,
        sequence_chunks=problem.sequence_chunks if problem.schedule_name is ScheduleName.SEQ1F1B else 1,
        layers=problem.model.body_count,
        mtp_layers=problem.model.mtp_count,
        types=cell_types(plan),
    )
