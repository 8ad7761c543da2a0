"""What is told of several runs together."""

from dataclasses import replace
from itertools import chain, repeat

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Status, StoppedBy
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.planner.answer import joint_reason
from sapp_ppb.planner.run import Run
from sapp_ppb.problem import Problem

PROOF, GAP, BUDGET, TIME, INTERRUPT = StoppedBy


def problem_of_several_runs(**changes) -> Problem:
    """Eleven layers on four cells: equal cells are impossible, so that no bound by work is met."""
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=11,
        forward_ms=1,
        activation_mb={Recompute.NONE: 10, Recompute.SELECTIVE: 6, Recompute.FULL: 1},
    )
    return Problem(model=Model(name="m", layers=(body,)), stages=2, interleave=2, micro_batches=4, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"max_recompute_types": 1},  # a run for each type
        {"target": "megatron"},  # one for each way
        {"stage_speed": (1.0, 0.5)},  # one for each order
        {"stage_speed": (1.0, 0.5), "max_recompute_types": 1},  # one for each type in each order
    ],
)
@pytest.mark.parametrize("reason", [TIME, BUDGET])
@pytest.mark.parametrize("place", [0, 1])
def test_whatever_run_the_clock_stopped_the_answer_may_not_repeat(changes, reason, place, monkeypatch):
    """Only the first reason, or the last, was told: ``budget`` of a plan that another run may not find."""
    found, reasons = Run.outcome, chain([BUDGET] * place, [reason], repeat(BUDGET))

    def outcome(run: Run):
        return replace(found(run), stopped_by=next(reasons), lower_bound_ms=0.0)

    monkeypatch.setattr(Run, "outcome", outcome)
    problem = problem_of_several_runs(**changes)
    told = plan_pipeline(problem, time_limit_s=0.2, reorder_stages=problem.stage_speed is not None)
    assert next(reasons) is BUDGET  # there were more runs than the one
    assert told.status is Status.FEASIBLE
    assert told.stopped_by is reason


def test_who_waits_longer_waits_so_for_all_orders_together():
    """The option was dropped where stages are reordered, and the clock stopped the runs as usual."""
    problem = problem_of_several_runs(stage_speed=(1.0, 0.5))
    hasty = plan_pipeline(problem, time_limit_s=0.2, reorder_stages=True, patience=1e-6)
    assert hasty.stopped_by is TIME
    assert plan_pipeline(problem, time_limit_s=0.2, reorder_stages=True, patience=50.0).stopped_by is not TIME


def test_a_run_that_the_clock_stopped_without_a_plan_counts_too(monkeypatch):
    monkeypatch.setattr("sapp_ppb.planner.run.baselines", lambda problem: ())
    search = Run._search
    reasons = iter([TIME])

    def stopped(run: Run):
        reason = next(reasons, None)
        if reason is None:
            return search(run)
        run.best = None
        return reason

    monkeypatch.setattr(Run, "_search", stopped)
    told = plan_pipeline(problem_of_several_runs(max_recompute_types=1), time_limit_s=0.2)
    assert told.status is Status.FEASIBLE
    assert told.stopped_by is TIME


@pytest.mark.parametrize(
    ("reasons", "joint"),
    [
        ((PROOF, PROOF), PROOF),
        ((PROOF, GAP), GAP),
        ((GAP, BUDGET), BUDGET),
        ((TIME, BUDGET), TIME),
        ((TIME, INTERRUPT, PROOF), INTERRUPT),
    ],
)
def test_the_reason_after_which_least_is_sure_is_told(reasons, joint):
    assert joint_reason(*reasons) is joint_reason(*reversed(reasons)) is joint
