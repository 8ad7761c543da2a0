"""What every drawing starts from: the ops of a timeline, and the messages between them, as arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.schedules import OpKind
from sapp_ppb.simulator import Timeline
from sapp_ppb.simulator.graph import build_graph
from sapp_ppb.simulator.price import price, without_recompute

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """
    Every op of a timeline, stage by stage, each stage in the order in which it runs them.

    Attributes
    ----------
    stage, cell, chunk, micro_batch
        Where each op belongs; shape (ops,).
    kind
        What each op does, an ``OpKind``; shape (ops,).
    start_ms, end_ms
        When each op runs; shape (ops,).
    recompute_ms
        Time at the start of each op in which forwards are done again; 0 for a forward,
        a weight gradient, and wherever nothing is recomputed; shape (ops,).
    """

    stage: Ints
    cell: Ints
    chunk: Ints
    micro_batch: Ints
    kind: Ints
    start_ms: Floats
    end_ms: Floats
    recompute_ms: Floats


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
    rows = timeline.plan.problem.order.rows
    kind, cell, micro_batch = np.array([op for row in rows for op in row], dtype=np.int64).T
    start_ms, end_ms = np.concatenate(timeline.start_ms), np.concatenate(timeline.end_ms)
    again = price(timeline.plan).backward_ms - without_recompute(timeline.plan).backward_ms
    backward = (kind == OpKind.B) | (kind == OpKind.I)
    return Blocks(
        stage=np.repeat(np.arange(len(rows)), [len(row) for row in rows]),
        cell=cell,
        chunk=cell // timeline.plan.problem.stages,
        micro_batch=micro_batch,
        kind=kind,
        start_ms=start_ms,
        end_ms=end_ms,
        # A model may give a recomputed layer a shorter backward, of which no part is recompute.
        recompute_ms=np.where(backward, np.clip(again[cell], 0.0, end_ms - start_ms), 0.0),
    )


def messages(timeline: Timeline) -> Ints:
    """
    Results that cross from a stage to another.

    Returns
    -------
    ndarray
        Places in ``Blocks`` of the op that sends and of the op that needs what it sends,
        ordered by the latter; shape (messages, 2).
    """
    graph = build_graph(timeline.plan.problem.order)
    place = np.empty(len(graph.position), dtype=np.int64)  # of the op at a topological position
    place[graph.position] = np.arange(len(place))
    receiver = np.flatnonzero(graph.edge[graph.position] >= 0)
    return np.stack([place[graph.giver[graph.position[receiver]]], receiver], axis=1)
