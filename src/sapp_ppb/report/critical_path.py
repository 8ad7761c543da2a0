"""What each op of a timeline waited for, and one longest path: why the step takes as long as it does."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.report.blocks import Blocks, Floats, timeline_blocks
from sapp_ppb.schedules import OpKind
from sapp_ppb.simulator import Timeline
from sapp_ppb.simulator.graph import op_graph
from sapp_ppb.simulator.timeline import hop_times

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Waits:
    """
    What each op waited for; ops are numbered stage by stage in the order of the rows.

    Attributes
    ----------
    waited_for
        The op whose end let it start: the one before it on its stage, or the one whose
        result it needs; an op of a pair that overlaps also waits for what the other needs.  Where several
        end in time for it, that of its stage; -1 for an op that waited for nothing;
        shape (ops,).
    path
        Ops of one longest path, first to last: where stages do something after their last
        op, of the one that decides the step.  Where several end with it, that of the lowest stage.
    """

    waited_for: Ints
    path: Ints


def find_waits(timeline: Timeline) -> Waits:
    """
    Find what each op waited for, and follow it back from the last op.

    An op starts when the later of two things has happened, so every op but the first
    of a path starts the moment that what it waited for has ended, or has arrived.

    Returns
    -------
    Waits
        The durations and hops of its path, and what comes after its last op, add up to the step.

    Notes
    -----
    Linear in ops.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> from sapp_ppb.simulator import simulate
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=2)
    >>> waits = find_waits(simulate(plan_from_matrices(problem, {"Dec": {"none": [[1, 1]]}})))
    >>> ops = [op for row in problem.order.rows for op in row]
    >>> [str(ops[at]) for at in waits.path]  # 1 + 1 + 2 + 1 + 2 + 2 = (2 + 2 - 1) * 3
    ['0F0', '1F0', '1B0', '1F1', '1B1', '0B1']
    """
    problem = timeline.plan.problem
    graph = op_graph(problem)
    number = np.empty(len(graph.first), dtype=np.int64)
    number[graph.first] = np.arange(len(number))
    end_ms = np.concatenate(timeline.end_ms)
    giver = _numbered(graph.giver, number)[graph.first]
    before = _numbered(graph.before, number)[graph.first]
    forward = overlapped_forwards(timeline_blocks(timeline))
    hop_ms = hop_times(problem, graph)[graph.first]
    # Both ops of a pair wait for the stage, the forward's input and the backward's.
    first, second = np.arange(len(giver)), np.full(len(giver), -1)
    before[forward + 1], first[forward + 1] = before[forward], forward
    second[forward] = second[forward + 1] = forward + 1
    awaited = np.stack([before, giver[first], np.where(second >= 0, giver[second], -1)])
    sent_ms = np.stack([np.zeros(len(giver)), hop_ms[first], hop_ms[second]])
    ready_ms = np.where(awaited >= 0, end_ms[awaited] + sent_ms, -np.inf)
    # Of what is ready together, argmax takes the first.
    waited_for = awaited[ready_ms.argmax(axis=0), np.arange(len(giver))]
    return Waits(waited_for=waited_for, path=_path(waited_for, _last_op(timeline, end_ms)))


def _last_op(timeline: Timeline, end_ms: Floats) -> int:
    """Find the op with which the step ends, or behind which what ends it begins."""
    if not timeline.extra_ms:
        return int(end_ms.argmax())
    done_ms = [done for _, done in timeline.extra_ms]
    lengths = [len(row) for row in timeline.end_ms]
    return sum(lengths[: int(np.argmax(done_ms)) + 1]) - 1


def overlapped_forwards(blocks: Blocks) -> Ints:
    """Numbers of the ops that are the forward of a pair that overlaps; its backward is the next."""
    return np.flatnonzero(blocks.overlapped & (blocks.kind == OpKind.F))


def _numbered(positions: NDArray[np.int32], number: Ints) -> Ints:
    """Express topological positions as numbers of ops; -1 stays."""
    return np.where(positions >= 0, number[positions], -1)


def _path(waited_for: Ints, last: int) -> Ints:
    """Follow what was waited for back from the last op; argmax took the lowest of those that tie."""
    path = []
    at = last
    while at >= 0:
        path.append(at)
        at = int(waited_for[at])
    return np.array(path[::-1], dtype=np.int64)
