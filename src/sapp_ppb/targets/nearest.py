"""
The plan nearest to one that a framework can not say: the same split, other recompute.

Of the recompute that the framework can say for the split, the one that changes the
type of the fewest layers is taken; then the one that adds least activation memory;
then the one that does least again.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute, RecomputeType
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.targets.colossalai import COLOSSALAI
from sapp_ppb.targets.mindspeed.target import MINDSPEED, dealt_settings
from sapp_ppb.targets.nested_cell import nested_cell
from sapp_ppb.targets.pytorch.target import PYTORCH
from sapp_ppb.targets.target import Target
from sapp_ppb.targets.torchtitan.target import TORCHTITAN

Ints = NDArray[np.int64]
# Recompute in a framework's words, and the layers of each entry, type and cell.
Setting = tuple[str, Ints]


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """
    A plan that a framework can say, and how far it is from the one that was meant.

    Attributes
    ----------
    plan
        Its split is that of the plan that was meant, and its problem binds no planner.
    words
        Recompute in the framework's words; empty where it has one way only.
    differing
        Layers that have another type.
    added_mb
        Activation memory of one micro-batch that cells hold more, MB; cells that hold
        less do not make up for it.
    added_ms
        Milliseconds that all cells work longer on one micro-batch; below 0 for shorter.
    """

    plan: Plan
    words: str
    differing: int
    added_mb: float
    added_ms: float


def nearest(plan: Plan, target: Target) -> Nearest | None:
    """
    Find the plan of the same split that a framework can say and that changes fewest layers.

    Returns
    -------
    Nearest or None
        None when the framework can say none: it refuses the schedule, or the split.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.targets.megatron.target import MEGATRON
    >>> memory = {Recompute.NONE: 60, Recompute.FULL: 4}
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1, activation_mb=memory)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> plan = plan_from_matrices(problem, {"Dec": {"none": [[1, 3]], "full": [[3, 1]]}})
    >>> found = nearest(plan, MEGATRON)  # N = 1, 2 and 3 change 2 layers each; 3 adds no memory
    >>> found.words, found.differing, found.added_mb
    ('--recompute-granularity full --recompute-method block --recompute-num-layers 3', 2, 0.0)
    """
    problem = plan.problem.changed(target=None, recompute=None, max_recompute_types=None, fix=None)
    if target.refuses(problem):
        return None
    known = [
        _measured(plan, Plan(problem=problem, counts=counts), words)
        for words, counts in _settings(plan, problem, target)
        if _can_be(problem, counts)
    ]
    said = [each for each in known if not target.unsaid(each.plan)]
    return min(said, key=lambda each: (each.differing, each.added_mb, each.added_ms), default=None)


def _can_be(problem: Problem, counts: Ints) -> bool:
    """Whether every layer has a type that the model gives it."""
    return all(
        recompute in layer.considered
        for layer, by_type in zip(problem.model.bodies, counts, strict=True)
        for recompute in problem.model.types
        if by_type[recompute].any()
    )


def _measured(plan: Plan, other: Plan, words: str) -> Nearest:
    """Say how far another plan of the same split is from the one that was meant."""
    change, model = other.counts - plan.counts, plan.problem.model
    bodies = model.bodies
    activation_mb = np.array([[layer.activation(r) for r in model.types] for layer in bodies])
    backward_ms = np.array([layer.backward_ms for layer in bodies])
    per_cell_mb = (change * activation_mb[:, :, np.newaxis]).sum(axis=(0, 1))
    return Nearest(
        plan=other,
        words=words,
        differing=int(np.maximum(change, 0).sum()),
        added_mb=float(np.maximum(per_cell_mb, 0.0).sum()),
        added_ms=float((change * backward_ms[:, :, np.newaxis]).sum()),
    )


def _settings(plan: Plan, problem: Problem, target: Target) -> Iterator[Setting]:
    """Every recompute that a framework can say for a split, and for MindFormers the nearest alone."""
    by_entry = plan.counts.sum(axis=1)
    try:
        ways = target.ways(problem.changed(fix=plan.split))
    except InputError:  # a split that it can not say, with cells that are empty
        return
    for way in ways:
        fix, types = way.problem.fix, way.problem.recompute
        if fix is not None and fix.places is not None:
            yield way.words, fix.places.counts(by_entry, len(problem.model.types))
        elif types is not None and len(types) == 1:
            counts = np.zeros_like(plan.counts)
            counts[:, types[0]] = by_entry
            yield way.words, counts
        elif target in (COLOSSALAI, PYTORCH):
            yield from (
                (way.words, counts) for counts in _within(plan, types or (), falling=target is COLOSSALAI)
            )
        else:
            yield from ((way.words, counts) for counts in _nested(plan))
    if target is TORCHTITAN and problem.interleave > 1:
        yield from _every_nth(plan, by_entry)
    if target is MINDSPEED:
        yield from dealt_settings(problem, by_entry)


def _every_nth(plan: Plan, by_entry: Ints) -> Iterator[Setting]:
    """Full recompute of every n-th layer of a stage, counted over its chunks."""
    bodies = plan.problem.model.bodies
    if any({Recompute.NONE, Recompute.FULL} - set(layer.considered) for layer in bodies):
        return
    stages = [plan.problem.cells_of(stage) for stage in range(plan.problem.stages)]
    most = max(int(by_entry[:, cells].sum()) for cells in stages)
    for every in range(2, most + 1):
        counts = np.zeros_like(plan.counts)
        for cells in stages:
            built = 0
            for cell in cells:
                for k, number in enumerate(by_entry[:, cell].tolist()):
                    full = (built + number) // every - built // every
                    counts[k, [Recompute.NONE, Recompute.FULL], cell] = number - full, full
                    built += number
        yield f'mode = "selective", selective_ac_option = "{every}"', counts


def _within(plan: Plan, types: Collection[RecomputeType], *, falling: bool) -> Iterator[Ints]:
    """Give every layer one of some types; in every cell they fall along the chain where that is asked for."""
    bodies, counts = plan.problem.model.bodies, plan.counts
    cells = []
    for cell in range(plan.problem.cells):
        rows = counts[:, :, cell]
        if falling:
            cells.append(nested_cell(bodies, rows, {}, types))
        else:  # each kind for itself
            alone = [
                nested_cell([body], row[np.newaxis], {}, types)
                for body, row in zip(bodies, rows, strict=True)
            ]
            known = [row for row in alone if row is not None]
            cells.append(np.concatenate(known) if len(known) == len(alone) else None)
    found = [each for each in cells if each is not None]
    if len(found) == len(cells):
        yield np.stack(found, axis=2)


def _nested(plan: Plan) -> Iterator[Ints]:
    """
    Give every cell types that fall along the chain; once for each type of multi-token prediction.

    Layers of multi-token prediction all have the type of the last layer before them.
    """
    bodies = plan.problem.model.bodies
    mtp = [k for k, layer in enumerate(bodies) if layer.is_mtp]
    before = [k for k in range(len(bodies)) if k not in mtp]
    if not mtp or not before:
        yield from _cells(plan, plan.counts, {}, {})
        return
    end = before[-1]
    last_cell = int(plan.counts[end].sum(axis=0).nonzero()[0][-1])
    for recompute in Recompute:
        if any(recompute not in bodies[k].considered for k in (end, *mtp)):
            continue
        alike = plan.counts.copy()
        alike[mtp] = 0
        alike[mtp, recompute] = plan.counts[mtp].sum(axis=1)
        yield from _cells(plan, alike, dict.fromkeys(mtp, recompute), {last_cell: {end: recompute}})


def _cells(
    plan: Plan, wanted: Ints, last: dict[int, Recompute], last_in: dict[int, dict[int, Recompute]]
) -> Iterator[Ints]:
    """Fill all cells, if each can be said, with the type of an entry's last layer where it is given."""
    cells = [
        nested_cell(plan.problem.model.bodies, wanted[:, :, cell], last | last_in.get(cell, {}))
        for cell in range(plan.problem.cells)
    ]
    found = [cell for cell in cells if cell is not None]
    if len(found) == len(cells):
        yield np.stack(found, axis=2)
