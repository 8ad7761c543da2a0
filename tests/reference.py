"""
A slow and obvious simulator to compare the real one with.

Dictionaries and plain sums only, and nothing of ``sapp_ppb.simulator``: ops run
one by one as their stage gets to them, and memory is added up op by op.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sapp_ppb.costs import LayerKind, Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.schedules import Op, OpKind, Placement, Schedule


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What the slow simulator says of a plan."""

    makespan_ms: float
    start_ms: Mapping[Op, float]
    end_ms: Mapping[Op, float]
    held_mb: tuple[tuple[float, ...], ...]
    """MB that each stage holds while it runs each of its ops, in the order of its row."""

    @property
    def peak_mb(self) -> tuple[float, ...]:
        """Most that each stage holds."""
        return tuple(max(row) for row in self.held_mb)


def reference(plan: Plan) -> Reference:
    """Time a plan and add up its memory, slowly."""
    problem, schedule = plan.problem, plan.problem.order
    costs = [cell_costs(plan, cell) for cell in range(problem.cells)]
    links = [hop_ms_after(schedule, cell, problem.hop_ms) for cell in range(problem.cells - 1)]
    starts, ends = run(schedule, lambda op: op_ms(op.kind, costs[op.cell]), links)
    constant = problem.constant_per_stage_mb
    held = tuple(
        held_mb(
            schedule.rows[stage],
            constant[stage] + sum(costs[cell]["parameter"] for cell in cells_of(schedule, stage)),
            [cell["activation"] for cell in costs],
            [cell["again"] if problem.recompute_working_set else 0.0 for cell in costs],
        )
        for stage in range(schedule.stages)
    )
    return Reference(makespan_ms=max(ends.values()), start_ms=starts, end_ms=ends, held_mb=held)


def cell_costs(plan: Plan, cell: int) -> dict[str, float]:
    """Forward, backward, activation and parameters of a cell, layer by layer."""
    costs = dict.fromkeys(("forward", "backward", "activation", "parameter", "again"), 0.0)

    def add(layer, recompute, count):
        costs["forward"] += count * layer.forward_ms
        costs["backward"] += count * layer.backward_ms[recompute]
        costs["activation"] += count * (layer.activation_mb[recompute] or 0.0)
        costs["parameter"] += count * layer.parameter_mb
        if count and layer.kind is LayerKind.BODY:
            whole, kept = (layer.activation_mb[r] or 0.0 for r in (Recompute.NONE, recompute))
            costs["again"] = max(costs["again"], whole - kept)

    bodies = [layer for layer in plan.problem.model.layers if layer.kind is LayerKind.BODY]
    for layer, counts in zip(bodies, plan.counts.tolist(), strict=True):
        for recompute in Recompute:
            add(layer, recompute, counts[recompute][cell])
    for layer in plan.problem.model.layers:
        if layer.kind is LayerKind.HEAD and cell == 0:
            add(layer, Recompute.NONE, layer.count)
        if layer.kind is LayerKind.TAIL and cell == plan.problem.cells - 1:
            add(layer, Recompute.NONE, layer.count)
    return costs


def op_ms(kind: OpKind, costs: Mapping[str, float]) -> float:
    """Duration of an op: a split backward does W in the forward's time and I in the rest."""
    if kind is OpKind.F or kind is OpKind.W:
        return costs["forward"]
    if kind is OpKind.I:
        return costs["backward"] - costs["forward"]
    return costs["backward"]


def stage_of(schedule: Schedule, cell: int) -> int:
    """Stage of a cell, counted off along the chain."""
    ascending = list(range(schedule.stages))
    stages: list[int] = []
    for chunk in range(schedule.chunks):
        turned = schedule.placement is Placement.V and chunk % 2 == 1
        stages += ascending[::-1] if turned else ascending
    return stages[cell]


def cells_of(schedule: Schedule, stage: int) -> list[int]:
    """Cells that a stage holds."""
    return [cell for cell in range(schedule.cells) if stage_of(schedule, cell) == stage]


def hop_ms_after(schedule: Schedule, cell: int, hops: Sequence[float]) -> float:
    """Milliseconds from a cell to the next of the chain, in either direction."""
    here, there = stage_of(schedule, cell), stage_of(schedule, cell + 1)
    if here == there:
        return 0.0
    if schedule.placement is Placement.LOOP and there == 0:
        return hops[schedule.stages - 1]  # the wrap
    return hops[min(here, there)]


def run(
    schedule: Schedule, duration_ms: Callable[[Op], float], hop_ms: Sequence[float]
) -> tuple[dict[Op, float], dict[Op, float]]:
    """
    Run a schedule as a clock would: always the stage whose next op can start first.

    Parameters
    ----------
    duration_ms
        Time of an op.
    hop_ms
        Time from each cell to the next one, and back.
    """
    starts: dict[Op, float] = {}
    ends: dict[Op, float] = {}
    waiting = [list(row) for row in schedule.rows]
    free_at = [0.0] * schedule.stages
    while any(waiting):
        ready = []
        for stage, row in enumerate(waiting):
            arrival = _arrival(row[0], ends, hop_ms) if row else None
            if arrival is not None:
                ready.append((max(free_at[stage], arrival), stage))
        assert ready, f"stuck at {[str(row[0]) for row in waiting if row]}"
        start, stage = min(ready)
        op = waiting[stage].pop(0)
        starts[op], ends[op] = start, start + duration_ms(op)
        free_at[stage] = ends[op]
    return starts, ends


def _arrival(op: Op, ends: Mapping[Op, float], hop_ms: Sequence[float]) -> float | None:
    """When the input of an op is there; None while nobody has made it."""
    kind, cell, micro_batch = op
    if kind is OpKind.F:
        if cell == 0:
            return 0.0
        sources, hop = [Op(OpKind.F, cell - 1, micro_batch)], hop_ms[cell - 1]
    elif kind is OpKind.W:
        sources, hop = [Op(OpKind.I, cell, micro_batch)], 0.0
    elif cell == len(hop_ms):  # the last cell turns around
        sources, hop = [Op(OpKind.F, cell, micro_batch)], 0.0
    else:
        sources, hop = [Op(k, cell + 1, micro_batch) for k in (OpKind.B, OpKind.I)], hop_ms[cell]
    for source in sources:
        if source in ends:
            return ends[source] + hop
    return None


def held_mb(
    row: Sequence[Op], always_mb: float, activation_mb: Sequence[float], again_mb: Sequence[float]
) -> tuple[float, ...]:
    """
    MB held during each op of a row: F takes at its start, B or W gives back at its end.

    A backward holds besides what one of its recomputed layers had let go.
    """
    live = [0] * len(activation_mb)
    held = []
    for op in row:
        if op.kind is OpKind.F:
            live[op.cell] += 1
        besides = 0.0 if op.kind is OpKind.F else again_mb[op.cell]
        held.append(always_mb + besides + sum(n * mb for n, mb in zip(live, activation_mb, strict=True)))
        if op.kind in (OpKind.B, OpKind.W):
            live[op.cell] -= 1
    return tuple(held)
