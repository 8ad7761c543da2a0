"""
Best-bound branch and bound over the patterns of stages.

A node is a region: for every stage the patterns that it may still use.  Its bound
is the linear program's; paths that its solution breaks are stated first, at a
point pulled towards the best fractional centre known, which makes them deeper.
Every split leaves each pattern in exactly one child, so no plan is lost; what is
dropped besides is proven slower than the cutoff by its reduced cost.
"""

import heapq
import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.plan import Plan
from sapp_ppb.planner.cuts import Separator
from sapp_ppb.planner.pattern_program import PatternProgram, Point, Region
from sapp_ppb.planner.patterns import StagePatterns
from sapp_ppb.simulator.timeline import simulate

Floats = NDArray[np.float64]

# A node whose bound is this close to the cutoff, as a share, can only hold plans as slow.
_CLOSED = 5e-7
_WINDOWS = 1
# Share of a node's own point in the point that is separated.
_PULL = 0.6
_ROOT_ROUNDS, _NODE_ROUNDS = 300, 12
# Rounds without this rise, as a share, in the last few are the end of separating.
_RISE, _PATIENCE = 3e-5, 4
_CANDIDATES = 4
_MOST_CUTS = 300


@dataclass(frozen=True, order=True)
class _Node:
    """A part of the search space that is still open."""

    bound_ms: float
    number: int
    region: Region = field(compare=False)
    point: Point = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class TreeProgress:
    """Bound so far, and a better plan when one has just been met."""

    bound_ms: float
    plan: Plan | None = None


class Tree:
    """
    The search for one problem.

    Parameters
    ----------
    cutoff_ms
        Makespan of the best plan known.
    centre
        Times of its cells, forward and backward; shape (cells,) each.
    """

    def __init__(self, program: PatternProgram, cutoff_ms: float, centre: tuple[Floats, Floats]) -> None:
        self._program = program
        self._cutoff_ms = cutoff_ms
        self._centre, self._centre_ms = centre, math.inf
        self._separator = Separator(program.problem)
        self._features = [_features(each) for each in program.patterns]
        self._numbers = itertools.count()

    @property
    def _closed_ms(self) -> float:
        return self._cutoff_ms * (1 - _CLOSED)

    def run(self, work: int, deadline: float) -> Iterator[TreeProgress]:
        """
        Branch until nothing is open, the work is done or the deadline has passed.

        The last progress yielded has the bound reached: the cutoff itself, or a better
        plan's makespan, when nothing is open.

        Raises
        ------
        SolverError
            When the solver fails.
        """
        heap = [self._node(self._program.whole_region(), 0.0, _ROOT_ROUNDS, deadline)]
        while heap and heap[0].bound_ms < self._closed_ms:
            yield TreeProgress(bound_ms=heap[0].bound_ms)
            if self._program.work >= work or time.monotonic() > deadline:
                return
            node = heapq.heappop(heap)
            plan = None
            for child in self._children(node, deadline):
                if child.point.is_whole:
                    plan = self._taken(child) or plan
                if child.bound_ms < self._closed_ms:
                    heapq.heappush(heap, child)
            if plan is not None:
                bound = heap[0].bound_ms if heap else self._cutoff_ms
                yield TreeProgress(bound_ms=min(bound, self._cutoff_ms), plan=plan)
        yield TreeProgress(bound_ms=self._cutoff_ms)

    def _taken(self, node: _Node) -> Plan | None:
        """Plan of a whole solution when it beats the cutoff, by the simulator."""
        plan = self._program.plan_of(node.point)
        timeline = simulate(plan)
        if not timeline.fits_memory or timeline.makespan_ms >= self._cutoff_ms:
            return None
        self._cutoff_ms = timeline.makespan_ms
        return plan

    def _node(self, region: Region, least_ms: float, rounds: int, deadline: float) -> _Node:
        """Bound a region, and drop what its reduced costs rule out."""
        point = self._separated(region, rounds, deadline)
        bound = max(least_ms, point.bound_ms)
        if bound < self._closed_ms:
            # With the bound of the same solve, whose reduced costs these are.
            room = self._cutoff_ms - point.bound_ms
            room += 1e-9 * self._cutoff_ms
            region = tuple(mask & (costs <= room) for mask, costs in zip(region, point.reduced, strict=True))
        return _Node(bound, next(self._numbers), region, point)

    def _separated(self, region: Region, rounds: int, deadline: float) -> Point:
        """State the paths that a region's solutions break, round after round."""
        self._program.enter(region)
        point = self._program.solve()
        bounds = [point.bound_ms]
        while len(bounds) <= rounds and bounds[-1] < self._closed_ms and time.monotonic() <= deadline:
            if not self._cut(point):
                break
            point = self._program.solve()
            bounds.append(point.bound_ms)
            if len(bounds) > _PATIENCE and bounds[-1] - bounds[-1 - _PATIENCE] < _RISE * bounds[-1]:
                break
        if self._program.cuts > _MOST_CUTS:
            self._program.drop_slack_cuts()
            # What was dropped must be found again when it binds again.
            self._separator.forget()
        return point

    def _cut(self, point: Point) -> int:
        """State paths broken between a point and the centre, or at the point itself."""
        above = point.bound_ms * (1 + 1e-7)
        pulled = [
            _PULL * ours + (1 - _PULL) * centre
            for ours, centre in zip((point.forward_ms, point.backward_ms), self._centre, strict=True)
        ]
        cuts = self._separator.paths(pulled[0], pulled[1], _WINDOWS, above)
        if len(cuts) < 2:
            exact = self._separator.paths(point.forward_ms, point.backward_ms, _WINDOWS, above)
            longest = max((cut.length_ms for cut in exact), default=point.bound_ms)
            if longest < self._centre_ms:
                self._centre, self._centre_ms = (point.forward_ms, point.backward_ms), longest
            cuts += exact
        for cut in cuts:
            self._program.state(cut)
        return len(cuts)

    def _children(self, node: _Node, deadline: float) -> Iterator[_Node]:
        """Split a node where both sides rise most, or cut it again when it is whole."""
        splits = self._splits(node)
        if not splits:
            # One pattern a stage: only paths not yet stated can be wrong.
            again = self._node(node.region, node.bound_ms, _ROOT_ROUNDS, deadline)
            if again.bound_ms > node.bound_ms * (1 + 1e-12) or not again.point.is_whole:
                yield again
            elif self._leaves_others(node):
                yield from self._set_apart(node, deadline)
            return
        best: tuple[float, list[Region]] = (-1.0, [])
        for sides in splits[:_CANDIDATES]:
            rises, open_sides = [], []
            for side in sides:
                self._program.enter(side)
                bound = self._program.solve(pricing_rounds=2).bound_ms
                if bound < self._closed_ms:
                    open_sides.append(side)
                rises.append(max(min(bound, self._cutoff_ms) - node.bound_ms, 0.0) + 1e-6 * self._cutoff_ms)
            if len(open_sides) < 2:
                best = (math.inf, open_sides)
                break
            if rises[0] * rises[1] > best[0]:
                best = (rises[0] * rises[1], open_sides)
        for side in best[1]:
            yield self._node(side, node.bound_ms, _NODE_ROUNDS, deadline)

    def _splits(self, node: _Node) -> list[tuple[Region, Region]]:
        """Ways to split a region at the solution, the most promising first."""
        for level in range(3):
            found = []
            for stage, (used, shares) in enumerate(node.point.shares):
                for values in self._features[stage][level]:
                    mean = float(shares @ values[used])
                    low = values[used][values[used] <= mean + 1e-9 * abs(mean)].max(initial=-math.inf)
                    high = values[used].max()
                    if high <= low + 1e-9 * abs(high):
                        continue
                    found.append((self._split_score(values, node.region[stage], mean), stage, values, low))
            if found:
                found.sort(key=lambda entry: -entry[0])
                return [_split(node.region, stage, values, low) for _, stage, values, low in found]
        return []

    @staticmethod
    def _split_score(values: Floats, mask: NDArray[np.bool_], mean: float) -> float:
        """Distance of a mean to the nearest value that a pattern can have."""
        return float(np.abs(values[mask] - mean).min())

    def _leaves_others(self, node: _Node) -> bool:
        return any(mask.sum() > 1 for mask in node.region)

    def _set_apart(self, node: _Node, deadline: float) -> Iterator[_Node]:
        """Divide a region around its whole solution: the solution is done, the rest goes on."""
        region = list(node.region)
        for stage, (used, _) in enumerate(node.point.shares):
            others = region[stage].copy()
            others[used[0]] = False
            if others.any():
                rest = (*region[:stage], others, *region[stage + 1 :])
                yield self._node(rest, node.bound_ms, _NODE_ROUNDS, deadline)
            only = np.zeros_like(others)
            only[used[0]] = True
            region[stage] = only


def _split(region: Region, stage: int, values: Floats, low: float) -> tuple[Region, Region]:
    """Patterns of a stage up to a value, and above it."""
    below = values <= low + 1e-9 * abs(low)
    sides = (region[stage] & below, region[stage] & ~below)
    return tuple((*region[:stage], side, *region[stage + 1 :]) for side in sides)  # type: ignore[return-value]


def _features(each: StagePatterns) -> list[list[Floats]]:
    """
    List what a stage is branched on, level by level: its load, its cells' loads, its backward times.

    Loads are the time of forwards, which the layers alone decide.
    """
    chunks = range(each.forward_ms.shape[1])
    layers = [each.layers[:, :, k].sum(axis=1).astype(float) for k in range(each.layers.shape[2])]
    return [
        [each.forward_ms.sum(axis=1)],
        [*(each.forward_ms[:, chunk] for chunk in chunks), *layers],
        [each.backward_ms.sum(axis=1), *(each.backward_ms[:, chunk] for chunk in chunks)],
    ]
