"""
What MindFormers can say of a plan.

It counts the layers that it recomputes from the start of a chunk, in one list for
each kind of recompute, and a layer that two lists count runs both.  A cell in which
other layers are meant can not be said.  Layers of multi-token prediction run as the
last layer before them does.  Source: ``mindformers/parallel_core/training_graph/
transformer/utils.py``, class LayerSetting; MindSpore's ``pipeline_scheduler``, which
is heeded only with ``pipeline_interleave`` (``ccsrc``, PipelineParallelScheduler).  What
``swap_config`` says is not written.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Placement, ScheduleName
from sapp_ppb.targets.strategies import strategy_faults
from sapp_ppb.targets.target import Target, Way

# As ``pipeline_scheduler`` names them, and whether ``pipeline_interleave`` must be true.
SCHEDULES = {
    ScheduleName.ONE_F_ONE_B: ("1f1b", False),
    ScheduleName.GPIPE: ("gpipe", True),
    ScheduleName.LOOPED_BFS: ("gpipe", True),
    ScheduleName.INTERLEAVED: ("1f1b", True),
    ScheduleName.INTERLEAVED_LESS_MEMORY: ("1f1b", True),
    ScheduleName.SEQ1F1B: ("seqpipe", True),
    ScheduleName.ZBV: ("zero_bubble_v", True),
}
CellPlace = tuple[int, int]
Ints = NDArray[np.int64]
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

    Those of ``mixed_cells()``, those where a layer is recomputed behind one of
    another kind that is recomputed less, and those with a strategy.

    Returns
    -------
    list
        Chunk and stage of each such cell, in the order of the chain.
    """
    return [
        _place(plan, cell) for cell in range(plan.problem.cells) if not can_say_cell(plan.counts[:, :, cell])
    ]


def can_say_cell(counts: Ints) -> bool:
    """
    Whether lists that count the first layers of a chunk mean what a cell holds.

    Parameters
    ----------
    counts
        Layers of the cell; shape (BODY layers, types).

    Examples
    --------
    >>> counts = np.zeros((2, 5), dtype=int)
    >>> counts[0, Recompute.NONE] = counts[1, Recompute.FULL] = 1
    >>> can_say_cell(counts), can_say_cell(counts[::-1])  # the recomputed layer comes second, or first
    (False, True)
    """
    if counts[:, len(Recompute) :].any():
        return False
    meant = [_MEANING[recompute] for recompute in _layers_in_order(counts)]
    return meant == _as_mindformers_reads(counts)


def _layers_in_order(counts: Ints) -> Iterator[Recompute]:
    """Type of each layer of a cell: kind after kind, the most recomputed of a kind first."""
    for of_kind in counts:
        for recompute in reversed(Recompute):
            yield from [recompute] * int(of_kind[recompute])


def _as_mindformers_reads(counts: Ints) -> list[frozenset[str]]:
    """Name the lists that count each layer of a cell, when every list counts from the first."""
    per_type = counts.sum(axis=0)
    counted = {
        name: sum(int(per_type[r]) for r in Recompute if name in r.mindformers_lists) for name in _LISTS
    }
    return [
        frozenset(name for name in _LISTS if index < counted[name]) for index in range(int(per_type.sum()))
    ]


def _place(plan: Plan, cell: int) -> CellPlace:
    stages = plan.problem.stages
    return cell // stages, plan.problem.order.placement.stage_of(cell, stages)


def refuses(problem: Problem) -> tuple[str, ...]:
    """Say why MindFormers can run no plan of a problem."""
    faults = _order_faults(problem)
    try:
        _with_filled_cells(problem)
    except InputError as error:
        faults += tuple(f"MindFormers wants a layer in every cell: {fault}" for fault in error.faults)
    return faults


def _order_faults(problem: Problem) -> tuple[str, ...]:
    """Rules of ``pipeline_scheduler`` and ``micro_batch_num``."""
    name, stages, micro_batches = problem.schedule_name, problem.stages, problem.micro_batches
    if name not in SCHEDULES:
        names = ", ".join(known.value for known in SCHEDULES)
        return (f"MindFormers has no schedule {name.value}; use one of {names}",)
    if micro_batches < stages:
        return (
            f"MindFormers wants at least as many micro-batches as stages, {stages} (got {micro_batches})",
        )
    group, rest = problem.micro_batch_group, micro_batches % stages
    if (
        name is ScheduleName.INTERLEAVED
        and group != "remainder-first"
        and (rest or group not in (None, stages))
    ):
        return (
            f"MindFormers takes micro-batches in groups of {stages}, what is left over in the first; give "
            "--micro-batch-group remainder-first",
        )
    return ()


def _with_filled_cells(problem: Problem) -> Problem:
    """Give a problem a layer in every cell that holds no HEAD or TAIL, and in a last one on stage 0."""
    changes: dict[str, object] = {}
    if not problem.min_layers_per_cell and problem.cells > 1:
        changes["min_layers_per_cell"] = 1
    # Where the chain turns back, the last cell stands among those that may not be empty.
    if problem.order.placement is Placement.V and problem.model.tails:
        changes["empty_tail"] = False
    return problem.changed(**changes) if changes else problem


def ways(problem: Problem) -> tuple[Way, ...]:
    """List the one way: in every cell the types fall along the chain, each within the one before."""
    return (Way(problem=_with_filled_cells(problem)),)


def unsaid(plan: Plan) -> tuple[str, ...]:
    """Say why MindFormers can not express a plan."""
    faults = [*_order_faults(plan.problem), *_bare_faults(plan), *strategy_faults(plan, "MindFormers")]
    if plan.strategies:
        return tuple(faults)
    if silent := silent_cells(plan):
        chunk, stage = silent[0]
        faults.append(
            "each list counts the first layers of a chunk, whatever their kind, and a layer that two lists "
            f"count runs both; stage {stage} chunk {chunk} needs other layers"
            + (f", and so do {len(silent) - 1} more cells" if len(silent) > 1 else "")
        )
    return (*faults, *_mtp_faults(plan))


def _bare_faults(plan: Plan) -> list[str]:
    """Only the first and the last cell in the order of chunks and stages may be empty."""
    rows = plan.per_chunk_and_stage(plan.layers_per_cell)
    chunks, stages = rows.shape
    bare = [
        f"stage {stage} chunk {chunk}"
        for chunk, stage in np.argwhere(rows == 0).tolist()
        if (chunk, stage) not in ((0, 0), (chunks - 1, stages - 1))
    ]
    if not bare:
        return []
    last = f"stage {stages - 1} chunk {chunks - 1}"
    return [
        f"only stage 0 chunk 0 and {last} may be without layers, and so {'is' if len(bare) == 1 else 'are'} "
        f"{', '.join(bare[:4])}; plan with --min-layers 1"
    ]


def _mtp_faults(plan: Plan) -> list[str]:
    """Layers of multi-token prediction stand last, and run as the layer before them does."""
    bodies = plan.problem.model.bodies
    before = [k for k, layer in enumerate(bodies) if not layer.is_mtp]
    if not plan.problem.model.mtp_count or not before:
        return []
    mtp = range(before[-1] + 1, len(bodies))
    if plan.counts[mtp, :, : plan.problem.cells - 1].any():
        return ["all MTP layers must stand in the last cell of the chain"]
    cell = int(plan.counts[before[-1]].sum(axis=0).nonzero()[0][-1])
    # The most recomputed come first in a cell, so the last layer has the least.
    last = next(r for r in Recompute if plan.counts[before[-1], r, cell])
    types = [r for r in Recompute if plan.counts[mtp, r].any()]
    if types == [last]:
        return []
    names = ", ".join(r.label for r in types)
    return [f"MTP layers run as the layer before them does, {last.label}; this plan runs them as {names}"]


MINDFORMERS = Target(name="mindformers", title="MindFormers", refuses=refuses, ways=ways, unsaid=unsaid)
