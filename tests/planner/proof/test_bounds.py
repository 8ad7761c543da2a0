"""Bounds against brute force: never above the best plan, and infinite only when nothing fits."""

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.planner.proof.bounds import lower_bound, path_bound, work_bound
from sapp_ppb.planner.proof.exact_chain import ExactChain
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import OrderFile, ScheduleName
from sapp_ppb.simulator import simulate
from sapp_ppb.simulator.price import splits_backward
from sapp_ppb.targets import silent_cells
from tests.planner.brute_force import MOST_PLANS, all_plans, check_sample, count_plans, small_problem

# Set to check that many problems of up to 1e5 plans instead of a few hundred smaller ones.
_SOAK = int(os.environ.get("SAPP_PPB_SOAK", "0"))
_PROBLEMS = _SOAK or 250
_MOST_PLANS = MOST_PLANS if _SOAK else 2_000


def uniform_problem(**sizes) -> Problem:
    """Three equal layers of 1 ms forward, 2 ms backward, unless ``count`` says otherwise."""
    count = sizes.pop("count", 3)
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=count, forward_ms=1)
    return Problem(model=Model(name="uniform", layers=(body,)), **sizes)


def violations(seed: int, most_plans: int, *, devices: bool = False, together: bool = False) -> Iterator[str]:
    """Sentences about what one random problem's bounds get wrong."""
    problem = small_problem(Random(seed), most_plans=most_plans, devices=devices, together=together)
    optimum = all_plans(problem).optimum_ms
    bounds = {"lower_bound": lower_bound(problem), "work_bound": work_bound(problem)}
    if problem.interleave == 1 and not splits_backward(problem):
        bounds["path_bound"] = path_bound(problem)
    for name, bound in bounds.items():
        if not bound <= optimum * (1 + 1e-9):
            yield f"seed {seed}: {name} {bound!r} is above the optimum {optimum!r}"
    if bounds["lower_bound"] < max(bounds.values()):
        yield f"seed {seed}: lower_bound is not the best of {bounds}"


def test_no_bound_is_above_the_best_plan():
    """A bound of a problem in which something fits is finite, since infinity is above any optimum."""
    found = [text for seed in range(_PROBLEMS) for text in violations(seed, _MOST_PLANS)]
    assert not found, "\n".join(found)


def wrong_proofs(
    seed: int, most_plans: int, *, devices: bool = False, together: bool = False
) -> Iterator[str]:
    """Sentences about what the exact program gets wrong, from cutoffs at and far above the optimum."""
    rng = Random(seed)
    nested = rng.random() >= 0.7
    problem = small_problem(rng, most_plans=most_plans, devices=devices, together=together)
    problem = problem.changed(target="mindformers" if nested else None)
    plans = all_plans(problem, nested=nested)
    optimum = plans.optimum_ms
    if problem.interleave > 1 or splits_backward(problem) or math.isinf(optimum):
        return
    fitting = plans.makespan_ms[plans.fits]
    for cutoff in (optimum * (1 + 1e-7), float(np.median(fitting)) * 1.001, float(fitting.max()) * 1.001):
        answer = ExactChain(problem, cutoff).solve(math.inf)
        where = f"seed {seed}, cutoff {cutoff!r}, optimum {optimum!r}"
        if not answer.bound_ms <= optimum * (1 + 1e-9):
            yield f"{where}: the bound is {answer.bound_ms!r}"
        if answer.bound_ms < optimum * (1 - 1e-6):
            yield f"{where}: no proof, the bound is {answer.bound_ms!r}"
        if answer.plan is None:
            yield f"{where}: no plan"
            continue
        timeline = simulate(answer.plan)
        if not timeline.fits_memory or not math.isclose(timeline.step_ms, optimum, rel_tol=1e-7):
            yield f"{where}: a plan of {timeline.step_ms!r} ms, {timeline.peak_memory_mb} MB"
        if nested and silent_cells(answer.plan):
            yield f"{where}: MindFormers can not say the plan"


def test_the_exact_program_finds_and_proves_the_optimum_from_any_cutoff():
    """What is pruned by a cutoff is in no plan that is faster than it."""
    found = [text for seed in range(_PROBLEMS) for text in wrong_proofs(seed, _MOST_PLANS)]
    assert not found, "\n".join(found)


def test_no_bound_is_above_the_best_plan_on_unequal_devices():
    found = [text for seed in range(_PROBLEMS) for text in violations(seed, _MOST_PLANS, devices=True)]
    assert not found, "\n".join(found)


def test_the_exact_program_proves_the_optimum_on_unequal_devices():
    found = [text for seed in range(_PROBLEMS) for text in wrong_proofs(seed, _MOST_PLANS, devices=True)]
    assert not found, "\n".join(found)


def test_no_bound_is_above_the_best_plan_with_everything_at_once():
    # Unequal devices, time after the last op, memory for a moment, ties and strategies in one problem.
    found = [text for seed in range(_PROBLEMS) for text in violations(seed, _MOST_PLANS, together=True)]
    assert not found, "\n".join(found)


def test_the_exact_program_proves_the_optimum_with_everything_at_once():
    found = [text for seed in range(_PROBLEMS) for text in wrong_proofs(seed, _MOST_PLANS, together=True)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("seed", [1642, 2004, 2400])
def test_a_path_that_was_too_short_to_state_is_stated_when_it_is_the_longest(seed):
    """From a far cutoff the first solutions show paths that only a later one makes long."""
    found = list(wrong_proofs(seed, 50_000))
    assert not found, "\n".join(found)


def test_random_problems_with_everything_at_once_have_everything():
    problems = [small_problem(Random(seed), most_plans=200, together=True) for seed in range(150)]
    for reached in (
        lambda p: p.stage_speed is not None and len(set(p.speed_per_stage)) > 1,
        lambda p: p.has_extra,
        lambda p: any(layer.transient_mb for layer in (*p.model.heads, *p.model.tails)),
        lambda p: any(layer.tied_to is not None for layer in p.model.layers),
        lambda p: len(p.model.types) > len(Recompute),
    ):
        assert sum(map(reached, problems)) >= 60
    whole = [
        p
        for p in problems
        if p.stage_speed is not None
        and p.has_extra
        and len(p.model.types) > len(Recompute)
        and any(layer.transient_mb for layer in p.model.layers)
        and any(layer.tied_to is not None for layer in p.model.layers)
    ]
    assert len(whole) >= 20
    assert {p.schedule_name for p in problems} == set(ScheduleName)
    fitting = [float(all_plans(p).fits.mean()) for p in problems]
    assert sum(share == 0 for share in fitting) >= 20
    assert sum(0 < share < 1 for share in fitting) >= 20


def test_random_problems_reach_every_corner():
    problems = [small_problem(Random(seed), most_plans=200) for seed in range(150)]
    assert {p.schedule_name for p in problems} == set(ScheduleName)
    assert {p.interleave for p in problems} >= {1, 2, 3}
    assert {p.stages for p in problems} == {1, 2, 3, 4}
    assert {p.min_layers_per_cell for p in problems} == {0, 1}
    assert {len(p.model.bodies) for p in problems} == {1, 2, 3}
    for reached in (
        lambda p: p.micro_batches < p.stages,
        lambda p: p.micro_batches > p.stages,
        lambda p: any(layer.count == 1 for layer in p.model.bodies),
        lambda p: any(0 not in layer.considered for layer in p.model.bodies),
        lambda p: isinstance(p.memory_limit_mb, tuple),
        lambda p: p.memory_limit_mb is None,
        lambda p: max(p.hop_ms) > 0,
        lambda p: not p.model.heads and not p.model.tails,
        lambda p: any(layer.transient_mb for layer in p.model.tails),
    ):
        assert sum(map(reached, problems)) >= 10
    assert sum(any(layer.tied_to is not None for layer in p.model.layers) for p in problems) >= 5
    fitting = [float(all_plans(p).fits.mean()) for p in problems]
    assert sum(share == 0 for share in fitting) >= 20
    assert sum(0 < share < 1 for share in fitting) >= 20


def test_brute_force_agrees_with_the_reference_simulator():
    for seed in range(40):
        rng = Random(seed)
        plans = all_plans(small_problem(rng, most_plans=2_000))
        assert plans.number == count_plans(plans.problem)
        check_sample(plans, rng, 3)


def test_brute_force_lists_every_plan_once():
    # 3 layers on 2 stages: (1, 2) or (2, 1); two types: 2 choices for one layer, 3 for two; 2 x 2 x 3 = 12.
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=3,
        forward_ms=1,
        activation_mb={Recompute.NONE: 10, Recompute.FULL: 1},
    )
    problem = Problem(model=Model(name="two", layers=(body,)), stages=2, micro_batches=2)
    plans = all_plans(problem)
    assert plans.number == count_plans(problem) == 12
    assert len({plans.plan(index) for index in range(12)}) == 12


def test_brute_force_leaves_out_selective_beside_comm():
    # One cell of two layers, types SELECTIVE and COMM: SS, SC, CC, and SC mixes.
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=2,
        forward_ms=1,
        activation_mb={Recompute.SELECTIVE: 10, Recompute.COMM: 5},
    )
    problem = Problem(model=Model(name="one", layers=(body,)), stages=1, micro_batches=1)
    assert all_plans(problem).number == 3
    assert all_plans(problem, nested=True).number == 2


def test_equal_stages_under_1f1b_meet_the_path_bound():
    # (M + S - 1)(f + b) = (4 + 3 - 1) * 3 is the makespan of one layer a stage, the only plan.
    problem = uniform_problem(stages=3, micro_batches=4)
    assert path_bound(problem) == pytest.approx(18)
    assert all_plans(problem).optimum_ms == pytest.approx(18)


def test_bounds_count_the_overhead_of_every_op():
    # One layer a stage, F 1 + 0.25 and B 2 + 0.25: (4 + 3 - 1) x 3.5, which the path bound meets.
    # Work: 3 stages of 4 x 3.5, and stages 1 and 2 wait for 1 and 2 cells: (42 + 3 x 3.5) / 3.
    problem = uniform_problem(stages=3, micro_batches=4)
    problem = replace(problem, model=replace(problem.model, op_overhead_ms=0.25))
    assert path_bound(problem) == pytest.approx(21)
    assert work_bound(problem) == pytest.approx(17.5)
    assert all_plans(problem).optimum_ms == pytest.approx(21)


def test_the_path_bound_knows_that_overlapped_pairs_of_one_chunk_take_less():
    # One stage, F 1 and B 2: F0, seven pairs of 2 ms for a = 1, B7: 1 + 14 + 2 = 17.  The bound once
    # said 8 x 3 = 24, as if the pairs took F + B; now (1 - 1/2) x 24.
    pairs = ",".join(f"(0F{m};0B{m - 1})OVERLAP_F_B" for m in range(1, 8))
    order = OrderFile(path="order.csv", text=f"0F0,{pairs},0B7")
    problem = uniform_problem(count=1, stages=1, micro_batches=8, order_file=order, overlap_factor=1.0)
    assert all_plans(problem).optimum_ms == pytest.approx(17)
    assert path_bound(problem) == pytest.approx(12)
    assert ExactChain(problem, 17.0).solve(math.inf).bound_ms == pytest.approx(17)


def test_path_bound_is_infinite_when_one_layer_is_too_much():
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=2, forward_ms=1, parameter_mb=10)
    problem = Problem(
        model=Model(name="heavy", layers=(body,)), stages=2, micro_batches=2, memory_limit_mb=9.0
    )
    assert math.isinf(path_bound(problem))
    assert math.isinf(lower_bound(problem))


def test_work_bound_of_one_stage_is_all_its_work():
    # 5 micro-batches of 3 layers of 1 + 2 ms.
    assert work_bound(uniform_problem(stages=1, micro_batches=5)) == pytest.approx(45)


def test_work_bound_counts_what_later_stages_wait_for():
    # Work 4 * 4 * 3 = 48 over 2 stages; stage 1's first cell is cell 1, behind one layer: (48 + 3) / 2.
    problem = uniform_problem(count=4, stages=2, interleave=2, micro_batches=4)
    assert work_bound(problem) == pytest.approx(25.5)


def test_path_bound_with_fewer_micro_batches_than_stages():
    # M = 1: one micro-batch goes through all three stages and back, 3 * (1 + 2), whatever the split.
    assert path_bound(uniform_problem(stages=3, micro_batches=1)) == pytest.approx(9)


def test_work_bound_does_not_wait_for_cells_that_may_be_empty():
    # The same work, 48 over 2 stages, but cell 0 may have no layer.
    problem = uniform_problem(count=4, stages=2, interleave=2, micro_batches=4, min_layers_per_cell=0)
    assert work_bound(problem) == pytest.approx(24)


def test_work_bound_waits_for_the_head():
    # HEAD 10 + 20 ms, two layers of 3 ms: 4 * 36 = 144; stage 1 waits for HEAD, whose cell needs no layer.
    head = layer_from_times(name="head", kind=LayerKind.HEAD, forward_ms=10)
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=2, forward_ms=1)
    problem = Problem(model=Model(name="head first", layers=(head, body)), stages=2, micro_batches=4)
    assert work_bound(problem) == pytest.approx((144 + 30) / 2)
