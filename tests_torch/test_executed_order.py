"""What processes run is what the simulator times."""

import numpy as np
import pytest

from sapp_ppb import simulate
from sapp_ppb.schedules import ScheduleName
from tests_torch.configurations import plan_of
from tests_torch.real_runs import run_plans


def even(schedule, stages, chunks, micro_batches, **more):
    return plan_of(schedule, stages, micro_batches, [1] * (stages * chunks), **more)


PYTORCHS = [
    even(ScheduleName.GPIPE, 2, 1, 3),
    even(ScheduleName.GPIPE, 4, 1, 8),
    even(ScheduleName.ONE_F_ONE_B, 2, 1, 2),
    even(ScheduleName.ONE_F_ONE_B, 2, 1, 5),
    even(ScheduleName.ONE_F_ONE_B, 4, 1, 4),
    even(ScheduleName.ONE_F_ONE_B, 4, 1, 9),
    even(ScheduleName.INTERLEAVED, 2, 2, 4),
    even(ScheduleName.INTERLEAVED, 2, 3, 6),
    even(ScheduleName.INTERLEAVED, 2, 2, 3, group=3),
    even(ScheduleName.INTERLEAVED, 4, 2, 8),
    even(ScheduleName.INTERLEAVED, 4, 3, 4),
    even(ScheduleName.INTERLEAVED, 4, 2, 10, group=5),
    even(ScheduleName.LOOPED_BFS, 2, 2, 4),
    even(ScheduleName.LOOPED_BFS, 4, 2, 8),
    even(ScheduleName.INTERLEAVED_ZERO_BUBBLE, 2, 2, 4),
    even(ScheduleName.INTERLEAVED_ZERO_BUBBLE, 4, 1, 8),
    even(ScheduleName.INTERLEAVED_ZERO_BUBBLE, 4, 2, 8),
    even(ScheduleName.ZBV, 2, 2, 3),
    even(ScheduleName.ZBV, 4, 2, 8),
    even(ScheduleName.DUALPIPEV, 2, 2, 4),
    even(ScheduleName.DUALPIPEV, 4, 2, 8),
]
# Orders that PyTorch has no class for, or that it is given to read all the same.
OURS = [
    even(ScheduleName.INTERLEAVED_LESS_MEMORY, 4, 2, 8),
    even(ScheduleName.ZB_AUTO, 4, 1, 8),
    even(ScheduleName.INTERLEAVED, 4, 2, 9, group="remainder-first"),
    even(ScheduleName.ONE_F_ONE_B, 4, 1, 3),
    even(ScheduleName.DUALPIPEV, 2, 2, 4),
]


def name_of(plan):
    problem = plan.problem
    return f"{problem.schedule_name}-S{problem.stages}-V{problem.interleave}-M{problem.micro_batches}"


@pytest.fixture(scope="module")
def runs():
    return dict(zip(map(name_of, PYTORCHS), run_plans(PYTORCHS, steps=2, asleep=False), strict=True))


@pytest.fixture(scope="module")
def runs_of_orders():
    return dict(zip(map(name_of, OURS), run_plans(OURS, steps=2, asleep=False, as_order=True), strict=True))


def simulated_order(plan):
    """Names of the ops on every stage, by the times at which the simulator starts them."""
    timeline, rows = simulate(plan), plan.problem.order.rows
    starts = zip(rows, timeline.start_ms, strict=True)
    return [[str(row[at]) for at in np.argsort(start, kind="stable")] for row, start in starts]


@pytest.mark.parametrize("plan", PYTORCHS, ids=name_of)
def test_pytorch_executes_its_schedule_in_the_order_that_is_simulated(plan, runs):
    for step in runs[name_of(plan)].steps:
        assert step.order == simulated_order(plan)


@pytest.mark.parametrize("plan", OURS, ids=name_of)
def test_pytorch_executes_the_order_that_sapp_ppb_schedule_prints(plan, runs_of_orders):
    for step in runs_of_orders[name_of(plan)].steps:
        assert step.order == simulated_order(plan)


@pytest.mark.parametrize("plan", PYTORCHS, ids=name_of)
def test_an_op_runs_after_the_op_that_it_needs(plan, runs):
    # The clock is the machine's own, the same for all processes: what is sent has been made before.
    ends = {name: end for row in runs[name_of(plan)].middle.rows for name, _, end in row}
    starts = {name: start for row in runs[name_of(plan)].middle.rows for name, start, _ in row}
    for cell in range(1, plan.problem.cells):
        for micro_batch in range(plan.problem.micro_batches):
            assert ends[f"{cell - 1}F{micro_batch}"] <= starts[f"{cell}F{micro_batch}"]
            kind = "I" if f"{cell}I{micro_batch}" in ends else "B"
            other = "I" if f"{cell - 1}I{micro_batch}" in ends else "B"
            assert ends[f"{cell}{kind}{micro_batch}"] <= starts[f"{cell - 1}{other}{micro_batch}"]
