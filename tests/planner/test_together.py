"""Unequal devices, time after the last op, memory for a moment and a strategy in one problem, by hand."""

import pytest

from sapp_ppb.costs import LayerKind, LayerStrategy, Model, Recompute, layer_from_times
from sapp_ppb.plan import Status
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from tests.reference import reference


@pytest.mark.parametrize(
    ("limit_mb", "swapped", "step_ms", "peak_mb"),
    [(None, 0, 240.0, 390.0), (300.0, 1, 244.0, 300.0), (299.0, 2, 248.0, 210.0)],
)
def test_a_moment_decides_how_many_layers_are_swapped(limit_mb, swapped, step_ms, peak_mb):
    # Stage 1 is half as fast, so 3 layers and the HEAD are on stage 0: F 3 x 10 + 5 = 35, B 70; stage 1 takes
    # 20 and 40.  Stage 0: F0 0-35, F1 35-70.  Stage 1: F0 35-55, B0 55-95, F1 95-115, B1 115-155.  Stage 0:
    # B0 95-165, B1 165-235, then 5 ms: 240.  A swapped layer adds 2 ms to both B: 244, and two 248.
    # With 2 layers on each, stage 1 takes 40 and 80: B1 ends 265 and that of stage 0 315.
    # Stage 0 holds 2 x 180 MB and 30 MB for a moment, 390; with a layer swapped 2 x 135 + 30 = 300; with two
    # 2 x 90 + 30 = 210.
    swap = LayerStrategy(name="swap", backward_ms=22, activation_mb=15)
    memory = {Recompute.NONE: 60.0}
    body = layer_from_times(
        name="Dec", kind=LayerKind.BODY, count=4, forward_ms=10, activation_mb=memory, strategies=[swap]
    )
    table = layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=5, transient_mb=30)
    problem = Problem(
        model=Model(name="together", layers=(table, body)),
        stages=2,
        micro_batches=2,
        memory_limit_mb=None if limit_mb is None else (limit_mb, 1000.0),
        stage_speed=(1.0, 0.5),
        step_extra_ms=(5.0, 0.0),
    )
    found = plan_pipeline(problem, time_limit_s=1.0)
    assert found.plan is not None
    assert found.status is Status.OPTIMAL
    assert found.plan.layers_per_cell.tolist() == [3, 1]
    assert sum(found.plan.strategy_layers.values()) == swapped
    assert found.step_ms == pytest.approx(step_ms)
    assert found.peak_memory_mb[0] == pytest.approx(peak_mb)
    assert reference(found.plan).step_ms == pytest.approx(step_ms)
