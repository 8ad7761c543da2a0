"""The plan that holds least, by hand."""

from typing import Any

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import NoPlanFoundError
from sapp_ppb.planner import infeasible
from sapp_ppb.planner.infeasible import find_shortage
from sapp_ppb.planner.least_memory import LeastMemory, least_memory
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import simulate


def problem_of(count: int, **changes) -> Problem:
    """Layers of 10 MB of parameters, and 4 MB a live micro-batch at least (COMM), 20 MB at most."""
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=count,
        forward_ms=1,
        parameter_mb=10,
        activation_mb={Recompute.NONE: 20, Recompute.COMM: 4, Recompute.FULL: 6},
    )
    given: dict[str, Any] = {"model": Model(name="m", layers=(body,)), "stages": 2, "micro_batches": 4}
    return Problem(**(given | changes))


def test_least_memory_of_two_stages():
    # 1F1B: stage 0 has two live, a layer there is 10 + 2 x 4 = 18 MB; on stage 1 it is 14 MB.
    # 5 layers: 2 and 3 give 36 and 42 MB, 1 and 4 give 18 and 56, 3 and 2 give 54 and 28.
    least = least_memory(problem_of(5, memory_limit_mb=40.0))
    assert least.over_mb == pytest.approx(2.0)
    assert least.plan is not None
    assert least.plan.layers_per_cell.tolist() == [2, 3]
    assert least.plan.counts[0, Recompute.COMM].tolist() == [2, 3]


def test_room_is_a_negative_excess():
    assert least_memory(problem_of(5, memory_limit_mb=50.0)).over_mb == pytest.approx(-8.0)


def test_limits_a_stage_move_the_split():
    # Over 50 and 30 MB: (2, 3) is 42 - 30 = 12 over, (3, 2) 54 - 50 = 4, (4, 1) 72 - 50 = 22.
    least = least_memory(problem_of(5, memory_limit_mb=(50.0, 30.0)))
    assert least.over_mb == pytest.approx(4.0)
    assert least.plan is not None
    assert least.plan.layers_per_cell.tolist() == [3, 2]


def test_one_limit_for_all_is_measured_from_zero():
    least = least_memory(problem_of(5, memory_limit_mb=(50.0, 30.0)), one_limit=True)
    assert least.over_mb == pytest.approx(42.0)


def test_constant_memory_counts():
    # Stage 1 holds 100 MB besides: 5 layers cannot leave it, one must stay: 114 against stage 0's 72.
    least = least_memory(problem_of(5, constant_memory_mb=(0.0, 100.0), memory_limit_mb=100.0))
    assert least.over_mb == pytest.approx(14.0)


def test_empty_cells_help_where_they_are_allowed():
    # All 5 on stage 0: 90 MB, and 100 MB stay on stage 1.
    problem = problem_of(5, constant_memory_mb=(0.0, 100.0), memory_limit_mb=100.0, min_layers_per_cell=0)
    assert least_memory(problem).over_mb == pytest.approx(0.0, abs=1e-9)


def test_kinds_keep_their_order():
    # Light layers come first: the heavy one can only be last, whatever stage 1 has to hold.
    light = layer_from_times(name="light", kind=LayerKind.BODY, count=2, forward_ms=1, parameter_mb=1)
    heavy = layer_from_times(name="heavy", kind=LayerKind.BODY, count=1, forward_ms=1, parameter_mb=50)
    problem = Problem(
        model=Model(name="m", layers=(light, heavy)),
        stages=2,
        micro_batches=2,
        memory_limit_mb=(100.0, 10.0),
    )
    least = least_memory(problem)
    assert least.over_mb == pytest.approx(40.0)
    assert least.plan is not None
    assert least.plan.counts.sum(axis=1).tolist() == [[2, 0], [0, 1]]


def test_shortage_names_stage_op_and_limit():
    # (2, 3): stage 1 holds 42 of 40 MB, with its only live micro-batch, from its first forward on.
    shortage = find_shortage(problem_of(5, memory_limit_mb=40.0), time_limit_s=5.0)
    assert (shortage.stage, shortage.op) == (1, "1F0")
    assert shortage.over_mb == pytest.approx(2.0)
    assert shortage.smallest_limit_mb == pytest.approx(42.0)
    assert dict(shortage.remedies)["memory_limit_mb"] == pytest.approx(42.0)


def test_shortage_of_limits_a_stage_tells_one_limit_for_all():
    shortage = find_shortage(problem_of(5, memory_limit_mb=(50.0, 30.0)), time_limit_s=5.0)
    # (3, 2) is least over, on stage 0 at its second forward; a single limit is least with (2, 3).
    assert (shortage.stage, shortage.op) == (0, "0F1")
    assert shortage.over_mb == pytest.approx(4.0)
    assert shortage.smallest_limit_mb == pytest.approx(42.0)


def test_no_answer_in_time_is_no_shortage(monkeypatch):
    monkeypatch.setattr(infeasible, "least_memory", lambda *_, **__: LeastMemory(plan=None, over_mb=-np.inf))
    with pytest.raises(NoPlanFoundError, match="could not be computed in time"):
        find_shortage(problem_of(5, memory_limit_mb=40.0), time_limit_s=5.0)


def test_excess_of_the_plan_is_what_the_simulator_says():
    problem = problem_of(9, stages=3, micro_batches=5, memory_limit_mb=(30.0, 60.0, 20.0))
    least = least_memory(problem)
    assert least.plan is not None
    peaks = simulate(least.plan).peak_memory_mb
    assert max(np.subtract(peaks, problem.limit_per_stage_mb)) == pytest.approx(least.over_mb)


def test_a_program_on_which_the_solver_gives_up_is_tried_again():
    # HiGHS 1.16 ends this one with "Solve error" in its presolve.  Seven layers on two stages: four on one.
    layer_mb = 186.84489014655588
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=7, forward_ms=1, parameter_mb=layer_mb)
    head = layer_from_times(name="head", kind=LayerKind.HEAD, forward_ms=1)
    problem = Problem(
        model=Model(name="m", layers=(head, body)),
        stages=2,
        interleave=3,
        micro_batches=7,
        micro_batch_group=5,
        constant_memory_mb=7.0,
    )
    assert least_memory(problem, one_limit=True).over_mb == pytest.approx(4 * layer_mb + 7)
