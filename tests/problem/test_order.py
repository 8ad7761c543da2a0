"""The order of ops that a problem has, the automatic one too."""

from dataclasses import replace

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import ScheduleError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Op, OpKind, OrderFile, ScheduleName, build_schedule
from sapp_ppb.simulator import simulate
from tests.problem.problems import model, problem


def test_the_order_is_that_of_the_sizes() -> None:
    # 1F1B, S = 2, M = 2.
    assert problem(stages=2, micro_batches=2).order.to_csv() == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"


def test_an_order_file_implies_the_custom_schedule() -> None:
    text = build_schedule("1f1b", 4, 1, 8).to_csv()
    given = problem(order_file=OrderFile(path="order.csv", text=text))
    assert given.schedule_name is ScheduleName.CUSTOM
    assert given.order.rows == problem().order.rows


def test_a_schedule_that_does_not_exist_for_the_sizes_is_refused() -> None:
    with pytest.raises(ScheduleError, match="1f1b: chunks must be 1"):
        problem(interleave=2, schedule=ScheduleName.ONE_F_ONE_B)
    with pytest.raises(ScheduleError, match="6 micro-batches are not a multiple of 4 stages"):
        problem(interleave=2, micro_batches=6)
    with pytest.raises(ScheduleError, match="takes no --micro-batch-group"):
        problem(micro_batch_group=4)
    with pytest.raises(ScheduleError, match="--micro-batch-group 3 does not work"):
        problem(interleave=2, micro_batch_group=3)


def test_an_unknown_schedule_is_refused_with_those_known() -> None:
    with pytest.raises(ScheduleError, match="schedule 'zigzag' is unknown; one of"):
        problem(schedule="zigzag")


def test_the_automatic_order_is_made_for_the_problems_own_stages_and_memory() -> None:
    # Two layers a stage, each 5 MB and 10 MB for a micro-batch.
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=8,
        forward_ms=1,
        parameter_mb=5,
        activation_mb={Recompute.NONE: 10},
    )
    sizes = {"model": Model(name="held", layers=(body,)), "schedule": ScheduleName.ZB_AUTO}
    # Without a limit as fast as can be: 8 x 3 x 2 of work and 3 x 2 of forwards before the last stage.
    assert makespan_of(problem(**sizes)) == 8 * 6 + 3 * 2
    # Room for two of a stage's 20 MB.
    narrow = problem(**sizes, memory_limit_mb=2 * 5 + 2 * 20 + 19)
    assert max(live(row) for row in narrow.order.rows) == 2
    assert replace(narrow).order is narrow.order  # built again, and the same


def test_the_automatic_order_is_made_for_the_speeds_of_the_stages() -> None:
    # 6 layers of 1 + 2 ms; speeds 1 and 0.5 share them 4 and 2, which take 4 ms forward on either.
    shared = problem(model=model(6), stages=2, schedule=ScheduleName.ZB_AUTO, stage_speed=(1, 0.5))
    assert shared._even_costs().forward_ms == (4, 4)
    assert shared._even_costs().input_ms == shared._even_costs().weight_ms == (4, 4)
    # The order of two equal stages, which 3 + 3 layers at speed 1 are.
    equal = problem(model=model(6), stages=2, schedule=ScheduleName.ZB_AUTO)
    assert shared.order.rows == equal.order.rows


def live(row: tuple[Op, ...]) -> int:
    """Most micro-batches alive, from F to W."""
    steps = [(op.kind is OpKind.F) - (op.kind is OpKind.W) for op in row]
    return max(sum(steps[: end + 1]) for end in range(len(steps)))


def makespan_of(given: Problem) -> float:
    """Makespan of equal cells."""
    counts = np.zeros((1, len(Recompute), given.cells), dtype=int)
    counts[0, Recompute.NONE] = given.model.body_count // given.cells
    return simulate(Plan(problem=given, counts=counts)).makespan_ms
