"""Why layers are recomputed: each reason is checked by turning one layer and simulating."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Plan, plan_from_matrices
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from sapp_ppb.report.reasons import Why, find_reasons, reasons_of_kinds
from sapp_ppb.simulator import simulate
from tests.strategies import plans

MEMORY = {Recompute.NONE: 60, Recompute.SELECTIVE: 45, Recompute.COMM: 40, Recompute.FULL: 10}


def one_kind(memory=MEMORY, **changes):
    """Problem of 4 layers on 2 stages, 4 micro-batches: stage 0 holds 2 live, stage 1 holds 1."""
    layer = {"name": "Dec", "kind": LayerKind.BODY, "count": 4, "forward_ms": 1, "activation_mb": memory}
    body = layer_from_times(**layer | changes.pop("layer", {}))
    return Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4, **changes)


def test_a_reason_names_the_stage_the_op_and_the_mb():
    plan = plan_from_matrices(
        one_kind(memory_limit_mb=150), {"Dec": {"none": [[0, 2]], "selective": [[1, 0]], "full": [[1, 0]]}}
    )
    selective, full = find_reasons(plan)
    # Stage 0 holds 2 x (45 + 10) = 110 MB; SELECTIVE to NONE makes that 2 x (60 + 10) = 140, FULL to COMM
    # 2 x (45 + 40) = 170 of 150, both when the second forward starts.
    assert (selective.less, selective.why, selective.needed_mb) == (Recompute.NONE, Why.NOTHING, 140.0)
    assert (full.less, full.why, full.over_mb, str(full.op)) == (Recompute.COMM, Why.MEMORY, 20.0, "0F1")
    assert {(r.stage, r.layer, r.count, r.chunk) for r in (selective, full)} == {(0, "Dec", 1, 0)}


def test_nothing_recomputed_needs_no_reason():
    assert find_reasons(plan_from_matrices(one_kind(), {"Dec": {"none": [[2, 2]]}})) == ()


def test_a_layer_with_one_type_only_has_no_lesser_one():
    plan = plan_from_matrices(one_kind({Recompute.FULL: 10}), {"Dec": {"full": [[2, 2]]}})
    assert {(r.less, r.why) for r in find_reasons(plan)} == {(None, Why.ONLY)}


def test_a_lesser_type_that_is_slower_is_no_way_out():
    problem = one_kind({Recompute.NONE: 60, Recompute.FULL: 10}, layer={"explicit": {Recompute.FULL: 1.5}})
    reason = find_reasons(plan_from_matrices(problem, {"Dec": {"none": [[0, 2]], "full": [[2, 0]]}}))[0]
    assert (reason.less, reason.why) == (Recompute.NONE, Why.TIME)  # 2 x 1 ms of NONE, 1.5 of FULL


def test_what_the_target_can_not_say_is_no_way_out():
    memory = {Recompute.SELECTIVE: 45, Recompute.COMM: 40}
    counts = {"Dec": {"selective": [[0, 2]], "comm": [[2, 0]]}}
    free = find_reasons(plan_from_matrices(one_kind(memory), counts))
    bound = find_reasons(plan_from_matrices(one_kind(memory, target="mindformers"), counts))
    # One of two COMM layers turned to SELECTIVE would stand beside the other.
    assert [(r.less, r.why) for r in free] == [
        (Recompute.SELECTIVE, Why.NOTHING),
        (None, Why.ONLY),
    ]
    assert (bound[0].less, bound[0].why) == (Recompute.SELECTIVE, Why.TARGET)


def test_a_type_without_an_obstacle_is_preferred_to_a_nearer_one():
    plan = plan_from_matrices(
        one_kind(target="mindformers"), {"Dec": {"none": [[0, 2]], "selective": [[1, 0]], "full": [[1, 0]]}}
    )
    # COMM is nearer to FULL, but would stand beside SELECTIVE.
    assert find_reasons(plan)[1].less is Recompute.SELECTIVE


def test_of_several_chunks_the_one_that_adds_least_is_named():
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1, activation_mb=MEMORY)
    problem = Problem(
        model=Model(name="tiny", layers=(body,)), stages=2, interleave=2, micro_batches=4, memory_limit_mb=100
    )
    plan = plan_from_matrices(problem, {"Dec": {"full": [[2, 2], [2, 2]]}})
    reasons = find_reasons(plan)
    for reason in reasons:
        needed = [_turned(plan, cell, Recompute.FULL, Recompute.COMM, reason.stage) for cell in
                  (reason.stage, 2 + reason.stage)]  # fmt: skip
        assert reason.needed_mb == pytest.approx(min(needed), rel=1e-12)
        assert needed[reason.chunk] == min(needed)
    assert len(reasons) == 2


@given(plans())
def test_every_reason_is_what_the_simulator_says_of_the_turned_plan(plan):
    for reason in find_reasons(plan):
        if reason.less is None:
            continue
        index = [layer.name for layer in plan.problem.model.bodies].index(reason.layer)
        cell = plan.problem.order.placement.cell_of(reason.stage, reason.chunk, plan.problem.stages)
        needed = _turned(plan, cell, reason.recompute, reason.less, reason.stage, index)
        assert reason.needed_mb == pytest.approx(needed, rel=1e-12)
        limit = plan.problem.limit_per_stage_mb[reason.stage]
        assert (reason.why is Why.MEMORY) == (needed > limit * (1 + 1e-9))


def test_a_plan_of_the_planner_recomputes_nothing_that_would_fit():
    outcome = plan_pipeline(one_kind(memory_limit_mb=150), time_limit_s=0.2)
    assert outcome.plan is not None
    reasons = find_reasons(outcome.plan)
    assert reasons
    assert {reason.why for reason in reasons} == {Why.MEMORY}


def _turned(plan, cell, recompute, less, stage, index=0):
    counts = np.array(plan.counts)
    counts[index, recompute, cell] -= 1
    counts[index, less, cell] += 1
    return simulate(Plan(problem=replace(plan.problem), counts=counts)).peak_memory_mb[stage]


def test_entries_of_one_kind_share_a_reason():
    # One stage, one micro-batch: mamba.0, mlp.1 and mamba.2 are recomputed and hold 10 MB each, 30 of 70 MB.
    # A mamba without recompute holds 60: 80 MB; the mlp 50: 70 MB, which fits.
    layers = [
        layer_from_times(
            name=name,
            kind=LayerKind.BODY,
            forward_ms=1,
            activation_mb={Recompute.NONE: none_mb, Recompute.FULL: 10},
        )
        for name, none_mb in (("mamba.0", 60), ("mlp.1", 50), ("mamba.2", 60))
    ]
    problem = Problem(
        model=Model(name="hybrid", layers=tuple(layers)), stages=1, micro_batches=1, memory_limit_mb=70
    )
    plan = plan_from_matrices(problem, {layer.name: {"full": [[1]]} for layer in layers})
    assert [(r.layer, r.count, r.needed_mb, r.why) for r in reasons_of_kinds(plan)] == [
        ("mamba", 2, 80.0, Why.MEMORY),
        ("mlp", 1, 70.0, Why.NOTHING),
    ]


def test_what_the_last_stage_needs_for_a_moment_is_a_reason():
    # Stage 1 has one micro-batch alive: 10 + 60 MB with one layer of two left alone, and 40 for the logits.
    output = layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=1, transient_mb=40)
    problem = one_kind({Recompute.NONE: 60, Recompute.FULL: 10}, memory_limit_mb=(500, 100))
    model = replace(problem.model, layers=(*problem.model.layers, output))
    plan = plan_from_matrices(replace(problem, model=model), {"Dec": {"none": [[2, 0]], "full": [[0, 2]]}})
    [reason] = find_reasons(plan)
    assert (reason.stage, reason.why, reason.needed_mb, reason.over_mb) == (1, Why.MEMORY, 110.0, 10.0)
