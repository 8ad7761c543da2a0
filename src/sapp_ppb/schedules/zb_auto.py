"""
Automatic zero bubble: a list schedule made for the stages' own times and memory.

With F = I = W and room for S micro-batches it draws, one slot an op::

    stage 0 | 0F0 0F1 0F2  .   .  0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3
    stage 1 |  .  1F0 1F1  .  1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3
    stage 2 |  .   .  2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3

Rule: whenever a stage is free it takes what can start at once, an input gradient
or a forward, and else a weight gradient that waits; forwards wait while the stage
keeps as many micro-batches alive as it may.  All combinations of three choices are
tried: whether a backward or a forward comes first when both can start; whether a
weight gradient may delay what arrives meanwhile; and how much of the memory is used
(all of it, or what ZB-H2, ZB-H1 or 1F1B would).  The order of
``interleaved-zero-bubble`` is tried too where it fits, so that this one is never
slower in the same memory.  The fastest is kept, and of equally fast ones the one with
the fewest micro-batches alive.

Source: Qi et al., ICLR 2024, arXiv:2401.10241, section 3 (automatic scheduling);
there times are medians over the stages, here every stage has its own.
"""

import heapq
import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules.interleaved_zero_bubble import interleaved_zero_bubble
from sapp_ppb.schedules.op import Op, OpKind, Placement, Schedule
from sapp_ppb.schedules.wording import check_sizes

Rows = tuple[tuple[Op, ...], ...]
_NEVER = math.inf


@dataclass(frozen=True, kw_only=True)
class StageCosts:
    """
    What a list schedule is made for.

    Attributes
    ----------
    forward_ms, input_ms, weight_ms
        Times of F, I and W on each stage, milliseconds, at least 0; shape (S,).
    hop_ms
        Milliseconds from each stage to the next, and back; shape (S - 1,) or longer.
    most_live
        Micro-batches that each stage may keep alive, at least 1; shape (S,).
    """

    forward_ms: tuple[float, ...]
    input_ms: tuple[float, ...]
    weight_ms: tuple[float, ...]
    hop_ms: tuple[float, ...]
    most_live: tuple[int, ...]


def zb_auto(stages: int, micro_batches: int, costs: StageCosts | None = None) -> Schedule:
    """
    Build the list schedule.

    Parameters
    ----------
    stages, micro_batches
        S and M, each at least 1.
    costs
        Times and memory of the stages; None stands for F = I = W and S micro-batches.

    Raises
    ------
    ScheduleError
        If a size is no whole number from 1 up, or the costs are not those of S stages.

    Notes
    -----
    O(S M log S) for each way that is tried.

    Examples
    --------
    Two micro-batches alive, as with ZB-H1 (S = 2), here with an I twice as long as its W:

    >>> one, two = (1, 1), (2, 2)
    >>> costs = StageCosts(forward_ms=one, input_ms=two, weight_ms=one, hop_ms=(0,), most_live=two)
    >>> print(zb_auto(2, 3, costs).to_csv().splitlines()[1])
    1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1W2
    """
    check_sizes("zb-auto", stages=stages, micro_batches=micro_batches)
    if costs is None:
        ones = (1.0,) * stages
        costs = StageCosts(
            forward_ms=ones,
            input_ms=ones,
            weight_ms=ones,
            hop_ms=(0.0,) * stages,
            most_live=(stages,) * stages,
        )
    _check(stages, costs)
    candidates = _candidates(stages, micro_batches, costs)
    rows = min(candidates, key=lambda rows: (makespan_ms(rows, costs), sum(map(_live, rows))))
    return Schedule(
        name="zb-auto",
        stages=stages,
        chunks=1,
        micro_batches=micro_batches,
        placement=Placement.LOOP,
        rows=rows,
    )


def _check(stages: int, costs: StageCosts) -> None:
    """Refuse costs of another number of stages, and memory in which nothing runs."""
    columns = (costs.forward_ms, costs.input_ms, costs.weight_ms, costs.most_live)
    if any(len(column) != stages for column in columns) or len(costs.hop_ms) < stages - 1:
        raise ScheduleError(f"zb-auto: costs must be those of {stages} stages")
    if min(costs.most_live) < 1:
        raise ScheduleError(f"zb-auto: every stage must hold a micro-batch (got {costs.most_live})")


def _candidates(stages: int, micro_batches: int, costs: StageCosts) -> Iterator[Rows]:
    """Orders within the memory, one for each way of choosing."""
    own = range(stages, 0, -1)
    wanted = ([2 * live - 1 for live in own], [stages] * stages, own)
    caps = {costs.most_live} | {
        tuple(map(min, some, costs.most_live, [micro_batches] * stages)) for some in wanted
    }
    for cap, backward_first, patient in product(sorted(caps), (True, False), (True, False)):
        yield _List(costs, micro_batches, cap, backward_first=backward_first, patient=patient).rows()
    known = interleaved_zero_bubble(stages, 1, micro_batches).rows
    if all(_live(row) <= most for row, most in zip(known, costs.most_live, strict=True)):
        yield known


def _live(row: Sequence[Op]) -> int:
    """Most micro-batches that an order keeps alive."""
    live = most = 0
    for op in row:
        live += (op.kind is OpKind.F) - (op.kind is OpKind.W)
        most = max(most, live)
    return most


class _List:
    """One list schedule in the making: a clock, and what has arrived at each stage."""

    def __init__(
        self,
        costs: StageCosts,
        micro_batches: int,
        cap: Sequence[int],
        *,
        backward_first: bool,
        patient: bool,
    ) -> None:
        stages = len(cap)
        self._costs, self._cap, self._total = costs, cap, 3 * micro_batches
        self._backward_first, self._patient = backward_first, patient
        self._forwards: list[deque[float]] = [deque() for _ in range(stages)]
        self._inputs: list[deque[float]] = [deque() for _ in range(stages)]
        self._forwards[0].extend([0.0] * micro_batches)
        self._live, self._waiting = [0] * stages, [0] * stages
        self._rows: list[list[Op]] = [[] for _ in range(stages)]
        self._counts = [[0] * len(OpKind) for _ in range(stages)]
        self._free_at = [0.0] * stages
        self._clock = [(0.0, stage) for stage in range(stages)]

    def rows(self) -> Rows:
        """Run the clock until everything has run."""
        while self._clock:
            now, stage = heapq.heappop(self._clock)
            if now < self._free_at[stage] or len(self._rows[stage]) == self._total:
                continue
            kind = self._choose(stage, now)
            if kind is not None:
                self._run(stage, kind, now)
            elif (soon := self._soonest(stage)) < _NEVER:
                heapq.heappush(self._clock, (soon, stage))
        return tuple(map(tuple, self._rows))

    def _soonest(self, stage: int) -> float:
        """When the next forward or input gradient can start, as far as that is known."""
        forward = self._forwards[stage][0] if self._forwards[stage] else _NEVER
        back = self._inputs[stage][0] if self._inputs[stage] else _NEVER
        return min(back, forward if self._live[stage] < self._cap[stage] else _NEVER)

    def _choose(self, stage: int, now: float) -> OpKind | None:
        """Find what a free stage does now; None to wait."""
        inputs, forwards = self._inputs[stage], self._forwards[stage]
        back = bool(inputs) and inputs[0] <= now
        forward = bool(forwards) and forwards[0] <= now and self._live[stage] < self._cap[stage]
        if back and (self._backward_first or not forward):
            return OpKind.I
        if forward:
            return OpKind.F
        if self._waiting[stage]:
            ends = now + self._costs.weight_ms[stage]
            if not self._patient or ends <= self._soonest(stage):
                return OpKind.W
        return None

    def _run(self, stage: int, kind: OpKind, now: float) -> None:
        """Run an op, and say when its result arrives where."""
        self._rows[stage].append(Op(kind, stage, self._counts[stage][kind]))
        self._counts[stage][kind] += 1
        costs, last = self._costs, len(self._cap) - 1
        if kind is OpKind.W:
            end = now + costs.weight_ms[stage]
            self._waiting[stage] -= 1
            self._live[stage] -= 1
        elif kind is OpKind.F:
            end = now + costs.forward_ms[stage]
            self._forwards[stage].popleft()
            self._live[stage] += 1
            if stage < last:
                self._send(self._forwards, stage + 1, end + costs.hop_ms[stage])
            else:
                self._send(self._inputs, stage, end)
        else:
            end = now + costs.input_ms[stage]
            self._inputs[stage].popleft()
            self._waiting[stage] += 1
            if stage > 0:
                self._send(self._inputs, stage - 1, end + costs.hop_ms[stage - 1])
        self._free_at[stage] = end
        heapq.heappush(self._clock, (end, stage))

    def _send(self, queues: list[deque[float]], stage: int, arrives: float) -> None:
        """Note an arrival, and have the stage look at it."""
        queues[stage].append(arrives)
        heapq.heappush(self._clock, (arrives, stage))


def makespan_ms(rows: Rows, costs: StageCosts) -> float:
    """
    Time that an order of F, I and W with one chunk a stage takes.

    Examples
    --------
    >>> one = StageCosts(forward_ms=(1,), input_ms=(1,), weight_ms=(1,), hop_ms=(), most_live=(1,))
    >>> makespan_ms(zb_auto(1, 2, one).rows, one)  # 2 x (1 + 1 + 1)
    6.0
    """
    durations = {OpKind.F: costs.forward_ms, OpKind.I: costs.input_ms, OpKind.W: costs.weight_ms}
    ends: dict[tuple[OpKind, int, int], float] = {}
    free_at, at, last = [0.0] * len(rows), [0] * len(rows), len(rows) - 1
    ready = list(range(len(rows)))
    while ready:
        stage = ready.pop()
        while at[stage] < len(rows[stage]):
            kind, _, m, _ = rows[stage][at[stage]]
            source, hop = _source(kind, stage, m, last)
            if source is not None and source not in ends:
                break
            arrives = 0.0 if source is None else ends[source] + (costs.hop_ms[hop] if hop >= 0 else 0.0)
            free_at[stage] = ends[kind, stage, m] = max(free_at[stage], arrives) + durations[kind][stage]
            at[stage] += 1
            ready += [other for other in (stage - 1, stage + 1) if 0 <= other <= last]
    return max(free_at)


def _source(kind: OpKind, stage: int, m: int, last: int) -> tuple[tuple[OpKind, int, int] | None, int]:
    """Op whose result an op needs, and the edge that it crosses (-1 for none)."""
    if kind is OpKind.F:
        return ((OpKind.F, stage - 1, m), stage - 1) if stage else (None, -1)
    if kind is OpKind.I and stage < last:
        return (OpKind.I, stage + 1, m), stage
    return (OpKind.F if kind is OpKind.I else OpKind.I, stage, m), -1
