"""Plan: which layers go to which cell under which recompute type; Outcome: what is known of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapp_ppb.costs import Layer, Recompute, RecomputeType, Strategy
from sapp_ppb.costs.checks import LARGEST_COUNT, shown
from sapp_ppb.errors import InputError
from sapp_ppb.fix import Fix
from sapp_ppb.problem import Problem

# What a plan file says of itself, for those who read it and those who write it.
PLAN_FORMAT = "sapp-ppb-plan"
PLAN_VERSION = 1

Counts = NDArray[np.int64]
_SHOWN_FAULTS = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """
    For every BODY layer, recompute type or strategy, and cell: how many.

    Attributes
    ----------
    problem
        What the plan answers.
    counts
        Read-only whole numbers; shape (BODY layers, types, cells), in the order of the model's
        types, cells along the chain.

    Raises
    ------
    InputError
        When counts are negative, do not add up, break the order of the chain, use
        a type that the problem does not consider for the layer, or leave a cell too empty.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=5, forward_ms=1,
    ...                         activation_mb={Recompute.NONE: 9, Recompute.FULL: 1})
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> counts = np.zeros((1, 5, 2), dtype=int)
    >>> counts[0, Recompute.NONE], counts[0, Recompute.FULL] = (1, 2), (2, 0)
    >>> plan = Plan(problem=problem, counts=counts)
    >>> plan.layers_per_cell.tolist(), plan.offset.tolist()  # 1 + 2 and 2 + 0; less 5 div 2
    ([3, 2], [[1, 0]])
    >>> plan.recomputed_layers
    2
    """

    problem: Problem
    counts: Counts

    def __post_init__(self) -> None:
        """Freeze the counts and refuse those that are no plan."""
        counts = np.array(self.counts)
        shape = (len(self.problem.model.bodies), len(self.problem.model.types), self.problem.cells)
        if counts.shape != shape:
            raise InputError("plan", [f"counts must have the shape {shape} (got {counts.shape})"])
        if counts.dtype.kind not in "iu":
            # A conversion would cut 1.5 down to 1 without a word.
            raise InputError("plan", [f"counts must be whole numbers (got {counts.dtype})"])
        counts = counts.astype(np.int64)
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)
        faults = self._faults()
        if faults:
            raise InputError("plan", _cut(faults))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return self.problem == other.problem and np.array_equal(self.counts, other.counts)

    def __hash__(self) -> int:
        return hash((self.problem.stages, self.problem.interleave, self.counts.tobytes()))

    @property
    def keeps_fix(self) -> bool:
        """Whether the plan keeps what its problem fixes, and mixes no more types than it allows."""
        most = self.problem.max_recompute_types
        if most is not None and self.mixed_types > most:
            return False
        return self.problem.fix is None or self.problem.fix.allows(self.counts)

    @property
    def mixed_types(self) -> int:
        """Number of recompute types and strategies in use besides NONE."""
        return int(self.counts[:, 1:].any(axis=(0, 2)).sum())

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """Strategies in use."""
        types = self.problem.model.types
        return tuple(r for r in types if isinstance(r, Strategy) and self.counts[:, r].any())

    @property
    def split(self) -> Fix:
        """The layers of every cell, to choose recompute for."""
        return Fix(layers=tuple(self.layers_per_cell.tolist()))

    @property
    def recompute(self) -> Fix:
        """The recomputed layers of every cell, to spread the others around."""
        kept = self.counts.copy()
        kept[:, Recompute.NONE] = 0
        return Fix(recompute=tuple(tuple(map(tuple, types)) for types in kept.tolist()))

    def _faults(self) -> list[str]:
        if np.any(self.counts < 0):
            return ["counts must be at least 0"]
        faults = []
        for layer, counts in zip(self.problem.model.bodies, self.counts, strict=True):
            if counts.sum() != layer.count:
                faults.append(f"{layer.name} must have {layer.count} layers in all (got {counts.sum()})")
            faults += [
                f"{layer.name} is {_done_as(r)}, {self._why_not(layer, r)}"
                for r in self.problem.model.types
                if counts[r].any() and r not in self.problem.considered(layer)
            ]
        return faults + self._cell_faults()

    def _why_not(self, layer: Layer, recompute: RecomputeType) -> str:
        if recompute not in layer.considered:
            return "for which the model gives no activation memory"
        if isinstance(recompute, Strategy) and self.problem.target is not None:
            return f"for which the target {self.problem.target} has no words"
        allowed = ", ".join(r.label for r in self.problem.recompute or ())
        return f"which the problem forbids: its recompute is {allowed}"

    def _cell_faults(self) -> list[str]:
        faults = []
        in_cell = self.layers_per_cell
        for cell in range(self.problem.cells):
            least = self.problem.least_layers(cell)
            if in_cell[cell] < least:
                faults.append(
                    f"{self._place(cell)} holds {in_cell[cell]} layers of at least {least}; "
                    "allow fewer with --min-layers"
                )
        by_layer = self.counts.sum(axis=1)
        for index in range(1, len(by_layer)):
            earlier = np.flatnonzero(by_layer[:index].any(axis=0))
            later = np.flatnonzero(by_layer[index])
            if len(earlier) and len(later) and later[0] < earlier[-1]:
                name = self.problem.model.bodies[index].name
                faults.append(f"{name} stands in {self._place(later[0])}, before layers that come earlier")
        return faults

    def _place(self, cell: int) -> str:
        placement, stages = self.problem.order.placement, self.problem.stages
        return f"stage {placement.stage_of(cell, stages)} chunk {cell // stages}"

    @property
    def layers_per_cell(self) -> Counts:
        """BODY layers in each cell; shape (cells,)."""
        return np.asarray(self.counts.sum(axis=(0, 1)))

    def per_chunk_and_stage(self, per_cell: ArrayLike) -> NDArray[np.int64]:
        """Lay values of the cells out as ``[chunk][stage]``; shape (V, S)."""
        return np.asarray(np.asarray(per_cell)[np.array(self.problem.cell_at)])

    @property
    def offset(self) -> NDArray[np.int64]:
        """Count in the cell minus N div (S x V), as MindFormers counts; shape (V, S)."""
        even = self.problem.model.body_count // self.problem.cells
        return self.per_chunk_and_stage(self.layers_per_cell - even)

    @property
    def recomputed_layers(self) -> int:
        """Layers under any recompute type but NONE; those under a strategy are not recomputed."""
        return int(self.counts[:, 1 : len(Recompute)].sum())

    @property
    def strategy_layers(self) -> dict[str, int]:
        """Layers under each strategy in use, by its name; empty without any."""
        return {strategy.label: int(self.counts[:, strategy].sum()) for strategy in self.strategies}


def refuse_other_cells(problem: Problem, plan: Plan) -> None:
    """
    Refuse a plan whose cells are not those of a problem, or are elsewhere.

    Raises
    ------
    InputError
        Naming the stages and chunks of both.
    """
    theirs = plan.problem
    if theirs.cell_at == problem.cell_at:
        return
    sizes = [f"{each.stages} stages x {each.interleave} chunks" for each in (theirs, problem)]
    sizes = sizes if len(set(sizes)) == 2 else [each.schedule_name.value for each in (theirs, problem)]
    raise InputError("plan", [f"the plan is for {sizes[0]}, the problem has {sizes[1]}"])


def plan_from_matrices(
    problem: Problem, matrices: Mapping[str, Mapping[str, Sequence[Sequence[int]]]]
) -> Plan:
    """
    Plan from V x S matrices indexed ``[chunk][stage]``, by layer name and type name.

    Returns
    -------
    Plan
        Layers and types that are left out have no layers there.

    Raises
    ------
    InputError
        When a name is unknown, a matrix has another shape, or the counts are no plan.
    """
    return Plan(problem=problem, counts=counts_from_matrices(problem, matrices))


def counts_from_matrices(
    problem: Problem, matrices: Mapping[str, Mapping[str, Sequence[Sequence[int]]]]
) -> Counts:
    """
    Read counts along the chain from V x S matrices indexed ``[chunk][stage]``, by layer name and type name.

    Returns
    -------
    ndarray
        Shape (BODY layers, types, cells); they need not add up to the model's layers.

    Raises
    ------
    InputError
        When a name is unknown or a matrix has another shape.
    """
    names = [layer.name for layer in problem.model.bodies]
    counts = np.zeros((len(names), len(problem.model.types), problem.cells), dtype=np.int64)
    faults = [
        f"layer {name!r} is unknown; the model's BODY layers are {', '.join(names[:8])}"
        for name in matrices
        if name not in names
    ]
    for name in [name for name in names if name in matrices]:
        for label, matrix in matrices[name].items():
            recompute = problem.model.type_named(label)
            if len(matrix) != problem.interleave or any(len(row) != problem.stages for row in matrix):
                faults.append(
                    f"{name} {label} must have {problem.interleave} rows of {problem.stages} counts"
                )
                continue
            wrong = [count for row in matrix for count in row if not _is_count(count)]
            if wrong:
                faults.append(
                    f"{name} {label} must hold whole numbers from 0 to {LARGEST_COUNT} "
                    f"(got {shown(wrong[0])})"
                )
                continue
            counts[names.index(name), recompute, np.array(problem.cell_at)] = matrix
    if faults:
        raise InputError("plan", _cut(faults))
    return counts


class Status(StrEnum):
    """What is proven of an outcome."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"


class StoppedBy(StrEnum):
    """Why the planner stopped."""

    PROOF = "proof"
    GAP = "gap"
    BUDGET = "budget"
    TIME = "time"
    INTERRUPT = "interrupt"


@dataclass(frozen=True, kw_only=True)
class Bubble:
    """
    Idle time as shares of useful work, the four parts adding up to the total.

    Attributes
    ----------
    fill_drain
        What equal cells would still lose to filling and draining the pipeline.
    imbalance
        What uneven cells add; may be negative.
    recompute
        What doing forwards again adds, and what a strategy adds to a backward.
    communication
        What sending between stages adds, and the overhead of every op where the model has one.
    """

    fill_drain: float
    imbalance: float
    recompute: float
    communication: float

    @property
    def total(self) -> float:
        """Sum of the parts; (S - 1) / M for equal cells under 1F1B."""
        return self.fill_drain + self.imbalance + self.recompute + self.communication


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """
    Why nothing fits.

    Attributes
    ----------
    stage, op
        Where memory is short when every stage is as empty as it can be; None when no
        plan was found in time that would show it.
    over_mb
        MB over the limit there, in the plan found whose excess is smallest.  Without
        such a plan every plan is over by this or more; None when not even that is known.
    smallest_limit_mb
        Memory limit, one number for all stages and the margin included, that some plan
        meets: it works always, and None when no plan was found in time.
    proven
        Whether no limit works that is more than 1 % below ``smallest_limit_mb``; only
        then may it be called the smallest.
    remedies
        Pairs of a change and the value that would do, each alone and each checked by a
        plan.  The changes are ``memory_limit_mb``, ``constant_memory_less_by_mb`` (MB
        less on every stage), ``schedule``, ``recompute`` (label of a type or strategy to
        allow as well), ``interleave`` and ``stages``.  What was not settled in time is missing.
    """

    stage: int | None
    op: str | None
    over_mb: float | None
    smallest_limit_mb: float | None
    proven: bool = True
    remedies: tuple[tuple[str, float | str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class WithoutTarget:
    """
    What is known of plans that the target need not be able to say.

    Attributes
    ----------
    makespan_ms
        Step of the best such plan found, its makespan and what comes after.
    lower_bound_ms
        No such plan is faster.
    """

    makespan_ms: float
    lower_bound_ms: float


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """
    The answer to a problem, and what is known about it.

    Attributes
    ----------
    problem
        What was asked.
    plan
        Best plan found, None when nothing fits.
    status, stopped_by
        What is proven, and why the planner stopped.
    makespan_ms, peak_memory_mb, bubble
        Of the plan, by the simulator; None or empty without a plan.
    step_ms
        The makespan and what stages do after their last op, which is what is minimised: the
        makespan itself where there is no such thing, and None without a plan.
    lower_bound_ms
        No plan within the limits has a shorter step than this; None when nothing fits.
    seconds, seed
        Time taken and the seed that repeats it.
    shortage
        Why nothing fits, when nothing does.
    without_target
        What is known of plans without the target's limits, where that was looked at.
    stage_order
        For each stage the device that it runs on, a place in the speeds and limits as they
        were given; the problem has them in this order.  None where the order was given.
    runners_up
        Other plans that fit, met on the way, the fastest first.  They are not in plan files,
        and outcomes that differ in nothing else are equal.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=3, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=3, micro_batches=4)
    >>> plan = plan_from_matrices(problem, {"Dec": {"none": [[1, 1, 1]]}})
    >>> Outcome(problem=problem, plan=plan, status=Status.FEASIBLE, stopped_by=StoppedBy.BUDGET,
    ...         makespan_ms=18.0, lower_bound_ms=13.5).gap  # (18 - 13.5) / 18
    0.25
    """

    problem: Problem
    plan: Plan | None
    status: Status
    stopped_by: StoppedBy
    makespan_ms: float | None = None
    step_ms: float | None = None
    lower_bound_ms: float | None = None
    peak_memory_mb: tuple[float, ...] = ()
    bubble: Bubble | None = None
    seconds: float = 0.0
    seed: int = 0
    shortage: Shortage | None = None
    without_target: WithoutTarget | None = None
    stage_order: tuple[int, ...] | None = None
    runners_up: tuple[Plan, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        """Take the makespan for the step where nothing comes after the last ops."""
        if self.step_ms is None:
            object.__setattr__(self, "step_ms", self.makespan_ms)

    @property
    def gap(self) -> float | None:
        """Share of the step that is not proven necessary; None without a plan."""
        if self.step_ms is None or self.lower_bound_ms is None:
            return None
        return max(0.0, (self.step_ms - self.lower_bound_ms) / self.step_ms)


def _done_as(recompute: RecomputeType) -> str:
    return f"{'under the strategy' if isinstance(recompute, Strategy) else 'recomputed as'} {recompute.label}"


def _is_count(value: object) -> bool:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and 0 <= int(value) <= LARGEST_COUNT  # type: ignore[call-overload, no-any-return, unused-ignore]


def _cut(faults: list[str]) -> list[str]:
    hidden = len(faults) - _SHOWN_FAULTS
    return faults if hidden <= 0 else [*faults[:_SHOWN_FAULTS], f"and {hidden} more"]
