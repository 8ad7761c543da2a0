"""What the model adds to every op and every hop: worked out by hand, and as laws."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.schedules import Flavour, OrderFile, ScheduleName
from sapp_ppb.simulator import simulate
from tests.simulator.test_timeline import plan_of, unit_plan
from tests.strategies import plans_in_any_mode

EACH = {Recompute.NONE: 1}  # a layer with F 1 and B 2


def besides(plan: Plan, *, op_overhead_ms: float = 0.0, hop_ms: float = 0.0) -> Plan:
    """Keep the counts, for a model that adds to its ops and hops."""
    model = replace(plan.problem.model, op_overhead_ms=op_overhead_ms, hop_ms=hop_ms)
    return Plan(problem=replace(plan.problem, model=model), counts=plan.counts)


def ordered(text: str, **more) -> Plan:
    """One layer in each of two cells of one stage, two micro-batches, in a given order."""
    file = OrderFile(path="order.csv", text=text)
    return plan_of([EACH] * 2, stages=1, interleave=2, micro_batches=2, order_file=file, **more)


def test_every_op_takes_its_overhead_and_every_hop_its_time_on_top_of_p2p() -> None:
    # Equal 1F1B: (M + S - 1)(f + b) = (4 + 3 - 1) x (1.5 + 2.5).
    plan = plan_of([EACH] * 3, stages=3, micro_batches=4)
    assert simulate(besides(plan, op_overhead_ms=0.5)).makespan_ms == 24.0
    # One micro-batch: 3 x (1 + 2) and 4 hops of 0.25 + 0.5.
    one = plan_of([EACH] * 3, stages=3, micro_batches=1, p2p_ms=0.25)
    assert simulate(besides(one, hop_ms=0.5)).makespan_ms == 12.0
    assert simulate(besides(one, hop_ms=0.5, op_overhead_ms=0.5)).makespan_ms == 15.0  # and 6 ops


def test_a_hop_of_the_model_is_as_one_of_the_problem() -> None:
    # A V turns on its stage, where nothing is sent either way.
    plan = plan_of([EACH] * 4, stages=2, micro_batches=2, schedule=ScheduleName.ZBV)
    sent = Plan(problem=replace(plan.problem, p2p_ms=1.5), counts=plan.counts)
    assert simulate(besides(plan, hop_ms=1.5)).makespan_ms == simulate(sent).makespan_ms
    assert simulate(sent).makespan_ms > simulate(plan).makespan_ms


def test_overhead_and_hops_are_communication_in_the_bubble_and_not_useful_work() -> None:
    # U = 4 x 3 x 3 = 36, T0 = T1 = 24 with an overhead of 0.5, T2 = T3 = (4 + 3 - 1) x 3 = 18:
    # communication 3(24 - 18)/36, fill and drain (3 x 18 - 36)/36 = (S - 1)/M.
    plan = plan_of([EACH] * 3, stages=3, micro_batches=4)
    bubble = simulate(besides(plan, op_overhead_ms=0.5)).bubble
    assert bubble.communication == pytest.approx(0.5, rel=1e-9)
    assert bubble.fill_drain == pytest.approx(0.5, rel=1e-9)
    assert bubble.recompute == 0.0
    assert bubble.imbalance == pytest.approx(0.0, abs=1e-12)


def test_an_overlapped_pair_is_two_ops_of_overhead_of_which_nothing_overlaps() -> None:
    # 0F0 1, 1F0 1, the pair 1 + 2 - 0.25 x 1 = 2.75, 1F1 1, 1B1 2, 0B0 2, 0B1 2: 11.75; 8 ops of 0.5.
    plan = ordered("0F0,1F0,(0F1;1B0)OVERLAP_F_B,1F1,1B1,0B0,0B1", overlap_factor=0.25)
    assert simulate(plan).makespan_ms == 11.75
    assert simulate(besides(plan, op_overhead_ms=0.5)).makespan_ms == 15.75
    # The same ops one after the other: 12 + 8 x 0.5.
    apart = replace(plan, problem=replace(plan.problem, overlap_factor=0.0))
    assert simulate(besides(apart, op_overhead_ms=0.5)).makespan_ms == 16.0


def test_a_split_backward_has_two_overheads_and_a_whole_one_beside_it_has_one() -> None:
    # Work 2 x 2 x 3 = 12, and 11 ops: 4 F, one B, and an I and a W in the place of each of the three others.
    plan = ordered("0F0,1F0,1B0,0F1,1F1,1I1,0I0,0I1,1W1,0W0,0W1")
    assert simulate(besides(plan, op_overhead_ms=0.5)).makespan_ms == 12 + 11 * 0.5


def test_the_first_cells_input_gradient_in_pytorch_takes_its_overhead_and_no_more() -> None:
    plan = ordered("0F0,1F0,1I0,0I0,0W0,1W0,0F1,1F1,1B1,0B1", flavour=Flavour.TORCH)
    timeline = simulate(besides(plan, op_overhead_ms=0.5))
    at = [str(op) for op in plan.problem.order.rows[0]].index("0I0")
    assert timeline.end_ms[0][at] - timeline.start_ms[0][at] == 0.5


def test_a_sequence_chunk_has_a_whole_overhead() -> None:
    # F 0.5 and B 1 a chunk and 0.25 each: (16 + 4 - 1) x 2.
    plan = unit_plan(stages=4, micro_batches=8, schedule=ScheduleName.SEQ1F1B, sequence_chunks=2)
    assert simulate(besides(plan, op_overhead_ms=0.25)).makespan_ms == 38.0


@given(plans_in_any_mode(), st.floats(0, 10), st.floats(0, 10))
def test_a_step_grows_by_no_more_than_every_op_and_hop_and_by_every_op_of_the_busiest_stage(
    plan: Plan, overhead_ms: float, hop_ms: float
) -> None:
    if plan.problem.schedule_name is ScheduleName.ZB_AUTO:  # its order follows from the prices
        return
    before = simulate(plan)
    after = simulate(besides(plan, op_overhead_ms=overhead_ms, hop_ms=hop_ms))
    ops = sum(map(len, plan.problem.order.rows))
    slack = 1e-9 * after.makespan_ms
    # A path has each op once, and at most a hop to each.
    assert before.makespan_ms - slack <= after.makespan_ms
    assert after.makespan_ms <= before.makespan_ms + ops * (overhead_ms + hop_ms) + slack
    for busy, row in zip(before.busy_ms, plan.problem.order.rows, strict=True):
        assert after.makespan_ms >= busy + len(row) * overhead_ms - slack
