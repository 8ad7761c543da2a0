"""What a stage does when: spans of each kind of work, and their shares of equal columns of time."""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from sapp_ppb.report.blocks import Blocks, Floats, Ints
from sapp_ppb.schedules import OpKind


class Work(Enum):
    """What a stage does: the kinds of op, and recompute apart from the backward that it is in."""

    FORWARD = "forward"
    BACKWARD = "backward"
    INPUT = "input gradient"
    WEIGHT = "weight gradient"
    RECOMPUTE = "recompute"


WORK_OF_KIND = {
    OpKind.F: Work.FORWARD,
    OpKind.B: Work.BACKWARD,
    OpKind.I: Work.INPUT,
    OpKind.W: Work.WEIGHT,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Spans:
    """
    When one kind of work is done.

    Attributes
    ----------
    op
        Place in ``Blocks`` of the op that each span is a part of; shape (spans,).
    start_ms, end_ms
        When it is done; shape (spans,).
    share
        How much of the stage it has: a half of it in a pair of ops that overlap, else
        all; shape (spans,).
    """

    op: Ints
    start_ms: Floats
    end_ms: Floats
    share: Floats

    @property
    def busy_ms(self) -> Floats:
        """Time of the stage that each span takes; shape (spans,)."""
        return np.asarray((self.end_ms - self.start_ms) * self.share)


def work_spans(blocks: Blocks) -> dict[Work, Spans]:
    """
    Part every op into its kinds of work: a backward does its recompute first.

    Returns
    -------
    dict
        Only the kinds of work that there are, in the order of ``Work``.
    """
    starts = blocks.start_ms + blocks.recompute_ms
    parts = {
        work: (np.flatnonzero(blocks.kind == kind), starts, blocks.end_ms)
        for kind, work in WORK_OF_KIND.items()
    }
    parts[Work.RECOMPUTE] = (np.flatnonzero(blocks.recompute_ms > 0), blocks.start_ms, starts)
    return {
        work: Spans(
            op=op, start_ms=start_ms[op], end_ms=end_ms[op], share=np.where(blocks.overlapped[op], 0.5, 1.0)
        )
        for work, (op, start_ms, end_ms) in parts.items()
        if len(op)
    }


def work_shares(blocks: Blocks, columns: int, until_ms: float) -> dict[Work, Floats]:
    """
    Share of each kind of work in equal columns of time; what is left of 1 is idle.

    Parameters
    ----------
    columns
        Number of columns from 0 ms on.
    until_ms
        End of the last column.

    Returns
    -------
    dict
        For the kinds of work that there are, shares from 0 to 1; shape (S, columns).

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> from sapp_ppb.report.blocks import timeline_blocks
    >>> from sapp_ppb.simulator import simulate
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=1, forward_ms=1, backward_ms=2)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=1, micro_batches=1)
    >>> blocks = timeline_blocks(simulate(plan_from_matrices(problem, {"Dec": {"none": [[1]]}})))
    >>> shares = work_shares(blocks, 2, 4.0)  # F from 0 to 1, B from 1 to 3, idle until 4
    >>> shares[Work.FORWARD].tolist(), shares[Work.BACKWARD].tolist()
    ([[0.5, 0.0]], [[0.5, 0.5]])
    """
    edges_ms = np.linspace(0.0, until_ms, columns + 1)
    stages = int(blocks.stage[-1]) + 1
    shares = {}
    for work, spans in work_spans(blocks).items():
        rows = np.zeros((stages, columns))
        stage = blocks.stage[spans.op]
        for row in range(stages):
            here = stage == row
            done_ms = _done(spans.start_ms[here], spans.end_ms[here], spans.busy_ms[here], edges_ms)
            rows[row] = np.diff(done_ms) * columns / until_ms
        shares[work] = rows
    return shares


def _done(start_ms: Floats, end_ms: Floats, busy_ms: Floats, at_ms: Floats) -> Floats:
    """Work done until some times, by spans that follow one another."""
    times = np.maximum.accumulate(np.stack([start_ms, end_ms], axis=1).ravel())
    done = np.cumsum(np.stack([np.zeros(len(busy_ms)), busy_ms], axis=1).ravel())
    return np.interp(at_ms, times, done, left=0.0) if len(times) else np.zeros_like(at_ms)
