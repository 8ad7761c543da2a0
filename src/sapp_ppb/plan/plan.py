"""Plan: which layers go to which cell under which recompute type."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapp_ppb.costs import Layer, Recompute, RecomputeType, Strategy
from sapp_ppb.errors import InputError
from sapp_ppb.fix import Fix
from sapp_ppb.problem import Problem

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
            raise InputError("plan", cut_faults(faults))

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


def _done_as(recompute: RecomputeType) -> str:
    return f"{'under the strategy' if isinstance(recompute, Strategy) else 'recomputed as'} {recompute.label}"


def cut_faults(faults: list[str]) -> list[str]:
    """Keep the first faults, and count the others."""
    hidden = len(faults) - _SHOWN_FAULTS
    return faults if hidden <= 0 else [*faults[:_SHOWN_FAULTS], f"and {hidden} more"]
