"""
Four families of paths, and the smallest makespan at which a chain keeps them all.

With t = f + b of a stage, pre and suf the sums of t before and after it, tot the
sum of all, and q = max(M - S + s, 0), one micro-batch at a time crossing the
pipeline gives under 1F1B

    (LB1)  T >= pre + M t_s
    (LB2)  T >= tot + (M - 1) b_s + q f_s
    (LB3)  T >= tot + (M - 1) f_s + q b_s
    (LB4)  T >= tot + suf + q t_s          for s >= S - M only

LB1 holds for every order with one chunk and whole backwards: a stage works M t_s,
its first forward has crossed all stages before it and its last backward must.  Where
micro-batches are cut into k sequence chunks the first to cross is one of these, and
pre counts as pre / k; where the backward is split, pre is left out; where pairs overlap,
a stage works at least 1 - a / 2 of M t_s.  The overhead of the
ops is part of f and b: k ops each, or more where the backward is split.

f and b are the stage's own: what a device as measured takes, over the stage's speed.
Where stages do something after their last op, M t_s and that of s is one more bound, and
all paths above that come back up to stage 0 have that of stage 0 behind them.
"""

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.planner.proof.segments import Segments
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator.price import least_share_worked, splits_backward

Floats = NDArray[np.float64]

BISECTIONS = 60  # more than it takes to the last digit


class PathFamilies:
    """
    The families over all splits of a chain, as dynamic programming over stages.

    Parameters
    ----------
    segments
        Times of every run of layers on every stage as measured: speeds and overhead left out; lower
        values give lower bounds.
    """

    def __init__(self, problem: Problem, segments: Segments) -> None:
        overhead_ms = problem.sequence_chunks * problem.model.op_overhead_ms
        speeds = np.array(problem.speed_per_stage)[:, None, None]
        self._segments = Segments(
            forward_ms=segments.forward_ms / speeds + overhead_ms,
            total_ms=segments.total_ms / speeds + 2 * overhead_ms,
        )
        self._extra_ms = problem.extra_per_stage_ms
        self._micro_batches = problem.micro_batches
        self._worked = problem.micro_batches * least_share_worked(problem)
        self._is_1f1b = problem.schedule_name is ScheduleName.ONE_F_ONE_B
        self._crossing = 0.0 if splits_backward(problem) else 1.0 / problem.sequence_chunks
        # Whole backwards end on stage 0, which works on then.
        self._last_ms = 0.0 if splits_backward(problem) else self._extra_ms[0]
        self._stages, self._size = segments.total_ms.shape[:2]
        self._rest_ms = self._least_rest(np.isfinite(segments.total_ms))

    def bound(self, bisections: int = BISECTIONS) -> float:
        """
        Smallest T, by bisection, at which every stage can keep the families.

        Infinite when no split fits.  After fewer bisections it is a smaller one, and a bound as well.
        """
        total = float(self._rest_ms[0, 0])
        if not np.isfinite(total):
            return float("inf")
        low, high = 0.0, total * (self._micro_batches + 2 * self._stages) + max(self._extra_ms)
        while not self._reaches_end(high):
            low, high = high, 2 * high
        for _ in range(bisections):
            middle = (low + high) / 2
            if self._reaches_end(middle):
                high = middle
            else:
                low = middle
            if high - low <= 1e-12 * high:
                break
        return low

    def runs_within(self, makespan_ms: float) -> NDArray[np.bool_]:
        """
        Find the runs that some chain within a makespan may use; shape (S, N + 1, N + 1).

        What is dropped is in no plan that is as fast: pruning is repeated, forwards
        and backwards, until nothing more falls.
        """
        usable = np.isfinite(self._segments.total_ms)
        rest, dropped = self._rest_ms, True
        while dropped:
            left = int(usable.sum())
            self._rest_ms = self._least_rest(usable)
            spent = np.full(self._size, np.inf)
            spent[0] = 0.0
            for stage in range(self._stages):
                usable[stage] &= self._longest_family(stage, spent) <= makespan_ms
                spent = self._after(stage, spent, usable[stage])
            dropped = int(usable.sum()) < left
        self._rest_ms = rest
        return usable

    def _after(self, stage: int, spent: Floats, usable: NDArray[np.bool_]) -> Floats:
        """Least time spent before each layer once a stage has taken a usable run."""
        after = spent[:, None] + self._segments.total_ms[stage]
        return np.asarray(np.where(usable, after, np.inf).min(axis=0))

    def _least_rest(self, usable: NDArray[np.bool_]) -> Floats:
        """Least time of stages s.. when they begin with layer i; shape (S + 1, N + 1)."""
        rest = np.full((self._stages + 1, self._size), np.inf)
        rest[self._stages, -1] = 0.0
        for stage in range(self._stages - 1, -1, -1):
            runs = np.where(usable[stage], self._segments.total_ms[stage], np.inf)
            rest[stage] = (runs + rest[stage + 1][None, :]).min(axis=1)
        return rest

    def _reaches_end(self, makespan_ms: float) -> bool:
        spent = np.full(self._size, np.inf)
        spent[0] = 0.0
        for stage in range(self._stages):
            spent = self._after(stage, spent, self._longest_family(stage, spent) <= makespan_ms)
        return bool(np.isfinite(spent[-1]))

    def _longest_family(self, stage: int, spent: Floats) -> Floats:
        """Greatest of LB1 to LB4 for every run on a stage; shape (N + 1, N + 1)."""
        micro_batches, stages = self._micro_batches, self._stages
        t, f = self._segments.total_ms[stage], self._segments.forward_ms[stage]
        before = spent[:, None]
        reached = np.isfinite(before)
        lb1 = np.where(reached, self._crossing * np.where(reached, before, 0.0) + self._worked * t, np.inf)
        lb1 = np.maximum(lb1 + self._last_ms, self._worked * t + self._extra_ms[stage])
        if not self._is_1f1b:
            return np.asarray(np.where(np.isfinite(self._rest_ms[stage + 1])[None, :], lb1, np.inf))
        # Where t is infinite every family is; b must only not spoil that with 0 x infinity.
        b = np.where(np.isfinite(t), t - f, 0.0)
        after = self._rest_ms[stage + 1][None, :]
        total = before + t + after
        q = max(micro_batches - stages + stage, 0)
        lb2 = total + (micro_batches - 1) * b + q * f
        lb3 = total + (micro_batches - 1) * f + q * b
        longest = np.maximum(lb1, np.maximum(lb2, lb3) + self._last_ms)
        if stage >= stages - micro_batches:
            longest = np.maximum(longest, total + after + (q * t if q else 0.0) + self._last_ms)
        return np.asarray(longest)
