"""What every stage holds at every moment."""

from dataclasses import dataclass

import numpy as np

from sapp_ppb.report.blocks import Blocks, Floats, timeline_blocks
from sapp_ppb.schedules import OpKind
from sapp_ppb.simulator import Timeline
from sapp_ppb.simulator.price import price


@dataclass(frozen=True, kw_only=True, eq=False)
class StageMemory:
    """
    What one stage holds, as steps: ``memory_mb[i]`` from ``time_ms[i]`` until the next time.

    Times ascend and may repeat, where something is freed and something taken at once.

    Attributes
    ----------
    constant_mb, parameter_mb
        What the stage holds throughout.
    time_ms, memory_mb
        When what it holds changes, from 0 ms on, and all that it holds from then; shape (steps,).
    """

    constant_mb: float
    parameter_mb: float
    time_ms: Floats
    memory_mb: Floats


def memory_curve(timeline: Timeline) -> tuple[StageMemory, ...]:
    """
    Follow the memory of every stage through a step; linear in ops.

    A forward adds its cell's activation at its start; the backward, or the weight
    gradient where the backward is split, frees it at its end.

    Returns
    -------
    tuple
        One curve a stage, its highest value the stage's peak; shape (S,).

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> from sapp_ppb.simulator import simulate
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=1, forward_ms=2,
    ...                         parameter_mb=100, activation_mb={Recompute.NONE: 7})
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=1, micro_batches=1)
    >>> (curve,) = memory_curve(simulate(plan_from_matrices(problem, {"Dec": {"none": [[1]]}})))
    >>> curve.time_ms.tolist(), curve.memory_mb.tolist()  # F from 0 to 2, B from 2 to 6
    ([0.0, 0.0, 6.0], [100.0, 107.0, 100.0])
    """
    problem, costs = timeline.plan.problem, price(timeline.plan)
    blocks = timeline_blocks(timeline)
    curves = []
    for stage in range(problem.stages):
        cells = [
            problem.order.placement.cell_of(stage, chunk, problem.stages)
            for chunk in range(problem.interleave)
        ]
        constant, parameters = problem.constant_per_stage_mb[stage], float(costs.parameter_mb[cells].sum())
        time_ms, live = _live(blocks, stage, problem.interleave)
        curves.append(
            StageMemory(
                constant_mb=constant,
                parameter_mb=parameters,
                time_ms=time_ms,
                memory_mb=constant + parameters + live @ costs.activation_mb[cells],
            )
        )
    return tuple(curves)


def _live(blocks: Blocks, stage: int, chunks: int) -> tuple[Floats, Floats]:
    """Find when one stage's memory changes, and the live micro-batches of each chunk from then on."""
    changes = np.flatnonzero((blocks.stage == stage) & (blocks.kind != OpKind.I))
    adds = blocks.kind[changes] == OpKind.F
    live = np.zeros((len(changes) + 1, chunks))
    live[np.arange(1, len(live)), blocks.chunk[changes]] = np.where(adds, 1.0, -1.0)
    time_ms = np.where(adds, blocks.start_ms[changes], blocks.end_ms[changes])
    # By rounding an op may start before the one before it has ended.
    return np.maximum.accumulate([0.0, *time_ms]), np.cumsum(live, axis=0)
