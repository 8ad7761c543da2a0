"""
What MindFormers can say of a plan.

It counts the layers that it recomputes from the start of a chunk, in one list for
each kind of recompute, and a layer that two lists count runs both.  A cell in which
other layers are meant can not be said.
"""

from collections.abc import Iterator

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan

CellPlace = tuple[int, int]
_LISTS = ("recompute", "select_recompute", "select_comm_recompute")
# What a layer runs that is counted in these lists; FULL is counted in all three.
_MEANING = {recompute: frozenset(recompute.mindformers_lists) for recompute in Recompute}


def mixed_cells(plan: Plan) -> list[CellPlace]:
    """
    Cells that hold SELECTIVE beside COMM, which MindFormers would run as BOTH.

    Returns
    -------
    list
        Chunk and stage of each such cell, in the order of the chain.
    """
    per_type = plan.counts.sum(axis=0)
    return [
        _place(plan, cell)
        for cell in range(plan.problem.cells)
        if per_type[Recompute.SELECTIVE, cell] and per_type[Recompute.COMM, cell]
    ]


def silent_cells(plan: Plan) -> list[CellPlace]:
    """
    Cells that MindFormers can not say: its lists would mean other layers.

    Those of ``mixed_cells()``, and those where a layer is recomputed behind one of
    another kind that is recomputed less.

    Returns
    -------
    list
        Chunk and stage of each such cell, in the order of the chain.
    """
    return [
        _place(plan, cell)
        for cell in range(plan.problem.cells)
        if [_MEANING[recompute] for recompute in _layers_in_order(plan, cell)]
        != _as_mindformers_reads(plan, cell)
    ]


def _layers_in_order(plan: Plan, cell: int) -> Iterator[Recompute]:
    """Type of each layer of a cell: kind after kind, the most recomputed of a kind first."""
    for counts in plan.counts[:, :, cell]:
        for recompute in reversed(Recompute):
            yield from [recompute] * int(counts[recompute])


def _as_mindformers_reads(plan: Plan, cell: int) -> list[frozenset[str]]:
    """Name the lists that count each layer of a cell, when every list counts from the first."""
    per_type = plan.counts[:, :, cell].sum(axis=0)
    counted = {
        name: sum(int(per_type[r]) for r in Recompute if name in r.mindformers_lists) for name in _LISTS
    }
    return [
        frozenset(name for name in _LISTS if index < counted[name]) for index in range(int(per_type.sum()))
    ]


def _place(plan: Plan, cell: int) -> CellPlace:
    stages = plan.problem.stages
    return cell // stages, plan.problem.order.placement.stage_of(cell, stages)
