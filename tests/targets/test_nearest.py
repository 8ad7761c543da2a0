"""The nearest plan that a framework can say: against every choice, and on random plans."""

import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Plan, plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets import TARGETS, can_say_cell, target_named
from sapp_ppb.targets.nearest import Nearest, nearest
from sapp_ppb.targets.nested_cell import nested_cell
from tests.strategies import random_plan

MEMORY = {
    Recompute.NONE: 60,
    Recompute.SELECTIVE: 45,
    Recompute.COMM: 38,
    Recompute.BOTH: 30,
    Recompute.FULL: 4,
}


def body(name, count, memory=MEMORY, *, is_mtp=False):
    return layer_from_times(
        name=name, kind=LayerKind.BODY, count=count, forward_ms=1, activation_mb=memory, is_mtp=is_mtp
    )


def problem_of(*layers, stages=2, interleave=1, micro_batches=8, schedule=None, **more):
    return Problem(
        model=Model(name="tiny", layers=layers),
        stages=stages,
        interleave=interleave,
        micro_batches=micro_batches,
        schedule=schedule,
        **more,
    )


def found_for(plan, target) -> Nearest:
    """Nearest plan, where there is one."""
    found = nearest(plan, target_named(target))
    assert found is not None
    return found


def every_nested(layers, sizes):
    """Every choice of types for the layers of a cell that its lists can say, by brute force."""
    order = [k for k, size in enumerate(sizes) for _ in range(size)]
    for types in itertools.product(Recompute, repeat=len(order)):
        counts = np.zeros((len(layers), len(Recompute)), dtype=np.int64)
        for k, recompute in zip(order, types, strict=True):
            counts[k, recompute] += 1
        if all(r in layers[k].considered for k, r in zip(order, types, strict=True)) and can_say_cell(counts):
            yield counts


@given(st.integers(0, 2**32 - 1))
def test_a_cell_changes_as_few_layers_as_any_choice_that_can_be_said(seed):
    rng = Random(seed)
    layers, sizes = [], []
    for k in range(rng.randint(1, 3)):
        types = [r for r in Recompute if rng.random() < 0.7] or [Recompute.NONE]
        layers.append(body(f"b{k}", 9, {r: MEMORY[r] for r in types}))
        sizes.append(rng.randint(0, 2 if k else 3))
    wanted = np.zeros((len(layers), len(Recompute)), dtype=np.int64)
    for k, size in enumerate(sizes):
        for _ in range(size):
            wanted[k, rng.choice(layers[k].considered)] += 1
    found = nested_cell(layers, wanted, {})
    fewest = min(
        (int(np.maximum(counts - wanted, 0).sum()) for counts in every_nested(layers, sizes)), default=None
    )
    if found is None:
        assert fewest is None
        return
    assert can_say_cell(found)
    assert found.sum(axis=1).tolist() == sizes
    assert int(np.maximum(found - wanted, 0).sum()) == fewest


def mixed_plan(rng, *, with_mtp):
    """Plan of two kinds whose layers have all types, without empty cells."""
    stages, chunks = rng.randint(2, 3), rng.randint(1, 2)
    kinds = [body("dense", rng.randint(2, 4)), body("moe", stages * chunks + rng.randint(1, 6))]
    kinds += [body("mtp", 1, is_mtp=True)] if with_mtp else []
    return random_plan(rng, problem_of(*kinds, stages=stages, interleave=chunks, micro_batches=4 * stages))


@pytest.mark.parametrize("target", TARGETS)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_nearest_plan_can_be_said_and_has_the_same_split(target, seed, with_mtp):
    plan = mixed_plan(Random(seed), with_mtp=with_mtp)
    found = nearest(plan, target_named(target))
    if with_mtp and target == "torchtitan":  # which runs no such layer in a pipeline
        assert found is None
    if found is None:  # the split itself can not be said, whatever the recompute
        counts = np.zeros_like(plan.counts)
        counts[:, Recompute.NONE] = plan.counts.sum(axis=1)
        assert target_named(target).unsaid(Plan(problem=plan.problem, counts=counts))
        return
    assert target_named(target).unsaid(found.plan) == ()
    assert np.array_equal(found.plan.counts.sum(axis=1), plan.counts.sum(axis=1))
    assert found.differing == int(abs(found.plan.counts - plan.counts).sum()) // 2


@pytest.mark.parametrize("target", TARGETS)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_nothing_is_nearer_to_a_plan_that_can_be_said_than_itself(target, seed, with_mtp):
    found = nearest(mixed_plan(Random(seed), with_mtp=with_mtp), target_named(target))
    if found is not None:
        again = nearest(found.plan, target_named(target))
        assert again is not None
        assert (again.differing, again.added_mb) == (0, 0.0)
        assert np.array_equal(again.plan.counts, found.plan.counts)


@pytest.mark.parametrize("target", ["megatron", "torchtitan"])
@given(st.integers(0, 2**32 - 1))
def test_no_setting_of_the_whole_model_is_nearer(target, seed):
    # The ways of the target with the split kept hold every plan that it can say with one chunk a stage.
    rng = Random(seed)
    plan = random_plan(rng, problem_of(body("dense", 3), body("moe", 5), stages=2))
    found = nearest(plan, target_named(target))
    assert found is not None
    by_entry = plan.counts.sum(axis=1)
    for way in target_named(target).ways(plan.problem.changed(fix=plan.split)):
        fix, types = way.problem.fix, way.problem.recompute
        if fix is not None and fix.places is not None:
            counts = fix.places.counts(by_entry)
        else:
            counts = np.zeros_like(plan.counts)
            assert types is not None
            counts[:, types[0]] = by_entry
        assert found.differing <= int(np.maximum(counts - plan.counts, 0).sum())


def test_of_equally_near_plans_the_one_that_adds_no_memory_is_taken():
    problem = problem_of(body("Dec", 8))
    plan = plan_from_matrices(problem, {"Dec": {"none": [[1, 3]], "full": [[3, 1]]}})
    # Blocks of 1, 2 and 3 change two layers each; 1 adds 2 x 56 MB on stage 0, 2 adds 56 MB, 3 adds none.
    found = found_for(plan, "megatron")
    assert (found.differing, found.added_mb, found.added_ms) == (2, 0.0, 2.0)
    assert found.words.endswith("--recompute-num-layers 3")


def test_selective_gives_way_to_the_more_frequent_comm():
    problem = problem_of(body("Dec", 8))
    plan = plan_from_matrices(problem, {"Dec": {"selective": [[1, 0]], "comm": [[3, 0]], "none": [[0, 4]]}})
    found = found_for(plan, "mindformers")
    assert found.differing == 1
    assert found.plan.counts[0, Recompute.COMM].tolist() == [4, 0]


def test_every_nth_layer_is_counted_over_the_chunks_of_a_stage():
    # Three layers a cell: a stage builds 6, and of every 4 the fourth is full: the first of its second chunk.
    problem = problem_of(body("Dec", 12), interleave=2)
    wanted = {"Dec": {"none": [[3, 3], [2, 2]], "full": [[0, 0], [1, 1]]}}
    found = found_for(plan_from_matrices(problem, wanted), "torchtitan")
    assert (found.differing, found.words) == (0, 'mode = "selective", selective_ac_option = "4"')


def test_multi_token_prediction_runs_as_the_layer_before_it():
    problem = problem_of(body("Dec", 5), body("mtp", 1, is_mtp=True))
    plan = plan_from_matrices(
        problem, {"Dec": {"full": [[3, 1]], "none": [[0, 1]]}, "mtp": {"full": [[0, 1]]}}
    )
    found = found_for(plan, "mindformers")
    # MTP alone changes to none, or the layer before it to full: one layer; none adds 56 MB, full none.
    assert (found.differing, found.added_mb) == (1, 0.0)
    assert found.plan.counts[0, Recompute.NONE].sum() == 0


@pytest.mark.parametrize(
    ("target", "schedule"), [("megatron", ScheduleName.GPIPE), ("mindformers", ScheduleName.DUALPIPEV)]
)
def test_none_is_near_where_the_schedule_is_refused(target, schedule):
    chunks = 2 if schedule is ScheduleName.DUALPIPEV else 1
    problem = problem_of(body("Dec", 8), interleave=chunks, schedule=schedule)
    plan = random_plan(Random(0), problem)
    assert nearest(plan, target_named(target)) is None


def test_what_bound_the_planner_does_not_bind_the_nearest_plan():
    problem = problem_of(body("Dec", 8), recompute=(Recompute.SELECTIVE, Recompute.COMM))
    plan = plan_from_matrices(problem, {"Dec": {"selective": [[2, 4]], "comm": [[2, 0]]}})
    found = found_for(plan, "megatron")
    assert found.plan.problem.recompute is None
    # Selective for all changes the two layers of comm; none or full would change all eight.
    assert found.plan.counts[0, Recompute.SELECTIVE].tolist() == [4, 4]


def test_a_layer_that_lacks_a_type_is_given_another():
    memory = {Recompute.SELECTIVE: 45, Recompute.FULL: 4}
    problem = problem_of(body("Dec", 4), body("Moe", 4, memory))
    plan = plan_from_matrices(problem, {"Dec": {"none": [[4, 0]]}, "Moe": {"full": [[0, 4]]}})
    found = found_for(plan, "megatron")
    # Neither none nor a block leaves all layers types that they have; selective changes 8 layers, full 4.
    assert (found.differing, found.words.split()[-1]) == (4, "uniform")
