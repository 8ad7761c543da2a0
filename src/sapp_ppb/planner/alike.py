"""
Layers that stand together and cost the same, or about the same, taken as one kind.

A program over dozens of kinds is too wide to be solved, though a profile has as many of
them as it has layers, which differ by little.  Neighbours of equal costs become one BODY
entry, and nothing changes.  Neighbours of about equal costs become one entry at the least
of each cost.  Every plan of the problem is then a plan of that one, with the same layers
and types in every cell, no slower and no larger, so a bound on those plans is one on these.

What the least costs leave out is a layer's **surplus**.  It is given back to the program
in two ways that hold for every plan: n layers in a row have at least the surplus of the n
neighbours that have least, and all layers together have all of it.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Layer
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.price import layer_tables, splits_backward

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Entries that neighbours of about equal costs are joined to, at most.
MOST_GROUPS = 3
# Share of all costs that one entry fewer may leave out.
_LITTLE = 0.02


@dataclass(frozen=True, kw_only=True, eq=False)
class Grouped:
    """
    A problem whose BODY entries are joined to groups.

    Attributes
    ----------
    source
        The problem.
    problem
        The same with an entry for each group.
    starts
        First entry of each group, and the number of entries behind the last; shape (groups + 1,).
    is_exact
        Whether entries of a group cost the same, so that plans of both problems are the same.
    """

    source: Problem
    problem: Problem
    starts: tuple[int, ...]
    is_exact: bool

    @cached_property
    def surplus_ms(self) -> Floats:
        """F, B and W of a layer of each entry beyond its group's, in any type; shape (3, entries)."""
        own, least = layer_tables(self.source), layer_tables(self.problem)
        group = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        backward = np.where(own.considered, own.backward_ms - least.backward_ms[group], np.inf)
        return np.array(
            [
                own.forward_ms - least.forward_ms[group],
                backward.min(axis=1),
                own.weight_ms - least.weight_ms[group],
            ]
        )

    @cached_property
    def total_ms(self) -> Floats:
        """F, B and W of all cells together, HEAD and TAIL included, at least; shape (3,)."""
        tables, counts = layer_tables(self.source), self._counts
        backward = np.where(tables.considered, tables.backward_ms, np.inf).min(axis=1)
        each = np.array([tables.forward_ms, backward, tables.weight_ms])
        return np.asarray(each @ counts + tables.fixed.times_ms.sum(axis=1))

    def least_surplus_ms(self, most: int) -> Floats:
        """
        Surplus that layers of a group in a row have together, at least.

        Returns
        -------
        ndarray
            Shape (3, groups, most + 1): F, B and W for every number of layers up to ``most``.
        """
        found = np.zeros((3, len(self.starts) - 1, most + 1))
        for group, (first, last) in enumerate(pairwise(self.starts)):
            each = np.repeat(self.surplus_ms[:, first:last], self._counts[first:last], axis=1)
            upto = np.concatenate([np.zeros((3, 1)), np.cumsum(each, axis=1)], axis=1)
            for number in range(1, min(most, each.shape[1]) + 1):
                found[:, group, number] = (upto[:, number:] - upto[:, :-number]).min(axis=1)
        return np.maximum(found, 0.0)

    def spread(self, counts: Ints) -> Ints:
        """
        Give the layers of a group back to its entries, those recomputed most first in every cell.

        Parameters
        ----------
        counts
            Layers by group, type and cell; shape (groups, types, cells).

        Returns
        -------
        ndarray
            Layers by entry, type and cell; shape (entries, types, cells).
        """
        spread = np.zeros((len(self._counts), *counts.shape[1:]), dtype=np.int64)
        for group, (first, last) in enumerate(pairwise(self.starts)):
            of_layer = np.repeat(np.arange(first, last), self._counts[first:last])
            by_cell = counts[group].T[:, ::-1]  # the types with the highest numbers first
            cells, types = np.divmod(np.repeat(np.arange(by_cell.size), by_cell.ravel()), by_cell.shape[1])
            np.add.at(spread, (of_layer, by_cell.shape[1] - 1 - types, cells), 1)
        return spread

    @property
    def _counts(self) -> Ints:
        return np.array([layer.count for layer in self.source.model.bodies])


def joined_equal(problem: Problem) -> Grouped:
    """Join neighbours that cost the same."""
    bodies = problem.model.bodies
    if not may_join(problem):
        return _kept(problem)
    costs, ruled = [_costs(problem, layer) for layer in bodies], _ruled(problem)
    starts = [0] + [k for k in range(1, len(bodies)) if costs[k] != costs[k - 1] or k == ruled]
    return _grouped(problem, (*starts, len(bodies)), is_exact=True)


def joined_near(problem: Problem, most: int = MOST_GROUPS) -> Grouped:
    """
    Join neighbours that cost about the same, to few entries at the least of each cost.

    Parameters
    ----------
    most
        Entries that are left, at most; fewer where that leaves little more out, and two where a
        rule of places never picks from the last ones.
    """
    if not may_join(problem):
        return _kept(problem)
    entries = len(problem.model.bodies)
    fewest = 2 if 0 < _ruled(problem) < entries else 1
    starts = _fewest(*_splits(problem, min(max(most, fewest), entries)))
    return _grouped(problem, starts, is_exact=False)


def may_join(problem: Problem) -> bool:
    """Whether nothing is asked of single entries, and memory is given of all or of none."""
    asked = problem.fix is not None and problem.fix.recompute is not None
    given = {any(held is not None for held in layer.activation_mb) for layer in problem.model.bodies}
    return not asked and len(given) == 1


def _ruled(problem: Problem) -> int:
    """Entries that a rule of places may pick from, all where there is none: no group has others too."""
    rule = None if problem.fix is None else problem.fix.places
    return max(len(problem.model.bodies) - (0 if rule is None else rule.entries_left), 0)


def _kept(problem: Problem) -> Grouped:
    starts = tuple(range(len(problem.model.bodies) + 1))
    return Grouped(source=problem, problem=problem, starts=starts, is_exact=True)


def _grouped(problem: Problem, starts: tuple[int, ...], *, is_exact: bool) -> Grouped:
    bodies = problem.model.bodies
    if len(starts) == len(bodies) + 1:
        return _kept(problem)
    parts = [bodies[first:last] for first, last in pairwise(starts)]
    layers = (*problem.model.heads, *(_least(problem, part) for part in parts), *problem.model.tails)
    changes: dict[str, object] = {"model": replace(problem.model, layers=layers)}
    if not is_exact:
        # What a layer holds again is a difference, which is not least where both are.
        changes["recompute_working_set"] = False
    if problem.fix is not None and problem.fix.places is not None:
        left = sum(start >= _ruled(problem) for start in starts[:-1])
        changes["fix"] = replace(problem.fix, places=replace(problem.fix.places, entries_left=left))
    return Grouped(source=problem, problem=problem.changed(**changes), starts=starts, is_exact=is_exact)


def _costs(problem: Problem, layer: Layer) -> tuple[object, ...]:
    """Everything about a layer that a plan can feel."""
    types = layer.considered
    return (
        layer.forward_ms,
        layer.weight_ms,
        layer.parameter_mb,
        layer.is_mtp,
        *((r, layer.backward_ms[r], layer.activation(r)) for r in types),
        layer.activation(layer.types[0]) if problem.recompute_working_set else None,
    )


def _least(problem: Problem, part: tuple[Layer, ...]) -> Layer:
    """One entry for several, at the least of each cost."""
    first = part[0]
    if len(part) == 1:
        return first
    weight = min(layer.weight_ms for layer in part)
    backward, activation = [], []
    for r in first.types:
        able = [layer for layer in part if r in layer.considered]
        if splits_backward(problem):  # no part of the backward is longer than any layer's
            inputs = min((layer.backward_ms[r] - layer.weight_ms for layer in able), default=0.0)
            backward.append(weight + inputs)
        else:
            backward.append(min((layer.backward_ms[r] for layer in able), default=weight))
        activation.append(min((layer.activation(r) for layer in able), default=None))
    return replace(
        first,
        count=sum(layer.count for layer in part),
        forward_ms=min(layer.forward_ms for layer in part),
        backward_ms=tuple(backward),
        weight_grad_ms=weight if splits_backward(problem) else None,
        parameter_mb=min(layer.parameter_mb for layer in part),
        activation_mb=tuple(activation),
        is_mtp=all(layer.is_mtp for layer in part),
    )


def _splits(problem: Problem, most: int) -> tuple[list[float], list[tuple[int, ...]]]:
    """
    Split the entries into 1 to ``most`` groups so that the least costs leave least out.

    Returns
    -------
    tuple
        For every number of groups the share of all costs that is left out, and the starts.
    """
    tables = layer_tables(problem)
    counts = np.array([layer.count for layer in problem.model.bodies], dtype=float)
    held = np.where(tables.considered, tables.activation_mb, 0.0).sum(axis=1)
    taken = np.where(tables.considered, tables.backward_ms, 0.0).sum(axis=1)
    # Types that an entry can not have would make its sums look low.
    types = np.maximum(tables.considered.sum(axis=1), 1)
    costs = np.array([tables.forward_ms, taken / types, held / types, tables.parameter_mb])
    whole = np.maximum(costs @ counts, 1e-300)
    shares = costs / whole[:, None] / len(costs)
    entries = len(counts)
    lost = np.zeros((entries, entries + 1))
    for first in range(entries):
        least = np.minimum.accumulate(shares[:, first:], axis=1)
        have = np.cumsum(shares[:, first:] * counts[first:], axis=1)
        lost[first, first + 1 :] = (have - least * np.cumsum(counts[first:])).sum(axis=0)
    ruled = _ruled(problem)
    lost[:ruled, ruled + 1 :] = np.inf
    best, found = lost[0].copy(), [tuple[int, ...]((0, entries))]
    shares_lost, came = [float(best[entries])], []
    for _ in range(1, most):
        with_one_more = best[:entries, None] + np.where(np.tri(entries, entries + 1, 0), np.inf, lost)
        with_one_more[0] = np.inf
        came.append(with_one_more.argmin(axis=0))
        best = with_one_more.min(axis=0)
        starts, at = [entries], entries
        for back in reversed(came):
            at = int(back[at])
            starts.append(at)
        found.append((0, *reversed(starts)))
        shares_lost.append(float(best[entries]))
    return shares_lost, found


def _fewest(lost: list[float], splits: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Fewest groups that leave little more out than the most do."""
    least = min(lost)
    return next(split for share, split in zip(lost, splits, strict=True) if share <= least + _LITTLE)
