"""Problem: what is given."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from sapp_ppb.costs import Layer, LayerKind, Model, RecomputeType, Strategy
from sapp_ppb.costs.even import even_cells, most_live
from sapp_ppb.costs.margin import margin_share, plain_margin
from sapp_ppb.costs.per_stage import PerStage, listed, plain, spread
from sapp_ppb.errors import InputError
from sapp_ppb.fix import Fix
from sapp_ppb.problem.faults import field_faults, joint_faults, order_faults
from sapp_ppb.schedules import (
    Flavour,
    MicroBatchGroup,
    OrderFile,
    P2PMode,
    Schedule,
    ScheduleName,
    StageCosts,
    build_schedule,
    default_name,
    usual_chunks,
)

_PER_STAGE = ("memory_limit_mb", "constant_memory_mb", "p2p_ms", "stage_speed", "step_extra_ms")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """
    A model and the pipeline it must be spread over.

    Attributes
    ----------
    model
        The chain of layers.
    stages, interleave, micro_batches
        S pipeline stages, V chunks a stage, M micro-batches a step.  V is the schedule's
        own number unless given: 2 for ``zbv`` and ``dualpipev``, else 1.
    schedule
        Order of the ops; None means 1F1B for V = 1 and interleaved above.
    micro_batch_group
        Micro-batches that the interleaved order takes together: None for its
        default, a number, or ``"remainder-first"``.
    memory_limit_mb
        MB a stage may hold: one number, one a stage, or None for no limit.
    constant_memory_mb
        MB that every stage holds besides its layers: a number or one a stage;
        None takes the model's.
    p2p_ms
        Milliseconds from a stage to its neighbour: a number, or one for each of
        the S - 1 edges and, where chunks wrap around, one more for the wrap.
    min_layers_per_cell
        Fewest BODY layers in a cell that holds neither HEAD nor TAIL.
    target
        Framework that must be able to say the plan, or None.  None of them has words for
        the strategies of a model, so that a plan for one uses none.
    recompute
        Recompute types and strategies of the model that a plan may use, least recompute
        first; None, and all of them, leave every type that the model gives.
    memory_margin
        What is kept free of every limit, for fragmentation: MB, or a share of the
        limit as text such as ``"5%"``.
    max_recompute_types
        How many types besides NONE a plan may mix, strategies included, or None for any number.
    recompute_working_set
        Count what a recomputed layer holds again during its own backward, of the layers
        of a cell the one with the most.
    fix
        What of the plan is given: its split or its recompute, or None for neither.
    sequence_chunks
        k pieces into which ``seq1f1b`` cuts every micro-batch along the sequence.
    p2p_mode
        When a forward's output leaves for the next stage.
    overlap_factor
        Share a, 0 to 1, of the shorter op that an overlapped pair saves: it takes
        F + B - a min(F, B).  At 0 its ops run one after the other.
    flavour
        Framework whose own way of running a split backward is modelled.
    order_file
        The order of a ``custom`` schedule, which it implies.
    stage_speed
        How fast each stage's device works, one number or one a stage: 1 as measured, 0.5
        takes twice the time.  None, as 1, for devices like the one measured.
    step_extra_ms
        Milliseconds that each stage works on after its last op, outside the pipeline, such as a
        reduction of gradients and the optimizer: one number, or one a stage.
    empty_tail
        Whether the last cell may be without BODY layers where it holds TAIL; a target may not
        have it, and sets this for itself.

    Raises
    ------
    InputError
        All faults at once, with the option that mends each.
    ScheduleError
        When the schedule does not exist for these sizes.

    Examples
    --------
    >>> from sapp_ppb.costs import layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=4, micro_batches=8,
    ...                   memory_limit_mb=1000, memory_margin="5%")
    >>> problem.schedule_name.value, problem.cells, problem.limit_per_stage_mb[0]  # 1000 - 5 % of it
    ('1f1b', 4, 950.0)
    """

    model: Model
    stages: int
    micro_batches: int
    interleave: int = None  # type: ignore[assignment]  # a number once the schedule is known
    schedule: ScheduleName | None = None
    micro_batch_group: MicroBatchGroup = None
    memory_limit_mb: PerStage | None = None
    constant_memory_mb: PerStage | None = None
    p2p_ms: PerStage = 0.0
    min_layers_per_cell: int = 1
    target: str | None = None
    recompute: tuple[RecomputeType, ...] | None = None
    memory_margin: float | str = 0.0
    max_recompute_types: int | None = None
    recompute_working_set: bool = False
    fix: Fix | None = None
    sequence_chunks: int = 1
    p2p_mode: P2PMode = P2PMode.ASYNC
    overlap_factor: float = 0.0
    flavour: Flavour | None = None
    order_file: OrderFile | None = None
    stage_speed: PerStage | None = None
    step_extra_ms: PerStage = 0.0
    empty_tail: bool = True

    def __post_init__(self) -> None:
        """Fill in what was left to its default, then refuse what can not be planned."""
        if self.constant_memory_mb is None:
            object.__setattr__(self, "constant_memory_mb", self.model.constant_memory_mb)
        if vars(self)["interleave"] is None:
            object.__setattr__(self, "interleave", usual_chunks(self.schedule))
        for field in _PER_STAGE:
            object.__setattr__(self, field, listed(getattr(self, field)))
        faults = field_faults(self)
        if not faults:
            object.__setattr__(self, "recompute", _types(self.recompute, self.model))
            object.__setattr__(self, "memory_margin", plain_margin(self.memory_margin))
            faults = joint_faults(self)
        if faults:
            raise InputError("problem", faults)
        object.__setattr__(self, "schedule", self.schedule_name)
        object.__setattr__(self, "overlap_factor", float(self.overlap_factor))
        faults = order_faults(self)
        if faults:
            raise InputError("problem", faults)
        # Only now: a list of equal numbers may still be of a wrong length.
        for field in _PER_STAGE:
            object.__setattr__(self, field, plain(getattr(self, field)))
        if self.stage_speed == 1.0:
            object.__setattr__(self, "stage_speed", None)

    @property
    def cells(self) -> int:
        """S x V, the number of cells in the chain."""
        return self.stages * self.interleave

    @property
    def schedule_name(self) -> ScheduleName:
        """Name of the schedule, the default resolved."""
        if self.schedule is None and self.order_file is not None:
            return ScheduleName.CUSTOM
        return ScheduleName(self.schedule) if self.schedule is not None else default_name(self.interleave)

    @cached_property
    def order(self) -> Schedule:
        """The order of ops on every stage."""
        return build_schedule(
            self.schedule_name,
            self.stages,
            self.interleave,
            self.micro_batches,
            self.micro_batch_group,
            sequence_chunks=self.sequence_chunks,
            order=self.order_file,
            costs=self._even_costs() if self.schedule_name is ScheduleName.ZB_AUTO else None,
        )

    def _even_costs(self) -> StageCosts:
        """Price the stages of an even split, for which ``zb-auto`` is made; faster ones have more of it."""
        overhead_ms, speeds = self.model.op_overhead_ms, self.speed_per_stage
        cells = even_cells(self.model, self.stages, self.considered, shares=speeds)
        held = zip(cells, self.limit_per_stage_mb, self.constant_per_stage_mb, strict=True)
        inputs = [max(cell.backward_ms - cell.weight_ms, 0.0) for cell in cells]
        forward, weight = [cell.forward_ms for cell in cells], [cell.weight_ms for cell in cells]
        taken = [
            tuple(ms / speed + overhead_ms for ms, speed in zip(each, speeds, strict=True))
            for each in (forward, inputs, weight)
        ]
        return StageCosts(
            forward_ms=taken[0],
            input_ms=taken[1],
            weight_ms=taken[2],
            hop_ms=self.hop_ms,
            most_live=tuple(most_live(cell, limit - constant, self.stages) for cell, limit, constant in held),
        )

    def changed(self, **changes: object) -> "Problem":
        """
        Give the same problem with other fields and the same order, which ``zb-auto`` would make anew.

        Raises
        ------
        InputError
            When the fields can not be.
        """
        other = replace(self, **changes)  # type: ignore[arg-type]
        vars(other)["order"] = self.order
        return other

    def cells_of(self, stage: int) -> list[int]:
        """
        Cells that a stage holds, by chunk; shape (V,).

        Examples
        --------
        >>> from sapp_ppb.costs import layer_from_times
        >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1)
        >>> sizes = {"stages": 4, "interleave": 2, "micro_batches": 8}
        >>> Problem(model=Model(name="tiny", layers=(body,)), schedule=ScheduleName.ZBV, **sizes).cells_of(1)
        [1, 6]
        """
        place = self.order.placement.cell_of
        return [place(stage, chunk, self.stages) for chunk in range(self.interleave)]

    @cached_property
    def cell_at(self) -> tuple[tuple[int, ...], ...]:
        """Cells laid out as ``[chunk][stage]``; shape (V, S)."""
        return tuple(zip(*map(self.cells_of, range(self.stages)), strict=True))

    @property
    def limit_per_stage_mb(self) -> tuple[float, ...]:
        """MB that a plan may use on each stage, the margin left out; infinite without a limit; shape (S,)."""
        limits = spread(math.inf if self.memory_limit_mb is None else self.memory_limit_mb, self.stages)
        return tuple(limit - margin for limit, margin in zip(limits, self.margin_per_stage_mb, strict=True))

    @property
    def margin_per_stage_mb(self) -> tuple[float, ...]:
        """MB of each stage's limit that are kept free; shape (S,)."""
        margin = self.memory_margin
        if isinstance(margin, str) and self.memory_limit_mb is not None:
            return tuple(limit * margin_share(margin) for limit in spread(self.memory_limit_mb, self.stages))
        return (0.0 if isinstance(margin, str) else float(margin),) * self.stages

    def limit_for(self, needed_mb: float) -> float:
        """
        Memory limit of which, without the margin, so much is left for a plan.

        Examples
        --------
        >>> from sapp_ppb.costs import layer_from_times
        >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=1)
        >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=1, micro_batches=1,
        ...                   memory_limit_mb=100, memory_margin="20%")
        >>> problem.limit_for(160.0)  # 160 / (1 - 0.2)
        200.0
        """
        margin = self.memory_margin
        return needed_mb / (1 - margin_share(margin)) if isinstance(margin, str) else needed_mb + margin

    @property
    def constant_per_stage_mb(self) -> tuple[float, ...]:
        """MB that each stage holds besides its layers; shape (S,)."""
        return spread(self.constant_memory_mb or 0.0, self.stages)

    @property
    def speed_per_stage(self) -> tuple[float, ...]:
        """How fast each stage works, 1 as measured; shape (S,)."""
        return spread(1.0 if self.stage_speed is None else self.stage_speed, self.stages)

    @cached_property
    def speed_per_cell(self) -> tuple[float, ...]:
        """How fast the stage of each cell works; shape (cells,)."""
        speeds, stage_of = self.speed_per_stage, self.order.placement.stage_of
        return tuple(speeds[stage_of(cell, self.stages)] for cell in range(self.cells))

    @property
    def extra_per_stage_ms(self) -> tuple[float, ...]:
        """Milliseconds of each stage after its last op; shape (S,)."""
        return spread(self.step_extra_ms, self.stages)

    @property
    def has_extra(self) -> bool:
        """Whether any stage works on after its last op."""
        return any(self.extra_per_stage_ms)

    @property
    def hop_ms(self) -> tuple[float, ...]:
        """
        Milliseconds of the edge from stage s to s + 1; the last is the wrap to stage 0.

        What the model adds to every hop is in them.
        """
        return tuple(ms + self.model.hop_ms for ms in spread(self.p2p_ms, self.stages))

    @property
    def edges(self) -> int:
        """Edges that the order uses: neighbours, and the wrap when chunks loop around."""
        places = [self.order.placement.stage_of(cell, self.stages) for cell in range(self.cells)]
        wraps = any(abs(here - there) > 1 for here, there in pairwise(places))
        return self.stages if wraps else self.stages - 1

    def considered(self, layer: Layer) -> tuple[RecomputeType, ...]:
        """
        Types that a plan may choose for a layer: least recomputed first, then strategies.

        Those of the layer that ``recompute`` allows and the target has words for; a HEAD or
        TAIL has NONE always.
        """
        if layer.kind is not LayerKind.BODY:
            return layer.considered
        types = layer.considered
        if self.target is not None:
            types = tuple(r for r in types if not isinstance(r, Strategy))
        return types if self.recompute is None else tuple(r for r in types if r in self.recompute)

    def least_layers(self, cell: int) -> int:
        """Fewest BODY layers that a cell must hold."""
        holds_head = cell == 0 and bool(self.model.heads)
        holds_tail = cell == self.cells - 1 and bool(self.model.tails) and self.empty_tail
        return 0 if holds_head or holds_tail else self.min_layers_per_cell


def _types(recompute: Sequence[RecomputeType] | None, model: Model) -> tuple[RecomputeType, ...] | None:
    """Sort the types that are allowed; None for all of them, so that equal problems compare equal."""
    whole = recompute is None or set(recompute) == set(model.types)
    return None if recompute is None or whole else tuple(sorted(set(recompute)))
