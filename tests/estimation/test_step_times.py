"""Steps out of timelines: the rank that takes longest, without the first step, and nothing half seen."""

from dataclasses import replace

import pytest

from sapp_ppb.costs import Recompute
from sapp_ppb.costs.measured import OpSpan, OpTrace
from sapp_ppb.errors import InputError
from sapp_ppb.estimation import measured_step
from sapp_ppb.simulator import Timeline, TracedRun, simulate
from tests.simulator.test_timeline import plan_of, unit_plan

EACH = {Recompute.NONE: 1}  # a layer with F 1 and B 2
PLAN = plan_of([EACH] * 2, stages=2, micro_batches=3)


def ranks(timeline: Timeline, steps: tuple[float, ...] = (1.0,)) -> list[OpTrace]:
    """Traces of every stage, each by a clock of its own, of steps that are slower by factors."""
    traces = []
    for stage, row in enumerate(timeline.plan.problem.order.rows):
        spans, at = [], 1000.0 * (stage + 1)
        for factor in steps:
            spans += [
                OpSpan(op.cell, op.kind.name, op.micro_batch, at + factor * start, at + factor * end)
                for op, start, end in zip(row, timeline.start_ms[stage], timeline.end_ms[stage], strict=True)
            ]
            at += factor * timeline.makespan_ms + 50.0
        traces.append(OpTrace(source=f"rank{stage}.json", times_ms={}, spans=tuple(spans)))
    return traces


def run_of(*traces: OpTrace) -> TracedRun:
    return TracedRun(name="run", plan=PLAN, traces=traces)


def test_the_step_of_simulated_ranks_is_the_makespan_by_any_clocks() -> None:
    # (3 + 2 - 1) x 3
    assert measured_step(run_of(*ranks(simulate(PLAN)))).step_ms == pytest.approx(12.0)


def test_stage_0_alone_is_enough_and_any_other_alone_is_not() -> None:
    first, second = ranks(simulate(PLAN))
    assert measured_step(run_of(first)).step_ms == pytest.approx(12.0)
    with pytest.raises(InputError, match="has no trace of stage 0, which begins the step; add it"):
        measured_step(run_of(second))


def test_of_several_steps_the_first_is_dropped_and_the_median_taken() -> None:
    # 12 ms x 5, 1.0, 1.2, 1.1: the median of 12, 14.4 and 13.2.
    steps = measured_step(run_of(*ranks(simulate(PLAN), (5.0, 1.0, 1.2, 1.1))))
    assert steps.step_ms == pytest.approx(13.2)
    assert steps.plan is PLAN


def test_all_stages_may_be_in_one_trace() -> None:
    timeline = simulate(PLAN)
    both = [
        OpSpan(op.cell, op.kind.name, op.micro_batch, start, end)
        for stage, row in enumerate(PLAN.problem.order.rows)
        for op, start, end in zip(row, timeline.start_ms[stage], timeline.end_ms[stage], strict=True)
    ]
    assert measured_step(run_of(OpTrace(source="all", times_ms={}, spans=tuple(both)))).step_ms == 12.0


def test_ops_that_are_missing_or_of_another_plan_are_named() -> None:
    (trace, _) = ranks(simulate(PLAN))
    less = replace(trace, spans=trace.spans[1:])
    with pytest.raises(InputError, match=r"rank0.json: ops 0F0 are missing; is the plan beside it the one"):
        measured_step(run_of(less))
    more = replace(trace, spans=(*trace.spans, OpSpan(7, "F", 0, 0.0, 1.0)))
    with pytest.raises(InputError, match="ops 7F0 are in no such plan"):
        measured_step(run_of(more))


def test_half_a_step_and_other_numbers_of_steps_are_refused() -> None:
    first, second = ranks(simulate(PLAN), (1.0, 1.0))
    cut = replace(first, spans=first.spans[:-1])
    with pytest.raises(InputError, match="has some ops 1 and some 2 times; trace whole steps"):
        measured_step(run_of(cut, second))
    (_, one) = ranks(simulate(PLAN))
    with pytest.raises(InputError, match="has traces of 1, 2 steps; give traces of the same steps"):
        measured_step(run_of(first, one))


def test_sequence_chunks_are_refused() -> None:
    plan = unit_plan(stages=2, micro_batches=4, schedule="seq1f1b", sequence_chunks=2)
    trace = OpTrace(source="x", times_ms={}, spans=(OpSpan(0, "F", 0, 0.0, 1.0),))
    with pytest.raises(
        InputError, match="traces do not name sequence chunks; give the step in a CSV instead"
    ):
        measured_step(TracedRun(name="run", plan=plan, traces=(trace,)))
