"""The plan that holds least, by hand."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import PlannerNote, SolverError
from sapp_ppb.planner.shortage import infeasible
from sapp_ppb.planner.shortage.infeasible import find_shortage
from sapp_ppb.planner.shortage.least_memory import LeastMemory, _by_program, _variants, least_memory
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import simulate
from sapp_ppb.simulator.price import layer_tables
from tests.planner.brute_force import all_plans
from tests.strategies import random_problem


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


def test_without_an_answer_in_time_a_baseline_says_where(monkeypatch):
    monkeypatch.setattr(infeasible, "least_memory", lambda *_, **__: LeastMemory(plan=None, over_mb=-np.inf))
    shortage = find_shortage(problem_of(5, memory_limit_mb=40.0), time_limit_s=5.0)
    # Even split (3, 2), all FULL: 3 x (10 + 2 x 6) = 66 and 2 x 16 = 32 MB.
    assert (shortage.stage, shortage.op, shortage.over_mb) == (0, "0F1", 26.0)
    assert (shortage.smallest_limit_mb, shortage.proven) == (66.0, False)


@pytest.mark.parametrize(("bound_mb", "known_mb"), [(3.0, 3.0), (-np.inf, None), (np.inf, None)])
def test_without_any_plan_the_bound_is_told(bound_mb, known_mb, monkeypatch):
    monkeypatch.setattr(infeasible, "least_memory", lambda *_, **__: LeastMemory(plan=None, over_mb=bound_mb))
    monkeypatch.setattr(infeasible, "baselines", lambda _: ())
    shortage = find_shortage(problem_of(5, memory_limit_mb=40.0), time_limit_s=5.0)
    assert (shortage.stage, shortage.op, shortage.over_mb) == (None, None, known_mb)
    # With three stages 1, 2 and 2 layers fit: three, two and one live, 22, 2 x 18 and 2 x 14 MB.
    assert (shortage.smallest_limit_mb, shortage.proven) == (None, False)
    assert shortage.remedies == (("stages", 3),)


def test_a_solver_that_fails_leaves_the_answer(monkeypatch):
    def fails(*_, **__):
        raise SolverError("HiGHS is missing")

    monkeypatch.setattr(infeasible, "least_memory", fails)
    with pytest.warns(PlannerNote, match="known in part only: HiGHS is missing"):
        shortage = find_shortage(problem_of(5, memory_limit_mb=40.0), time_limit_s=5.0)
    assert shortage.over_mb == 26.0  # as above


@pytest.mark.parametrize(("bound_mb", "proven"), [(1.6, True), (1.5, False)])
def test_the_smallest_limit_is_called_so_within_a_hundredth(bound_mb, proven, monkeypatch):
    problem = problem_of(5, memory_limit_mb=40.0)
    least = LeastMemory(plan=least_memory(problem).plan, over_mb=bound_mb)
    monkeypatch.setattr(infeasible, "least_memory", lambda *_, **__: least)
    shortage = find_shortage(problem, time_limit_s=5.0)
    # The plan holds 42 MB; 40 + 1.6 is 0.95 % below, 40 + 1.5 is 1.2 %.
    assert (shortage.smallest_limit_mb, shortage.proven) == (42.0, proven)


@pytest.mark.parametrize("seed", range(40))
def test_the_chain_and_the_program_agree(seed):
    rng = Random(seed)
    problem = random_problem(rng, chunks=1)
    if problem.memory_limit_mb is None:
        problem = replace(problem, memory_limit_mb=100.0)
    for one_limit in (False, True):
        tables = layer_tables(problem)
        program = _by_program(problem, tables, _variants(problem, tables), one_limit, False, 10.0)
        chain = least_memory(problem, one_limit=one_limit)
        assert chain.over_mb == pytest.approx(program.over_mb, rel=1e-6, abs=1e-6)
        assert chain.plan is not None
        limits = np.zeros(problem.stages) if one_limit else np.array(problem.limit_per_stage_mb)
        peaks = np.array(simulate(chain.plan).peak_memory_mb)
        assert (peaks - limits).max() == pytest.approx(chain.over_mb, rel=1e-9, abs=1e-9)


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


def one_type(name: str, recompute: Recompute, activation_mb: float):
    """One layer that has a single type, and no parameters."""
    memory = {recompute: activation_mb}
    return layer_from_times(name=name, kind=LayerKind.BODY, count=1, forward_ms=1, activation_mb=memory)


def test_a_target_that_can_not_say_a_cell_moves_the_split_of_a_chain():
    # (light, light | heavy) is free of mixes, (light | light, heavy) is not: SELECTIVE beside COMM.
    layers = (
        one_type("a", Recompute.SELECTIVE, 10),
        one_type("b", Recompute.SELECTIVE, 10),
        one_type("c", Recompute.COMM, 5),
    )
    free = Problem(model=Model(name="m", layers=layers), stages=2, micro_batches=4)
    # Stage 0 has two live: 2 x 10 against 10 + 5, or 4 x 10 against 5.
    assert least_memory(free, one_limit=True).over_mb == pytest.approx(20.0)
    assert least_memory(replace(free, target="mindformers"), one_limit=True).over_mb == pytest.approx(40.0)


def test_a_run_behind_layers_that_a_target_forbids_there_keeps_its_memory():
    # Only (a | b, c) leaves each type alone; b and c hold 7 + 5 MB on stage 1, and a 2 x 1 on stage 0.
    layers = (
        one_type("a", Recompute.SELECTIVE, 1),
        one_type("b", Recompute.COMM, 7),
        one_type("c", Recompute.COMM, 5),
    )
    problem = Problem(model=Model(name="m", layers=layers), stages=2, micro_batches=4, target="mindformers")
    least = least_memory(problem, one_limit=True)
    assert least.over_mb == pytest.approx(12.0)
    assert least.plan is not None
    assert least.plan.layers_per_cell.tolist() == [1, 2]


@pytest.mark.parametrize("seed", range(30))
def test_the_chain_and_the_program_agree_on_what_a_target_can_say(seed):
    rng = Random(seed)
    types = (Recompute.SELECTIVE, Recompute.COMM)
    layers = tuple(one_type(f"l{i}", rng.choice(types), rng.randint(1, 9)) for i in range(6))
    problem = Problem(model=Model(name="m", layers=layers), stages=3, micro_batches=4, target="mindformers")
    tables = layer_tables(problem)
    program = _by_program(problem, tables, _variants(problem, tables), True, False, 10.0)
    assert least_memory(problem, one_limit=True).over_mb == pytest.approx(program.over_mb)


def test_a_chain_that_a_target_can_not_say_at_all_has_no_plan():
    layers = (one_type("a", Recompute.SELECTIVE, 10), one_type("b", Recompute.COMM, 5))
    problem = Problem(model=Model(name="m", layers=layers), stages=1, micro_batches=1, target="mindformers")
    least = least_memory(problem, one_limit=True)
    assert (least.plan, least.over_mb) == (None, np.inf)


def test_without_a_limit_a_target_is_obeyed_all_the_same():
    layers = (one_type("a", Recompute.SELECTIVE, 10), one_type("b", Recompute.COMM, 5))
    problem = Problem(model=Model(name="m", layers=layers), stages=2, micro_batches=4, target="mindformers")
    least = least_memory(problem)
    assert least.plan is not None
    assert least.plan.layers_per_cell.tolist() == [1, 1]


def test_a_solution_of_values_that_are_no_numbers_is_solved_again():
    # HiGHS 1.16.0 called a solution optimal here in which three counts were NaN, and rounding them raised.
    layers = (
        layer_from_times(name="a", kind=LayerKind.BODY, count=3, forward_ms=1),
        layer_from_times(
            name="b",
            kind=LayerKind.BODY,
            count=5,
            forward_ms=1,
            activation_mb={Recompute.NONE: 83.33563655774086, Recompute.BOTH: 56.45032624719376},
        ),
        layer_from_times(
            name="tail",
            kind=LayerKind.TAIL,
            forward_ms=1,
            activation_mb={Recompute.NONE: 98.9338419046395},
        ),
    )
    problem = Problem(
        model=Model(name="spoilt", layers=layers),
        stages=4,
        interleave=2,
        micro_batches=3,
        memory_limit_mb=(243.28462593399723, 240.2534119110653, 406.02872971226594, 257.81824833742377),
    )
    answer = least_memory(problem)
    assert answer.plan is not None
    # Of all plans, listed one by one.
    assert answer.over_mb == pytest.approx(all_plans(problem).least_over_mb, rel=1e-6)
