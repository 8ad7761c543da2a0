"""The least time of a run of layers on a stage, by hand."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Status
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.planner.proof.segments import chain_segments, lower_hull
from sapp_ppb.problem import Problem


def two_stages(**changes) -> Problem:
    """
    Two layers on two stages of 1F1B, M = 2: stage 0 holds two micro-batches live, stage 1 one.

    A layer runs 1 ms forward, 2 ms backward; with full recompute 3 ms backward.
    """
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=2,
        forward_ms=1,
        parameter_mb=5,
        activation_mb={Recompute.NONE: 10, Recompute.FULL: 2},
    )
    given: dict[str, Any] = {"model": Model(name="two", layers=(body,)), "stages": 2, "micro_batches": 2}
    return Problem(**(given | changes))


def test_hull_drops_what_is_slower_and_holds_more():
    # (8, 3) is slower than (7, 2) and holds more.
    assert lower_hull(np.array([10.0, 8.0, 7.0]), np.array([1.0, 3.0, 2.0])) == [(10.0, 1.0), (7.0, 2.0)]


def test_hull_drops_what_a_mix_of_two_beats():
    # Half of (10, 0) and half of (0, 10) is (5, 5), faster than (5, 6).
    assert lower_hull(np.array([10.0, 5.0, 0.0]), np.array([0.0, 6.0, 10.0])) == [(10.0, 0.0), (0.0, 10.0)]


def test_hull_keeps_the_corner_below_the_chord():
    assert lower_hull(np.array([10.0, 5.0, 0.0]), np.array([0.0, 4.0, 10.0])) == [
        (10.0, 0.0),
        (5.0, 4.0),
        (0.0, 10.0),
    ]


def test_hull_of_equal_times_keeps_the_least_memory():
    assert lower_hull(np.array([10.0, 4.0]), np.array([1.0, 1.0])) == [(4.0, 1.0)]


def test_hull_of_one_point_is_that_point():
    assert lower_hull(np.array([3.0]), np.array([7.0])) == [(3.0, 7.0)]


def test_runs_without_a_limit_take_their_fastest_types():
    segments = chain_segments(two_stages(min_layers_per_cell=0))
    # Runs [first, after the last]: 0, 1 or 2 layers of 1 + 2 ms; no run goes backwards.
    expected = [[0.0, 3.0, 6.0], [math.inf, 0.0, 3.0], [math.inf, math.inf, 0.0]]
    assert segments.total_ms.tolist() == [expected, expected]
    assert segments.forward_ms[0].tolist()[0] == [0.0, 1.0, 2.0]


def test_empty_runs_need_min_layers_of_0():
    assert np.all(np.isinf(chain_segments(two_stages()).total_ms[:, range(3), range(3)]))


def test_memory_is_shared_by_the_live_micro_batches():
    # Limit 21, one layer: 21 - 5 = 16 MB of activations; stage 0 has two live, 8 MB each: of the
    # 10 - 8 = 2 MB too many at 1 ms for 8 MB saved, 0.25 ms; stage 1 has one live and all it needs.
    segments = chain_segments(two_stages(memory_limit_mb=21.0))
    assert segments.total_ms[0, 0, 1] == pytest.approx(3.25)
    assert segments.total_ms[1, 0, 1] == pytest.approx(3.0)


def test_a_run_that_never_fits_is_infinite():
    # Two layers on stage 0: 2 x 5 + 2 live x 2 layers x 2 MB = 18 MB at least.
    assert math.isfinite(chain_segments(two_stages(memory_limit_mb=18.0)).total_ms[0, 0, 2])
    assert math.isinf(chain_segments(two_stages(memory_limit_mb=17.99)).total_ms[0, 0, 2])


def test_constant_memory_takes_room_away():
    # 17.99 + 0.01 would do, but a constant MB is held besides.
    assert math.isinf(
        chain_segments(two_stages(memory_limit_mb=18.0, constant_memory_mb=1.0)).total_ms[0, 0, 2]
    )


def test_head_and_tail_take_time_and_memory_of_the_outer_stages():
    problem = two_stages()
    head = layer_from_times(name="head", kind=LayerKind.HEAD, forward_ms=4, backward_ms=5, parameter_mb=8)
    tail = layer_from_times(
        name="tail", kind=LayerKind.TAIL, forward_ms=6, backward_ms=7, activation_mb={Recompute.NONE: 1}
    )
    model = Model(name="ends", layers=(head, *problem.model.layers, tail))
    # Stage 0: 5 + 8 MB of parameters, 2 live x 10; stage 1: 5 MB, 1 live x (10 + 1).
    segments = chain_segments(two_stages(model=model, memory_limit_mb=(33.0, 16.0)))
    assert segments.total_ms[0, 0, 1] == pytest.approx(3 + 9)
    assert segments.total_ms[1, 1, 2] == pytest.approx(3 + 13)
    assert segments.forward_ms[:, 0, 1].tolist() == [5.0, 7.0]
    assert segments.total_ms[0, 0, 0] == pytest.approx(9)  # with a HEAD a cell may have no BODY layer
    # 1 MB less on stage 1: 1 of the 8 MB that recompute saves, at 1 ms for all 8.
    less = chain_segments(two_stages(model=model, memory_limit_mb=(33.0, 15.0)))
    assert less.total_ms[1, 1, 2] == pytest.approx(16.125)


def test_two_kinds_keep_their_order_in_a_run():
    quick = layer_from_times(name="quick", kind=LayerKind.BODY, count=1, forward_ms=1)
    slow = layer_from_times(name="slow", kind=LayerKind.BODY, count=2, forward_ms=10)
    problem = Problem(model=Model(name="kinds", layers=(quick, slow)), stages=3, micro_batches=1)
    total = chain_segments(problem).total_ms[0]
    # 3 ms, then 30 ms each.
    assert [total[0, 1], total[0, 2], total[0, 3], total[1, 3]] == pytest.approx([3, 33, 63, 60])


def test_a_run_that_fills_a_limit_to_the_last_bit_fits_however_little_of_the_limit_is_its_own():
    # Stage 2 holds 9,185,200.160286618 + 9,656,267.594085325 = 18,841,467.75437194 MB before any layer; what
    # the rest is rounded by, 4e-9 MB, is nothing beside the limit, and too much beside a layer of 0 MB.
    body = layer_from_times(name="body", kind=LayerKind.BODY, forward_ms=1)
    tail = layer_from_times(
        name="tail", kind=LayerKind.TAIL, forward_ms=1, activation_mb={Recompute.NONE: 9656267.594085325}
    )
    problem = Problem(
        model=Model(name="large", layers=(body, tail)),
        stages=3,
        micro_batches=2,
        constant_memory_mb=(5326914.899393746, 3698232.12102673, 9185200.160286618),
        memory_limit_mb=18841467.75437194,
        min_layers_per_cell=0,
    )
    assert np.isfinite(chain_segments(problem).total_ms[2, 0, 1])
    assert plan_pipeline(problem, time_limit_s=0.2).status is Status.OPTIMAL


def test_a_run_that_is_over_a_small_limit_does_not_fit_by_rounding():
    # One layer of 2e-6 MB under FULL, two live on stage 0: 4e-6 MB; 1e-10 MB is a share of 2.5e-5 of that.
    memory = {Recompute.NONE: 1e-5, Recompute.FULL: 2e-6}
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=2, forward_ms=1, activation_mb=memory)
    small = Problem(
        model=Model(name="small", layers=(body,)), stages=2, micro_batches=2, memory_limit_mb=4e-6
    )
    assert math.isfinite(chain_segments(small).total_ms[0, 0, 1])
    over = replace(small, memory_limit_mb=4e-6 - 1e-10)
    assert math.isinf(chain_segments(over).total_ms[0, 0, 1])
