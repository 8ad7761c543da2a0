"""Branch and bound against brute force: bounds hold, and the optimum is found and proven."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sapp_ppb.planner.alike import joined_equal, joined_near
from sapp_ppb.planner.proof.count_program import CountProgram
from sapp_ppb.planner.proof.pattern_program import PatternProgram
from sapp_ppb.planner.proof.patterns import list_patterns
from sapp_ppb.planner.proof.tree import Tree, TreeProgress
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import simulate
from sapp_ppb.targets import silent_cells
from tests.planner.brute_force import all_plans
from tests.planner.cases import CUTOFFS, SOAK, Case, case_of, cases, two_kinds

_ENOUGH = 10**12
# A bound is one within this share; a proof and its plan agree within the other.
_SAME, _PROVEN = 1e-9, 1e-6


def over_patterns(case: Case, cutoff_ms: float) -> Tree[Any, Any]:
    patterns = list_patterns(case.problem, cutoff_ms)
    program = PatternProgram(case.problem, patterns, cutoff_ms)
    return Tree(program, cutoff_ms, case.centre(cutoff_ms))


def over_counts(case: Case, cutoff_ms: float) -> Tree[Any, Any]:
    return Tree(CountProgram(case.problem, cutoff_ms), cutoff_ms, case.centre(cutoff_ms))


def over_neighbours(case: Case, cutoff_ms: float, most: int, *, counts: bool) -> Tree[Any, Any]:
    near = joined_near(case.problem, most)
    centre = case.centre(cutoff_ms)
    if counts:
        return Tree(CountProgram(near.problem, cutoff_ms, near), cutoff_ms, centre)
    patterns = list_patterns(near.problem, cutoff_ms)
    return Tree(PatternProgram(near.problem, patterns, cutoff_ms, near), cutoff_ms, centre)


def with_entries_apart(problem: Problem) -> Problem:
    """Give every layer an entry of its own."""
    apart = [
        replace(layer, name=f"{layer.name} {number}", count=1)
        for layer in problem.model.bodies
        for number in range(layer.count)
    ]
    layers = (*problem.model.heads, *apart, *problem.model.tails)
    return problem.changed(model=replace(problem.model, layers=layers))


def false_bounds(case: Case, cutoff_ms: float, progress: list[TreeProgress]) -> Iterator[str]:
    """Sentences about bounds above the optimum, and about plans that are worse than said."""
    for step, each in enumerate(progress):
        if not each.bound_ms <= case.optimum_ms * (1 + _SAME):
            yield f"{case.where(cutoff_ms)}: the bound is {each.bound_ms!r} in step {step}"
        if each.plan is not None:
            timeline = simulate(each.plan)
            if not timeline.fits_memory or timeline.step_ms >= cutoff_ms:
                yield f"{case.where(cutoff_ms)}: a plan of {timeline.step_ms!r} ms is called better"
            if case.nested and silent_cells(each.plan):
                yield f"{case.where(cutoff_ms)}: a plan mixes SELECTIVE and COMM"


def wrong_proofs(case: Case, cutoff_ms: float) -> Iterator[str]:
    """Sentences about what the tree over patterns gets wrong with enough work."""
    progress = list(over_patterns(case, cutoff_ms).run(_ENOUGH, math.inf))
    yield from false_bounds(case, cutoff_ms, progress)
    reached = min(cutoff_ms, case.optimum_ms)
    if not math.isclose(progress[-1].bound_ms, reached, rel_tol=_PROVEN):
        yield f"{case.where(cutoff_ms)}: it ends with the bound {progress[-1].bound_ms!r}"
    found = [simulate(each.plan).step_ms for each in progress if each.plan is not None]
    if cutoff_ms > case.optimum_ms * (1 + _PROVEN):
        best = min(found, default=math.inf)
        if not math.isclose(best, case.optimum_ms, rel_tol=_PROVEN):
            yield f"{case.where(cutoff_ms)}: the best plan is {best!r}"


def test_the_tree_over_patterns_finds_and_proves_the_optimum():
    found = [text for case in cases() for cut in case.cutoffs() for text in wrong_proofs(case, cut)]
    assert not found, "\n".join(found)


def test_the_tree_over_counts_never_bounds_above_the_optimum():
    found = [
        text
        for case in cases()
        for cut in case.cutoffs()
        for text in false_bounds(case, cut, list(over_counts(case, cut).run(_ENOUGH, math.inf)))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("most", [1, 2])
def test_neighbours_joined_at_their_least_costs_never_bound_above_the_optimum(most, counts):
    joined, found = 0, list[str]()
    for case in cases():
        for cut in case.cutoffs():
            tree = over_neighbours(case, cut, most, counts=counts)
            found += false_bounds(case, cut, list(tree.run(_ENOUGH, math.inf)))
            joined += not joined_near(case.problem, most).is_exact
    assert not found, "\n".join(found)
    assert joined > 10


def test_entries_that_cost_the_same_are_proven_as_one():
    """Plans come back in the entries that were asked for, and are as fast as is said."""
    for case in cases(SOAK or 60):
        apart = with_entries_apart(case.problem)
        grouped = joined_equal(apart)
        cutoff = 1.5 * case.optimum_ms
        patterns = list_patterns(grouped.problem, cutoff)
        tree = Tree(PatternProgram(grouped.problem, patterns, cutoff, grouped), cutoff, case.centre(cutoff))
        progress = list(tree.run(_ENOUGH, math.inf))
        assert progress[-1].bound_ms == pytest.approx(case.optimum_ms, rel=_PROVEN), case.where(cutoff)
        plans = [each.plan for each in progress if each.plan is not None]
        assert all(plan.problem is apart for plan in plans)
        fastest = min(simulate(plan).step_ms for plan in plans if simulate(plan).fits_memory)
        assert fastest == pytest.approx(case.optimum_ms, rel=_PROVEN), case.where(cutoff)


def test_a_stop_at_any_time_leaves_a_bound():
    for case in cases(SOAK or 80):
        cutoff = case.cutoffs()[0]
        for work, deadline in ((0, math.inf), (5_000, math.inf), (_ENOUGH, -math.inf)):
            for tree in (over_patterns(case, cutoff), over_counts(case, cutoff)):
                *_, last = tree.run(work, deadline)
                assert last.bound_ms <= case.optimum_ms * (1 + _SAME), case.where(cutoff)


def test_a_cutoff_that_falls_on_the_way_stays_a_bound():
    """A plan as good as the optimum, found elsewhere, ends the search with that bound."""
    for case in cases(60):
        cutoff = 1.5 * case.optimum_ms
        tree = over_patterns(case, cutoff)
        bounds = []
        for progress in tree.run(_ENOUGH, math.inf):
            bounds.append(progress.bound_ms)
            tree.lower_cutoff(case.optimum_ms)
        assert bounds[-1] == pytest.approx(case.optimum_ms, rel=_PROVEN), case.where(cutoff)
        assert max(bounds) <= case.optimum_ms * (1 + _SAME), case.where(cutoff)


def test_the_same_problem_is_searched_in_the_same_way():
    for seed in (3, 5, 8):
        case = case_of(seed)
        if case is not None:
            runs = [
                [each.bound_ms for each in over_patterns(case, 1.5 * case.optimum_ms).run(_ENOUGH, math.inf)]
                for _ in range(2)
            ]
            assert runs[0] == runs[1]


def proven(problem: Problem, cutoff_ms: float) -> tuple[float, float]:
    """Bound, and the best plan's makespan."""
    program = PatternProgram(problem, list_patterns(problem, cutoff_ms), cutoff_ms)
    centre = np.outer([1.0, 2.0, 1.0], np.ones(problem.cells))
    progress = list(Tree(program, cutoff_ms, centre).run(_ENOUGH, math.inf))
    plans = [simulate(each.plan).step_ms for each in progress if each.plan is not None]
    return progress[-1].bound_ms, min(plans, default=math.inf)


@pytest.mark.parametrize("chunks", [1, 2])
def test_two_kinds_are_planned_to_the_optimum_from_afar(chunks):
    problem = two_kinds(3, 5, stages=2, interleave=chunks, micro_batches=4)
    optimum = all_plans(problem).optimum_ms
    assert proven(problem, 1.3 * optimum) == pytest.approx((optimum, optimum), rel=_PROVEN)


def test_a_plan_that_the_root_already_shows_is_told():
    # One layer a stage is the only plan: (4 + 2 - 1) x 3 = 15 ms.
    problem = two_kinds(1, 1, stages=1, micro_batches=5)  # one stage: 5 x 7.8 = 39 ms
    assert proven(problem, 50.0) == pytest.approx((39.0, 39.0))


def test_nothing_faster_than_the_cutoff_proves_the_cutoff():
    problem = two_kinds(1, 1, stages=1, micro_batches=5)
    bound, plan = proven(problem, 39.0)
    assert bound == pytest.approx(39.0)
    assert math.isinf(plan)


def test_a_bound_is_never_above_a_plan_that_is_faster_by_little():
    """Nodes are closed slightly below the cutoff; what is said must not count on the difference."""
    problem = two_kinds(3, 5, stages=2, interleave=2, micro_batches=4)
    optimum = all_plans(problem).optimum_ms
    for share in (1e-8, 1e-7, 4e-7):
        bound, _ = proven(problem, optimum * (1 + share))
        assert bound <= optimum * (1 + _SAME)
        assert bound >= optimum * (1 - _PROVEN)


@pytest.mark.parametrize(
    "seed",
    [
        804,  # shares of a stage that add up to slightly less than one
        2706,  # a whole solution with paths not stated, and a second one of its bound that is not whole
    ],
)
def test_what_once_went_wrong_is_proven(seed):
    case = case_of(seed, 2_000)
    assert case is not None
    for share in CUTOFFS:
        assert not list(wrong_proofs(case, share * case.optimum_ms))


def test_the_same_holds_for_random_problems():
    for case in cases(SOAK or 60):
        for tree in (over_patterns, over_counts):
            progress = list(tree(case, case.optimum_ms * (1 + 4e-7)).run(_ENOUGH, math.inf))
            assert not list(false_bounds(case, case.optimum_ms * (1 + 4e-7), progress))
