"""What a time limit buys."""

from dataclasses import replace

import pytest

from sapp_ppb.costs import LayerKind, Model, layer_from_times
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.planner.search.budget import budget_for
from sapp_ppb.problem import Problem

BODY = layer_from_times(name="Dec", kind=LayerKind.BODY, count=12, forward_ms=1)


@pytest.mark.parametrize("interleave", [1, 2])
def test_patience_moves_the_clock_and_nothing_else(interleave):
    problem = Problem(
        model=Model(name="tiny", layers=(BODY,)), stages=3, micro_batches=6, interleave=interleave
    )
    usual, patient = budget_for(problem, 5.0), budget_for(problem, 5.0, 4.0)
    # 4 x (5 + 0.7) s.
    assert patient.stop_s == pytest.approx(22.8, rel=1e-12)
    assert replace(patient, stop_s=usual.stop_s) == usual


@pytest.mark.parametrize("target", [None, "mindformers"])
def test_a_plan_is_the_same_with_patience(target):
    problem = Problem(model=Model(name="tiny", layers=(BODY,)), stages=3, micro_batches=6, target=target)
    usual, patient = (plan_pipeline(problem, time_limit_s=2.0, patience=patience) for patience in (1.0, 4.0))
    assert replace(patient, seconds=0.0) == replace(usual, seconds=0.0)
