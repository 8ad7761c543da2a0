"""
The two numbers that layer times leave out, from measured steps: overhead of an op, time of a hop.

A step is the longest of many paths, and each path is linear in both numbers.  So: time every
run at the numbers so far, take the ops and hops of the path that decides it as a row, fit
the rows by non-negative least squares of shares of the measured steps, and repeat until the
paths stay.  Where a fit would do worse, because the paths change on the way to it, half the
way is gone, and half of that; so it never goes in circles.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.errors import InputError
from sapp_ppb.estimation.least_squares import non_negative_fit
from sapp_ppb.simulator import Besides, MeasuredStep

Floats = NDArray[np.float64]

NAMES = ("op_overhead_ms", "hop_ms")
# Where to begin, as a share of a step over the ops of its path: it decides between paths that tie.
_BEGIN = 1e-6
# Decimals of a millisecond that are kept: a nanosecond is less than anything that is measured.
_DECIMALS = 6
_MOST_FITS, _MOST_HALVES = 50, 20
# A fit that makes the sum of squares smaller by less than this share ends the search.
_BETTER = 1e-9


@dataclass(frozen=True, kw_only=True)
class CalibratedRun:
    """
    One run, and what is simulated for it.

    Attributes
    ----------
    name
        The run's name.
    step_ms
        What was measured.
    before_ms, after_ms
        What is simulated with the model's own numbers, and with the ones found.
    left_out_ms
        What is simulated with the numbers that the other runs alone give; None of a single run.
    """

    name: str
    step_ms: float
    before_ms: float
    after_ms: float
    left_out_ms: float | None

    def error(self, simulated_ms: float) -> float:
        """Give what is simulated too much, as a share of what was measured; negative: too little."""
        return simulated_ms / self.step_ms - 1.0


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """
    Both numbers, and how well they rebuild what was measured.

    Attributes
    ----------
    op_overhead_ms, hop_ms
        At least 0.
    runs
        One for each run given, in their order.
    free
        Names of the numbers that the runs do not determine, or do not tell apart.
    """

    op_overhead_ms: float
    hop_ms: float
    runs: tuple[CalibratedRun, ...]
    free: tuple[str, ...]

    @property
    def median_before(self) -> float:
        """Median size of the errors with the model's own numbers."""
        return median(abs(run.error(run.before_ms)) for run in self.runs)

    @property
    def median_after(self) -> float:
        """Median size of the errors with the numbers found."""
        return median(abs(run.error(run.after_ms)) for run in self.runs)

    @property
    def median_left_out(self) -> float | None:
        """Median size of the errors of runs that were left out of the fit; None of a single run."""
        errors = [run.error(run.left_out_ms) for run in self.runs if run.left_out_ms is not None]
        return median(map(abs, errors)) if errors else None


def calibrate(steps: Sequence[MeasuredStep]) -> Calibration:
    """
    Fit the overhead of an op and the time of a hop to measured steps.

    Parameters
    ----------
    steps
        Runs of any sizes and schedules.  ``before_ms`` comes from the numbers of their models.

    Raises
    ------
    InputError
        When there is no run.

    Notes
    -----
    A pass over the ops of every run for every fit, and about as many fits again for every
    run that is left out.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=10)
    >>> def run(micro_batches, step_ms):
    ...     model = Model(name="tiny", layers=(body,))
    ...     problem = Problem(model=model, stages=2, micro_batches=micro_batches, schedule="gpipe")
    ...     plan = plan_from_matrices(problem, {"Dec": {"none": [[1, 1]]}})
    ...     return MeasuredStep(name=f"M = {micro_batches}", plan=plan, step_ms=step_ms)
    >>> # (M + 1)(10 + 20 + 2 x 0.5) and two hops of 2
    >>> found = calibrate([run(1, 66.0), run(4, 159.0)])
    >>> round(found.op_overhead_ms, 6), round(found.hop_ms, 6), round(found.median_before, 3)
    (0.5, 2.0, 0.074)
    """
    if not steps:
        raise InputError("runs", ["there is none; give at least one measured step"])
    besides = [Besides(step.plan) for step in steps]
    measured = np.array([step.step_ms for step in steps])
    everyone = np.arange(len(steps))
    numbers, free = _fitted(besides, measured, _begin(measured, besides))
    numbers = numbers.round(_DECIMALS)
    runs = []
    for index, step in enumerate(steps):
        own = step.plan.problem.model
        left_out_ms = None
        if len(steps) > 1:
            others = np.delete(everyone, index)
            theirs, _ = _fitted([besides[at] for at in others], measured[others], numbers)
            left_out_ms = besides[index].step(*theirs).makespan_ms
        runs.append(
            CalibratedRun(
                name=step.name,
                step_ms=step.step_ms,
                before_ms=besides[index].step(own.op_overhead_ms, own.hop_ms).makespan_ms,
                after_ms=besides[index].step(*numbers).makespan_ms,
                left_out_ms=left_out_ms,
            )
        )
    overhead_ms, hop_ms = numbers.tolist()
    return Calibration(op_overhead_ms=overhead_ms, hop_ms=hop_ms, runs=tuple(runs), free=free)


def _begin(measured: Floats, besides: Sequence[Besides]) -> Floats:
    """Begin with numbers so small that they only decide between paths of the same length."""
    least = min(ms / max(each.step(0.0, 0.0).ops, 1) for ms, each in zip(measured, besides, strict=True))
    return np.full(2, _BEGIN * least)


def _fitted(besides: Sequence[Besides], measured: Floats, numbers: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Fit from given numbers on; the numbers, and the names of those that are not determined."""
    squares, rows, rest = _looked_at(besides, measured, numbers)
    free: tuple[str, ...] = ()
    for _ in range(_MOST_FITS):
        fit = non_negative_fit(rows, rest, NAMES)
        free = tuple(name for group in fit.free for name in group)
        for halves in range(_MOST_HALVES):
            tried = numbers + (fit.values - numbers) / 2**halves
            found = _looked_at(besides, measured, tried)
            if found[0] < squares * (1 - _BETTER):
                break
        else:
            return numbers, free
        numbers, (squares, rows, rest) = tried, found
    return numbers, free


def _looked_at(besides: Sequence[Besides], measured: Floats, numbers: Floats) -> tuple[float, Floats, Floats]:
    """Sum of the squared errors, and the rows: ops, hops, and what they are to add, in shares of the step."""
    counted = [each.step(*numbers) for each in besides]
    steps_ms = np.array([each.makespan_ms for each in counted])
    rows = np.array([(each.ops, each.hops) for each in counted], dtype=float)
    rest = measured - (steps_ms - rows @ numbers)
    squares = float((((steps_ms - measured) / measured) ** 2).sum())
    return squares, rows / measured[:, None], rest / measured
