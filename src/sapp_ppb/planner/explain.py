"""What limits a plan, in numbers: what the step would take if one thing or another were free."""

from dataclasses import dataclass, replace

import numpy as np

from sapp_ppb.costs import LayerKind, Recompute
from sapp_ppb.errors import InputError, NoPlanFoundError, SolverError
from sapp_ppb.plan import Outcome, Plan
from sapp_ppb.planner.planning import plan_pipeline
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import batched_makespans, simulate
from sapp_ppb.simulator.price import CellCosts, layer_tables


@dataclass(frozen=True, kw_only=True)
class Relaxed:
    """
    The step when something is free.

    Attributes
    ----------
    step_ms
        Of the best plan found, never above that of the plan explained.
    lower_bound_ms
        No plan is faster even so.
    """

    step_ms: float
    lower_bound_ms: float


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """
    What limits a plan.

    Attributes
    ----------
    step_ms
        Of the plan explained: its makespan and what comes after.
    unlimited_memory
        The same problem without a memory limit.
    free_recompute
        The same problem, within its memory, in which every recompute type and strategy of a layer
        has the backward time of NONE.
    divisible_ms
        The order of the problem, sends included, when every cell takes the same share of
        all forward work and of all backward work, more on faster stages, HEAD and TAIL
        spread too, and every layer has its fastest type.  It asks for unlimited memory as well, so it is to
        be compared with ``unlimited_memory``: the difference is what comes of layers
        that can not be cut.  No bound: cells that differ can be faster than equal ones.
    busiest_stage, busy
        The stage that works most, and its share of the makespan.
    fill_drain
        What equal cells lose to filling and draining, as a share of useful work.
    """

    step_ms: float
    unlimited_memory: Relaxed
    free_recompute: Relaxed
    divisible_ms: float
    busiest_stage: int
    busy: float
    fill_drain: float


def explain(outcome: Outcome, seconds: float) -> Explanation:
    """
    Say what limits a plan, by planning again with one thing after the other free.

    Parameters
    ----------
    outcome
        An answer with a plan.
    seconds
        Time for both further plans together, sized as ``plan_pipeline`` sizes it.

    Returns
    -------
    Explanation
        Numbers of the simulator, milliseconds and shares.

    Raises
    ------
    InputError
        When the outcome has no plan.

    Examples
    --------
    >>> from sapp_ppb.costs import Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=3, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> explanation = explain(plan_pipeline(problem, time_limit_s=0.1), 0.1)
    >>> explanation.step_ms  # two layers on stage 0: 4 x 6, and B0 comes 1 later than F1 ends
    25.0
    >>> explanation.divisible_ms  # 1.5 layers a stage: (4 + 2 - 1) x 1.5 x 3
    22.5
    """
    if outcome.plan is None:
        raise InputError("explanation", ["there is no plan to explain, because none fits"])
    plan, timeline = outcome.plan, simulate(outcome.plan)
    bound_ms = min(outcome.lower_bound_ms or 0.0, timeline.step_ms)
    busiest = int(timeline.busy_ms.argmax())
    return Explanation(
        step_ms=timeline.step_ms,
        unlimited_memory=_relaxed(
            plan,
            plan.problem.changed(memory_limit_mb=None, memory_margin=0.0),
            seconds / 2,
            # Without a limit nothing is relaxed, and what is known stands.
            known_ms=bound_ms if plan.problem.memory_limit_mb is None else None,
        ),
        free_recompute=_relaxed(plan, _with_free_recompute(plan.problem), seconds / 2),
        divisible_ms=_divisible_ms(plan.problem),
        busiest_stage=busiest,
        busy=float(timeline.busy_ms[busiest] / timeline.makespan_ms),
        fill_drain=timeline.bubble.fill_drain,
    )


def _relaxed(plan: Plan, problem: Problem, seconds: float, known_ms: float | None = None) -> Relaxed:
    """Best of a short run on the easier problem and of the plan itself in it."""
    own_ms = simulate(Plan(problem=problem, counts=plan.counts)).step_ms
    if known_ms is not None:
        return Relaxed(step_ms=own_ms, lower_bound_ms=known_ms)
    try:
        found = plan_pipeline(problem, time_limit_s=seconds)
    except (NoPlanFoundError, SolverError):
        return Relaxed(step_ms=own_ms, lower_bound_ms=0.0)
    if found.step_ms is None or found.lower_bound_ms is None:
        return Relaxed(step_ms=own_ms, lower_bound_ms=0.0)
    return Relaxed(step_ms=min(own_ms, found.step_ms), lower_bound_ms=found.lower_bound_ms)


def _with_free_recompute(problem: Problem) -> Problem:
    layers = tuple(
        replace(layer, backward_ms=(layer.backward_ms[Recompute.NONE],) * len(layer.types))
        if layer.kind is LayerKind.BODY
        else layer
        for layer in problem.model.layers
    )
    return problem.changed(model=replace(problem.model, layers=layers))


def _divisible_ms(problem: Problem) -> float:
    """Step with cells that take equal times, every layer in its fastest type."""
    tables = layer_tables(problem)
    layers = np.array([layer.count for layer in problem.model.bodies])
    fastest = np.where(tables.considered, tables.backward_ms, np.inf).min(axis=1)
    forward = float(tables.forward_ms @ layers + tables.fixed.forward_ms.sum())
    backward = float(fastest @ layers + tables.fixed.backward_ms.sum())
    weight = float(tables.weight_ms @ layers + tables.fixed.weight_ms.sum())
    nothing, speeds = np.zeros(problem.cells), np.array(problem.speed_per_cell)
    shares = speeds / speeds.sum()
    costs = CellCosts(
        forward_ms=shares * forward,
        backward_ms=shares * backward,
        weight_ms=shares * weight,
        activation_mb=nothing,
        parameter_mb=nothing,
        again_mb=nothing,
    )
    return float(batched_makespans(problem, costs.price_list(problem)[None, :])[0])
