"""A problem with fewer recompute types is planned like a model that gives no others."""

from dataclasses import replace
from random import Random

import pytest

from sapp_ppb.costs import LayerKind
from sapp_ppb.plan import Plan, Status, StoppedBy
from sapp_ppb.planner import baselines, plan_pipeline
from sapp_ppb.planner.search.tidy import tidied
from sapp_ppb.problem import Problem
from tests.strategies import random_problem


def narrowed(seed: int) -> tuple[Problem, Problem]:
    """Random small problem with some of its types, and one whose model gives only those."""
    rng = Random(seed)
    while True:
        problem = random_problem(rng, stages=2, micro_batches=3, strategies=True)
        given = sorted({r for layer in problem.model.bodies for r in layer.considered})
        allowed = tuple(r for r in given if rng.random() < 0.6)
        if len(given) > 1 and all(set(layer.considered) & set(allowed) for layer in problem.model.bodies):
            break
    layers = tuple(
        replace(
            layer,
            activation_mb=tuple(
                mb if r in allowed else None for r, mb in zip(layer.types, layer.activation_mb, strict=True)
            ),
        )
        if layer.kind is LayerKind.BODY
        else layer
        for layer in problem.model.layers
    )
    # A working set asks for the memory of NONE, which the poorer model may lack.
    limit = rng.choice([None, 600.0, 1200.0])
    problem = replace(problem, memory_limit_mb=limit, recompute_working_set=False)
    poorer = replace(problem, model=replace(problem.model, layers=layers))
    return replace(problem, recompute=allowed), poorer


def by_label(plan: Plan) -> dict[str, list[list[int]]]:
    """Layers of every type in use; a model without a strategy does not number it."""
    types = plan.problem.model.types
    return {r.label: plan.counts[:, r].tolist() for r in types if plan.counts[:, r].any()}


@pytest.mark.parametrize("seed", range(25))
def test_forbidden_types_are_as_good_as_not_given(seed):
    restricted, poorer = narrowed(seed)
    ours, theirs = (plan_pipeline(problem, time_limit_s=0.3) for problem in (restricted, poorer))
    assert (ours.status is Status.INFEASIBLE) == (theirs.status is Status.INFEASIBLE)
    if ours.plan is None or theirs.plan is None:
        assert ours.shortage is not None
        assert theirs.shortage is not None
        assert ours.shortage.over_mb == theirs.shortage.over_mb
        return
    for one, other in ((ours, theirs), (theirs, ours)):
        assert one.lower_bound_ms is not None
        assert other.makespan_ms is not None
        assert one.lower_bound_ms <= other.makespan_ms * (1 + 1e-9)
    if StoppedBy.TIME not in (ours.stopped_by, theirs.stopped_by):  # else they may have come less far
        assert ours.makespan_ms == theirs.makespan_ms
        assert by_label(ours.plan) == by_label(theirs.plan)


@pytest.mark.parametrize("seed", range(10))
def test_baselines_and_tidying_keep_to_the_types(seed):
    restricted, poorer = narrowed(seed)
    pairs = zip(baselines(restricted), baselines(poorer), strict=True)
    for ours, theirs in pairs:
        assert by_label(ours.plan) == by_label(theirs.plan)
        assert by_label(tidied(ours.plan)) == by_label(tidied(theirs.plan))
