"""A strategy beside recomputation changes plans, counted by hand."""

from dataclasses import replace

import pytest

from sapp_ppb.costs import LayerKind, LayerStrategy, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Status, plan_from_matrices
from sapp_ppb.planner import baselines, plan_pipeline
from sapp_ppb.planner.explain import explain
from sapp_ppb.planner.planning import type_sets
from sapp_ppb.planner.search.tidy import tidied
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import simulate
from tests.reference import reference

SWAP = LayerStrategy(name="swap", backward_ms=22, activation_mb=15)


def problem_of(*strategies, **changes) -> Problem:
    """Four layers on two stages, four micro-batches under 1F1B: stage 0 holds two live, stage 1 one."""
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=4,
        forward_ms=10,  # backward 20, with full 30
        activation_mb={Recompute.NONE: 60, Recompute.FULL: 5},
        strategies=strategies,
    )
    sizes = {"stages": 2, "micro_batches": 4, "memory_limit_mb": 160}
    return Problem(model=Model(name="tiny", layers=(body,)), **sizes | changes)


def test_a_swap_takes_the_place_of_recompute():
    # Two layers a stage.  Stage 0 may hold 160 MB: 2 x (60 + 60) = 240 is too much, 2 x (60 + 5) = 130 with
    # one layer recomputed fits, and so does 2 x (60 + 15) = 150 with one swapped.  Stage 1 holds 120.
    # Of other splits, 1 + 3 layers need 3 x 60 = 180 on stage 1 and so a recomputed or swapped layer there,
    # with 30 + 62 ms a micro-batch or more: 4 x 92 > 330; 3 + 1 is longer still.
    #
    # Recomputed, stage 0 takes F 20 and B 20 + 30 = 50, stage 1 F 20 and B 40:
    #   stage 0  F0 0-20   F1 20-40    B0 80-130   F2 130-150  B1 150-200  F3 200-220  B2 220-270  B3 280-330
    #   stage 1  F0 20-40  B0 40-80    F1 80-100   B1 100-140  F2 150-170  B2 170-210  F3 220-240  B3 240-280
    without = plan_pipeline(problem_of(), time_limit_s=2.0)
    assert (without.status, without.makespan_ms) == (Status.OPTIMAL, 330.0)
    assert without.plan is not None
    assert (without.plan.recomputed_layers, without.plan.strategy_layers) == (1, {})
    # Swapped, B is 20 + 22 = 42 on stage 0:
    #   stage 0  F0 0-20   F1 20-40    B0 80-122   F2 122-142  B1 142-184  F3 184-204  B2 204-246  B3 264-306
    #   stage 1  F0 20-40  B0 40-80    F1 80-100   B1 100-140  F2 142-162  B2 162-202  F3 204-224  B3 224-264
    found = plan_pipeline(problem_of(SWAP), time_limit_s=2.0)
    assert (found.status, found.makespan_ms) == (Status.OPTIMAL, 306.0)
    assert found.plan is not None
    assert (found.plan.recomputed_layers, found.plan.strategy_layers) == (0, {"swap": 1})
    assert found.plan.per_chunk_and_stage(found.plan.counts[0, 5]).tolist() == [[1, 0]]
    assert found.peak_memory_mb == (150.0, 120.0)
    assert reference(found.plan).makespan_ms == 306.0


def test_a_swap_that_is_slower_than_recompute_changes_nothing():
    slow = LayerStrategy(name="swap", backward_ms=31, activation_mb=1)
    found = plan_pipeline(problem_of(slow), time_limit_s=2.0)
    assert found.makespan_ms == 330.0
    assert found.plan is not None
    assert found.plan.strategy_layers == {}


def test_where_recompute_is_too_much_a_swap_is_what_fits():
    # Two layers on stage 0 hold 2 x (5 + 5) = 20 MB recomputed, 2 x (5 + 1) = 12 with one swapped and 4 with
    # both; on stage 1 they hold 10, 6 or 2.  Of 9 MB that leaves one recomputed layer, which is faster.
    away = LayerStrategy(name="swap", backward_ms=35, activation_mb=1)
    assert plan_pipeline(problem_of(memory_limit_mb=9), time_limit_s=2.0).plan is None
    found = plan_pipeline(problem_of(away, memory_limit_mb=9), time_limit_s=2.0)
    assert found.plan is not None
    assert found.plan.strategy_layers == {"swap": 3}
    assert max(found.peak_memory_mb) <= 9


def test_a_remedy_names_a_strategy_that_is_not_allowed():
    away = LayerStrategy(name="swap", backward_ms=35, activation_mb=1)
    none, full = Recompute.NONE, Recompute.FULL
    found = plan_pipeline(problem_of(away, memory_limit_mb=9, recompute=(none, full)), time_limit_s=2.0)
    assert found.shortage is not None
    assert ("recompute", "swap") in found.shortage.remedies


def test_a_plan_for_a_framework_uses_none():
    for target in ("mindformers", "megatron", "torchtitan"):
        found = plan_pipeline(problem_of(SWAP, target=target), time_limit_s=2.0)
        assert found.plan is not None, target
        assert found.plan.strategy_layers == {}, target
        assert simulate(found.plan).makespan_ms >= 330.0, target


def test_a_layer_with_nothing_else_can_not_be_planned_for_a_framework():
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=1, strategies=[SWAP])
    model = Model(name="tiny", layers=(body,))
    found = plan_pipeline(Problem(model=model, stages=2, micro_batches=4), time_limit_s=0.5)
    assert found.plan is not None
    assert found.plan.strategy_layers == {"swap": 4}
    words = "layer 'Dec' can be swap, and the target megatron has no words for swap"
    with pytest.raises(InputError, match=words):
        Problem(model=model, stages=2, micro_batches=4, target="megatron")


def test_strategies_are_allowed_and_forbidden_by_name():
    problem = problem_of(SWAP)
    swap = problem.model.type_named("swap")
    narrow = replace(problem, recompute=(swap, Recompute.NONE))
    assert narrow.recompute == (Recompute.NONE, swap)
    assert replace(problem, recompute=problem.model.types) == problem
    assert plan_pipeline(narrow, time_limit_s=1.0).makespan_ms == 306.0
    assert plan_pipeline(replace(problem, recompute=tuple(Recompute)), time_limit_s=1.0).makespan_ms == 330.0
    with pytest.raises(
        InputError, match="recompute must list at least one of none, selective, comm, both, full"
    ):
        problem_of(recompute=(swap,))


def test_a_mix_of_types_counts_strategies():
    sets = type_sets(problem_of(SWAP, max_recompute_types=1))
    assert [[r.label for r in each.recompute or ()] for each in sets] == [["none", "full"], ["none", "swap"]]
    plan = plan_pipeline(problem_of(SWAP, max_recompute_types=1), time_limit_s=1.0).plan
    assert plan is not None
    assert plan.mixed_types == 1


def test_baselines_recompute_and_do_not_swap():
    found = {baseline.name: baseline.plan for baseline in baselines(problem_of(SWAP))}
    assert found["even split, full recompute"].recomputed_layers == 4
    assert all(plan.strategy_layers == {} for plan in found.values())


def test_a_strategy_is_taken_off_where_memory_allows():
    # With 300 MB all layers may be left alone: 2 x (60 + 60) = 240 on stage 0.
    problem = problem_of(SWAP, memory_limit_mb=300)
    swap = problem.model.type_named("swap")
    plan = plan_pipeline(problem, time_limit_s=1.0).plan
    assert plan is not None
    counts = plan.counts.copy()
    counts[0, [Recompute.NONE, swap], 0] = (0, 2)
    assert tidied(replace(plan, counts=counts)).strategy_layers == {}


def test_what_a_turn_makes_room_for_is_turned_too():
    # Of 210 MB stage 0 takes 2 x (50 + 50) = 200 recomputed; one left alone is too much, 2 x (80 + 50).
    # Both can be swapped, which is faster and holds 2 x (20 + 20), and then one left alone: 2 x (80 + 20).
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=4,
        forward_ms=10,
        activation_mb={Recompute.NONE: 80, Recompute.FULL: 50},
        strategies=[LayerStrategy(name="swap", backward_ms=22, activation_mb=20)],
    )
    problem = Problem(
        model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4, memory_limit_mb=210
    )
    plan = plan_from_matrices(problem, {"Dec": {"none": [[0, 2]], "full": [[2, 0]]}})
    assert tidied(plan).counts[0, :, 0].tolist() == [1, 0, 0, 0, 0, 1]


def test_a_recomputed_layer_is_taken_to_a_strategy_that_is_faster():
    # 2 x (60 + 15) = 150 of 160 MB fits and 22 ms are less than 30, though swap stands behind full.
    problem = problem_of(SWAP)
    plan = plan_pipeline(replace(problem, recompute=(Recompute.NONE, Recompute.FULL)), time_limit_s=1.0).plan
    assert plan is not None
    assert tidied(replace(plan, problem=problem)).strategy_layers == {"swap": 1}


def test_the_time_that_a_strategy_adds_is_told_as_recompute():
    plan = plan_pipeline(problem_of(SWAP), time_limit_s=1.0).plan
    assert plan is not None
    # U = 4 x 4 x (10 + 20) = 480.  Without what the swap adds all of B takes 40: (4 + 2 - 1) x 60 = 300 ms,
    # so 2 x (306 - 300) / 480.
    assert simulate(plan).bubble.recompute == pytest.approx(2 * 6 / 480)


def test_free_recompute_makes_strategies_free_too():
    outcome = plan_pipeline(problem_of(SWAP), time_limit_s=1.0)
    assert explain(outcome, 0.5).free_recompute.step_ms == 300.0  # five times 60 ms, as above


def test_a_working_set_comes_back_before_a_backward():
    # On stage 0 the swapped layer holds 60 - 15 = 45 MB again while its backward runs: 150 + 45 > 160.
    problem = problem_of(SWAP, recompute_working_set=True, memory_limit_mb=195)
    found = plan_pipeline(problem, time_limit_s=1.0)
    assert (found.makespan_ms, found.peak_memory_mb[0]) == (306.0, 195.0)
    tighter = plan_pipeline(replace(problem, memory_limit_mb=194), time_limit_s=1.0)
    assert tighter.makespan_ms is not None
    assert tighter.makespan_ms > 306.0


def test_fixed_recompute_keeps_a_strategy():
    problem = problem_of(SWAP)
    plan = plan_pipeline(problem, time_limit_s=1.0).plan
    assert plan is not None
    for fix in (plan.recompute, plan.split):
        again = plan_pipeline(replace(problem, fix=fix), time_limit_s=1.0)
        assert again.plan is not None
        assert again.makespan_ms == 306.0
        assert again.plan.strategy_layers == {"swap": 1}
    with pytest.raises(
        InputError, match="fix recomputes 'Dec' as swap, which recompute or the model does not"
    ):
        replace(problem, fix=plan.recompute, recompute=(Recompute.NONE, Recompute.FULL))


@pytest.mark.parametrize("interleave", [1, 2])
def test_two_kinds_with_strategies_of_their_own(interleave):
    host = LayerStrategy(name="host", backward_ms=12, activation_mb=2)
    layers = (
        layer_from_times(
            name="a",
            kind=LayerKind.BODY,
            count=3,
            forward_ms=10,
            activation_mb={Recompute.NONE: 60},
            strategies=[SWAP],
        ),
        layer_from_times(
            name="b",
            kind=LayerKind.BODY,
            count=3,
            forward_ms=5,
            activation_mb={Recompute.NONE: 30},
            strategies=[host],
        ),
    )
    problem = Problem(
        model=Model(name="two", layers=layers),
        stages=2,
        interleave=interleave,
        micro_batches=4,
        memory_limit_mb=150,
    )
    found = plan_pipeline(problem, time_limit_s=1.0)
    assert found.plan is not None
    assert set(found.plan.strategy_layers) <= {"swap", "host"}
    a, b = found.plan.counts
    assert not a[problem.model.type_named("host")].any()
    assert not b[problem.model.type_named("swap")].any()
    assert found.makespan_ms == pytest.approx(reference(found.plan).makespan_ms, rel=1e-9)
