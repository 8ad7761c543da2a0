"""The one place where an op and a layer in memory get their price."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Layer, LayerKind, Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import OpKind

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class CellCosts:
    """
    What one micro-batch costs in each cell, and what each cell holds.

    Attributes
    ----------
    forward_ms, backward_ms
        Times of a cell's F and B; shape (cells,).
    activation_mb, parameter_mb
        Live memory a micro-batch, and memory held throughout; shape (cells,).
    again_mb
        What the layer that lets go most holds again while it is recomputed; shape
        (cells,).  Zero where the problem leaves the working set out.
    """

    forward_ms: Floats
    backward_ms: Floats
    activation_mb: Floats
    parameter_mb: Floats
    again_mb: Floats

    def price_list(self) -> Floats:
        """
        Duration of every kind of op in every cell; shape (4 x cells,), F, B, I, W.

        A split backward spends the forward time on weight gradients (W) and the
        rest, recompute included, on input gradients (I = B - W).
        """
        weight = self.forward_ms
        lists = {
            OpKind.F: self.forward_ms,
            OpKind.B: self.backward_ms,
            OpKind.I: self.backward_ms - weight,
            OpKind.W: weight,
        }
        return np.concatenate([lists[kind] for kind in OpKind])


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerTables:
    """
    Costs of one layer of each BODY entry, and of what is fixed in each cell, as arrays.

    Attributes
    ----------
    forward_ms, parameter_mb
        Shape (BODY layers,).
    backward_ms, activation_mb
        Shape (BODY layers, 5); the activation of a type that the model does not give is 0.
    again_mb
        What a layer holds again while it is recomputed, its activation under NONE less
        that under its type; shape (BODY layers, 5).  Zero where the problem leaves it out.
    considered
        Whether the problem allows a type; shape (BODY layers, 5).
    fixed
        HEADs in the first cell and TAILs in the last.
    """

    forward_ms: Floats
    backward_ms: Floats
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
    bodies = problem.model.bodies
    activation = np.array([[layer.activation(r) for r in Recompute] for layer in bodies])
    again = np.maximum(activation[:, [Recompute.NONE]] - activation, 0.0)
    return LayerTables(
        forward_ms=np.array([layer.forward_ms for layer in bodies]),
        backward_ms=np.array([layer.backward_ms for layer in bodies]),
        activation_mb=activation,
        again_mb=again * problem.recompute_working_set,
        parameter_mb=np.array([layer.parameter_mb for layer in bodies]),
        considered=np.array([[r in problem.considered(layer) for r in Recompute] for layer in bodies]),
        fixed=_fixed(problem),
    )


def _fixed(problem: Problem) -> CellCosts:
    values = np.zeros((4, problem.cells))
    for layer in problem.model.layers:
        if layer.kind is not LayerKind.BODY:
            values[:, 0 if layer.kind is LayerKind.HEAD else -1] += layer.count * _fixed_row(layer)
    return CellCosts(
        forward_ms=values[0],
        backward_ms=values[1],
        activation_mb=values[2],
        parameter_mb=values[3],
        again_mb=np.zeros(problem.cells),
    )


def _fixed_row(layer: Layer) -> Floats:
    none = Recompute.NONE
    return np.array([layer.forward_ms, layer.backward_ms[none], layer.activation(none), layer.parameter_mb])


def price(plan: Plan) -> CellCosts:
    """
    Price every cell of a plan.

    Returns
    -------
    CellCosts
        HEADs and TAILs included; milliseconds and MB.

    Raises
    ------
    InputError
        When a schedule that splits the backward would need a negative part.
    """
    tables = layer_tables(plan.problem)
    per_layer = plan.counts.sum(axis=1)
    fixed = tables.fixed
    costs = CellCosts(
        forward_ms=fixed.forward_ms + tables.forward_ms @ per_layer,
        backward_ms=fixed.backward_ms + np.einsum("lr,lrc->c", tables.backward_ms, plan.counts),
        activation_mb=fixed.activation_mb + np.einsum("lr,lrc->c", tables.activation_mb, plan.counts),
        parameter_mb=fixed.parameter_mb + tables.parameter_mb @ per_layer,
        again_mb=(tables.again_mb[:, :, None] * (plan.counts > 0)).max(axis=(0, 1)),
    )
    if splits_backward(plan.problem):
        short = np.flatnonzero(costs.backward_ms < costs.forward_ms)
        if len(short):
            raise InputError(
                "model",
                [f"the backward of cell {short[0]} is shorter than its forward, so it can not be split"],
            )
    return costs


def splits_backward(problem: Problem) -> bool:
    """Whether the schedule runs input and weight gradients apart."""
    return any(op.kind in (OpKind.I, OpKind.W) for op in problem.order.rows[0])


def without_recompute(plan: Plan) -> CellCosts:
    """Price of the same split as if no layer were recomputed; times only are meant."""
    tables = layer_tables(plan.problem)
    costs = price(plan)
    backward = tables.fixed.backward_ms + tables.backward_ms[:, Recompute.NONE] @ plan.counts.sum(axis=1)
    return CellCosts(
        forward_ms=costs.forward_ms,
        backward_ms=backward,
        activation_mb=costs.activation_mb,
        parameter_mb=costs.parameter_mb,
        again_mb=costs.again_mb,
    )
