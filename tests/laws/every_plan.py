"""The best plan of a small problem, out of the list of all."""

import math

import numpy as np

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.planner.device_orders import in_order, orders_of
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Placement
from tests.planner.brute_force import all_plans
from tests.reference import reference


def least_ms(problem: Problem, *, reorder_stages: bool = False) -> float:
    """Least step of all plans that keep what is asked and fit by the slow reference; infinite without one."""
    if reorder_stages:
        return min(least_ms(in_order(problem, order)) for order in orders_of(problem))
    nested = problem.target is not None
    free = problem.changed(fix=None, max_recompute_types=None, recompute_working_set=False)
    if nested:  # MindFormers has a layer in every cell, whatever the problem allows, but beside HEAD and TAIL
        ends_last = Placement.V is not problem.order.placement  # of a TAIL on stage 0 it knows nothing
        free = free.changed(min_layers_per_cell=1, empty_tail=problem.empty_tail and ends_last)
    every = all_plans(free, nested=nested)
    for index in np.argsort(every.makespan_ms, kind="stable").tolist():
        plan = Plan(problem=problem, counts=every.plan(index).counts)
        if keeps(plan) and fits(plan):
            return float(every.makespan_ms[index])
    return math.inf


def fits(plan: Plan) -> bool:
    """Whether no stage holds more than its limit during any op, by the slow reference."""
    limits = plan.problem.limit_per_stage_mb
    return all(
        mb <= limit * (1 + 2e-9)
        for held, limit in zip(reference(plan).held_mb, limits, strict=True)
        for mb in held
    )


def keeps(plan: Plan) -> bool:
    """Whether a plan keeps what is fixed and mixes no more types than it may, in plain sums."""
    fix, most = plan.problem.fix, plan.problem.max_recompute_types
    used = [r for r in plan.problem.model.types if r != Recompute.NONE and plan.counts[:, r].sum() > 0]
    if most is not None and len(used) > most:
        return False
    if fix is not None and fix.layers is not None:
        return bool((plan.counts.sum(axis=0).sum(axis=0) == fix.layers).all())
    if fix is not None and fix.recompute is not None:
        return bool((plan.counts[:, 1:] == np.array(fix.recompute)[:, 1:]).all())
    return True
