"""Cuts: a path's length is linear in cell times, and never above the makespan."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from sapp_ppb.costs import LayerKind, Model, layer_from_times
from sapp_ppb.planner.proof.cuts import PathCut, Separator
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Placement, parse_csv
from sapp_ppb.simulator.timeline import batched_makespans
from tests.planner.cases import PROBLEMS
from tests.strategies import random_problem, with_order

Floats = NDArray[np.float64]

TORCH = Path(__file__).parents[2] / "golden" / "schedules" / "torch"
SPLIT = sorted([*TORCH.glob("*ZeroBubble_*"), *TORCH.glob("*ZBV*")])


def makespan(problem: Problem, times: Floats) -> float:
    forward, backward, weight = times
    prices = np.concatenate([forward, backward, backward - weight, weight])
    return float(batched_makespans(problem, prices[None, :])[0])


def length(cut: PathCut, times: Floats) -> float:
    return float(cut.fixed_ms + (cut.uses * times).sum())


def cell_times(rng: Random, cells: int) -> Floats:
    """
    Draw F, B and W of cells, some of them empty; shape (3, cells).

    A backward is no shorter than its forward or its weight gradients, as a split one needs.
    """
    numbers = np.random.default_rng(rng.randrange(2**32))
    forward = numbers.uniform(0, 10, cells) * (numbers.random(cells) < 0.9)
    if rng.random() < 0.3:
        forward = np.rint(forward)  # whole numbers tie
    factors: Floats = numbers.uniform(1, 3, cells)
    backward = forward * (factors if rng.random() < 0.4 else rng.choice([1.0, 2.0]))
    weight = forward if rng.random() < 0.5 else backward * numbers.random(cells)
    return np.array([forward, backward, weight])


def check_cuts(problem: Problem, rng: Random) -> None:
    times = cell_times(rng, problem.cells)
    longest = makespan(problem, times)
    windows = rng.randint(1, 4)
    cuts = Separator(problem).paths(times, windows, -1.0)
    assert 0 < len(cuts) <= windows * problem.stages
    assert cuts[0].length_ms == pytest.approx(longest, rel=1e-9)
    names = {cut.uses.tobytes() for cut in cuts}
    assert len(names) == len(cuts)
    for cut in cuts:
        assert cut.length_ms <= longest * (1 + 1e-9)
        assert length(cut, times) == pytest.approx(cut.length_ms, rel=1e-9)
    for _ in range(4):
        others = cell_times(rng, problem.cells)
        limit = makespan(problem, others) * (1 + 1e-9)
        assert all(length(cut, others) <= limit for cut in cuts)


def test_cuts_of_every_schedule_are_tight_where_found_and_valid_elsewhere():
    for seed in range(PROBLEMS):
        rng = Random(seed)
        check_cuts(random_problem(rng), rng)


@pytest.mark.parametrize("path", SPLIT, ids=lambda path: path.stem)
def test_cuts_of_orders_that_split_the_backward_are_valid(path):
    order = parse_csv(path.read_text(), Placement.V if "ZBV" in path.stem else Placement.LOOP)
    rng = Random(path.stem)
    for _ in range(20):
        hops = tuple(rng.uniform(0, 5) for _ in range(order.stages))
        body = layer_from_times(name="body", kind=LayerKind.BODY, count=1, forward_ms=1)
        problem = Problem(
            model=Model(name="split", layers=(body,)),
            stages=order.stages,
            interleave=order.chunks,
            micro_batches=order.micro_batches,
            micro_batch_group=order.micro_batches if order.chunks > 1 else None,
            min_layers_per_cell=0,
            p2p_ms=hops if rng.random() < 0.5 else 0.0,
        )
        check_cuts(with_order(problem, order), rng)


def test_a_path_is_told_once_until_it_is_forgotten():
    problem = random_problem(Random(3), stages=3, chunks=2, micro_batches=6)
    separator = Separator(problem)
    times = cell_times(Random(1), problem.cells)
    first = separator.paths(times, 2, 0.0)
    assert first
    assert not separator.paths(times, 2, 0.0)
    separator.forget()
    assert len(separator.paths(times, 2, 0.0)) == len(first)


def test_only_longer_paths_than_asked_for_are_told():
    problem = random_problem(Random(5), stages=4, chunks=1, micro_batches=6)
    times = cell_times(Random(2), problem.cells)
    all_of_them = [cut.length_ms for cut in Separator(problem).paths(times, 3, 0.0)]
    above = sorted(all_of_them)[len(all_of_them) // 2]
    told = [cut.length_ms for cut in Separator(problem).paths(times, 3, above)]
    assert told == [each for each in all_of_them if each > above]


def test_one_micro_batch_pays_every_cell_once():
    # M = 1: the only path crosses all cells and comes back; two hops of 0.5 ms each way.
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=3, forward_ms=1)
    problem = Problem(model=Model(name="one", layers=(body,)), stages=3, micro_batches=1, p2p_ms=0.5)
    (cut,) = Separator(problem).paths(np.outer([1.0, 2.0, 1.0], np.ones(3)), 1, 0.0)
    assert cut.uses.tolist() == [[1.0] * 3, [1.0] * 3, [0.0] * 3]
    assert (cut.fixed_ms, cut.length_ms) == (2.0, 11.0)
