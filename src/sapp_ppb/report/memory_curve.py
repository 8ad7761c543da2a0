"""What every stage holds at every moment."""

from dataclasses import dataclass

import numpy as np

from sapp_ppb.report.blocks import Blocks, Floats, timeline_blocks
from sapp_ppb.schedules import OpKind
from sapp_ppb.simulator import Timeline
from sapp_ppb.simulator.memory import transients_mb
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
    gradient where the backward is split, frees it at its end.  What recompute holds again,
    where the problem counts it, is there while an op of the backward runs; what HEADs and
    TAILs need for a moment, while any op of their cell does.

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
    blocks, transient_mb = timeline_blocks(timeline), np.array(transients_mb(problem))
    # The layers of an op run one after the other: the one that needs most counts.
    besides = transient_mb, np.maximum(costs.again_mb, transient_mb)
    curves = []
    for stage in range(problem.stages):
        cells = problem.cells_of(stage)
        constant, parameters = problem.constant_per_stage_mb[stage], float(costs.parameter_mb[cells].sum())
        time_ms, held = _held(blocks, stage, costs.activation_mb / problem.sequence_chunks, *besides)
        curves.append(
            StageMemory(
                constant_mb=constant,
                parameter_mb=parameters,
                time_ms=time_ms,
                memory_mb=constant + parameters + held,
            )
        )
    return tuple(curves)


def _held(
    blocks: Blocks, stage: int, activation_mb: Floats, forward_mb: Floats, backward_mb: Floats
) -> tuple[Floats, Floats]:
    """
    Find when one stage's memory changes, and what it holds for micro-batches from then on.

    A micro-batch lives with ``activation_mb``; an op that runs needs ``forward_mb`` or ``backward_mb``.
    """
    ops = np.flatnonzero(blocks.stage == stage)
    kind, (cells, place) = blocks.kind[ops], np.unique(blocks.cell[ops], return_inverse=True)
    forward, frees = kind == OpKind.F, (kind == OpKind.B) | (kind == OpKind.W)
    # Micro-batches that begin and end to live, then forwards and backwards that begin and end: whole numbers.
    change = np.zeros((len(ops), 2, 3 * len(cells)))
    each, runs = np.arange(len(ops)), place + len(cells) * (1 + ~forward)
    change[each, 0, place], change[each, 1, place] = forward, -1.0 * frees
    change[each, 0, runs], change[each, 1, runs] = 1.0, -1.0
    mb = np.concatenate([activation_mb[cells], forward_mb[cells], backward_mb[cells]])
    # The ops of an overlapped pair both begin before either ends.
    order, first = np.arange(2 * len(ops)), 2 * np.flatnonzero(forward & blocks.overlapped[ops])
    order[first + 1], order[first + 2] = first + 2, first + 1
    time_ms = np.stack([blocks.start_ms[ops], blocks.end_ms[ops]], axis=1).ravel()[order]
    steps = change.reshape(2 * len(ops), -1)[order]
    kept = np.flatnonzero(steps[:, mb > 0.0].any(axis=1))
    held = np.cumsum(np.vstack([np.zeros_like(mb), steps[kept]]), axis=0) @ mb
    # By rounding an op may start before the one before it has ended.
    return np.maximum.accumulate([0.0, *time_ms[kept]]), held
