"""What limits a plan, with numbers that can be had by hand."""

from typing import Any

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Outcome, Status, StoppedBy
from sapp_ppb.planner import explain, plan_pipeline
from sapp_ppb.problem import Problem

NONE, FULL = Recompute.NONE, Recompute.FULL


def problem_of(**changes: Any) -> Problem:
    """Four layers of 1 + 2 ms, 3 ms when recomputed, that hold 10 or 1 MB a micro-batch."""
    body = layer_from_times(
        name="Dec", kind=LayerKind.BODY, count=4, forward_ms=1, activation_mb={NONE: 10, FULL: 1}
    )
    given: dict[str, Any] = {"model": Model(name="tiny", layers=(body,)), "stages": 2, "micro_batches": 4}
    return Problem(**(given | changes))


def test_memory_and_recompute_that_cost_time():
    # Two layers a stage and two live on stage 0: 2 x 2 x 1 = 4 MB with FULL, and on stage 1 2 x 1.  One layer
    # of NONE takes 10 MB, which no stage has.  (4 + 2 - 1) x (2 + 6) = 40 ms; without recompute 5 x (2 + 4).
    outcome = plan_pipeline(problem_of(memory_limit_mb=4), time_limit_s=1.0)
    explanation = explain(outcome, 1.0)
    assert explanation.step_ms == outcome.makespan_ms == pytest.approx(40.0)
    assert explanation.unlimited_memory.step_ms == pytest.approx(30.0)
    assert explanation.unlimited_memory.lower_bound_ms == pytest.approx(30.0)  # one chunk: proven
    assert explanation.free_recompute.step_ms == pytest.approx(30.0)
    assert explanation.divisible_ms == pytest.approx(30.0)  # the layers divide evenly as they are
    # Each stage works 4 x 8 of the 40 ms; of those that tie the first is named.
    assert explanation.busiest_stage == 0
    assert explanation.busy == pytest.approx(0.8)
    assert explanation.fill_drain == pytest.approx(1 / 4)  # (S - 1) / M


def test_without_a_limit_memory_is_none():
    outcome = plan_pipeline(problem_of(), time_limit_s=1.0)
    explanation = explain(outcome, 1.0)
    assert explanation.unlimited_memory.step_ms == explanation.step_ms == pytest.approx(30.0)


def test_nothing_free_is_slower_than_the_plan():
    outcome = plan_pipeline(
        problem_of(interleave=2, memory_limit_mb=30, memory_margin="10%"), time_limit_s=0.2
    )
    explanation = explain(outcome, 0.1)
    for relaxed in (explanation.unlimited_memory, explanation.free_recompute):
        assert relaxed.lower_bound_ms <= relaxed.step_ms <= explanation.step_ms * (1 + 1e-12)


def test_without_a_plan_there_is_nothing_to_explain():
    outcome = Outcome(problem=problem_of(), plan=None, status=Status.INFEASIBLE, stopped_by=StoppedBy.PROOF)
    with pytest.raises(InputError, match="no plan to explain"):
        explain(outcome, 1.0)


def test_stages_of_other_speeds_divide_the_work_in_proportion():
    # 4 layers of 3 ms on speeds 1 and 0.5: 12 / 1.5 = 8 ms for each stage, (4 + 2 - 1) x 8 = 40, and 7 ms
    # come behind stage 0.
    outcome = plan_pipeline(problem_of(stage_speed=(1, 0.5), step_extra_ms=(7, 0)), time_limit_s=1.0)
    explanation = explain(outcome, 1.0)
    assert explanation.divisible_ms == pytest.approx(47.0)
    assert explanation.step_ms == outcome.step_ms
