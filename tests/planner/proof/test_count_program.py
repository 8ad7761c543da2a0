"""The program over counts: it admits every plan, keeps it in one child, and bounds it."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.planner.proof.count_program import Bounds, CountPoint, CountProgram
from sapp_ppb.planner.proof.cuts import Separator
from sapp_ppb.planner.proof.tree import Tree
from sapp_ppb.problem import Problem
from tests.planner.brute_force import all_plans
from tests.planner.cases import Case, cases

Floats = NDArray[np.float64]

_DEPTH = 5
_CUT_ROUNDS = 6
_SAME = 1e-9
# Splits of a case that are fixed one by one.
_FIXED = 4


def fastest_of_splits(case: Case) -> Floats:
    """Makespan of the best plan of every split; infinite where none fits."""
    fastest = np.full(len(case.plans.splits), np.inf)
    fits = case.plans.fits
    np.minimum.at(fastest, case.plans.split_of[fits], case.plans.makespan_ms[fits])
    return fastest


def whole_columns(program: CountProgram, splits: NDArray[np.int64]) -> Floats:
    """Values of u, m and n in every split, in the order of the program's columns."""
    problem = program.problem
    counts = [layer.count for layer in problem.model.bodies]
    upto = np.concatenate([[0], np.cumsum(counts)])
    ends = np.cumsum(splits, axis=1)
    number = np.zeros((len(splits), len(counts), problem.cells))
    for k in range(len(counts)):
        first, last = upto[k], upto[k + 1]
        number[:, k] = np.clip(ends, first, last) - np.clip(ends - splits, first, last)
    placement = problem.order.placement
    stage = [placement.stage_of(cell, problem.stages) for cell in range(problem.cells)]
    columns = [(ends[:, cell] >= upto[k + 1]).astype(float) for k, cell in program._ended]
    columns += [number[:, k, np.equal(stage, s)].sum(axis=1) for k, s in program._stage]
    columns += [number[:, k, cell] for k, cell in program._cell]
    return np.array(columns).T


def inside(region: Bounds, values: Floats) -> NDArray[np.bool_]:
    return np.asarray(((values >= region[0] - _SAME) & (values <= region[1] + _SAME)).all(axis=1))


def separated(program: CountProgram, separator: Separator, region: Bounds, rounds: int) -> CountPoint:
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


def refused(case: Case, cutoff_ms: float) -> Iterator[str]:
    """Sentences about splits within the cutoff that the program refuses, or bounds too high."""
    program, separator = CountProgram(case.problem, cutoff_ms), Separator(case.problem)
    fastest = fastest_of_splits(case)
    within = np.flatnonzero(fastest <= cutoff_ms)
    chosen = case.rng.sample(within.tolist(), min(_FIXED, len(within)))
    values = whole_columns(program, case.plans.splits)
    for index in chosen:
        if not inside(program.whole_region(), values[[index]]).all():
            yield f"{case.where(cutoff_ms)}: split {case.plans.splits[index]} is out of bounds"
        fixed = (values[index], values[index])
        bound = separated(program, separator, fixed, _CUT_ROUNDS).bound_ms
        if not bound <= fastest[index] * (1 + _SAME):
            yield (
                f"{case.where(cutoff_ms)}: split {case.plans.splits[index]} takes {fastest[index]!r}, "
                f"and its bound is {bound!r}"
            )


def test_every_split_within_the_cutoff_is_admitted_and_bounded():
    found = [text for case in cases() for cut in case.cutoffs() for text in refused(case, cut)]
    assert not found, "\n".join(found)


def lost_on_the_way_down(case: Case, cutoff_ms: float) -> Iterator[str]:
    """Sentences about what a random way down the tree loses or keeps twice."""
    program, separator = CountProgram(case.problem, cutoff_ms), Separator(case.problem)
    where, region = case.where(cutoff_ms), program.whole_region()
    fastest = fastest_of_splits(case)
    values = whole_columns(program, case.plans.splits)
    for depth in range(_DEPTH):
        point = separated(program, separator, region, case.rng.randint(0, _CUT_ROUNDS))
        within = inside(region, values) & (fastest <= cutoff_ms)
        least = float(fastest.min(where=within, initial=math.inf))
        if not point.bound_ms <= least * (1 + _SAME):
            yield f"{where}, depth {depth}: bound {point.bound_ms!r} of a region with {least!r}"
        if point.bound_ms >= cutoff_ms:
            return
        room = cutoff_ms * (1 + _SAME) - point.bound_ms
        region = program.tightened(region, point, room)
        if (lost := within & ~inside(region, values)).any():
            yield f"{where}, depth {depth}: tightened() lost {case.plans.splits[lost].tolist()}"
        splits = program.splits(region, point)
        if not splits:
            return
        for sides in splits:
            times = np.sum([inside(side, values) for side in sides], axis=0)
            if (times != inside(region, values)).any():
                yield f"{where}, depth {depth}: a split keeps something not once"
        region = case.rng.choice(case.rng.choice(splits))


def test_no_plan_within_the_cutoff_is_lost_by_tightening_and_splitting():
    found = [text for case in cases() for cut in case.cutoffs() for text in lost_on_the_way_down(case, cut)]
    assert not found, "\n".join(found)


def bound_of(problem: Problem, cutoff_ms: float) -> float:
    centre = np.outer([1.0, 2.0, 1.0], np.ones(problem.cells))
    *_, last = Tree(CountProgram(problem, cutoff_ms), cutoff_ms, centre).run(10**12, math.inf)
    return last.bound_ms


def body(name: str, count: int, forward_ms: float):
    return layer_from_times(name=name, kind=LayerKind.BODY, count=count, forward_ms=forward_ms)


@pytest.mark.parametrize("share", [1.0, 1.01, 1.5])
def test_two_later_entries_may_share_a_cell(share):
    # a | b c is best: stage 0 works 4 x 30 = 120 ms, and stage 1 in its shadow.  b and c have one layer
    # each, so (N7) must leave room for two layers behind a in stage 1.
    layers = (body("a", 1, 10.0), body("b", 1, 1.0), body("c", 1, 1.0))
    problem = Problem(model=Model(name="short tail", layers=layers), stages=2, micro_batches=4)
    optimum = all_plans(problem).optimum_ms
    assert bound_of(problem, share * optimum) <= optimum * (1 + _SAME)


def test_a_limit_of_nothing_is_a_limit():
    # Layers that hold nothing fit in 0 MB.
    problem = Problem(
        model=Model(name="weightless", layers=(body("a", 3, 1.0),)),
        stages=2,
        micro_batches=2,
        memory_limit_mb=0.0,
    )
    optimum = all_plans(problem).optimum_ms
    assert bound_of(problem, optimum) <= optimum * (1 + _SAME)


def test_more_than_the_limit_is_refused():
    # Two layers hold 2 x 10 MB, and each stage 9 MB.
    layer = layer_from_times(
        name="a", kind=LayerKind.BODY, count=2, forward_ms=1, activation_mb={Recompute.NONE: 10.0}
    )
    problem = Problem(
        model=Model(name="heavy", layers=(layer,)), stages=2, micro_batches=1, memory_limit_mb=9.0
    )
    program = CountProgram(problem, 100.0)
    program.enter(program.whole_region())
    assert math.isinf(program.solve().bound_ms)


@pytest.mark.parametrize(("limit_mb", "fits"), [(24.0, False), (25.0, True)])
def test_what_the_last_stage_needs_for_a_moment_is_counted(limit_mb, fits):
    # Stage 0 has room for one layer of 10 MB; stage 1 holds the other, and 15 MB for a moment: 25 MB.
    layer = layer_from_times(
        name="a", kind=LayerKind.BODY, count=2, forward_ms=1, activation_mb={Recompute.NONE: 10.0}
    )
    output = layer_from_times(name="out", kind=LayerKind.TAIL, forward_ms=1, transient_mb=15)
    model = Model(name="peak", layers=(layer, output))
    problem = Problem(model=model, stages=2, micro_batches=1, memory_limit_mb=(10.0, limit_mb))
    program = CountProgram(problem, 100.0)
    program.enter(program.whole_region())
    assert math.isfinite(program.solve().bound_ms) is fits


def test_a_solution_over_counts_is_never_a_plan():
    problem = Problem(model=Model(name="m", layers=(body("a", 4, 1.0),)), stages=2, micro_batches=2)
    program = CountProgram(problem, 100.0)
    program.enter(program.whole_region())
    point = program.solve()
    assert not point.is_whole
    assert program.set_apart(program.whole_region(), point) == []
    with pytest.raises(AssertionError, match="never a plan"):
        program.plan_of(point)
