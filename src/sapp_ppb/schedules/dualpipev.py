"""
DualPipeV: two chunks on a V, a forward of one run together with a backward of the other.

Time runs to the right, every op takes one slot, a pair one for either op::

    stage 0 | 0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3B1 3F2 0B0 3B2 3F3 0B1 3B3 0I2 0W2 0I3 0W3
    stage 1 |  .  1F0 2F0 1F1 2F1 1F2 2B0 2F2 1B0 1F3 2B1 2F3 1B1 2B2 1B2 2I3 1I3 2W3 1W3

Rule: chunk 0 of stage s is cell s, chunk 1 is cell 2S-1-s.  With F0 for the next
forward of chunk 0, and so on, F0&B1 for an overlapped pair, W for the weight
gradient that has waited longest, stage s runs

1. 2(S-1-s) times F0,
2. s+1 times F0 F1,
3. S-1-s times I1 W F1,
4. M-2S+s+1 times F0&B1 F1&B0; the first F0 B1 of the last stage is no pair, for its
   backward needs that forward's stage to have finished the micro-batch just before,
5. S-1-s times B1 F1&B0,
6. s+1 times B1 B0, the last s+1 of these backwards as I alone,
7. S-1-s times W I0,
8. s+1 times W.

A stage keeps 2S+1 micro-batches alive.

Source: DeepSeek-AI, DualPipe, commit 3da1bbea, ``dualpipev.py`` (cut in half from
DualPipe, DeepSeek-V3 report, arXiv:2412.19437, section 3.2.1); PyTorch 2.13,
``ScheduleDualPipeV``.
"""

from itertools import count

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules.op import Op, OpKind, Placement, Schedule
from sapp_ppb.schedules.zbv import check_v

_F, _B, _I = OpKind.F, OpKind.B, OpKind.I


def dualpipev(stages: int, chunks: int, micro_batches: int) -> Schedule:
    """
    Build the DualPipeV order.

    Parameters
    ----------
    stages, chunks, micro_batches
        S, V and M; V is 2 and M at least 2S.

    Raises
    ------
    ScheduleError
        If V is not 2, or M below 2S.

    Examples
    --------
    The row of stage 0 as drawn above, 2(2-1-0) = 2 forwards of chunk 0 first:

    >>> print(dualpipev(2, 2, 4).to_csv().splitlines()[0][:54])
    0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;
    """
    check_v("dualpipev", stages=stages, chunks=chunks, micro_batches=micro_batches)
    if micro_batches < 2 * stages:
        raise ScheduleError(
            f"dualpipev: micro-batches must be at least twice the stages, {2 * stages} "
            f"(got {micro_batches}); use zbv"
        )
    rows = [_Row(stage, stages) for stage in range(stages)]
    for row in rows:
        row.fill(micro_batches)
    return Schedule(
        name="dualpipev",
        stages=stages,
        chunks=2,
        micro_batches=micro_batches,
        placement=Placement.V,
        rows=tuple(tuple(row.ops) for row in rows),
        pairs=tuple(tuple(row.pairs) for row in rows),
    )


class _Row:
    """Order of one stage in the making."""

    def __init__(self, stage: int, stages: int) -> None:
        self.stage, self.stages = stage, stages
        self.ops: list[Op] = []
        self.pairs: list[int] = []
        self._cells = (stage, 2 * stages - 1 - stage)
        self._forwards, self._backwards = (count(), count()), (count(), count())
        self._waiting: list[Op] = []

    def fill(self, micro_batches: int) -> None:
        """Run the eight phases."""
        later, own = self.stages - 1 - self.stage, self.stage + 1
        for _ in range(2 * later):
            self._run(_F, 0)
        for _ in range(own):
            self._run(_F, 0)
            self._run(_F, 1)
        for _ in range(later):
            self._run(_I, 1)
            self._weights()
            self._run(_F, 1)
        for turn in range(micro_batches - 2 * self.stages + own):
            self._pair(0, together=turn > 0 or later > 0)
            self._pair(1)
        for _ in range(later):
            self._run(_B, 1)
            self._pair(1)
        for backward in range(2 * own):
            self._run(_B if backward < own else _I, 1 - backward % 2)
        for _ in range(later):
            self._weights()
            self._run(_I, 0)
        for _ in range(own):
            self._weights()

    def _run(self, kind: OpKind, chunk: int) -> None:
        """Run the next forward or backward of a chunk."""
        numbers = self._forwards if kind is _F else self._backwards
        op = Op(kind, self._cells[chunk], next(numbers[chunk]))
        self.ops.append(op)
        if kind is _I:
            self._waiting.append(op._replace(kind=OpKind.W))

    def _weights(self) -> None:
        self.ops.append(self._waiting.pop(0))

    def _pair(self, chunk: int, *, together: bool = True) -> None:
        """Run a forward of a chunk with a backward of the other."""
        if together:
            self.pairs.append(len(self.ops))
        self._run(_F, chunk)
        self._run(_B, 1 - chunk)
