"""What a problem fills in, and which problems are equal."""

import math
from dataclasses import replace

import numpy as np
import pytest

from sapp_ppb.errors import InputError, ScheduleError
from sapp_ppb.schedules import ScheduleName
from tests.problem.problems import model, problem


def test_without_a_schedule_one_chunk_means_1f1b_and_more_mean_interleaved() -> None:
    assert problem().schedule is ScheduleName.ONE_F_ONE_B
    assert problem(interleave=2).schedule is ScheduleName.INTERLEAVED
    assert problem(schedule=ScheduleName.GPIPE).schedule_name is ScheduleName.GPIPE


def test_a_schedule_that_is_left_out_equals_the_one_that_is_meant() -> None:
    assert problem() == problem(schedule=ScheduleName.ONE_F_ONE_B)
    assert hash(problem()) == hash(problem(schedule=ScheduleName.ONE_F_ONE_B))
    # Text is taken as the name it is.
    assert problem(schedule="1f1b").schedule is ScheduleName.ONE_F_ONE_B


def test_there_are_stages_times_chunks_cells() -> None:
    assert problem(interleave=2).cells == 4 * 2


def test_chunks_that_are_not_given_are_the_schedules_own() -> None:
    assert problem(schedule=ScheduleName.ZBV, micro_batches=8).interleave == 2
    assert problem().interleave == 1
    with pytest.raises(ScheduleError, match=r"zbv: chunks must be 2 \(got 1\)"):
        problem(schedule=ScheduleName.ZBV, interleave=1)


def test_constant_memory_is_the_models_unless_it_is_given() -> None:
    heavy = model(constant_mb=700)
    assert problem(model=heavy).constant_per_stage_mb == (700.0,) * 4
    # A given 0 is a value.
    assert problem(model=heavy, constant_memory_mb=0).constant_per_stage_mb == (0.0,) * 4
    assert problem(model=heavy, constant_memory_mb=(1, 2, 3, 4)).constant_per_stage_mb == (1, 2, 3, 4)
    assert problem(model=heavy) == problem(model=heavy, constant_memory_mb=700)


def test_no_memory_limit_is_an_infinite_one_and_one_number_holds_for_all_stages() -> None:
    assert problem().limit_per_stage_mb == (math.inf,) * 4
    assert problem(memory_limit_mb=56_000).limit_per_stage_mb == (56_000.0,) * 4
    assert problem(memory_limit_mb=[4, 3, 2, 1]).limit_per_stage_mb == (4, 3, 2, 1)


@pytest.mark.parametrize("field", ["memory_limit_mb", "constant_memory_mb", "p2p_ms"])
def test_a_list_of_equal_numbers_is_that_number(field: str) -> None:
    listed = problem(**{field: [5.0] * 4})
    assert getattr(listed, field) == 5.0
    assert listed == problem(**{field: 5.0})
    assert hash(listed) == hash(problem(**{field: 5.0}))
    assert problem(**{field: [5.0]}) == problem(**{field: 5.0})


@pytest.mark.parametrize("field", ["memory_limit_mb", "constant_memory_mb", "p2p_ms"])
def test_a_list_becomes_a_tuple_so_that_a_problem_can_be_a_key(field: str) -> None:
    listed = problem(**{field: [1.0, 2.0, 3.0, 4.0]})
    assert getattr(listed, field) == (1.0, 2.0, 3.0, 4.0)
    assert {listed: 1}[problem(**{field: (1.0, 2.0, 3.0, 4.0)})] == 1


def test_numbers_of_numpy_are_numbers() -> None:
    assert problem(memory_limit_mb=np.float64(5)) == problem(memory_limit_mb=5.0)


def test_sends_are_listed_by_edge_and_the_wrap_comes_last() -> None:
    assert problem(p2p_ms=0.5).hop_ms == (0.5,) * 4
    assert problem(p2p_ms=(1, 2, 3)).hop_ms == (1, 2, 3)
    assert problem(p2p_ms=(1, 2, 3, 4), interleave=2).hop_ms == (1, 2, 3, 4)
    assert problem(stages=1, p2p_ms=(1,)).hop_ms == (1.0,)


def test_two_stages_have_a_wrap_of_their_own_and_one_stage_has_no_edge() -> None:
    # Cells 0 1 2 3 on stages 0 1 0 1: the way from cell 1 to 2 is the wrap.
    assert problem(stages=2, interleave=2, p2p_ms=(1, 2)).hop_ms == (1, 2)
    assert problem(stages=1, interleave=2, p2p_ms=(1,)).hop_ms == (1.0,)


def test_a_speed_of_one_is_none_and_every_stage_has_its_own() -> None:
    assert problem(stage_speed=1) == problem(stage_speed=(1,) * 4) == problem()
    assert problem(stage_speed=0.5).speed_per_stage == (0.5,) * 4
    # zbv turns: cells 0 to 3 on stages 0 to 3, cells 4 to 7 on stages 3 to 0.
    turned = problem(stage_speed=(1, 2, 3, 4), schedule=ScheduleName.ZBV)
    assert turned.speed_per_cell == (1, 2, 3, 4, 4, 3, 2, 1)


def test_what_comes_after_the_last_op_is_a_number_or_one_a_stage() -> None:
    assert not problem().has_extra
    assert problem(step_extra_ms=2.0).extra_per_stage_ms == (2.0,) * 4
    assert problem(step_extra_ms=(0, 0, 1, 0)).has_extra


def test_problems_differ_in_anything_that_is_given() -> None:
    different = [
        problem(),
        problem(stages=2),
        problem(micro_batches=4),
        problem(interleave=2),
        problem(schedule=ScheduleName.GPIPE),
        problem(memory_limit_mb=1),
        problem(constant_memory_mb=1),
        problem(p2p_ms=1),
        problem(min_layers_per_cell=0),
        problem(target="mindformers"),
        problem(model=model(9)),
    ]
    assert len(set(different)) == len(different)


def test_a_changed_problem_is_checked_again_and_has_its_own_order() -> None:
    # 1F1B with S = 2, M = 3 has 2 x 3 ops a stage.
    first = problem(stages=2, micro_batches=2)
    assert len(first.order.rows[0]) == 4
    assert len(replace(first, micro_batches=3).order.rows[0]) == 6
    with pytest.raises(InputError, match="micro-batches"):
        replace(first, micro_batches=0)
