"""Of plans that are equally fast, the one with less recompute, lower peaks and smoother stages."""

import itertools
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Plan, Status
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.planner.search.annealing import Search
from sapp_ppb.planner.search.tidy import tie_rank
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import simulate
from tests.planner.brute_force import small_problem
from tests.strategies import random_plan


@pytest.fixture
def long_tail() -> Problem:
    """24 layers of 30 ms before a TAIL of 1,500 ms, which alone decides the makespan."""
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=24,
        forward_ms=10,
        parameter_mb=100,
        activation_mb={Recompute.NONE: 100, Recompute.SELECTIVE: 60, Recompute.FULL: 10},
    )
    tail = layer_from_times(name="tail", kind=LayerKind.TAIL, forward_ms=500)
    return Problem(
        model=Model(name="long tail", layers=(body, tail)), stages=4, micro_batches=8, memory_limit_mb=60_000
    )


def test_of_equally_fast_plans_the_one_that_holds_least_at_most_is_told(long_tail):
    # Forwards of all layers, 8 x 1,500 of TAIL, backwards of all layers: 240 + 12,000 + 480 when TAIL is
    # alone.  Stage s holds 4 - s micro-batches: 500, 400 and 300 MB a layer.  Within 3,200 MB there is room
    # for 6, 8 and 10 layers, which is all 24; with any less there is not.
    outcome = plan_pipeline(long_tail, time_limit_s=2)
    assert outcome.status is Status.OPTIMAL
    assert outcome.makespan_ms == 12_720.0
    assert outcome.plan is not None
    assert outcome.plan.layers_per_cell.tolist() == [6, 8, 10, 0]
    assert max(outcome.peak_memory_mb) == 3_200.0


def test_recompute_weighs_more_than_peaks_and_peaks_more_than_smoothness(long_tail):
    def rank(*cells: int, full: int = 0) -> tuple[float, float, int]:
        counts = np.zeros((1, 5, 4), dtype=np.int64)
        counts[0, Recompute.NONE] = cells
        counts[0, [Recompute.NONE, Recompute.FULL], 0] += (-full, full)
        return tie_rank(simulate(Plan(problem=long_tail, counts=counts)))

    # FULL adds half of 20 ms; 8 layers on stage 0 hold 4,000 MB of 60,000; neighbours differ by 0, 0 and 8.
    added_ms, share, rough = rank(8, 8, 8, 0)
    assert (added_ms, rough) == (0.0, 8)
    assert share == pytest.approx(4_000 / 60_000, rel=1e-11)
    assert rank(8, 8, 8, 0, full=1)[0] == 10.0
    assert rank(6, 8, 10, 0) < rank(8, 8, 8, 0) < rank(8, 8, 8, 0, full=8)


@pytest.mark.parametrize("scale", [2.0**-40, 1.0, 2.0**40])
def test_ties_are_ties_in_any_unit_of_time(scale):
    # Tenths do not add up exactly: what recompute adds is the same wherever 3 of 9 layers recompute, in
    # whatever unit, though a sum over two stages and one over three differ in the last bits.
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=9,
        forward_ms=scale / 10,
        activation_mb={Recompute.NONE: 2 / 3, Recompute.FULL: 0.1},
        explicit={Recompute.FULL: scale * 0.3},
    )
    problem = Problem(model=Model(name="m", layers=(body,)), stages=3, micro_batches=4, memory_limit_mb=1e3)

    def added_ms(*full: int) -> float:
        counts = np.zeros((1, 5, 3), dtype=np.int64)
        counts[0, Recompute.FULL] = full
        counts[0, Recompute.NONE] = 3 - counts[0, Recompute.FULL]
        return tie_rank(simulate(Plan(problem=problem, counts=counts)))[0]

    assert len({added_ms(*full) for full in itertools.product(range(4), repeat=3) if sum(full) == 3}) == 1


@pytest.mark.parametrize("seed", range(40))
def test_polish_returns_a_plan_that_fits_and_is_within_the_ceiling(seed):
    problem = small_problem(Random(seed), most_plans=5_000, target=None)
    plan = random_plan(Random(seed), problem)
    plan = replace(
        plan, problem=replace(problem, memory_limit_mb=tuple(simulate(plan).peak_memory_mb), memory_margin=0)
    )
    before = simulate(plan)
    polished = Search(plan.problem, 0).polish(plan, before.makespan_ms * (1 + 1e-12), 500)
    assert polished is not None
    after = simulate(polished)
    assert after.fits_memory
    assert after.makespan_ms <= before.makespan_ms * (1 + 1e-9)
