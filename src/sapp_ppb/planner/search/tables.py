"""A problem as the arrays that the kernels of the search share."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.fix import Fix
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.memory import problem_rows
from sapp_ppb.simulator.price import layer_tables
from sapp_ppb.targets import is_nested

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Tables:
    """A problem as the arrays that the kernels share; ``layers`` are single layers in chain order."""

    fwd: Array
    bwd: Array
    wgt: Array
    act: Array
    par: Array
    again: Array
    usable: NDArray[np.bool_]
    kind: NDArray[np.int64]
    kept: NDArray[np.int64]
    form: NDArray[np.int64]
    fixed: Array
    held: Array
    limit: Array
    live: Array
    again_of: NDArray[np.int64]
    row_start: NDArray[np.int64]
    least: NDArray[np.int64]
    stage_of: NDArray[np.int64]
    cells_of: NDArray[np.int64]

    def memory(self) -> tuple[NDArray[np.generic], ...]:
        """Arrays from ``fixed`` on that ``repair`` takes."""
        return (self.fixed, self.held, self.limit, self.live, self.again_of, self.row_start)

    def layers(self) -> tuple[NDArray[np.generic], ...]:
        """Arrays of the layers."""
        return (
            self.fwd,
            self.bwd,
            self.wgt,
            self.act,
            self.par,
            self.again,
            self.usable,
            self.kind,
            self.kept,
            self.form,
        )


def search_tables(problem: Problem) -> Tables:
    """Lay a problem out for the kernels."""
    tables, schedule = layer_tables(problem), problem.order
    kind = np.repeat(np.arange(len(problem.model.bodies)), [layer.count for layer in problem.model.bodies])
    rows = problem_rows(problem)
    again = (
        tables.again_mb[kind] if problem.recompute_working_set else np.zeros((0, len(problem.model.types)))
    )
    cells = range(problem.cells)
    fixed = tables.fixed
    return Tables(
        fwd=tables.forward_ms[kind],
        bwd=tables.backward_ms[kind],
        wgt=tables.weight_ms[kind],
        act=tables.activation_mb[kind],
        par=tables.parameter_mb[kind],
        again=again,
        usable=tables.considered[kind],
        kind=kind.astype(np.int64),
        kept=(problem.fix or Fix()).recomputed,
        form=_form(problem),
        fixed=np.array(
            [
                fixed.forward_ms,
                fixed.backward_ms,
                fixed.activation_mb,
                fixed.parameter_mb,
                fixed.again_mb,
                fixed.weight_ms,
            ]
        ),
        held=np.array(problem.constant_per_stage_mb),
        # A limit that nothing reaches keeps infinities out of the kernels.
        limit=np.minimum(problem.limit_per_stage_mb, 1e18),
        live=np.concatenate([np.column_stack([live.rows, live.transient_mb]) for live in rows]),
        again_of=np.concatenate([live.again for live in rows]),
        row_start=np.cumsum([0, *(len(live.rows) for live in rows)], dtype=np.int64),
        least=np.array([problem.least_layers(cell) for cell in cells], dtype=np.int64),
        stage_of=np.array(
            [schedule.placement.stage_of(cell, problem.stages) for cell in cells], dtype=np.int64
        ),
        cells_of=np.array(
            [problem.cells_of(stage) for stage in range(problem.stages)],
            dtype=np.int64,
        ),
    )


def _form(problem: Problem) -> NDArray[np.int64]:
    """Lay out the rule of places, and whether types must be nested across kinds."""
    nested = is_nested(problem.target) and len(problem.model.bodies) > 1
    rule = None if problem.fix is None else problem.fix.places
    if rule is None:
        return np.array([0, 0, 0, 0, nested, 1], dtype=np.int64)
    bodies = problem.model.bodies
    subject = sum(layer.count for layer in bodies[: len(bodies) - rule.entries_left])
    return np.array(
        [rule.first or 0, rule.every or 0, rule.recompute, subject, False, rule.chunks], dtype=np.int64
    )
