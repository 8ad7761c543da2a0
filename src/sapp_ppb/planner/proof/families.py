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

import math
import time

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.planner.proof.chain_kernel import finite_ranges, least_rest, prune_runs, reaches_end
from sapp_ppb.planner.proof.segments import Segments
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator.price import least_share_worked, splits_backward

Floats = NDArray[np.float64]

_BISECTIONS = 60  # more than it takes to the last digit


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
        self._forward_ms, self._total_ms = segments.forward_ms, segments.total_ms
        self._speed = np.array(problem.speed_per_stage)
        self._overhead_ms = problem.sequence_chunks * problem.model.op_overhead_ms
        self._extra_ms = np.array(problem.extra_per_stage_ms)
        is_1f1b = problem.schedule_name is ScheduleName.ONE_F_ONE_B
        self._sizes = np.array([problem.micro_batches, problem.stages, is_1f1b], dtype=np.int64)
        crossing = 0.0 if splits_backward(problem) else 1.0 / problem.sequence_chunks
        # Whole backwards end on stage 0, which works on then.
        last_ms = 0.0 if splits_backward(problem) else problem.extra_per_stage_ms[0]
        worked = problem.micro_batches * least_share_worked(problem)
        self._constants = np.array([crossing, worked, last_ms])
        stages, size = segments.total_ms.shape[:2]
        self._ranges = np.empty((2, stages, size), dtype=np.int64)
        finite_ranges(self._total_ms, self._ranges)
        self._rest_ms = self._least_rest(np.isfinite(self._total_ms))

    def bound(self, deadline: float = math.inf) -> float:
        """
        Smallest T, by bisection, at which every stage can keep the families.

        Infinite when no split fits.

        Parameters
        ----------
        deadline
            Time of ``time.monotonic`` from which on the answer may be lower.
        """
        total = float(self._rest_ms[0, 0])
        if not np.isfinite(total):
            return float("inf")
        low, high = 0.0, total * (int(self._sizes[0]) + 2 * int(self._sizes[1])) + float(self._extra_ms.max())
        while not self._reaches_end(high):
            low, high = high, 2 * high
        for _ in range(_BISECTIONS):
            if high - low <= 1e-12 * high or time.monotonic() > deadline:
                break
            middle = (low + high) / 2
            if self._reaches_end(middle):
                high = middle
            else:
                low = middle
        return low

    def runs_within(self, makespan_ms: float) -> NDArray[np.bool_]:
        """
        Find the runs that some chain within a makespan may use; shape (S, N + 1, N + 1).

        What is dropped is in no plan that is as fast: pruning is repeated, forwards
        and backwards, until nothing more falls.
        """
        usable = np.isfinite(self._total_ms)
        rest, dropped = self._rest_ms, 1
        while dropped:
            dropped = prune_runs(
                usable, self._forward_ms, self._total_ms, self._ranges, rest, self._speed, self._overhead_ms,
                self._sizes, self._constants, self._extra_ms, makespan_ms,
            )  # fmt: skip
            rest = self._least_rest(usable)
        return usable

    def _least_rest(self, usable: NDArray[np.bool_]) -> Floats:
        """Least time of stages s.. when they begin with layer i; shape (S + 1, N + 1)."""
        stages, size = self._total_ms.shape[:2]
        rest = np.empty((stages + 1, size))
        least_rest(usable, self._total_ms, self._ranges, self._speed, self._overhead_ms, rest)
        return rest

    def _reaches_end(self, makespan_ms: float) -> bool:
        return bool(
            reaches_end(
                self._forward_ms, self._total_ms, self._ranges, self._rest_ms, self._speed, self._overhead_ms,
                self._sizes, self._constants, self._extra_ms, makespan_ms,
            )
        )  # fmt: skip
