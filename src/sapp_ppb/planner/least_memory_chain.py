"""
The plan that holds least where a stage has one chunk: exact, without a solver.

A stage takes a run of layers, and what it holds is a sum over them, so the least
excess comes by dynamic programming over the ends of the runs:

    (M7)  e(s, j) = min over i <= j - least layers of s of max(e(s - 1, i), held_s(i, j) - limit_s)
"""

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.memory import live_rows
from sapp_ppb.simulator.price import LayerTables

Floats = NDArray[np.float64]
# A limit that nothing reaches keeps infinities out of the sums.
_NO_LIMIT = 1e18
# Type with the least activation memory of every BODY entry, None where it has none.
Types = list[int | None]


def least_memory_chain(
    problem: Problem, tables: LayerTables, variants: list[Types], limits: tuple[float, ...]
) -> tuple[Plan | None, float]:
    """
    Find the plan with one chunk a stage whose worst stage exceeds its limit least.

    Parameters
    ----------
    variants
        Types of which a stage uses one list for all its layers.
    limits
        MB that each stage may hold; shape (S,).

    Returns
    -------
    tuple
        The plan and its excess, MB; None and infinity when the target can say no plan.

    Notes
    -----
    O(S N^2) for N layers, as arrays.
    """
    kind = np.repeat(np.arange(len(tables.parameter_mb)), [layer.count for layer in problem.model.bodies])
    layers = len(kind)
    length = np.arange(layers + 1)[None, :] - np.arange(layers + 1)[:, None]
    least = np.full(layers + 1, np.inf)
    least[0] = -np.inf
    firsts, sums = [], []
    for stage, limit in enumerate(np.minimum(limits, _NO_LIMIT)):
        sums.append([_sums(problem, tables, types, kind, stage) for types in variants])
        over = np.min([_runs_mb(*each) for each in sums[-1]], axis=0)
        over += _fixed_mb(problem, tables, stage) - limit
        over[length < problem.least_layers(stage)] = np.inf
        worst = np.maximum(least[:, None], over)
        firsts.append(worst.argmin(axis=0))
        least = worst.min(axis=0)
    if np.isposinf(least[layers]):
        return None, float("inf")
    counts = np.zeros((len(problem.model.bodies), len(Recompute), problem.cells), dtype=np.int64)
    last = layers
    for stage in reversed(range(problem.stages)):
        first = int(firsts[stage][last])
        each = [
            upto[last] - upto[first] if none[last] == none[first] else np.inf for upto, none in sums[stage]
        ]
        types = variants[int(np.argmin(each))]
        for k in kind[first:last]:
            counts[k, types[k], stage] += 1
        last = first
    return Plan(problem=problem, counts=counts), float(least[layers])


def _sums(
    problem: Problem, tables: LayerTables, types: Types, kind: NDArray[np.int64], stage: int
) -> tuple[Floats, Floats]:
    """MB of the first layers of the chain on a stage, and how many of them have no type; shape (N + 1,)."""
    chosen = np.array([0 if r is None else r for r in types])
    memory = tables.activation_mb[np.arange(len(types)), chosen]
    each = tables.parameter_mb + _live(problem, stage) * memory
    none = np.array([float(r is None) for r in types])
    return _upto(each[kind]), _upto(none[kind])


def _runs_mb(upto: Floats, none: Floats) -> Floats:
    """MB of the layers from i up to j; infinite where one of them has no type; shape (N + 1, N + 1)."""
    return np.where(none[None, :] > none[:, None], np.inf, upto[None, :] - upto[:, None])


def _upto(values: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values)])


def _fixed_mb(problem: Problem, tables: LayerTables, stage: int) -> float:
    """MB that a stage holds before any BODY layer."""
    fixed = tables.fixed
    held = fixed.parameter_mb[stage] + _live(problem, stage) * fixed.activation_mb[stage]
    return float(problem.constant_per_stage_mb[stage] + held)


def _live(problem: Problem, stage: int) -> float:
    return float(live_rows(problem.order)[stage].rows.max())
