"""The one place where an op and a layer in memory get their price."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Layer, LayerKind, Recompute
from sapp_ppb.costs.tied import counted_twice_mb
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Flavour, OpKind
from sapp_ppb.simulator.overlap import EXTRA, NOTHING, PART_B, PART_F

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class CellCosts:
    """
    What one micro-batch costs in each cell on a device as measured, and what each cell holds.

    Attributes
    ----------
    forward_ms, backward_ms, weight_ms
        Times of a cell's F and B, and of the part of B that is weight gradients;
        shape (cells,).
    activation_mb, parameter_mb
        Live memory a micro-batch, and memory held throughout; shape (cells,).
    again_mb
        What the layer that lets go most holds again while it is recomputed; shape
        (cells,).  Zero where the problem leaves the working set out.
    """

    forward_ms: Floats
    backward_ms: Floats
    weight_ms: Floats
    activation_mb: Floats
    parameter_mb: Floats
    again_mb: Floats

    @property
    def times_ms(self) -> Floats:
        """F, B and W of every cell; shape (3, cells)."""
        return np.array([self.forward_ms, self.backward_ms, self.weight_ms])

    def price_list(self, problem: Problem) -> Floats:
        """Duration of every kind of op in every cell, as ``price_rule`` says; shape (kinds x cells,)."""
        return np.asarray(price_lists(price_rule(problem), self.times_ms[None])[0])


# Columns of a price rule: what an op takes of its cell's F, B and W; and what it takes whatever they are.
TIMES, OVERHEAD = slice(0, 3), 3


def price_lists(rule: Floats, times_ms: Floats) -> Floats:
    """
    Price many sets of cell times by one rule.

    Parameters
    ----------
    rule
        As ``price_rule`` gives it; shape (kinds, cells, 4).
    times_ms
        Shape (lists, 3, cells).

    Returns
    -------
    ndarray
        Shape (lists, kinds x cells).
    """
    return prices(rule, times_ms).reshape(len(times_ms), -1)


def prices(rule: Floats, times_ms: Floats) -> Floats:
    """Price many sets of cell times, shape (lists, 3, cells), by one rule; shape (lists, kinds, cells)."""
    return np.asarray(np.einsum("kcq,nqc->nkc", rule[:, :, TIMES], times_ms) + rule[:, :, OVERHEAD])


def price_rule(problem: Problem) -> Floats:
    """
    How each kind of op is priced from the F, B and W of its cell: durations are linear in them.

    Every op takes the model's overhead besides, each of an overlapped pair its own, and of
    a sequence chunk as much as of a whole micro-batch.

    A split backward spends W on weight gradients and the rest, recompute included, on
    input gradients: I = B - W.  A sequence chunk takes 1/k of everything.  PyTorch's
    first cell has no I and all of B in its W.  Rows behind those of the four kinds
    exist where pairs overlap, see ``overlap.py``, and one more where stages work on after
    their last op.

    A stage of speed v takes 1/v of a cell's times.  The overhead of an op, which is the
    host's, and what comes after the last op do not depend on the speed.

    Returns
    -------
    ndarray
        Shape (kinds, cells, 4): F, B, I, W, and with overlap or time after the last op
        (1 - a) F, (1 - a) B, 0, and that time; of each what it takes of F, B and W, and
        milliseconds that it takes whatever they are.

    Examples
    --------
    >>> from sapp_ppb.costs import Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=1)
    >>> model = Model(name="tiny", layers=(body,), op_overhead_ms=0.25)
    >>> price_rule(Problem(model=model, stages=1, micro_batches=1))[OpKind.I, 0].tolist()  # B - W + 0.25 ms
    [0.0, 1.0, -1.0, 0.25]
    """
    overlapping = problem.overlap_factor > 0.0 and bool(problem.order.pairs)
    rows = EXTRA + 1 if problem.has_extra else NOTHING + 1 if overlapping else len(OpKind)
    rule = np.zeros((rows, problem.cells, OVERHEAD + 1))
    rule[OpKind.F, :, 0] = rule[OpKind.B, :, 1] = rule[OpKind.I, :, 1] = rule[OpKind.W, :, 2] = 1.0
    rule[OpKind.I, :, 2] = -1.0
    if problem.flavour is Flavour.TORCH:
        rule[OpKind.I, 0], rule[OpKind.W, 0] = 0.0, rule[OpKind.B, 0]
    if overlapping:
        rule[PART_F, :, 0] = rule[PART_B, :, 1] = 1.0 - problem.overlap_factor
    rule /= problem.sequence_chunks
    rule /= np.array(problem.speed_per_cell)[:, None]
    # Nothing is done where the paths of a pair part and meet.
    rule[:NOTHING, :, OVERHEAD] = problem.model.op_overhead_ms
    if problem.has_extra:
        for stage, extra_ms in enumerate(problem.extra_per_stage_ms):
            rule[EXTRA, problem.cells_of(stage), OVERHEAD] = extra_ms
    return rule


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerTables:
    """
    Costs of one layer of each BODY entry, and of what is fixed in each cell, as arrays.

    Attributes
    ----------
    forward_ms, weight_ms, parameter_mb
        Shape (BODY layers,).
    backward_ms, activation_mb
        Shape (BODY layers, types), in the order of the model's types: the five of
        Recompute, then its strategies.  The activation of a type that a layer has not is 0.
    again_mb
        What a layer holds again while it is recomputed, or comes back from elsewhere, its
        activation under NONE less that under its type; shape (BODY layers, types).  Zero
        where the problem leaves it out.
    considered
        Whether the problem allows a type; shape (BODY layers, types).
    fixed
        HEADs in the first cell and TAILs in the last; where these are on one stage, the
        parameters that they share are in one of them.
    """

    forward_ms: Floats
    backward_ms: Floats
    weight_ms: Floats
    activation_mb: Floats
    parameter_mb: Floats
    again_mb: Floats
    considered: NDArray[np.bool_]
    fixed: CellCosts


def layer_tables(problem: Problem) -> LayerTables:
    """
    Read the costs of a problem's model into arrays.

    Returns
    -------
    LayerTables
        In the order of ``problem.model.bodies``; milliseconds and MB.
    """
    bodies, types = problem.model.bodies, problem.model.types
    activation = np.array([[layer.activation(r) for r in types] for layer in bodies])
    again = np.maximum(activation[:, [Recompute.NONE]] - activation, 0.0)
    return LayerTables(
        forward_ms=np.array([layer.forward_ms for layer in bodies]),
        backward_ms=np.array([layer.backward_ms for layer in bodies]),
        weight_ms=np.array([layer.weight_ms for layer in bodies]),
        activation_mb=activation,
        again_mb=again * problem.recompute_working_set / problem.sequence_chunks,
        parameter_mb=np.array([layer.parameter_mb for layer in bodies]),
        considered=np.array([[r in problem.considered(layer) for r in types] for layer in bodies]),
        fixed=_fixed(problem),
    )


_PARAMETERS = 4  # row of what a fixed layer costs


def _fixed(problem: Problem) -> CellCosts:
    values = np.zeros((5, problem.cells))
    for layer in problem.model.layers:
        if layer.kind is not LayerKind.BODY:
            values[:, 0 if layer.kind is LayerKind.HEAD else -1] += layer.count * _fixed_row(layer)
    first_mb, last_mb = _shared_mb(problem)
    values[_PARAMETERS, 0] -= first_mb
    values[_PARAMETERS, -1] -= last_mb
    return CellCosts(
        forward_ms=values[0],
        backward_ms=values[1],
        weight_ms=values[2],
        activation_mb=values[3],
        parameter_mb=values[_PARAMETERS],
        again_mb=np.zeros(problem.cells),
    )


def _shared_mb(problem: Problem) -> tuple[float, float]:
    """Parameters in the first and in the last cell that their stage holds already; MB."""
    model = problem.model
    head, tail = (counted_twice_mb(model.layers, held) for held in (model.heads, model.tails))
    if problem.order.placement.stage_of(problem.cells - 1, problem.stages) == 0:
        return head, counted_twice_mb(model.layers, model.heads + model.tails) - head
    return head, tail


def _fixed_row(layer: Layer) -> Floats:
    times = (layer.forward_ms, layer.backward_ms[Recompute.NONE], layer.weight_ms)
    return np.array([*times, layer.activation(Recompute.NONE), layer.parameter_mb])


def price(plan: Plan) -> CellCosts:
    """
    Price every cell of a plan.

    Returns
    -------
    CellCosts
        HEADs and TAILs included; milliseconds and MB.  Stages of other speeds take other
        times, which ``price_rule`` knows.
    """
    tables = layer_tables(plan.problem)
    per_layer = plan.counts.sum(axis=1)
    fixed = tables.fixed
    return CellCosts(
        forward_ms=fixed.forward_ms + tables.forward_ms @ per_layer,
        backward_ms=fixed.backward_ms + np.einsum("lr,lrc->c", tables.backward_ms, plan.counts),
        weight_ms=fixed.weight_ms + tables.weight_ms @ per_layer,
        activation_mb=fixed.activation_mb + np.einsum("lr,lrc->c", tables.activation_mb, plan.counts),
        parameter_mb=fixed.parameter_mb + tables.parameter_mb @ per_layer,
        again_mb=(tables.again_mb[:, :, None] * (plan.counts > 0)).max(axis=(0, 1)),
    )


def splits_backward(problem: Problem) -> bool:
    """Whether the schedule runs input and weight gradients apart."""
    return problem.order.splits_backward


def without_recompute(plan: Plan) -> CellCosts:
    """
    Price of the same split as if no layer were recomputed; times only are meant.

    A layer that can not be left alone may be given less time without recompute than
    its weight gradients take; they are then all of its backward.
    """
    tables, costs = layer_tables(plan.problem), price(plan)
    least = np.maximum(tables.backward_ms[:, Recompute.NONE], tables.weight_ms)
    alone = least if splits_backward(plan.problem) else tables.backward_ms[:, Recompute.NONE]
    return replace(costs, backward_ms=tables.fixed.backward_ms + alone @ plan.counts.sum(axis=1))


def least_share_worked(problem: Problem) -> float:
    """
    Share of its forwards and backwards that a stage works at least.

    All of them, but for overlapped pairs, which take F + B - a min(F, B): at least
    1 - a / 2 of F + B.
    """
    overlapping = problem.overlap_factor > 0.0 and bool(problem.order.pairs)
    return 1.0 - problem.overlap_factor / 2 if overlapping else 1.0


def most_work_ms(problem: Problem, step_ms: float) -> Floats:
    """
    Forward and backward time of a micro-batch, as measured, for which each stage has time in a step.

    What takes all of it takes the step: a stage of speed v works M / v of it, overlapped
    pairs at their least.  Shape (S,), milliseconds.

    Examples
    --------
    >>> from sapp_ppb.costs import Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1)
    >>> model = Model(name="tiny", layers=(body,))
    >>> most_work_ms(Problem(model=model, stages=2, micro_batches=4, stage_speed=(1.0, 0.5)), 24.0).tolist()
    [6.0, 3.0]
    """
    share_ms = step_ms / (problem.micro_batches * least_share_worked(problem))
    return share_ms * np.array(problem.speed_per_stage)
