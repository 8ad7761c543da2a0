"""
What the tests of the proof for several chunks share: solved problems, and combinations of patterns.

A combination is one pattern a stage.  Combinations are judged here, from the layers in
each cell, and not by the rows of a program.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import LayerKind, Model, layer_from_times
from sapp_ppb.planner.proof.patterns import StagePatterns, list_patterns
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.price import price, price_lists, price_rule
from sapp_ppb.simulator.timeline import batched_makespans
from tests.planner.brute_force import MOST_PLANS, AllPlans, all_plans, small_problem

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Set to check that many problems of up to 1e5 plans instead of a few hundred smaller ones.
SOAK = int(os.environ.get("SAPP_PPB_SOAK", "0"))
PROBLEMS = SOAK or 200
_MOST_PLANS = MOST_PLANS if SOAK else 1_000
# Cutoffs as multiples of the optimum: reached, slightly above, far above.
CUTOFFS = (1.0, 1.01, 1.5)
_MOST_COMBINATIONS = 100_000
_OTHERS_EVERY = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A small problem with all its plans, of which some fit."""

    seed: int
    rng: Random
    problem: Problem
    nested: bool
    plans: AllPlans
    optimum_ms: float

    def cutoffs(self) -> tuple[float, ...]:
        """All cutoffs when there is time, one at random otherwise."""
        shares = CUTOFFS if SOAK else (self.rng.choice(CUTOFFS),)
        return tuple(share * self.optimum_ms for share in shares)

    def where(self, cutoff_ms: float) -> str:
        """Words that lead back to the case."""
        return f"seed {self.seed}, cutoff {cutoff_ms!r}, optimum {self.optimum_ms!r}"

    def centre(self, cutoff_ms: float) -> Floats:
        """Cell times of a plan about as slow as the cutoff; shape (3, cells)."""
        fitting = np.flatnonzero(self.plans.fits)
        near = fitting[np.argmin(np.abs(self.plans.makespan_ms[fitting] - cutoff_ms))]
        return price(self.plans.plan(int(near))).times_ms


def case_of(seed: int, most_plans: int = _MOST_PLANS, **drawn: bool) -> Case | None:
    """
    Draw and solve a problem, every third for MindFormers, of nested types; None when nothing fits.

    With ``devices`` its stages differ in speed or work on after their last op, with ``together``
    it has special layers and strategies besides.
    """
    plans = _solved(seed, most_plans, **drawn)
    if math.isinf(plans.optimum_ms):
        return None
    return Case(
        seed=seed,
        rng=Random(f"case {seed}"),
        problem=plans.problem,
        nested=plans.nested,
        plans=plans,
        optimum_ms=plans.optimum_ms,
    )


# Every test goes through the same problems; a soak has too many to keep.
@lru_cache(maxsize=0 if SOAK else 2 * PROBLEMS)
def _solved(seed: int, most_plans: int, **drawn: bool) -> AllPlans:
    nested = seed % 3 == 0
    target = "mindformers" if nested else None
    problem = small_problem(Random(seed), most_plans=most_plans, target=target, **drawn)
    return all_plans(problem, nested=nested)


def cases(number: int = PROBLEMS) -> Iterator[Case]:
    """Cases of so many seeds, and of some of them on unequal devices, or with everything at once."""
    some = range(0, number, _OTHERS_EVERY)
    kinds: list[tuple[dict[str, bool], range]] = [
        ({}, range(number)),
        ({"devices": True}, some),
        ({"together": True}, some),
    ]
    for drawn, seeds in kinds:
        for seed in seeds:
            case = case_of(seed, **drawn)
            if case is not None:
                yield case


@dataclass(frozen=True, eq=False)
class Combinations:
    """
    Every combination of a problem's patterns.

    Attributes
    ----------
    patterns
        Pattern of each stage; shape (combinations, S).
    layers
        Layers of each cell and entry; shape (combinations, cells, entries).
    is_plan
        Whether all layers are there and stand in order; shape (combinations,).
    makespan_ms
        Shape (combinations,).
    """

    problem: Problem
    of_stage: list[StagePatterns]
    patterns: NDArray[np.int64] = field(init=False)
    layers: NDArray[np.int64] = field(init=False)
    is_plan: Mask = field(init=False)
    makespan_ms: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Combine, price and judge."""
        sizes = [len(each.layers) for each in self.of_stage]
        patterns = np.indices(sizes).reshape(len(sizes), -1).T
        cells, entries = self.problem.cells, self.problem.model.bodies
        layers = np.zeros((len(patterns), cells, len(entries)), dtype=np.int64)
        times = np.zeros((len(patterns), 3, cells))
        for stage, each in enumerate(self.of_stage):
            layers[:, each.cells] = each.layers[patterns[:, stage]]
            times[:, :, each.cells] = each.times_ms[patterns[:, stage]]
        complete = (layers.sum(axis=1) == [layer.count for layer in entries]).all(axis=1)
        prices = price_lists(price_rule(self.problem), times)
        object.__setattr__(self, "patterns", patterns)
        object.__setattr__(self, "layers", layers)
        object.__setattr__(self, "is_plan", complete & in_order(layers))
        object.__setattr__(self, "makespan_ms", batched_makespans(self.problem, prices))

    def inside(self, region: tuple[Mask, ...]) -> Mask:
        """Whether each combination is in a region; shape (combinations,)."""
        masks = [mask[self.patterns[:, stage]] for stage, mask in enumerate(region)]
        return np.asarray(np.all(masks, axis=0))


def combinations(case: Case, cutoff_ms: float) -> Combinations | None:
    """Combine a case's patterns within a cutoff; None when there are too many."""
    patterns = list_patterns(case.problem, cutoff_ms)
    if math.prod(len(each.layers) for each in patterns) > _MOST_COMBINATIONS:
        return None
    return Combinations(case.problem, patterns)


def in_order(layers: NDArray[np.int64]) -> Mask:
    """Whether no layer stands before one of an earlier entry; layers of shape (n, cells, entries)."""
    cells = np.arange(layers.shape[1])
    first = np.where(layers > 0, cells[:, None], layers.shape[1]).min(axis=1)
    last = np.where(layers > 0, cells[:, None], -1).max(axis=1)
    return np.asarray(
        np.all(
            [last[:, k] <= first[:, j] for j in range(layers.shape[2]) for k in range(j)]
            or [np.ones(len(layers), dtype=bool)],
            axis=0,
        )
    )


def two_kinds(dense: int, moe: int, **sizes) -> Problem:
    """Dense layers of 1 + 2 ms, then MoE layers of 1.6 + 3.2 ms."""
    layers = (
        layer_from_times(name="dense", kind=LayerKind.BODY, count=dense, forward_ms=1.0),
        layer_from_times(name="moe", kind=LayerKind.BODY, count=moe, forward_ms=1.6),
    )
    return Problem(model=Model(name="two kinds", layers=layers), **sizes)
