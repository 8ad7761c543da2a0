"""plan_pipeline(): the fastest plan, by one run, or by one for each set of recompute types."""

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError, NoPlanFoundError
from sapp_ppb.plan import Outcome, Plan, Status, StoppedBy, refuse_other_cells
from sapp_ppb.planner.answer import PROVEN, joint_reason
from sapp_ppb.planner.device_orders import check_reordering
from sapp_ppb.planner.met import Met, plans_met
from sapp_ppb.planner.orders import plan_orders
from sapp_ppb.planner.proof.bounds import lower_bound
from sapp_ppb.planner.run import Run, Watch
from sapp_ppb.planner.search.budget import budget_for
from sapp_ppb.planner.shortage.infeasible import SHORTAGE_S, find_shortage, under_its_own_order
from sapp_ppb.planner.warm_up import compile_kernels
from sapp_ppb.planner.ways import as_plan_of, plan_ways
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import simulate
from sapp_ppb.targets import Way, is_nested, target_named

_MOST_THREADS = 256


def plan_pipeline(
    problem: Problem,
    *,
    time_limit_s: float = 10.0,
    gap: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    warm_start: Plan | None = None,
    watch: Watch | None = None,
    reorder_stages: bool = False,
    patience: float = 1.0,
) -> Outcome:
    """
    Find the fastest plan within the memory limits, and a bound on any plan.

    Parameters
    ----------
    problem
        What is given.
    time_limit_s
        Sizes the work; the clock itself only stops a run that takes far longer.
    gap
        Stop once the plan is proven within this share of the optimum.
    seed
        The same seed, limit and number of threads give the same plan.
    threads
        Searches that run side by side; the proof takes one core.
    warm_start
        A plan to begin with, for a problem with the same cells.
    watch
        Called now and then with the progress.
    reorder_stages
        Choose as well which device does the work of which stage: speeds and memory limits
        that differ between stages move together.
    patience
        How many times as late as usual the clock may stop a run: more than 1 for runs that
        share cores with others, and must be repeatable all the same.

    Returns
    -------
    Outcome
        The best plan with its bound, or why nothing fits.

    Raises
    ------
    InputError
        When an option can not be, or the plan to begin with is none of this problem.
    NoPlanFoundError
        When the limit passed before any plan was found.
    """
    check_options(time_limit_s, gap, seed, threads)
    check_fix(problem)
    known = None if warm_start is None else _plan_for(problem, warm_start)
    ways = _ways(problem)
    if reorder_stages:
        check_reordering(problem)
    compile_kernels()  # before the clock starts: a first run compiles for some 20 s
    options: dict[str, Any] = {"gap": gap, "seed": seed, "threads": threads, "watch": watch}
    met = Met()
    try:
        with plans_met(met):
            return _planned(problem, ways, time_limit_s, known, patience, reorder_stages, options)
    except KeyboardInterrupt:  # wherever it was, what was met is not lost
        outcome = met.outcome(problem, seed)
        if outcome is None:
            raise
        return outcome


def _planned(
    problem: Problem,
    ways: tuple[Way, ...],
    time_limit_s: float,
    known: Plan | None,
    patience: float,
    reorder_stages: bool,
    options: dict[str, Any],
) -> Outcome:
    """Plan in the way that the problem and the options ask for."""
    if reorder_stages:
        return plan_orders(
            problem,
            time_limit_s=time_limit_s,
            known=known,
            plan=lambda each, seconds: plan_pipeline(
                each, time_limit_s=seconds, warm_start=known, patience=patience, **options
            ),
            plain=ways[0].problem is problem and type_sets(problem)[0] is problem,
            has_way=lambda plan: any(as_plan_of(way.problem, plan) is not None for way in ways),
            patience=patience,
            **options,
        )
    if len(ways) > 1 or ways[0].problem is not problem:
        return plan_ways(
            problem,
            ways,
            time_limit_s=time_limit_s,
            known=known,
            patience=patience,
            **options,
        )
    sets = type_sets(problem)
    runs = (
        Run(
            problem=each,
            budget=budget_for(each, time_limit_s / len(sets), patience),
            **options,
            known=None if known is None else _plan_for(each, known, refuse=False),
            explains=each is problem,
        )
        for each in sets
    )
    return next(runs).outcome() if sets[0] is problem else _best_of(problem, runs)


def check_options(time_limit_s: float, gap: float, seed: int, threads: int = 1) -> None:
    """
    Refuse options of ``plan_pipeline`` that can not be.

    Raises
    ------
    InputError
        With all faults at once.
    """
    faults = []
    if not 0.0 < time_limit_s <= 1e6:
        faults.append(f"time-limit must be above 0 and at most 1,000,000 seconds (got {time_limit_s!r})")
    if not 0.0 <= gap < 1.0:
        faults.append(f"gap must be at least 0 and below 1 (got {gap!r})")
    if not isinstance(seed, int) or not 0 <= seed < 2**32:
        faults.append(f"seed must be a whole number from 0 to 4294967295 (got {seed!r})")
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= _MOST_THREADS:
        faults.append(f"threads must be a whole number from 1 to {_MOST_THREADS} (got {threads!r})")
    if faults:
        raise InputError("options", faults)


def _ways(problem: Problem) -> tuple[Way, ...]:
    """
    List the ways in which the target can say plans; the problem itself without a target.

    Raises
    ------
    InputError
        When the target can say none.
    """
    if problem.target is None or (problem.fix is not None and problem.fix.places is not None):
        return (Way(problem=problem),)  # a rule of places is what a way is made of
    target = target_named(problem.target)
    refused = target.refuses(problem)
    if refused:
        raise InputError("target", refused)
    ways = target.ways(problem)
    if not ways:
        raise InputError(
            "target",
            [
                f"{target.title} has no setting for recompute that the model and the options allow: it takes "
                "one type for all layers, or full beside none; give the memory of those in the model file, "
                "or leave out --recompute, --max-recompute-types and --fix"
            ],
        )
    if ways[0].problem is problem:
        return ways
    return tuple(replace(way, problem=each) for way in ways for each in _sets_of_way(way))


def _sets_of_way(way: Way) -> list[Problem]:
    """Split a way by the types that a plan may mix, where it leaves them open."""
    settled = way.problem.fix is not None and way.problem.fix.settles_recompute
    return [way.problem] if settled else type_sets(way.problem)


def check_fix(problem: Problem) -> None:
    """
    Refuse recompute that is fixed as the target can not say it.

    Raises
    ------
    InputError
        Naming the cells.
    """
    if problem.fix is None or not is_nested(problem.target):
        return
    kept = problem.fix.recomputed.sum(axis=0)
    mixed = np.flatnonzero(kept[Recompute.SELECTIVE] * kept[Recompute.COMM]).tolist()
    if mixed:
        raise InputError(
            "fix",
            [
                f"cell {cell} recomputes some layers as selective and some as comm, which the target "
                f"{problem.target} can not say; fix another plan, or plan for no target"
                for cell in mixed
            ],
        )


def _plan_for(problem: Problem, plan: Plan, *, refuse: bool = True) -> Plan | None:
    """Read the counts of a plan as a plan of this problem; None, or a refusal, where they are none."""
    try:
        refuse_other_cells(problem, plan)
        return Plan(problem=problem, counts=plan.counts)
    except InputError as error:
        if not refuse:
            return None
        raise InputError("warm-start", error.faults) from None


def type_sets(problem: Problem) -> list[Problem]:
    """
    Split a problem by the recompute types that a plan may mix, where their number is limited.

    Returns
    -------
    list
        Problems that between them have every plan allowed; the problem itself where
        its number of types is no limit.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> memory = {Recompute.NONE: 9, Recompute.SELECTIVE: 5, Recompute.FULL: 1}
    >>> body = layer_from_times(
    ...     name="Dec", kind=LayerKind.BODY, count=4, forward_ms=1, activation_mb=memory)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4,
    ...                   max_recompute_types=1)
    >>> [[r.label for r in each.recompute] for each in type_sets(problem)]
    [['none', 'selective'], ['none', 'full']]
    """
    most = problem.max_recompute_types
    allowed = sorted({r for layer in problem.model.bodies for r in problem.considered(layer)})
    types = [r for r in allowed if r is not Recompute.NONE]
    fixed = problem.fix is not None and problem.fix.recompute is not None
    if most is None or most >= len(types) or fixed:
        return [problem]
    none = [r for r in allowed if r is Recompute.NONE]
    found: list[Problem] = []
    faults: tuple[str, ...] = ()
    for chosen in itertools.combinations(types, most):
        try:
            found.append(problem.changed(recompute=(*none, *chosen), max_recompute_types=None))
        except InputError as error:  # a layer that has none of the types
            faults = error.faults
    if not found:
        raise InputError("problem", [f"max-recompute-types is too low: {fault}" for fault in faults])
    return found


def _best_of(problem: Problem, runs: Iterator[Run]) -> Outcome:
    """Take the best plan of several runs, each with the best so far as its cutoff, and the least bound."""
    best: Outcome | None = None
    nothing, late = [], None
    bound_ms, seconds, stopped_by = math.inf, 0.0, StoppedBy.PROOF
    for run in runs:
        if best is not None and best.plan is not None:
            run.best = simulate(best.plan)
        if best is not None and best.stopped_by is StoppedBy.INTERRUPT:
            bound_ms = min(bound_ms, lower_bound(run.problem, run.started + run.budget.stop_s))
            continue
        try:
            outcome = run.outcome()
        except NoPlanFoundError as error:
            late, bound_ms = error, min(bound_ms, run.bound_ms)
            stopped_by = joint_reason(stopped_by, run.stopped_by)
            continue
        seconds, stopped_by = seconds + outcome.seconds, joint_reason(stopped_by, outcome.stopped_by)
        if outcome.plan is None:
            nothing.append(outcome)
            continue
        best, bound_ms = outcome, min(bound_ms, outcome.lower_bound_ms or 0.0)
    if best is None:
        if late is not None or not nothing:
            raise late or NoPlanFoundError("no plan was found in time; try a higher --time-limit")
        return _nothing_of(problem, nothing, seconds)
    return _renamed(problem, replace(best, stopped_by=stopped_by), bound_ms, seconds)


def _nothing_of(problem: Problem, nothing: list[Outcome], seconds: float) -> Outcome:
    """Tell the set of types that asks for the lowest limit as the whole problem's, with what does there."""
    started = time.monotonic()
    shortages = [find_shortage(outcome.problem, time_limit_s=SHORTAGE_S) for outcome in nothing]
    least = min(shortages, key=lambda shortage: shortage.needed_mb)
    remedies = (_of_all_types(problem, change, value) for change, value in least.remedies)
    proven = all(shortage.proven for shortage in shortages)
    least = replace(least, proven=proven, remedies=tuple(filter(None, remedies)))
    seconds += time.monotonic() - started
    return replace(
        nothing[0],
        problem=problem,
        shortage=under_its_own_order(problem, least),
        seconds=round(seconds, 3),
    )


def _of_all_types(problem: Problem, change: str, value: float | str) -> tuple[str, float | str] | None:
    """Tell a type that a set lacks as one more to mix; None where that is not all that it takes."""
    if change != "recompute" or problem.max_recompute_types is None:
        return change, value
    recompute = problem.model.type_named(str(value))
    if recompute is Recompute.NONE:  # it is no part of the mix
        return change, value
    allowed = problem.recompute is None or recompute in problem.recompute
    return ("max_recompute_types", problem.max_recompute_types + 1) if allowed else None


def _renamed(problem: Problem, best: Outcome, bound_ms: float, seconds: float) -> Outcome:
    """Tell the outcome of the last run as the whole problem's, with the least bound of all."""
    assert best.plan is not None, "an outcome with a plan"  # noqa: S101
    assert best.step_ms is not None, "an outcome with a plan"  # noqa: S101
    bound_ms = min(bound_ms, best.step_ms)
    proven = best.step_ms - bound_ms <= PROVEN * best.step_ms
    stopped_by = StoppedBy.BUDGET if best.stopped_by is StoppedBy.PROOF else best.stopped_by
    return replace(
        best,
        problem=problem,
        plan=Plan(problem=problem, counts=best.plan.counts),
        status=Status.OPTIMAL if proven else Status.FEASIBLE,
        stopped_by=StoppedBy.PROOF if proven else stopped_by,
        lower_bound_ms=bound_ms,
        seconds=round(seconds, 3),
        runners_up=tuple(Plan(problem=problem, counts=plan.counts) for plan in best.runners_up),
    )
