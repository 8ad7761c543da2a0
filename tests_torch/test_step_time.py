"""Simulated step times against those of processes that exchange tensors."""

from itertools import combinations

import pytest

from sapp_ppb import simulate
from sapp_ppb.schedules import ScheduleName
from tests_torch.configurations import OTHERS, PROMISED, SHORTEST_OP_MS, plan_of
from tests_torch.real_runs import run_plans

# What a configuration may take beyond its simulated time: what PyTorch and the system add to an op.
MOST = 1.15
# Splits that are closer than this in simulated time may change places.
CLOSE = 1.02

SPLITS = {
    "1f1b": [
        plan_of(ScheduleName.ONE_F_ONE_B, 4, 8, layers, tail_ms=8.0)
        for layers in (
            [4, 3, 3, 2],
            [3, 4, 3, 2],
            [3, 3, 4, 2],
            [3, 3, 3, 3],
            [5, 3, 2, 2],
            [2, 3, 3, 4],
            [2, 2, 2, 6],
        )
    ],
    "gpipe": [
        plan_of(ScheduleName.GPIPE, 4, 4, layers, tail_ms=8.0)
        for layers in ([4, 3, 3, 2], [2, 2, 4, 4], [6, 2, 2, 2])
    ],
    "interleaved": [
        plan_of(ScheduleName.INTERLEAVED, 2, 4, layers, tail_ms=8.0)
        for layers in ([3, 2, 3, 2], [2, 3, 3, 2], [4, 2, 2, 2], [3, 3, 2, 2], [2, 2, 2, 4])
    ],
}


@pytest.fixture(scope="module")
def runs():
    plans = PROMISED | OTHERS
    return dict(zip(plans, run_plans(list(plans.values()), steps=3), strict=True))


@pytest.fixture(scope="module")
def runs_of_splits():
    plans = [plan for splits in SPLITS.values() for plan in splits]
    runs = iter(run_plans(plans, steps=3))
    return {name: [next(runs) for _ in splits] for name, splits in SPLITS.items()}


@pytest.mark.parametrize("name", PROMISED | OTHERS)
def test_no_op_and_no_step_is_faster_than_simulated(name, runs):
    # A sleep never ends early, and an op never starts before what it waits for.
    run = runs[name]
    assert run.shortest_ms >= simulate(run.plan).makespan_ms
    ops = [(op, end - start) for row in run.middle.rows for op, start, end in row]
    # Where the backward is split, PyTorch skips the I of the first cell.
    assert all(spent >= SHORTEST_OP_MS for op, spent in ops if not op.startswith("0I"))


@pytest.mark.parametrize("name", PROMISED)
def test_a_step_takes_at_most_a_little_longer_than_simulated(name, runs):
    # The shortest step, the one that others on the machine disturbed least.
    run = runs[name]
    assert run.shortest_ms <= MOST * simulate(run.plan).makespan_ms


# Of 7 splits all 21 pairs, of 3 all 3; of 5 all but the one pair of 624 ms each.
@pytest.mark.parametrize(("name", "pairs"), [("1f1b", 21), ("gpipe", 3), ("interleaved", 9)])
def test_splits_are_ordered_in_real_time_as_in_simulated_time(name, pairs, runs_of_splits):
    times = [(simulate(run.plan).makespan_ms, run.shortest_ms) for run in runs_of_splits[name]]
    apart = [pair for pair in combinations(sorted(times), 2) if pair[1][0] > CLOSE * pair[0][0]]
    assert len(apart) == pairs
    assert [pair for pair in apart if pair[0][1] >= pair[1][1]] == []
