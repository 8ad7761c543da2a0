"""Patterns of a stage against brute force: what a cutoff prunes is in no plan that is as fast."""

from collections.abc import Iterator

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Plan
from sapp_ppb.planner.proof import patterns as module
from sapp_ppb.planner.proof.patterns import StagePatterns, TooManyPatternsError, list_patterns
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import simulate
from sapp_ppb.simulator.price import price
from sapp_ppb.targets import can_say_cell
from tests.planner.cases import Case, cases, combinations

# Plans of a case that are looked up among its patterns.
_LOOKED_UP = 5


def beaten(case: Case, plan: int, patterns: list[StagePatterns]) -> Iterator[int]:
    """Stages on which no pattern has the layers of a plan and backwards that are no longer."""
    found = case.plans.plan(plan)
    layers, backward = found.counts.sum(axis=1).T, price(found).backward_ms
    for stage, each in enumerate(patterns):
        same = (each.layers == layers[each.cells]).all(axis=(1, 2))
        no_longer = (each.backward_ms <= backward[each.cells] * (1 + 1e-9)).all(axis=1)
        if not (same & no_longer).any():
            yield stage


def missing(case: Case, cutoff_ms: float) -> Iterator[str]:
    """Sentences about plans within a cutoff of which a stage has no pattern."""
    patterns = list_patterns(case.problem, cutoff_ms)
    within = case.plans.fits & (case.plans.makespan_ms <= cutoff_ms)
    found = np.flatnonzero(within)
    for plan in case.rng.sample(found.tolist(), min(_LOOKED_UP, len(found))):
        for stage in beaten(case, plan, patterns):
            yield f"{case.where(cutoff_ms)}: stage {stage} of plan {plan} has no pattern"


def test_every_plan_within_the_cutoff_has_its_patterns():
    """With the optimum as cutoff these are the optimal plans, of which none may be lost."""
    found: list[str] = []
    for case in cases():
        for cutoff in {case.optimum_ms, *case.cutoffs()}:
            found += missing(case, cutoff)
    assert not found, "\n".join(found)


def untrue(case: Case, cutoff_ms: float) -> Iterator[str]:
    """Sentences about patterns that are not what they say."""
    problem = case.problem
    for stage, each in enumerate(list_patterns(problem, cutoff_ms)):
        for pattern in range(min(5, len(each.layers))):
            counts = each.counts(pattern, len(problem.model.bodies))
            if not np.array_equal(counts.sum(axis=1).T, each.layers[pattern]):
                yield f"{case.where(cutoff_ms)}: pattern {pattern} of stage {stage} has other layers"
            cells = counts.transpose(2, 0, 1)
            if case.nested and not all(can_say_cell(cell) for cell in cells):
                yield f"{case.where(cutoff_ms)}: pattern {pattern} of stage {stage} can not be said"


def test_a_pattern_is_made_of_the_layers_that_it_says():
    found = [text for case in cases(100) for text in untrue(case, case.cutoffs()[0])]
    assert not found, "\n".join(found)


def test_the_fastest_combination_that_is_a_plan_is_the_optimum():
    """Patterns fit, so no combination of them that is a plan can be faster than the best plan."""
    tried = 0
    for case in cases():
        for cutoff in case.cutoffs():
            found = combinations(case, cutoff)
            if found is not None:
                fastest = found.makespan_ms.min(where=found.is_plan, initial=np.inf)
                assert fastest == pytest.approx(case.optimum_ms, rel=1e-9), case.where(cutoff)
                tried += 1
    assert tried >= 100


def two_types(**sizes) -> Problem:
    """Two layers: NONE holds 10 MB and takes 1 + 2 ms, FULL holds 1 MB and takes 1 + 3 ms."""
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=2,
        forward_ms=1,
        activation_mb={Recompute.NONE: 10, Recompute.FULL: 1},
    )
    return Problem(model=Model(name="two", layers=(body,)), **sizes)


def test_one_stage_has_a_pattern_a_split_when_memory_is_free():
    # Chunks of up to two layers, all NONE, since more recompute is beaten.  That layers are
    # missing, as in (0, 0), is for (P4) to forbid.
    problem = two_types(stages=1, interleave=2, micro_batches=1, min_layers_per_cell=0)
    (patterns,) = list_patterns(problem, 100.0)
    splits = patterns.layers[:, :, 0]
    assert sorted(splits.tolist()) == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [2, 0]]
    assert (patterns.backward_ms == 2.0 * splits).all()


def test_memory_leaves_the_choices_that_none_beats_in_every_chunk():
    # One micro-batch: both chunks live together.  11 MB hold one NONE and one FULL: 2 + 3 or 3 + 2 ms;
    # FULL twice, 3 + 3 ms, is beaten.
    problem = two_types(stages=1, interleave=2, micro_batches=1, memory_limit_mb=11.0)
    (patterns,) = list_patterns(problem, 100.0)
    assert sorted(patterns.backward_ms.tolist()) == [[2.0, 3.0], [3.0, 2.0]]


def test_a_stage_that_works_longer_than_the_cutoff_has_no_pattern():
    # One stage, four micro-batches of 2 x (1 + 2) ms: 24 ms, whatever the split.
    problem = two_types(stages=1, interleave=2, micro_batches=4)
    assert len(list_patterns(problem, 24.0)[0].layers) == 1
    assert len(list_patterns(problem, 23.9)[0].layers) == 0


def test_pruning_by_the_simulator_drops_what_is_too_slow_beside_the_lightest_others():
    # Two micro-batches of three layers work 2 x 9 = 18 ms on their stage, within 19.5 ms.  On stage 1 the
    # 3 ms of at least one layer on stage 0 come on top, 21 ms; stage 0 works between what it waits for.
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=4, forward_ms=1)
    problem = Problem(model=Model(name="four", layers=(body,)), stages=2, micro_batches=2)
    patterns = list_patterns(problem, 19.5)
    assert [each.layers.ravel().tolist() for each in patterns] == [[1, 2, 3], [1, 2]]


@pytest.mark.parametrize("limit", ["_MOST_COMBINATIONS", "_MOST_PATTERNS"])
def test_too_many_patterns_are_given_up(monkeypatch, limit):
    monkeypatch.setattr(module, limit, 2)
    problem = two_types(stages=1, interleave=2, micro_batches=1, min_layers_per_cell=0)
    with pytest.raises(TooManyPatternsError):
        list_patterns(problem, 100.0)


def test_a_pattern_gives_back_a_plan():
    # The fastest way to hold both layers in 11 MB: NONE and FULL, 2 x 1 + 2 + 3 = 7 ms.
    problem = two_types(stages=1, micro_batches=1, memory_limit_mb=11.0)
    (patterns,) = list_patterns(problem, 100.0)
    (both,) = np.flatnonzero(patterns.layers[:, 0, 0] == 2)
    assert patterns.counts(int(both), 1)[0, :, 0].tolist() == [1, 0, 0, 0, 1]
    assert patterns.forward_ms[both, 0] + patterns.backward_ms[both, 0] == 7.0


def test_no_two_patterns_of_the_same_layers_beat_each_other():
    rivals = 0
    for case in cases(100):
        # Within the optimum itself hardly any has another one of the same layers beside it.
        for each in list_patterns(case.problem, 1.5 * case.optimum_ms):
            for pattern, layers in enumerate(each.layers):
                same = (each.layers == layers).all(axis=(1, 2))
                same[pattern] = False
                rivals += same.any()
                no_longer = each.backward_ms[same] <= each.backward_ms[pattern]
                assert not no_longer.all(axis=1).any(), case.seed
    assert rivals > 5


def test_the_best_plan_of_patterns_is_simulated_as_told():
    for case in cases(60):
        found = combinations(case, case.optimum_ms)
        if found is None:
            continue
        best = int(np.where(found.is_plan, found.makespan_ms, np.inf).argmin())
        entries = len(case.problem.model.bodies)
        counts = np.zeros((entries, len(case.problem.model.types), case.problem.cells), dtype=np.int64)
        for each, pattern in zip(found.of_stage, found.patterns[best], strict=True):
            counts[:, :, each.cells] = each.counts(int(pattern), entries)
        timeline = simulate(Plan(problem=case.problem, counts=counts))
        assert timeline.fits_memory
        assert timeline.step_ms == pytest.approx(case.optimum_ms, rel=1e-9)
