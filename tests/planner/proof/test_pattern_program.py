"""The program over patterns: regions lose no plan, and whole solutions are plans."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, layer_from_times
from sapp_ppb.planner.proof.cuts import Separator
from sapp_ppb.planner.proof.pattern_program import PatternPoint, PatternProgram
from sapp_ppb.planner.proof.pattern_splits import Region, pattern_features, region_splits, regions_without
from sapp_ppb.planner.proof.patterns import StagePatterns, list_patterns
from sapp_ppb.planner.proof.tree import Tree
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import simulate
from tests.planner.brute_force import all_plans
from tests.planner.cases import SOAK, Case, Combinations, Mask, cases, combinations, two_kinds

_DEPTH = 5
_CUT_ROUNDS = 6
# Makespans and bounds agree within this share.
_SAME = 1e-9


def separated(program: PatternProgram, separator: Separator, region: Region, rounds: int) -> PatternPoint:
    """Solution over a region with some paths stated."""
    program.enter(region)
    point = program.solve()
    for _ in range(rounds):
        if math.isinf(point.bound_ms):
            break
        cuts = separator.paths(point.times_ms, 2, point.bound_ms * (1 + 1e-9))
        if not cuts:
            break
        for cut in cuts:
            program.state(cut)
        point = program.solve()
    return point


def only(combination: np.ndarray, found: Combinations) -> Region:
    """Region of one combination."""
    return tuple(
        np.arange(len(each.layers)) == pattern
        for each, pattern in zip(found.of_stage, combination, strict=True)
    )


def lost_on_the_way_down(case: Case, cutoff_ms: float) -> Iterator[str]:
    """Sentences about what a random way down the tree loses or keeps twice."""
    found = combinations(case, cutoff_ms)
    if found is None:
        return
    where = case.where(cutoff_ms)
    program = PatternProgram(case.problem, found.of_stage, cutoff_ms)
    separator, region = Separator(case.problem), program.whole_region()
    within = found.is_plan & (found.makespan_ms <= cutoff_ms)
    for depth in range(_DEPTH):
        point = separated(program, separator, region, case.rng.randint(0, _CUT_ROUNDS))
        inside = found.inside(region)
        fastest = float(found.makespan_ms.min(where=inside & within, initial=math.inf))
        if not point.bound_ms <= fastest * (1 + _SAME):
            yield f"{where}, depth {depth}: bound {point.bound_ms!r} of a region with {fastest!r}"
        if point.bound_ms >= cutoff_ms:
            return
        room = cutoff_ms * (1 + _SAME) - point.bound_ms
        region = program.tightened(region, point, room)
        if (lost := inside & within & ~found.inside(region)).any():
            yield f"{where}, depth {depth}: tightened() lost {found.patterns[lost].tolist()}"
        if not all(mask.any() for mask in region):
            return
        # The point may use what was just dropped; the tree splits all the same.
        splits = program.splits(region, point)
        if not splits:
            if point.is_whole:
                yield from lost_around(found, region, program.set_apart(region, point), point, where)
            return
        yield from lost_in_splits(found, region, splits, where)
        region = case.rng.choice(case.rng.choice(splits))


def lost_in_splits(
    found: Combinations, region: Region, splits: list[tuple[Region, Region]], where: str
) -> Iterator[str]:
    inside = found.inside(region)
    for number, sides in enumerate(splits):
        times: Mask = np.sum([found.inside(side) for side in sides], axis=0)
        if (times != inside).any():
            yield f"{where}: split {number} has {found.patterns[times != inside].tolist()} not once"


def lost_around(
    found: Combinations, region: Region, parts: list[Region], point: PatternPoint, where: str
) -> Iterator[str]:
    chosen = [used[0] for used, _ in point.shares]
    itself = (found.patterns == chosen).all(axis=1)
    times: Mask = np.sum([found.inside(part) for part in parts], axis=0) + np.zeros(len(itself), dtype=int)
    if (times != (found.inside(region) & ~itself)).any():
        yield f"{where}: set_apart() keeps something not once"


def test_no_plan_within_the_cutoff_is_lost_by_tightening_and_splitting():
    found = [text for case in cases() for cut in case.cutoffs() for text in lost_on_the_way_down(case, cut)]
    assert not found, "\n".join(found)


def test_setting_a_solution_apart_keeps_every_other_combination_once():
    for case in cases(60):
        found = combinations(case, case.cutoffs()[0])
        if found is None or not len(found.patterns):
            continue
        region = tuple(np.ones(len(each.layers), dtype=bool) for each in found.of_stage)
        chosen = found.patterns[case.rng.randrange(len(found.patterns))]
        parts = regions_without(region, tuple((np.array([at]), np.ones(1)) for at in chosen))
        times: Mask = np.sum([found.inside(part) for part in parts], axis=0) + np.zeros(
            len(found.patterns), dtype=int
        )
        assert (times == (found.patterns != chosen).any(axis=1)).all(), case.seed


@pytest.mark.parametrize("short", [0.0, 1e-9, 1e-8, 1e-7])
def test_shares_that_fall_short_of_one_by_rounding_do_not_split_equal_values(short):
    # Both patterns in use have 2 + 1 layers and differ in backward time alone: 10 or 20 ms in chunk 0.
    forward = np.array([[2.0, 1.0], [2.0, 1.0], [4.0, 1.0]])
    backward = np.array([[10.0, 5.0], [20.0, 5.0], [15.0, 5.0]])
    layers = np.array([[[2], [1]], [[2], [1]], [[4], [1]]])
    stage = StagePatterns(
        cells=np.array([0, 1]),
        layers=layers,
        times_ms=np.stack([forward, backward, forward], axis=1),
        choices=[],
        options=np.zeros((3, 2), dtype=np.int64),
    )
    region = (np.ones(3, dtype=bool),)
    shares = ((np.array([0, 1]), np.array([0.5, 0.5 - short])),)
    splits = region_splits(pattern_features([stage]), region, shares)
    assert splits
    for (below,), (above,) in splits:
        assert below.any()
        assert above.any()
        assert (below[0], below[1]) == (True, False)


def wrong_alone(case: Case, cutoff_ms: float) -> Iterator[str]:
    """Sentences about regions of one combination: a plan is whole and exact, another never whole."""
    found = combinations(case, cutoff_ms)
    if found is None:
        return
    program, separator = PatternProgram(case.problem, found.of_stage, cutoff_ms), Separator(case.problem)
    plans, others = (np.flatnonzero(some) for some in (found.is_plan, ~found.is_plan))
    for index in case.rng.sample(plans.tolist(), min(3, len(plans))):
        point = separated(program, separator, only(found.patterns[index], found), 100)
        if not point.is_whole:
            yield f"{case.where(cutoff_ms)}: plan {found.patterns[index]} is not whole"
        elif not math.isclose(simulate(program.plan_of(point)).step_ms, found.makespan_ms[index]):
            yield f"{case.where(cutoff_ms)}: plan {found.patterns[index]} is told with other times"
        if not math.isclose(point.bound_ms, found.makespan_ms[index], rel_tol=1e-6):
            yield f"{case.where(cutoff_ms)}: plan {found.patterns[index]} has the bound {point.bound_ms!r}"
    for index in case.rng.sample(others.tolist(), min(3, len(others))):
        point = separated(program, separator, only(found.patterns[index], found), 0)
        if point.is_whole or point.bound_ms < cutoff_ms:
            yield f"{case.where(cutoff_ms)}: {found.layers[index].tolist()} is no plan, and is taken for one"


def test_a_whole_solution_is_a_plan_and_nothing_else_is_whole():
    found = [text for case in cases() for cut in case.cutoffs() for text in wrong_alone(case, cut)]
    assert not found, "\n".join(found)


def solved_by_tree(problem: Problem, cutoff_ms: float) -> float:
    program = PatternProgram(problem, list_patterns(problem, cutoff_ms), cutoff_ms)
    centre = np.outer([1.0, 2.0, 1.0], np.ones(problem.cells))
    *_, last = Tree(program, cutoff_ms, centre).run(10**12, math.inf)
    return last.bound_ms


@pytest.mark.parametrize(
    ("sizes", "invalid_ms"),
    [
        # A dense and a MoE layer on every stage would be equal stages: (8 + 3 - 1) x 3 x 2.6 = 78.
        ({"moe": 3, "stages": 3}, 78.0),
        ({"moe": 3, "stages": 2}, None),
        ({"moe": 4, "stages": 2, "interleave": 2}, None),
        ({"moe": 6, "stages": 2, "interleave": 2}, None),
    ],
)
def test_the_order_rows_forbid_faster_combinations_that_break_the_chain(sizes, invalid_ms):
    """3 dense layers, then MoE: without (P5) MoE before dense would balance better."""
    problem = two_kinds(3, sizes.pop("moe"), micro_batches=8, min_layers_per_cell=0, **sizes)
    optimum = all_plans(problem).optimum_ms
    found = Combinations(problem, list_patterns(problem, optimum))
    complete = (found.layers.sum(axis=1) == [layer.count for layer in problem.model.bodies]).all(axis=1)
    without_order = float(found.makespan_ms[complete].min())
    assert without_order < optimum * 0.99
    if invalid_ms is not None:
        assert without_order == pytest.approx(invalid_ms)
    for share in (1.0, 1.01, 1.5):
        assert solved_by_tree(problem, share * optimum) == pytest.approx(optimum, rel=1e-6)


def test_few_pricing_rounds_still_give_a_bound():
    for case in cases(SOAK or 100):
        cutoff = case.cutoffs()[0]
        program = PatternProgram(case.problem, list_patterns(case.problem, cutoff), cutoff)
        program.enter(program.whole_region())
        bounds = [program.solve(pricing_rounds=rounds).bound_ms for rounds in (1, 2, 3)]
        assert max(bounds) <= case.optimum_ms * (1 + _SAME), case.where(cutoff)


def test_a_region_without_a_pattern_on_some_stage_is_closed():
    problem = two_kinds(3, 3, stages=2, micro_batches=4)
    program = PatternProgram(problem, list_patterns(problem, 100.0), 100.0)
    first, second = program.whole_region()
    program.enter((first, np.zeros_like(second)))
    assert math.isinf(program.solve().bound_ms)


def test_the_root_of_equal_stages_is_the_optimum():
    # Six layers on three stages: (4 + 3 - 1) x 2 x 3 = 36 ms, and no path is shorter in a mix.
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=6, forward_ms=1)
    problem = Problem(model=Model(name="six", layers=(body,)), stages=3, micro_batches=4)
    program = PatternProgram(problem, list_patterns(problem, 40.0), 40.0)
    point = separated(program, Separator(problem), program.whole_region(), 100)
    assert point.bound_ms <= 36.0 * (1 + _SAME)
    assert solved_by_tree(problem, 40.0) == pytest.approx(36.0)
