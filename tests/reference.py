"""
A slow and obvious simulator to compare the real one with.

Dictionaries and plain sums only, and nothing of ``sapp_ppb.simulator``: ops run
one by one as their stage gets to them, and memory is added up op by op.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sapp_ppb.costs import LayerKind, Recompute
from sapp_ppb.costs.per_stage import PerStage
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Flavour, Op, OpKind, P2PMode, Placement, Schedule


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What the slow simulator says of a plan."""

    makespan_ms: float
    step_ms: float
    """The makespan, and what stages do after their last op."""
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
    sends = hop_ms_of_edges(problem)
    links = [hop_ms_after(schedule, cell, sends) for cell in range(problem.cells - 1)]
    starts, ends = run(
        schedule,
        lambda op: (
            op_ms(op, costs[op.cell], torch=problem.flavour is Flavour.TORCH)
            / problem.sequence_chunks
            / of_stage(problem.stage_speed, stage_of(schedule, op.cell), usually=1.0)
        ),
        links,
        overhead_ms=problem.model.op_overhead_ms,
        overlap=problem.overlap_factor,
        blocking=problem.p2p_mode is P2PMode.BLOCKING,
    )
    constant = problem.constant_per_stage_mb
    held = tuple(
        held_mb(
            schedule.rows[stage],
            constant[stage]
            + sum(costs[cell]["parameter"] for cell in cells_of(schedule, stage))
            - held_already_mb(plan, cells_of(schedule, stage)),
            [cell["activation"] / problem.sequence_chunks for cell in costs],
            [
                cell["again"] / problem.sequence_chunks if problem.recompute_working_set else 0.0
                for cell in costs
            ],
            [cell["transient"] / problem.sequence_chunks for cell in costs],
            schedule.pairs[stage] if schedule.pairs and problem.overlap_factor > 0.0 else (),
        )
        for stage in range(schedule.stages)
    )
    done = [
        max(ends[op] for op in row) + of_stage(problem.step_extra_ms, stage, usually=0.0)
        for stage, row in enumerate(schedule.rows)
    ]
    return Reference(
        makespan_ms=max(ends.values()), step_ms=max(done), start_ms=starts, end_ms=ends, held_mb=held
    )


def of_stage(value: PerStage | None, stage: int, *, usually: float) -> float:
    """Find the number of a stage, where one is given for all, one for each or none."""
    if value is None:
        return usually
    return value[stage] if isinstance(value, tuple) else value


def cell_costs(plan: Plan, cell: int) -> dict[str, float]:
    """Forward, backward, weight gradients, activation and parameters of a cell, layer by layer."""
    costs = dict.fromkeys(("forward", "backward", "weight", "activation", "parameter"), 0.0)
    costs |= {"again": 0.0, "transient": 0.0}

    def add(layer, recompute, count):
        costs["forward"] += count * layer.forward_ms
        costs["backward"] += count * layer.backward_ms[recompute]
        costs["weight"] += count * (
            layer.forward_ms if layer.weight_grad_ms is None else layer.weight_grad_ms
        )
        costs["activation"] += count * (layer.activation_mb[recompute] or 0.0)
        costs["parameter"] += count * layer.parameter_mb
        costs["transient"] = max(costs["transient"], layer.transient_mb)
        if count and layer.kind is LayerKind.BODY:
            whole, kept = (layer.activation_mb[r] or 0.0 for r in (Recompute.NONE, recompute))
            costs["again"] = max(costs["again"], whole - kept)

    bodies = [layer for layer in plan.problem.model.layers if layer.kind is LayerKind.BODY]
    for layer, counts in zip(bodies, plan.counts.tolist(), strict=True):
        for recompute, per_cell in enumerate(counts):
            add(layer, recompute, per_cell[cell])
    for layer in plan.problem.model.layers:
        if layer.kind is LayerKind.HEAD and cell == 0:
            add(layer, Recompute.NONE, layer.count)
        if layer.kind is LayerKind.TAIL and cell == plan.problem.cells - 1:
            add(layer, Recompute.NONE, layer.count)
    return costs


def held_already_mb(plan: Plan, cells: Sequence[int]) -> float:
    """Parameters of a stage's HEADs and TAILs that another one of them brings along; one by one."""
    layers = plan.problem.model.layers
    here = [layer for layer in layers if layer.kind is LayerKind.HEAD and 0 in cells]
    here += [layer for layer in layers if layer.kind is LayerKind.TAIL and plan.problem.cells - 1 in cells]
    most: dict[str, float] = {}  # of what is shared under a name, as much as is there so far
    already = 0.0
    for layer in here:
        name = layer.name if layer.tied_to is None else layer.tied_to
        [whole] = [other.parameter_mb for other in layers if other.name == name]
        part = min(whole, layer.parameter_mb)
        already += min(part, most.get(name, 0.0))
        most[name] = max(part, most.get(name, 0.0))
    return already


def op_ms(op: Op, costs: Mapping[str, float], *, torch: bool) -> float:
    """Duration of an op on a whole micro-batch: a split backward does W in its own time and I in the rest."""
    weight = costs["weight"]
    if torch and op.cell == 0:
        weight = costs["backward"]  # nobody needs the input gradient of the first cell
    return {
        OpKind.F: costs["forward"],
        OpKind.B: costs["backward"],
        OpKind.I: costs["backward"] - weight,
        OpKind.W: weight,
    }[op.kind]


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


def hop_ms_of_edges(problem: Problem) -> list[float]:
    """Milliseconds of each edge, the wrap last: the problem's, and what the model adds."""
    given = problem.p2p_ms
    own = list(given) if isinstance(given, tuple) else [given] * problem.stages
    return [ms + problem.model.hop_ms for ms in own]


def hop_ms_after(schedule: Schedule, cell: int, hops: Sequence[float]) -> float:
    """Milliseconds from a cell to the next of the chain, in either direction."""
    here, there = stage_of(schedule, cell), stage_of(schedule, cell + 1)
    if here == there:
        return 0.0
    if schedule.placement is Placement.LOOP and there == 0:
        return hops[schedule.stages - 1]  # the wrap
    return hops[min(here, there)]


def run(
    schedule: Schedule,
    duration_ms: Callable[[Op], float],
    hop_ms: Sequence[float],
    *,
    overhead_ms: float = 0.0,
    overlap: float = 0.0,
    blocking: bool = False,
) -> tuple[dict[Op, float], dict[Op, float]]:
    """
    Run a schedule as a clock would: always the stage whose next op, or pair, can start first.

    Parameters
    ----------
    duration_ms
        Time of an op without its overhead.
    hop_ms
        Time from each cell to the next one, and back.
    overhead_ms
        What every op takes besides, each of a pair too; no part of it overlaps.
    overlap
        Share of the shorter op that a pair saves; at 0 there are no pairs.
    blocking
        Whether a forward's output leaves with the backward right behind it.
    """
    starts: dict[Op, float] = {}
    ends: dict[Op, float] = {}
    waiting = [_steps(schedule, stage, joined=overlap > 0.0) for stage in range(schedule.stages)]
    leaves_with = held_back(schedule) if blocking and schedule.chunks > 1 else {}
    free_at = [0.0] * schedule.stages
    while any(waiting):
        ready = []
        for stage, steps in enumerate(waiting):
            arrivals = [_arrival(op, ends, hop_ms, leaves_with) for op in steps[0]] if steps else [None]
            if None not in arrivals:
                ready.append((max([free_at[stage], *[at for at in arrivals if at is not None]]), stage))
        assert ready, f"stuck at {[str(steps[0][0]) for steps in waiting if steps]}"
        start, stage = min(ready)
        step = waiting[stage].pop(0)
        times = [duration_ms(op) for op in step]
        free_at[stage] = start + sum(times) - (overlap * min(times) if len(step) > 1 else 0.0)
        free_at[stage] += overhead_ms * len(step)
        for op in step:
            starts[op], ends[op] = start, free_at[stage]
    return starts, ends


def _steps(schedule: Schedule, stage: int, *, joined: bool) -> list[tuple[Op, ...]]:
    """Ops of a stage one by one, those of a pair together."""
    row = schedule.rows[stage]
    firsts = schedule.pairs[stage] if joined and schedule.pairs else ()
    return [
        row[at : at + 2] if at in firsts else (row[at],) for at in range(len(row)) if at - 1 not in firsts
    ]


def held_back(schedule: Schedule) -> dict[Op, Op]:
    """Backward with which each forward's output leaves its stage, where there is one."""
    return {
        op: behind
        for row in schedule.rows
        if not _all_forwards_first(row)
        for op, behind in pairwise(row)
        if op.kind is OpKind.F and behind.kind in (OpKind.B, OpKind.I)
        if op.cell + 1 < schedule.cells and stage_of(schedule, op.cell) != stage_of(schedule, op.cell + 1)
    }


def _all_forwards_first(row: Sequence[Op]) -> bool:
    kinds = "".join("f" if op.kind is OpKind.F else "b" for op in row)
    return "bf" not in kinds


def _arrival(
    op: Op, ends: Mapping[Op, float], hop_ms: Sequence[float], leaves_with: Mapping[Op, Op]
) -> float | None:
    """When the input of an op is there; None while nobody has made it."""

    def same(kind: OpKind, cell: int) -> Op:
        return Op(kind, cell, op.micro_batch, op.sequence_chunk)

    if op.kind is OpKind.F:
        if op.cell == 0:
            return 0.0
        sources, hop = [same(OpKind.F, op.cell - 1)], hop_ms[op.cell - 1]
        sources = [leaves_with.get(sources[0], sources[0])]
    elif op.kind is OpKind.W:
        sources, hop = [same(OpKind.I, op.cell)], 0.0
    elif op.cell == len(hop_ms):  # the last cell turns around
        sources, hop = [same(OpKind.F, op.cell)], 0.0
    else:
        sources, hop = [same(k, op.cell + 1) for k in (OpKind.B, OpKind.I)], hop_ms[op.cell]
    for source in sources:
        if source in ends:
            return ends[source] + hop
    return None


def held_mb(
    row: Sequence[Op],
    always_mb: float,
    activation_mb: Sequence[float],
    again_mb: Sequence[float],
    transient_mb: Sequence[float],
    pairs: Sequence[int],
) -> tuple[float, ...]:
    """
    MB held during each op of a row: F takes at its start, B or W gives back at its end.

    An op holds besides what one of its layers needs: a backward what a recomputed one had let
    go, any op what the HEAD or TAIL of its cell needs for a moment.  The backward of a pair, whose
    forwards stand at the places ``pairs``, also what its forward needs.
    """
    live = [0] * len(activation_mb)
    held = []
    for at, op in enumerate(row):
        if op.kind is OpKind.F:
            live[op.cell] += 1
        besides = transient_mb[op.cell]
        if op.kind is not OpKind.F:
            besides = max(besides, again_mb[op.cell])
        if at - 1 in pairs:
            besides += transient_mb[row[at - 1].cell]
        held.append(always_mb + besides + sum(n * mb for n, mb in zip(live, activation_mb, strict=True)))
        if op.kind in (OpKind.B, OpKind.W):
            live[op.cell] -= 1
    return tuple(held)
