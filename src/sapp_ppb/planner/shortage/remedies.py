"""Which single change makes a problem fit; each is believed only with a plan that fits."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from sapp_ppb.costs import RecomputeType
from sapp_ppb.errors import InputError, ScheduleError, SolverError
from sapp_ppb.plan import Plan
from sapp_ppb.planner.shortage.least_memory import least_memory
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator.price import price
from sapp_ppb.simulator.timeline import stage_peaks

Remedy = tuple[str, float | str]
# A change, and the problem with it: built late, because a problem that can not be raises.
Candidate = tuple[Remedy, Callable[[], Problem]]

_SLACK = 1e-9
# Schedules that keep fewer micro-batches alive, for the same sizes.
_LIGHTER = {
    ScheduleName.GPIPE: ScheduleName.ONE_F_ONE_B,
    ScheduleName.INTERLEAVED: ScheduleName.INTERLEAVED_LESS_MEMORY,
}
# Columns of the program beyond which one takes seconds to write down, let alone to solve.
_MOST_COLUMNS = 4_000


def find_remedies(problem: Problem, least: Plan | None, *, time_limit_s: float) -> tuple[Remedy, ...]:
    """
    Single changes, the memory limit apart, each of which makes some plan fit.

    Parameters
    ----------
    problem
        A problem with memory limits that no plan meets.
    least
        A plan that exceeds them by little; None where none is known.
    time_limit_s
        What is not settled in this time is left out.

    Returns
    -------
    tuple
        Pairs of a change and its value, at most one of a kind: less constant memory
        first, then nothing fixed, a schedule, a recompute type, fewer chunks and one more stage.
    """
    end = time.monotonic() + time_limit_s
    found: list[Remedy] = [] if least is None else _less_constant_memory(problem, least)
    families = [_unfixed(problem), _schedules(problem), _types(problem), _chunks(problem), _stages(problem)]
    for left, family in zip(range(len(families), 0, -1), families, strict=True):
        # An equal share of what is left for each that is still to come.
        until = time.monotonic() + (end - time.monotonic()) / left
        found += _first_that_fits(family, until)
    return tuple(found)


def _first_that_fits(family: Iterator[Candidate], until: float) -> list[Remedy]:
    for remedy, build in family:
        left = until - time.monotonic()
        if left <= 0.0:
            return []
        try:
            changed = build()
        except (InputError, ScheduleError):  # such sizes do not exist
            continue
        if _fits(changed, left):
            return [remedy]
    return []


def _fits(problem: Problem, time_limit_s: float) -> bool:
    """Whether a plan within the limits was found in time."""
    if problem.interleave > 1 and problem.cells * len(problem.model.bodies) > _MOST_COLUMNS:
        return False
    try:
        plan = least_memory(problem, any_that_fits=True, time_limit_s=time_limit_s).plan
    except SolverError:
        return False
    return plan is not None and _holds(problem, plan)


def _holds(problem: Problem, plan: Plan) -> bool:
    peaks = stage_peaks(problem, price(plan))
    return all(
        peak.memory_mb <= limit * (1 + _SLACK)
        for peak, limit in zip(peaks, problem.limit_per_stage_mb, strict=True)
    )


def _less_constant_memory(problem: Problem, least: Plan) -> list[Remedy]:
    """Take as many MB off every stage as the plan is over; nothing when a stage has less than that."""
    peaks, limits = stage_peaks(problem, price(least)), problem.limit_per_stage_mb
    less = max(peak.memory_mb - limit for peak, limit in zip(peaks, limits, strict=True))
    if less <= 0.0 or less > min(problem.constant_per_stage_mb):
        return []
    changed = replace(problem, constant_memory_mb=tuple(mb - less for mb in problem.constant_per_stage_mb))
    return [("constant_memory_less_by_mb", less)] if _holds(changed, least) else []


def _unfixed(problem: Problem) -> Iterator[Candidate]:
    """Keep nothing of a given plan."""
    if problem.fix is not None:
        yield ("fix", "none"), lambda: replace(problem, fix=None)


def _schedules(problem: Problem) -> Iterator[Candidate]:
    """Name a schedule that keeps fewer micro-batches alive."""
    name = _LIGHTER.get(problem.schedule_name)
    if name is not None:
        yield ("schedule", name.value), lambda: replace(problem, schedule=name, micro_batch_group=None)


def _types(problem: Problem) -> Iterator[Candidate]:
    """Allow one more type, of those that the model gives, the least recompute first and strategies last."""
    if problem.recompute is None:
        return
    given = {r for layer in problem.model.bodies for r in layer.considered}
    for r in problem.model.types:
        if r in given and r not in problem.recompute:
            yield ("recompute", r.label), _with_type(problem, problem.recompute, r)


def _with_type(
    problem: Problem, types: tuple[RecomputeType, ...], more: RecomputeType
) -> Callable[[], Problem]:
    return lambda: replace(problem, recompute=(*types, more))


def _chunks(problem: Problem) -> Iterator[Candidate]:
    """Take fewer chunks, the most first; one chunk has 1F1B.  What is fixed has the cells it has."""
    if problem.fix is not None:
        return
    for chunks in range(problem.interleave - 1, 0, -1):
        yield ("interleave", chunks), _with_chunks(problem, chunks)


def _with_chunks(problem: Problem, chunks: int) -> Callable[[], Problem]:
    if chunks > 1:
        return lambda: replace(problem, interleave=chunks)
    return lambda: replace(problem, interleave=1, schedule=None, micro_batch_group=None)


def _stages(problem: Problem) -> Iterator[Candidate]:
    """Add a stage like the others, where all are alike in memory; times that stages have hold nothing."""
    if problem.fix is not None:
        return
    if not isinstance(problem.memory_limit_mb, tuple) and not isinstance(problem.constant_memory_mb, tuple):
        yield (
            ("stages", problem.stages + 1),
            lambda: replace(
                problem, stages=problem.stages + 1, p2p_ms=0.0, stage_speed=None, step_extra_ms=0.0
            ),
        )
