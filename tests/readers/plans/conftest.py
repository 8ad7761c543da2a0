"""A small plan, whose file tests change."""

import json
from dataclasses import replace
from random import Random

import pytest

from sapp_ppb.plan import Bubble, Outcome, Status, StoppedBy
from sapp_ppb.writers import plan_to_json
from tests.strategies import random_plan, random_problem


def with_mtp(problem):
    """Make the last BODY entry one of multi-token prediction."""
    last = problem.model.bodies[-1].name
    layers = tuple(replace(layer, is_mtp=layer.name == last) for layer in problem.model.layers)
    return replace(problem, model=replace(problem.model, layers=layers))


def small_plan():
    rng = Random(5)
    plan = random_plan(rng, random_problem(rng, stages=2, chunks=1, micro_batches=4))
    return Outcome(
        problem=plan.problem,
        plan=plan,
        status=Status.FEASIBLE,
        stopped_by=StoppedBy.BUDGET,
        makespan_ms=40.0,
        lower_bound_ms=30.0,
        peak_memory_mb=(1.0, 2.0),
        bubble=Bubble(fill_drain=0.25, imbalance=0.0, recompute=0.5, communication=0.0),
    )


PLAN = small_plan()
MODEL = PLAN.problem.model


@pytest.fixture
def changed(tmp_path):
    """Write the small plan after a change of its document."""

    def write(change):
        document = json.loads(plan_to_json(PLAN))
        change(document)
        path = tmp_path / "plan.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    return write
