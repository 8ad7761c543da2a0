"""Laws that hold for every plan: what a pipeline can not beat, and what must not matter."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import P2PMode
from sapp_ppb.simulator import batched_makespans, simulate
from sapp_ppb.simulator.price import price, without_recompute
from tests.reference import cell_costs, hop_ms_after
from tests.strategies import plans, plans_in_any_mode, random_plan, random_problem

# Times are equal within this share.
RELATIVE = 1e-9


def equal_plan(stages: int, micro_batches: int, forward_ms: float, backward_ms: float) -> Plan:
    """One layer a stage, nothing else, sends free, under 1F1B."""
    body = layer_from_times(
        name="Dec", kind=LayerKind.BODY, count=stages, forward_ms=forward_ms, backward_ms=backward_ms
    )
    problem = Problem(model=Model(name="equal", layers=(body,)), stages=stages, micro_batches=micro_batches)
    counts = np.zeros((1, len(Recompute), stages), dtype=int)
    counts[0, Recompute.NONE] = 1
    return Plan(problem=problem, counts=counts)


def with_p2p(plan: Plan, p2p_ms: float | tuple[float, ...]) -> Plan:
    return Plan(problem=replace(plan.problem, p2p_ms=p2p_ms), counts=plan.counts)


def more_recomputed(plan: Plan, rng: Random) -> Plan:
    """Each count, by the toss of a coin, under the most recomputing type that its layer considers."""
    counts = plan.counts.copy()
    for index, layer in enumerate(plan.problem.model.bodies):
        types = [
            r for r in layer.considered if isinstance(r, Recompute)
        ]  # a strategy is neither more nor less
        for recompute in types[:-1]:
            for cell in range(plan.problem.cells):
                if rng.random() < 0.5:
                    counts[index, types[-1], cell] += counts[index, recompute, cell]
                    counts[index, recompute, cell] = 0
    return Plan(problem=plan.problem, counts=counts)


def scaled(plan: Plan, k: float) -> Plan:
    problem = plan.problem
    layers = [
        replace(layer, forward_ms=k * layer.forward_ms, backward_ms=tuple(k * b for b in layer.backward_ms))
        for layer in problem.model.layers
    ]
    model = replace(problem.model, layers=tuple(layers))
    p2p_ms = tuple(k * hop for hop in problem.hop_ms)
    return Plan(problem=replace(problem, model=model, p2p_ms=p2p_ms), counts=plan.counts)


@given(st.integers(1, 8), st.integers(1, 30), st.integers(1, 50), st.integers(0, 100))
def test_equal_stages_with_free_sends_take_m_plus_s_minus_1_turns(S, M, f, b):
    # Narayanan et al., SC 2021, arXiv:2104.04473, section 2.2.1: (M + S - 1)(f + b); whole
    # milliseconds add up without rounding.
    assert simulate(equal_plan(S, M, f, b)).makespan_ms == (M + S - 1) * (f + b)


@given(st.integers(1, 8), st.integers(1, 30), st.integers(1, 50), st.integers(0, 100))
def test_the_bubble_of_equal_stages_is_s_minus_1_over_m_and_all_of_it_filling_and_draining(S, M, f, b):
    # Work M(f + b) a stage of (M + S - 1)(f + b): idle over useful is (S - 1) / M.
    bubble = simulate(equal_plan(S, M, f, b)).bubble
    assert bubble.total == pytest.approx((S - 1) / M, abs=RELATIVE)
    assert bubble.fill_drain == pytest.approx((S - 1) / M, abs=RELATIVE)
    assert (bubble.recompute, bubble.communication) == (0.0, 0.0)
    assert bubble.imbalance == pytest.approx(0.0, abs=RELATIVE)


@given(plans(most_micro_batches=1))
def test_one_micro_batch_takes_every_forward_every_backward_and_every_send_twice(plan):
    # Nothing overlaps: the micro-batch goes down the chain and back up.  For V = 1 and equal sends
    # that is sum f + sum b + 2 (S - 1) send; for V > 1 each of the S V - 1 links is crossed twice.
    problem = plan.problem
    costs = [cell_costs(plan, cell) for cell in range(problem.cells)]
    work = sum(cost["forward"] + cost["backward"] for cost in costs)
    links = [hop_ms_after(problem.order, cell, problem.hop_ms) for cell in range(problem.cells - 1)]
    assert simulate(plan).makespan_ms == pytest.approx(work + 2 * sum(links), rel=RELATIVE)


@given(plans(chunks=1, most_micro_batches=1), st.floats(0, 100))
def test_one_micro_batch_without_chunks_crosses_s_minus_1_edges_twice(plan, send_ms):
    free = simulate(with_p2p(plan, 0.0)).makespan_ms
    assert simulate(with_p2p(plan, send_ms)).makespan_ms == pytest.approx(
        free + 2 * (plan.problem.stages - 1) * send_ms, rel=RELATIVE
    )


@given(plans() | plans_in_any_mode())
def test_no_plan_is_faster_than_its_busiest_stage(plan):
    timeline = simulate(plan)
    assert timeline.makespan_ms >= timeline.busy_ms.max() * (1 - RELATIVE)


@given(plans())
def test_no_plan_is_faster_than_one_micro_batch_through_the_whole_chain(plan):
    costs = price(plan)
    assert simulate(plan).makespan_ms >= (costs.forward_ms + costs.backward_ms).sum() * (1 - RELATIVE)


@given(plans())
def test_a_stage_is_busy_for_the_sum_of_its_ops(plan):
    problem, M = plan.problem, plan.problem.micro_batches
    costs = [cell_costs(plan, cell) for cell in range(problem.cells)]
    busy = [0.0] * problem.stages
    for cell, cost in enumerate(costs):
        stage = problem.order.placement.stage_of(cell, problem.stages)
        busy[stage] += M * (cost["forward"] + cost["backward"])
    assert simulate(plan).busy_ms.tolist() == pytest.approx(busy, rel=RELATIVE)


@given(plans(), st.integers(-10, 10))
def test_costs_times_a_power_of_two_give_the_makespan_times_it_exactly(plan, exponent):
    # Such a factor changes no digit of any float, so not even rounding may differ.
    k = 2.0**exponent
    assert simulate(scaled(plan, k)).makespan_ms == k * simulate(plan).makespan_ms


@given(plans(), st.floats(0.01, 100))
def test_costs_times_k_give_the_makespan_times_k(plan, k):
    expected = k * simulate(plan).makespan_ms
    assert simulate(scaled(plan, k)).makespan_ms == pytest.approx(expected, rel=RELATIVE)


@given(plans() | plans_in_any_mode(), st.integers(0, 2**32 - 1))
def test_more_recompute_is_never_faster_and_never_holds_more(plan, seed):
    before, after = simulate(plan), simulate(more_recomputed(plan, Random(seed)))
    assert after.makespan_ms >= before.makespan_ms * (1 - RELATIVE)
    for less, more in zip(after.peak_memory_mb, before.peak_memory_mb, strict=True):
        assert less <= more * (1 + RELATIVE)


@given(plans())
def test_the_parts_of_the_bubble_add_up_to_idle_over_useful_time(plan):
    # (S T0 - U) / U with U = M x the work of one micro-batch without recompute.
    timeline, problem = simulate(plan), plan.problem
    model = problem.model
    useful = problem.micro_batches * (model.total_forward_ms + model.total_backward_ms)
    bubble = timeline.bubble
    parts = bubble.fill_drain + bubble.imbalance + bubble.recompute + bubble.communication
    expected = (problem.stages * timeline.makespan_ms - useful) / useful
    assert bubble.total == parts
    assert parts == pytest.approx(expected, rel=RELATIVE, abs=RELATIVE)


@given(plans())
def test_recompute_sends_and_filling_never_give_time_back(plan):
    # Only imbalance may be negative: an uneven split can suit the order.
    bubble = simulate(plan).bubble
    assert min(bubble.recompute, bubble.communication, bubble.fill_drain) >= -RELATIVE


@given(plans())
def test_without_recompute_or_sends_their_share_of_the_bubble_is_nothing(plan):
    counts = np.zeros_like(plan.counts)
    for index, layer in enumerate(plan.problem.model.bodies):
        counts[index, layer.considered[0]] = plan.counts[index].sum(axis=0)
    bubble = simulate(with_p2p(Plan(problem=plan.problem, counts=counts), 0.0)).bubble
    assert bubble.communication == 0.0
    if all(layer.considered[0] is Recompute.NONE for layer in plan.problem.model.bodies):
        assert bubble.recompute == pytest.approx(0.0, abs=RELATIVE)


@given(plans() | plans_in_any_mode(), st.floats(0, 50), st.floats(0, 50))
def test_slower_sends_are_never_faster(plan, send_ms, more_ms):
    before = simulate(with_p2p(plan, send_ms)).makespan_ms
    assert simulate(with_p2p(plan, send_ms + more_ms)).makespan_ms >= before


@given(plans(), st.floats(0, 50))
def test_a_list_of_one_send_time_is_that_send_time(plan, send_ms):
    listed = with_p2p(plan, (send_ms,) * plan.problem.stages)
    assert listed == with_p2p(plan, send_ms)
    assert simulate(listed).makespan_ms == simulate(with_p2p(plan, send_ms)).makespan_ms


@given(plans_in_any_mode())
def test_messages_that_are_held_back_are_never_faster(plan):
    asynchronous = replace(plan.problem, p2p_mode=P2PMode.ASYNC)
    at_once = simulate(Plan(problem=asynchronous, counts=plan.counts)).makespan_ms
    assert simulate(plan).makespan_ms >= at_once * (1 - RELATIVE)


@given(plans_in_any_mode(), st.floats(0, 1))
def test_pairs_save_no_more_of_a_stages_work_than_their_factor_says(plan, factor):
    if not plan.problem.order.pairs:
        return
    one_by_one, together = (
        simulate(Plan(problem=replace(plan.problem, overlap_factor=a), counts=plan.counts)).busy_ms
        for a in (0.0, factor)
    )
    assert np.all(together <= one_by_one * (1 + RELATIVE))
    # A pair saves at most half of its time.
    assert np.all(together >= one_by_one * (1 - factor / 2) * (1 - RELATIVE))


def test_many_price_lists_at_once_take_what_each_takes_alone() -> None:
    # The compiled loop and the plain one do the same additions in the same order: equal to the last digit.
    for seed in range(30):
        rng = Random(seed)
        problem = random_problem(rng)
        several = [random_plan(rng, problem) for _ in range(4)]
        lists = np.array([price(plan).price_list(problem) for plan in several])
        assert batched_makespans(problem, lists).tolist() == [simulate(plan).makespan_ms for plan in several]


def test_no_price_list_at_all_gives_no_makespan() -> None:
    assert batched_makespans(random_problem(Random(1)), np.empty((0, 4))).tolist() == []


def test_a_large_plan_is_compiled_and_takes_the_same_time() -> None:
    # S = 4, M = 3000 have 24,000 ops, more than are timed without the compiler.
    # Equal stages: (3000 + 4 - 1)(1 + 2) = 9009.
    plan = equal_plan(4, 3000, 1, 2)
    assert simulate(plan).makespan_ms == 9009.0


@given(plans())
def test_the_price_without_recompute_is_the_models_own_work(plan):
    free, model = without_recompute(plan), plan.problem.model
    assert free.forward_ms.sum() == pytest.approx(model.total_forward_ms, rel=RELATIVE)
    assert free.backward_ms.sum() == pytest.approx(model.total_backward_ms, rel=RELATIVE)
