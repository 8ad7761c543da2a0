"""A plan that is given out holds its limit at every op of every stage, whatever the chunks and remainders."""

from dataclasses import replace
from pathlib import Path

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import FileNote
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.planner.baselines import baselines
from sapp_ppb.problem import Problem
from sapp_ppb.readers import read_model
from sapp_ppb.schedules import OpKind, ScheduleName
from sapp_ppb.simulator import simulate
from tests.reference import reference

SAPP = Path(__file__).parents[1] / "data" / "sapp"
MODEL = Model(
    name="tight",
    constant_memory_mb=100,
    layers=(
        layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=5, parameter_mb=900),
        layer_from_times(
            name="Dec",
            kind=LayerKind.BODY,
            count=53,
            forward_ms=10,
            parameter_mb=50,
            activation_mb=dict(zip(Recompute, (60, 45, 38, 30, 4), strict=True)),
        ),
        layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=8, parameter_mb=700),
    ),
)
# Stages, chunks, micro-batches, how many go together: more chunks than two, M other than S, remainders.
SIZES = [
    (4, 3, 8, None),
    (4, 4, 12, "less memory"),
    (4, 3, 9, "remainder-first"),
    (3, 3, 11, "remainder-first"),
    (3, 3, 8, 4),
]


def tight(problem: Problem) -> Problem:
    """Put a limit between what even splits hold without and with full recompute."""
    light, heavy = (max(simulate(found.plan).peak_memory_mb) for found in baselines(problem)[:2])
    return replace(problem, memory_limit_mb=0.3 * light + 0.7 * heavy)


@pytest.mark.parametrize(("stages", "chunks", "micro_batches", "group"), SIZES)
def test_no_op_of_a_plan_holds_more_than_the_limit(stages, chunks, micro_batches, group):
    less = group == "less memory"
    problem = tight(
        Problem(
            model=MODEL,
            stages=stages,
            interleave=chunks,
            micro_batches=micro_batches,
            micro_batch_group=None if less else group,
            schedule=ScheduleName.INTERLEAVED_LESS_MEMORY if less else ScheduleName.INTERLEAVED,
        )
    )
    outcome = plan_pipeline(problem, time_limit_s=0.1)
    assert outcome.plan is not None
    told = reference(outcome.plan)
    assert outcome.plan.recomputed_layers > 0  # the limit does bind
    assert simulate(outcome.plan).peak_memory_mb == pytest.approx(told.peak_mb)
    for held, limit_mb in zip(told.held_mb, problem.limit_per_stage_mb, strict=True):
        assert max(held) <= limit_mb * (1 + 1e-9)


@pytest.mark.parametrize("pieces", [1, 2, 4, 8])
def test_sequence_chunks_do_all_the_work_and_hold_what_is_alive(pieces):
    # 16 layers of 180 + 360 ms, 16 micro-batches, 4 stages of equal speed: 34,560 ms of work for each,
    # besides head and tail.  The older tool timed one micro-batch's worth of pieces only.
    with pytest.warns(FileNote, match="auto_partition_layer names 'NumberOfLayers', which is no layer"):
        model = read_model(SAPP / "seq.json")
    problem = Problem(
        model=model,
        stages=4,
        micro_batches=16,
        schedule=ScheduleName.SEQ1F1B if pieces > 1 else None,
        sequence_chunks=pieces,
    )
    plan = baselines(problem)[0].plan
    timeline = simulate(plan)
    assert timeline.makespan_ms >= 16 * 4 * 540 + 16 * 90  # stage 0 has the head, 30 + 60 ms
    assert timeline.makespan_ms == pytest.approx(reference(plan).makespan_ms)
    for stage, row in enumerate(problem.order.rows):
        assert sum(op.kind is OpKind.F for op in row) == 16 * pieces
        # S - s + k - 1 pieces of a 1 / k of four layers' 4,229 MB are alive.
        parameters = 3422 + 4 * 368 + (5288 if stage == 0 else 10030 if stage == 3 else 0)
        alive = 4 - stage + pieces - 1
        assert timeline.peak_memory_mb[stage] == pytest.approx(parameters + alive * 4 * 4229 / pieces)
