"""What every drawing starts from: the ops of a timeline, and the messages between them, as arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.plan import Plan
from sapp_ppb.schedules import OpKind, Schedule
from sapp_ppb.simulator import Timeline
from sapp_ppb.simulator.graph import inputs_of
from sapp_ppb.simulator.price import price, without_recompute

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """
    Every op of a timeline, stage by stage, each stage in the order in which it runs them.

    Attributes
    ----------
    stage, cell, chunk, micro_batch, sequence_chunk
        Where each op belongs; ``WHOLE`` where micro-batches are not cut; shape (ops,).
    kind
        What each op does, an ``OpKind``; shape (ops,).
    start_ms, end_ms
        When each op runs; shape (ops,).
    recompute_ms
        Time at the start of each op in which forwards are done again; 0 for a forward and
        wherever nothing is recomputed; shape (ops,).
    overlapped
        Whether each op is one of two that a stage runs at the same time; shape (ops,).
    """

    stage: Ints
    cell: Ints
    chunk: Ints
    micro_batch: Ints
    sequence_chunk: Ints
    kind: Ints
    start_ms: Floats
    end_ms: Floats
    recompute_ms: Floats
    overlapped: NDArray[np.bool_]


def timeline_blocks(timeline: Timeline) -> Blocks:
    """
    Lay out the ops of a timeline as arrays; linear in ops.

    The recompute part of a backward is what it takes under the plan beyond what it
    would take with no layer recomputed.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> from sapp_ppb.simulator import simulate
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=1, forward_ms=2,
    ...                         activation_mb={Recompute.FULL: 1})
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=1, micro_batches=1)
    >>> blocks = timeline_blocks(simulate(plan_from_matrices(problem, {"Dec": {"full": [[1]]}})))
    >>> blocks.end_ms.tolist()  # F 2, B 4 and half of it again
    [2.0, 8.0]
    >>> blocks.recompute_ms.tolist()
    [0.0, 2.0]
    """
    problem = timeline.plan.problem
    rows = problem.order.rows
    kind, cell, micro_batch, chunk = np.array([op for row in rows for op in row], dtype=np.int64).T
    start_ms, end_ms = np.concatenate(timeline.start_ms), np.concatenate(timeline.end_ms)
    return Blocks(
        stage=np.repeat(np.arange(len(rows)), [len(row) for row in rows]),
        cell=cell,
        chunk=cell // problem.stages,
        micro_batch=micro_batch,
        sequence_chunk=chunk,
        kind=kind,
        start_ms=start_ms,
        end_ms=end_ms,
        # A model may give a recomputed layer a shorter backward, of which no part is recompute.
        recompute_ms=np.clip(_recompute_ms(timeline.plan)[kind, cell], 0.0, end_ms - start_ms),
        overlapped=_in_pairs(problem.order, len(kind)) & (problem.overlap_factor > 0.0),
    )


def _in_pairs(order: Schedule, ops: int) -> NDArray[np.bool_]:
    """Whether each op is in an overlapped pair: a forward, or the backward right behind it."""
    first = np.cumsum([0, *map(len, order.rows)])
    forward = [first[stage] + at for stage in range(order.stages) for at in order.pairs_of(stage)]
    pairs = np.zeros(ops, dtype=np.bool_)
    pairs[forward] = pairs[np.array(forward, dtype=np.int64) + 1] = True
    return pairs


def _recompute_ms(plan: Plan) -> Floats:
    """Tell what recompute adds to every kind of op in every cell; shape (4, cells)."""
    with_it, without = (
        costs.price_list(plan.problem).reshape(-1, plan.problem.cells)[: len(OpKind)]
        for costs in (price(plan), without_recompute(plan))
    )
    return np.asarray(with_it - without)


def messages(timeline: Timeline) -> Ints:
    """
    Results that cross from a stage to another.

    Returns
    -------
    ndarray
        Places in ``Blocks`` of the op with whose end a result leaves and of the op that needs
        it, ordered by the latter; shape (messages, 2).
    """
    problem = timeline.plan.problem
    ops = inputs_of(problem.order, problem.p2p_mode)
    receiver = np.flatnonzero(ops.edge >= 0)
    return np.stack([ops.giver[receiver], receiver], axis=1).astype(np.int64)
