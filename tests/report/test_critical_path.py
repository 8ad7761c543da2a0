"""What ops waited for, and the longest path: laws on random plans."""

import numpy as np
import pytest
from hypothesis import given

from sapp_ppb.costs import LayerKind, Model, layer_from_times
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.report.blocks import timeline_blocks
from sapp_ppb.report.critical_path import find_waits, overlapped_forwards
from sapp_ppb.schedules import OpKind, ScheduleName
from sapp_ppb.simulator import simulate
from tests.strategies import plans, plans_in_any_mode


def gaps_ms(timeline, waits):
    """Time between each op's start and the end of what it waited for; stages of both."""
    rows = timeline.plan.problem.order.rows
    stage = np.repeat(np.arange(len(rows)), list(map(len, rows)))
    start, end = np.concatenate(timeline.start_ms), np.concatenate(timeline.end_ms)
    for op, waited_for in enumerate(waits.waited_for):
        yield (
            (start[op], stage[op], stage[op])
            if waited_for < 0
            else (start[op] - end[waited_for], stage[op], stage[waited_for])
        )


@given(plans_in_any_mode())
def test_every_op_starts_when_what_it_waited_for_has_ended_or_arrived(plan):
    timeline = simulate(plan)
    near = 1e-9 * timeline.makespan_ms
    for gap_ms, stage, other in gaps_ms(timeline, find_waits(timeline)):
        sent_ms = plan.problem.hop_ms if stage != other else (0.0,)
        assert any(abs(gap_ms - hop_ms) <= near for hop_ms in sent_ms)


@given(plans_in_any_mode())
def test_the_path_is_consecutive_from_the_start_to_the_end_of_the_step(plan):
    # Between two of its ops there is nothing but a send, so they add up to the makespan, or with what
    # their stage does after its last op to the step.
    timeline = simulate(plan)
    waits = find_waits(timeline)
    start, end = np.concatenate(timeline.start_ms), np.concatenate(timeline.end_ms)
    path = waits.path
    assert waits.waited_for[path[1:]].tolist() == path[:-1].tolist()
    assert waits.waited_for[path[0]] == -1
    assert start[path[0]] == pytest.approx(0.0, abs=1e-9)
    stage = int(np.searchsorted(np.cumsum([len(row) for row in timeline.end_ms]), path[-1], side="right"))
    assert end[path[-1]] + plan.problem.extra_per_stage_ms[stage] == pytest.approx(
        timeline.step_ms, rel=1e-12
    )


def test_both_ops_of_a_pair_wait_for_what_either_needs():
    # One stage of two chunks: F of the next micro-batch and B of one before run together.
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1)
    model = Model(name="tiny", layers=(body,))
    problem = Problem(
        model=model,
        stages=2,
        micro_batches=4,
        schedule=ScheduleName.DUALPIPEV,
        overlap_factor=0.5,
        p2p_ms=0.25,
    )
    plan = plan_from_matrices(problem, {"Dec": {"none": [[2, 2], [2, 2]]}})
    timeline = simulate(plan)
    waits, pairs = find_waits(timeline), overlapped_forwards(timeline_blocks(timeline))
    assert len(pairs) == sum(map(len, problem.order.pairs)) > 0
    assert waits.waited_for[pairs].tolist() == waits.waited_for[pairs + 1].tolist()
    assert not any(at in (pair, pair + 1) for pair, at in zip(pairs, waits.waited_for[pairs], strict=True))


@given(plans())
def test_an_op_waits_for_its_stage_or_for_its_neighbour_in_the_chain(plan):
    rows = plan.problem.order.rows
    ops, firsts = [op for row in rows for op in row], np.cumsum([0, *map(len, rows)])
    last = plan.problem.cells - 1
    for at, (op, waited_for) in enumerate(zip(ops, find_waits(simulate(plan)).waited_for, strict=True)):
        if waited_for == -1:
            assert (str(op.kind.name), op.cell, op.micro_batch) == ("F", 0, 0)
        elif waited_for != at - 1 or at in firsts:
            if op.kind.name == "F":
                needs = (OpKind.F, op.cell - 1)
            else:
                needs = (OpKind.F, last) if op.cell == last else (OpKind.B, op.cell + 1)
            assert ops[waited_for][:3] == (*needs, op.micro_batch)
