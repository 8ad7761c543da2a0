"""
The plan that holds least where a stage has one chunk: exact, without a solver.

A stage takes a run of layers, and what it holds is a sum over them, so the least
excess comes by dynamic programming over the ends of the runs:

    (M7)  e(s, j) = min over i <= j - least layers of s of max(e(s - 1, i), held_s(i, j) - limit_s)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.planner.proof.segments import allowed_runs
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.memory import problem_rows
from sapp_ppb.simulator.price import LayerTables

Floats = NDArray[np.float64]
# A limit that nothing reaches keeps infinities out of the sums.
_NO_LIMIT = 1e18


@dataclass(frozen=True, kw_only=True)
class Variant:
    """
    What the layers of a cell can be, each with the least activation memory.

    Attributes
    ----------
    types
        Type of every BODY entry, None where it has none.
    again_mb
        Working set that comes with them.
    """

    types: tuple[int | None, ...]
    again_mb: float


def least_memory_chain(
    problem: Problem, tables: LayerTables, variants: list[Variant], limits: tuple[float, ...]
) -> tuple[Plan | None, float]:
    """
    Find the plan with one chunk a stage whose worst stage exceeds its limit least.

    Parameters
    ----------
    variants
        Of which a stage uses one for all its layers.
    limits
        MB that each stage may hold; shape (S,).

    Returns
    -------
    tuple
        The plan and its excess, MB; None and infinity when no plan is allowed.

    Notes
    -----
    O(S N^2) for N layers, as arrays.
    """
    layers = problem.model.body_count
    least = np.full(layers + 1, np.inf)
    least[0] = -np.inf
    firsts = []
    held = _Held(problem, tables, variants)
    for stage, limit in enumerate(np.minimum(limits, _NO_LIMIT)):
        worst = np.maximum(least[:, None], held.least_mb(stage) - limit)
        firsts.append(worst.argmin(axis=0))
        least = worst.min(axis=0)
    if np.isposinf(least[layers]):
        return None, float("inf")
    counts = np.zeros((len(problem.model.bodies), len(problem.model.types), problem.cells), dtype=np.int64)
    last = layers
    for stage in reversed(range(problem.stages)):
        first = int(firsts[stage][last])
        held.count(counts, stage, first, last)
        last = first
    return Plan(problem=problem, counts=with_kept(problem, counts)), float(least[layers])


class _Held:
    """What runs of layers hold on the stages."""

    def __init__(self, problem: Problem, tables: LayerTables, variants: list[Variant]) -> None:
        self._problem, self._tables, self._variants = problem, tables, variants
        self._kind = np.repeat(
            np.arange(len(tables.parameter_mb)), [layer.count for layer in problem.model.bodies]
        )
        self._live = problem_rows(problem)
        self._kept_mb, self._kept_again_mb = kept_memory(problem, tables)
        self._allowed = allowed_runs(problem) & _runs_with_kept(problem, self._kind)

    def least_mb(self, stage: int) -> Floats:
        """MB of the best variant for every run, infinite where it is not allowed; shape (N + 1, N + 1)."""
        least = np.min([self._held_mb(stage, variant) for variant in self._variants], axis=0)
        return np.asarray(np.where(self._allowed[stage], least, np.inf))

    def count(self, counts: NDArray[np.int64], stage: int, first: int, last: int) -> None:
        """Count the layers of a run under the variant with which it holds least."""
        each = [self._held_mb(stage, variant)[first, last] for variant in self._variants]
        types = self._variants[int(np.argmin(each))].types
        for k in self._kind[first:last]:
            counts[k, types[k], stage] += 1

    def _held_mb(self, stage: int, variant: Variant) -> Floats:
        """MB of every run under one variant, the greatest of the rows; shape (N + 1, N + 1)."""
        tables, fixed, live = self._tables, self._tables.fixed, self._live[stage]
        chosen = np.array([0 if r is None else r for r in variant.types])
        memory = tables.activation_mb[np.arange(len(chosen)), chosen]
        always = self._problem.constant_per_stage_mb[stage] + fixed.parameter_mb[stage]
        besides = live.totals(
            fixed.activation_mb[[stage]] + self._kept_mb[[stage]],
            variant.again_mb + self._kept_again_mb[[stage]],
        )
        rows = [
            _runs_mb((tables.parameter_mb + lives * memory)[self._kind]) + always + extra
            for lives, extra in zip(live.rows[:, 0], besides, strict=True)
        ]
        none = _runs_mb(np.array([float(r is None) for r in variant.types])[self._kind])
        return np.asarray(np.where(none > 0, np.inf, np.max(rows, axis=0)))


def _runs_mb(each: Floats) -> Floats:
    """Sum of the layers from i up to j; shape (N + 1, N + 1)."""
    upto = np.concatenate([[0.0], np.cumsum(each)])
    return np.asarray(upto[None, :] - upto[:, None])


def _runs_with_kept(problem: Problem, kind: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Find the runs with the layers that their stage is to recompute; of a shape like (S, N + 1, N + 1)."""
    if problem.fix is None or problem.fix.recompute is None:
        return np.ones((1, 1, 1), dtype=bool)
    kept = problem.fix.recomputed.sum(axis=1)
    enough = np.ones((problem.stages, len(kind) + 1, len(kind) + 1), dtype=bool)
    for k, of_stage in enumerate(kept):
        enough &= _runs_mb((kind == k).astype(float)) >= of_stage[:, None, None]
    return enough


def kept_memory(problem: Problem, tables: LayerTables) -> tuple[Floats, Floats]:
    """
    Tell what fixed recompute changes in every cell: activation, and working set; shape (cells,) each.

    The layers to be recomputed hold less than they would under NONE.
    """
    if problem.fix is None or problem.fix.recompute is None:
        return np.zeros(problem.cells), np.zeros(problem.cells)
    kept = problem.fix.recomputed
    less = tables.activation_mb - tables.activation_mb[:, [Recompute.NONE]]
    again = (tables.again_mb[:, :, None] * (kept > 0)).max(axis=(0, 1))
    return np.einsum("lr,lrc->c", less, kept), np.asarray(again)


def with_kept(problem: Problem, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Turn layers under NONE into those that are to be recomputed; shape (BODY layers, types, cells)."""
    if problem.fix is None or problem.fix.recompute is None:
        return counts
    kept = problem.fix.recomputed
    counts = counts + kept
    counts[:, Recompute.NONE] -= kept.sum(axis=1)
    return counts
