"""
Which runs to make so that their peaks tell the memory of layers.

Every stage of a round gives one equation (see ``memory_fit``).  A round is chosen by
local search for the least condition number, over offsets and recompute lists that
MindFormers accepts; rounds are added until the system is solvable and well-conditioned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Model, Recompute
from sapp_ppb.costs.unit_layer import unit_layer
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import live_rows

Floats = NDArray[np.float64]
Cell = tuple[int, ...]  # layers of a stage by recompute type
WELL_CONDITIONED = 100.0
MOST_ROUNDS = 8
_TRIES, _STEPS = 6, 400
_SEED = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Guide:
    """
    Runs to make.

    Attributes
    ----------
    plans
        What to run in each round, with costs that say nothing.
    unknowns
        Names of what their peaks tell.
    condition
        Condition number of the system, with columns of length 1.
    """

    plans: tuple[Plan, ...]
    unknowns: tuple[str, ...]
    condition: float


def dryrun_guide(
    stages: int, layers: int, recompute: Sequence[Recompute], *, micro_batches: int | None = None
) -> Guide:
    """
    Choose the fewest rounds whose peaks determine every unknown well, and the best of those.

    Parameters
    ----------
    stages, layers
        S stages and N layers of one kind, one chunk a stage.
    recompute
        Types to tell the activations of, besides those of layers that are not recomputed.
    micro_batches
        Micro-batches of a step; None for S or more, which have the same peaks.

    Raises
    ------
    InputError
        If there are too few stages or layers for any number of rounds.

    Examples
    --------
    >>> guide = dryrun_guide(16, 96, [Recompute.FULL])
    >>> len(guide.plans), guide.condition < WELL_CONDITIONED, int(guide.plans[0].layers_per_cell.sum())
    (1, True, 96)
    """
    types = sorted({Recompute.NONE, *recompute})
    if stages < 2 or layers < stages + 1:
        fault = "needs at least 2 stages, and one layer more than stages"
        raise InputError("dryrun-guide", [f"{fault} (got {stages} stages and {layers} layers)"])
    problem = _problem(stages, layers, stages if micro_batches is None else micro_batches)
    unknowns = len(types) + 4  # constant, parameters, head and tail besides
    best: tuple[float, list[list[Cell]]] | None = None
    for rounds in range(-(-unknowns // stages), MOST_ROUNDS + 1):
        tries = [_searched(problem, types, rounds, attempt) for attempt in range(_TRIES)]
        found = min(tries, key=lambda part: part[0])
        best = found if best is None or found[0] < best[0] else best
        if found[0] <= WELL_CONDITIONED:
            break
    if best is None or not np.isfinite(best[0]):
        fault = f"no {MOST_ROUNDS} rounds of {stages} stages and {layers} layers tell all unknowns"
        raise InputError("dryrun-guide", [f"{fault}; use more stages or layers, or fewer types"])
    plans = tuple(_plan(problem, round_) for round_ in best[1])
    names = ["constant", "parameters", *(f"activation {r.label}" for r in types), "head", "tail"]
    return Guide(plans=plans, unknowns=tuple(names), condition=best[0])


def _problem(stages: int, layers: int, micro_batches: int) -> Problem:
    model = Model(name="guide", layers=(unit_layer("BODY", layers),))
    return Problem(model=model, stages=stages, micro_batches=micro_batches)


def _plan(problem: Problem, cells: Sequence[Cell]) -> Plan:
    return Plan(problem=problem, counts=np.array(cells, dtype=np.int64).T[None])


def _searched(
    problem: Problem, types: Sequence[Recompute], rounds: int, attempt: int
) -> tuple[float, list[list[Cell]]]:
    """Best rounds that one attempt finds: a random start, then changes that make it better."""
    rng = Random(f"{_SEED} {problem.stages} {problem.model.body_count} {rounds} {attempt}")
    current = [_random_round(rng, problem, types) for _ in range(rounds)]
    value = _condition(problem, types, current)
    for _ in range(_STEPS):
        changed = [list(round_) for round_ in current]
        _change(rng, changed[rng.randrange(rounds)], problem, types)
        new = _condition(problem, types, changed)
        if new <= value:
            current, value = changed, new
    return value, current


def _random_round(rng: Random, problem: Problem, types: Sequence[Recompute]) -> list[Cell]:
    each, rest = divmod(problem.model.body_count, problem.stages)
    sizes = [each + (stage < rest) for stage in range(problem.stages)]
    return [_random_cell(rng, size, types) for size in sizes]


def _random_cell(rng: Random, size: int, types: Sequence[Recompute]) -> Cell:
    """Layers of a stage under one or two types, which MindFormers can always say together."""
    counts = [0] * len(Recompute)
    first, second = rng.choice(types), rng.choice(types)
    if {first, second} == {Recompute.SELECTIVE, Recompute.COMM}:
        second = Recompute.NONE  # its lists would mean BOTH
    part = rng.randint(0, size)
    counts[first] += part
    counts[second] += size - part
    return tuple(counts)


def _change(rng: Random, cells: list[Cell], problem: Problem, types: Sequence[Recompute]) -> None:
    """Draw a stage anew, or move layers from one stage to another."""
    stage = rng.randrange(len(cells))
    if rng.random() < 0.5:
        cells[stage] = _random_cell(rng, sum(cells[stage]), types)
        return
    other = rng.randrange(len(cells))
    moved = rng.randint(1, 2)
    # No stage gets less than half or more than twice its share: its peak should be like a real one's.
    share = problem.model.body_count / problem.stages
    least, most = max(1, int(share / 2)), int(2 * share) + 1
    if other != stage and sum(cells[stage]) - moved >= least and sum(cells[other]) + moved <= most:
        cells[stage] = _random_cell(rng, sum(cells[stage]) - moved, types)
        cells[other] = _random_cell(rng, sum(cells[other]) + moved, types)


def _condition(problem: Problem, types: Sequence[Recompute], rounds: Sequence[Sequence[Cell]]) -> float:
    """Condition number of the system of some rounds, with columns of length 1; infinite when singular."""
    # One chunk a stage has one row: its most live micro-batches.
    live = np.array([part.rows.max() for part in live_rows(problem.order)])
    rows = []
    for cells in rounds:
        counts = np.array(cells, dtype=float)
        columns = [np.ones(len(cells)), counts.sum(axis=1), *(live * counts[:, r] for r in types)]
        ends = np.zeros((2, len(cells)))
        ends[0, 0] = ends[1, -1] = 1.0
        rows.append(np.column_stack([*columns, *ends]))
    matrix = np.concatenate(rows)
    lengths = np.linalg.norm(matrix, axis=0)
    if not lengths.all():
        return float("inf")
    singular = np.linalg.svd(matrix / lengths, compute_uv=False)
    return float(singular[0] / singular[-1]) if singular[-1] > 1e-9 * singular[0] else float("inf")
