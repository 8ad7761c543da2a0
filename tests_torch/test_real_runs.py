"""What is made of the steps that ran, and what is said when none did."""

from subprocess import TimeoutExpired

import pytest

from sapp_ppb import simulate
from sapp_ppb.schedules import ScheduleName
from tests_torch import real_runs
from tests_torch.configurations import plan_of
from tests_torch.real_runs import Run, Step, run_plans

PLAN = plan_of(ScheduleName.ONE_F_ONE_B, 2, 2, [2, 3], fully_recomputed=[1, 0], tail_ms=8.0)


def run_of(*steps_ms):
    return Run(plan=PLAN, steps=tuple(Step(rows=((("0F0", 0.0, ms),), ())) for ms in steps_ms))


def test_the_step_of_a_run_is_its_median_and_of_two_in_the_middle_the_faster():
    assert run_of(50.0, 20.0, 40.0, 30.0, 10.0).step_ms == 30.0
    assert run_of(40.0, 20.0, 30.0, 10.0).step_ms == 20.0
    assert run_of(40.0, 20.0, 30.0).shortest_ms == 20.0


def test_the_clock_of_a_step_begins_with_its_first_op():
    # Seconds of the machine's clock; the first op starts at 7 s, on the second of the stages.
    step = real_runs._step([[("0F0", 7.5, 8.0)], [("1F0", 7.0, 7.25)]])
    assert step.rows == ((("0F0", 500.0, 1000.0),), (("1F0", 0.0, 250.0),))
    assert step.step_ms == 1000.0


def test_a_document_holds_the_times_of_cells():
    document = run_of(30.0).document()
    assert document["layers_per_cell"] == [2, 3]
    # 2 x 8; 3 x 8 and the tail's 8.
    assert document["forward_ms"] == [16.0, 32.0]
    # A layer's 16, one of them 1.5 x 16 for the forward again; 3 x 16 and the tail's 16.
    assert document["backward_ms"] == [40.0, 64.0]
    assert document["weight_ms"] == [16.0, 32.0]
    assert document["ops"] == [{"stage": 0, "op": "0F0", "start_ms": 0.0, "end_ms": 30.0}]


def test_what_pytorch_refuses_is_said():
    refused = plan_of(ScheduleName.ONE_F_ONE_B, 2, 1, [2, 2])
    assert simulate(refused).makespan_ms > 0
    with pytest.raises(RuntimeError, match="must be greater than"):
        run_plans([refused], steps=1)


def test_ranks_that_never_end_are_ended(monkeypatch):
    monkeypatch.setattr(real_runs, "_PATIENCE_S", 0.1)
    with pytest.raises(TimeoutExpired):
        run_plans([PLAN], steps=1)
