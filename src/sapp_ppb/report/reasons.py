"""Why layers are recomputed: what would happen if one of them were recomputed less."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from sapp_ppb.costs import RecomputeType
from sapp_ppb.plan import Plan
from sapp_ppb.schedules import Op
from sapp_ppb.simulator.memory import LiveRows, problem_rows
from sapp_ppb.simulator.price import CellCosts, LayerTables, layer_tables, price
from sapp_ppb.simulator.timeline import stage_peak
from sapp_ppb.targets import target_named

_SLACK = 1e-9  # as the simulator compares a peak with its limit


class Why(StrEnum):
    """What a layer that is recomputed less would run into."""

    MEMORY = "the stage would exceed its limit"
    TARGET = "the target can not say it"
    TIME = "its backward would take longer"
    GIVEN = "what is recomputed was given"
    TYPES = "more types would be mixed than are allowed"
    ONLY = "no lesser type is allowed"
    NOTHING = "nothing: it would fit"


@dataclass(frozen=True, kw_only=True)
class Reason:
    """
    Why layers of one entry on one stage are recomputed as they are.

    Attributes
    ----------
    stage, layer, recompute, count
        ``count`` layers of this entry, by its name, are recomputed so on this stage.
    less
        The next type that recomputes less, or is done sooner where strategies are among
        them, and that the problem considers; None for none.
    chunk
        Where one layer less would hurt least.
    why
        What speaks against ``less`` for that one layer.
    op
        Where the stage would then hold most.
    needed_mb, over_mb
        What it would hold there, and by how much that exceeds its limit; at most 0
        when it fits.  MB.
    """

    stage: int
    layer: str
    recompute: RecomputeType
    count: int
    less: RecomputeType | None
    chunk: int
    why: Why
    op: Op
    needed_mb: float
    over_mb: float


def find_reasons(plan: Plan) -> tuple[Reason, ...]:
    """
    Say for every stage, entry and type in use but NONE why it is needed.

    One layer is taken to the next type that recomputes less, in the chunk of the stage
    where that adds least to the peak.  A plan of the planner names MEMORY everywhere,
    but for what its target can not say and what would take longer.

    Returns
    -------
    tuple
        By stage, then in the order of the model, then by type; empty when nothing is recomputed.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> memory = {Recompute.NONE: 60, Recompute.FULL: 10}
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=3, forward_ms=1, activation_mb=memory)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4,
    ...                   memory_limit_mb=150)
    >>> plan = plan_from_matrices(problem, {"Dec": {"none": [[1, 1]], "full": [[1, 0]]}})
    >>> reason = find_reasons(plan)[0]  # two live on stage 0: 2 * (60 + 60) of 150
    >>> reason.stage, reason.why.name, str(reason.op), reason.needed_mb, reason.over_mb
    (0, 'MEMORY', '0F1', 240.0, 90.0)
    """
    problem, costs = plan.problem, price(plan)
    tables = layer_tables(problem)
    live = problem_rows(problem)
    reasons = []
    for stage in range(problem.stages):
        counts = plan.counts[:, :, problem.cells_of(stage)].sum(axis=2)
        for index, recompute in np.argwhere(counts[:, 1:] > 0).tolist():  # NONE, the first, needs no reason
            use = _Use(stage, index, problem.model.types[recompute + 1], int(counts[index, recompute + 1]))
            found = _reasons_of(plan, costs, tables, live[stage], use)
            reasons.append(min(found, key=lambda reason: reason.needed_mb))
    return tuple(reasons)


def reasons_of_kinds(plan: Plan) -> tuple[Reason, ...]:
    """
    Give one reason for entries of one kind, such as ``mamba.0`` and ``mamba.2``, where they agree.

    Their layers are counted together under the name of the kind; the numbers are those of the
    layer that needs least.
    """
    kinds = {layer.name: layer.family for layer in plan.problem.model.bodies}
    together: dict[tuple[object, ...], list[Reason]] = {}
    for reason in find_reasons(plan):
        key = (reason.stage, kinds[reason.layer], reason.recompute, reason.less, reason.why)
        together.setdefault(key, []).append(reason)
    return tuple(
        replace(
            min(some, key=lambda reason: reason.needed_mb),
            layer=kinds[some[0].layer],
            count=sum(reason.count for reason in some),
        )
        for some in together.values()
    )


class _Use(NamedTuple):
    """So many layers of one BODY entry are under one type on one stage."""

    stage: int
    body: int
    recompute: RecomputeType
    layers: int


def _reasons_of(
    plan: Plan, costs: CellCosts, tables: LayerTables, live: LiveRows, use: _Use
) -> Iterator[Reason]:
    """Give the reason that each chunk of the stage that holds such a layer would give."""
    stage, index, recompute, count = use
    problem, layer = plan.problem, plan.problem.model.bodies[index]
    limit = problem.limit_per_stage_mb[stage]
    for chunk, cell in enumerate(problem.cells_of(stage)):
        if not plan.counts[index, recompute, cell]:
            continue
        less, obstacle = _next_less(plan, cell, index, recompute)
        turned = costs if less is None else _turned(plan, costs, tables, cell, (index, recompute, less))
        peak = stage_peak(problem, turned, stage, live)
        fits = peak.memory_mb <= limit * (1 + _SLACK)
        yield Reason(
            stage=stage,
            layer=layer.name,
            recompute=recompute,
            count=count,
            less=less,
            chunk=chunk,
            why=obstacle if fits or less is None else Why.MEMORY,
            op=peak.op,
            needed_mb=peak.memory_mb,
            over_mb=peak.memory_mb - limit,
        )


def _turned(
    plan: Plan,
    costs: CellCosts,
    tables: LayerTables,
    cell: int,
    turn: tuple[int, RecomputeType, RecomputeType],
) -> CellCosts:
    """Price a plan with one layer of a cell under another type; memory only is meant."""
    index, recompute, less = turn
    counts = plan.counts[:, :, cell].copy()
    counts[index, [recompute, less]] += (-1, 1)
    activation, again = costs.activation_mb.copy(), costs.again_mb.copy()
    activation[cell] += tables.activation_mb[index, less] - tables.activation_mb[index, recompute]
    again[cell] = (tables.again_mb * (counts > 0)).max()
    return replace(costs, activation_mb=activation, again_mb=again)


def _next_less(
    plan: Plan, cell: int, index: int, recompute: RecomputeType
) -> tuple[RecomputeType | None, Why]:
    """Find the nearest type that is less work, one without an obstacle first; None where there is none."""
    layer = plan.problem.model.bodies[index]
    types = layer.least_work_first(plan.problem.considered(layer))
    lesser = types[: types.index(recompute)][::-1]
    obstacles = [(r, _obstacle(plan, cell, index, recompute, r)) for r in lesser]
    free = [(r, why) for r, why in obstacles if why is Why.NOTHING]
    return (free or obstacles or [(None, Why.ONLY)])[0]


def _obstacle(plan: Plan, cell: int, index: int, recompute: RecomputeType, less: RecomputeType) -> Why:
    """Say what but memory speaks against one layer's turn to a type."""
    problem = plan.problem
    if problem.fix is not None and problem.fix.settles_recompute:
        return Why.GIVEN
    layer = problem.model.bodies[index]
    if layer.backward_ms[less] > layer.backward_ms[recompute]:
        return Why.TIME
    if _mixes_more_types(plan, recompute, less):
        return Why.TYPES
    counts = plan.counts.copy()
    counts[index, [recompute, less], cell] += (-1, 1)
    if problem.target is None or not target_named(problem.target).unsaid(replace(plan, counts=counts)):
        return Why.NOTHING
    return Why.TARGET


def _mixes_more_types(plan: Plan, recompute: RecomputeType, less: RecomputeType) -> bool:
    """Whether a turn would mix more types besides NONE than the problem allows."""
    most = plan.problem.max_recompute_types
    after = plan.counts.sum(axis=(0, 2))
    after[[recompute, less]] += (-1, 1)
    return most is not None and int((after[1:] > 0).sum()) > most
