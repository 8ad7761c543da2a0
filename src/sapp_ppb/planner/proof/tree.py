"""
Best-bound branch and bound over a linear program of plans.

A node is a region of plans.  Its bound is the linear program's; paths that its
solution breaks are stated first, at a point pulled towards the best fractional
centre known, which makes them deeper.  Every split leaves each plan in one child,
so none is lost; what is dropped besides is proven slower than the cutoff.
"""

import heapq
import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.plan import Plan
from sapp_ppb.planner.proof.cuts import PathCut, Separator
from sapp_ppb.planner.proof.path_program import OutOfWorkError
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.timeline import simulate

Floats = NDArray[np.float64]
R = TypeVar("R")
P = TypeVar("P", bound="Point")

# A node whose bound is this close to the cutoff, as a share, can only hold plans as slow.
_CLOSED = 5e-7
_WINDOWS = 1
# Share of a node's own point in the point that is separated.
_PULL = 0.6
_ROOT_ROUNDS, _NODE_ROUNDS = 300, 12
# Rounds without this rise, as a share, in the last few are the end of separating; the root, whose
# paths serve all nodes, is given more.
_RISE, _PATIENCE, _ROOT_PATIENCE = 3e-5, 4, 12
_CANDIDATES = 4
_MOST_CUTS = 300
_FEW_CELLS = 64
# A program that is being solved when the work is done may take this much more, as a factor and at least.
_OVERDRAWN, _LEAST_OVERDRAWN = 1.2, 2_000_000


class Point(Protocol):
    """Solution of a program over a region."""

    @property
    def bound_ms(self) -> float:
        """No plan of the region is faster."""

    @property
    def times_ms(self) -> Floats:
        """F, B and W of the cells; shape (3, cells)."""

    @property
    def is_whole(self) -> bool:
        """Whether the solution is a plan."""

    @property
    def layers(self) -> Floats:
        """Layers of each cell; shape (cells,)."""


class Program(Protocol[R, P]):
    """A linear program of plans that can be restricted to regions and cut by paths."""

    problem: Problem
    work: int

    def whole_region(self) -> R:
        """Region of all plans."""

    def enter(self, region: R) -> None:
        """Restrict the program to a region."""

    def limit(self, most_work: float, deadline: float) -> None:
        """Give up every later solve once so much work is done, or at a time of ``time.monotonic``."""

    def solve(self, pricing_rounds: int = ...) -> P:
        """Solve over the region entered."""

    def state(self, cut: PathCut) -> None:
        """Add a path."""

    @property
    def cuts(self) -> int:
        """Paths that are stated."""

    def drop_slack_cuts(self, most: int) -> None:
        """Forget paths that do not bind, until there are ``most``."""

    def tightened(self, region: R, point: P, room_ms: float) -> R:
        """Region without what is proven to cost more than ``room_ms`` above the point's bound."""

    def splits(self, region: R, point: P) -> list[tuple[R, R]]:
        """Ways to split a region at its solution, the most promising first."""

    def set_apart(self, region: R, point: P) -> list[R]:
        """Split a region around its whole solution, which is left out."""

    def plan_of(self, point: P) -> Plan:
        """Plan of a whole solution."""


@dataclass(frozen=True, order=True)
class _Node(Generic[R, P]):
    """A part of the search space that is still open."""

    bound_ms: float
    number: int
    region: R = field(compare=False)
    point: P = field(compare=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeProgress:
    """
    Where the search stands.

    Attributes
    ----------
    bound_ms
        No plan is faster.
    plan
        A better plan when one has just been met.
    layers
        Layers of each cell at the most promising open node, fractional; shape
        (cells,), or None when nothing is open.
    """

    bound_ms: float
    plan: Plan | None = None
    layers: Floats | None = None


class Tree(Generic[R, P]):
    """
    The search for one problem.

    Parameters
    ----------
    cutoff_ms
        Makespan of the best plan known.
    centre
        F, B and W of its cells; shape (3, cells).
    """

    def __init__(self, program: Program[R, P], cutoff_ms: float, centre: Floats) -> None:
        self._program = program
        self._cutoff_ms = cutoff_ms
        self._centre, self._centre_ms = centre, math.inf
        self._separator = Separator(program.problem)
        # A large program is slow to solve, and worth cutting longer before it is split.
        self._scale = 1 if program.problem.cells <= _FEW_CELLS else 2
        self._left_ms = math.inf  # least bound of what was closed or could be split no further
        self._met: Plan | None = None  # better plan that has not been told yet
        self._numbers = itertools.count()

    @property
    def _closed_ms(self) -> float:
        return self._cutoff_ms * (1 - _CLOSED)

    def lower_cutoff(self, step_ms: float) -> None:
        """Look for plans faster than one that was found elsewhere."""
        self._cutoff_ms = min(self._cutoff_ms, step_ms)

    def run(self, work: int, deadline: float, *, first_work: int = 0) -> Iterator[TreeProgress]:
        """
        Branch until nothing is open, the work is done or the deadline has passed.

        The last progress yielded has the bound reached: the cutoff itself, or a better
        plan's makespan, when nothing is open; 0 when not even the first program was solved.

        Parameters
        ----------
        work
            Units of linear programming after which no further region is looked at.
        deadline
            Time of ``time.monotonic`` at which to stop.
        first_work
            Units that the first program may take where that is more: most of the bound comes from it.

        Raises
        ------
        SolverError
            When the solver fails.
        """
        most = max(_OVERDRAWN * work, work + _LEAST_OVERDRAWN)
        self._program.limit(max(most, first_work), deadline)
        heap: list[_Node[R, P]] = []
        try:
            self._file(self._node(self._program.whole_region(), 0.0, _ROOT_ROUNDS, deadline), heap)
        except OutOfWorkError:
            yield TreeProgress(bound_ms=0.0)
            return
        self._program.limit(most, deadline)
        while heap and heap[0].bound_ms < min(self._closed_ms, self._left_ms):
            yield self._progress(heap)
            if self._program.work >= work or time.monotonic() > deadline:
                return
            node = heapq.heappop(heap)
            try:
                for child in self._children(node, deadline):
                    self._file(child, heap)
            except OutOfWorkError:
                heapq.heappush(heap, node)  # what was not looked at is still open
                break
        yield self._progress(heap)

    def _file(self, node: _Node[R, P], heap: list[_Node[R, P]]) -> None:
        """Take the plan of a node that shows one, and keep the node while it can hold a better one."""
        if node.point.is_whole:
            self._take(node.point)
        if node.bound_ms < self._closed_ms:
            heapq.heappush(heap, node)
        else:
            self._left_ms = min(self._left_ms, node.bound_ms)

    def _progress(self, heap: list[_Node[R, P]]) -> TreeProgress:
        plan, self._met = self._met, None
        open_ms = heap[0].bound_ms if heap else math.inf
        return TreeProgress(
            bound_ms=min(open_ms, self._left_ms, self._cutoff_ms),
            plan=plan,
            layers=heap[0].point.layers if heap else None,
        )

    def _take(self, point: P) -> None:
        """Keep the plan of a whole solution when it beats the cutoff, by the simulator."""
        plan = self._program.plan_of(point)
        timeline = simulate(plan)
        if timeline.fits_memory and timeline.step_ms < self._cutoff_ms:
            self._cutoff_ms, self._met = timeline.step_ms, plan

    def _node(self, region: R, least_ms: float, rounds: int, deadline: float) -> _Node[R, P]:
        """Bound a region, and drop what its reduced costs rule out."""
        point = self._separated(region, rounds, deadline)
        bound = max(least_ms, point.bound_ms)
        if bound < self._closed_ms:
            room = self._cutoff_ms * (1 + 1e-9) - point.bound_ms
            region = self._program.tightened(region, point, room)
        return _Node(bound, next(self._numbers), region, point)

    def _separated(self, region: R, rounds: int, deadline: float) -> P:
        """State the paths that a region's solutions break, round after round."""
        self._program.enter(region)
        point = self._program.solve()
        bounds = [point.bound_ms]
        patience = _ROOT_PATIENCE if rounds == _ROOT_ROUNDS else self._scale * _PATIENCE
        while len(bounds) <= rounds and bounds[-1] < self._closed_ms and time.monotonic() <= deadline:
            if not self._cut(point):
                break
            try:
                point = self._program.solve()
            except OutOfWorkError:
                return point
            bounds.append(point.bound_ms)
            if len(bounds) > patience and bounds[-1] - bounds[-1 - patience] < _RISE * bounds[-1]:
                break
        before = self._program.cuts
        self._program.drop_slack_cuts(self._scale * _MOST_CUTS)
        if self._program.cuts < before:
            # What was dropped must be found again when it binds again.
            self._separator.forget()
        return point

    def _cut(self, point: P) -> int:
        """State paths broken between a point and the centre, or at the point itself."""
        above = point.bound_ms * (1 + 1e-7)
        pulled = _PULL * point.times_ms + (1 - _PULL) * self._centre
        cuts = self._separator.paths(pulled, _WINDOWS, above)
        if len(cuts) < 2:
            exact = self._separator.paths(point.times_ms, _WINDOWS, above)
            longest = max((cut.length_ms for cut in exact), default=point.bound_ms)
            if longest < self._centre_ms:
                self._centre, self._centre_ms = point.times_ms, longest
            cuts += exact
        for cut in cuts:
            self._program.state(cut)
        return len(cuts)

    def _children(self, node: _Node[R, P], deadline: float) -> Iterator[_Node[R, P]]:
        """Split a node where both sides rise most, or cut it again when it is whole."""
        splits = self._program.splits(node.region, node.point)
        if not splits:
            yield from self._ended(node, deadline)
            return
        best: tuple[float, list[R]] = (-1.0, [])
        for sides in splits[:_CANDIDATES]:
            rises, open_sides, closed = [], [], []
            for side in sides:
                self._program.enter(side)
                bound = self._program.solve(pricing_rounds=2).bound_ms
                if bound < self._closed_ms:
                    open_sides.append(side)
                else:
                    closed.append(bound)
                rises.append(max(min(bound, self._cutoff_ms) - node.bound_ms, 0.0) + 1e-6 * self._cutoff_ms)
            if closed:
                best = (math.inf, open_sides)
                self._left_ms = min(self._left_ms, *closed)
                break
            if rises[0] * rises[1] > best[0]:
                best = (rises[0] * rises[1], open_sides)
        for side in best[1]:
            yield self._node(side, node.bound_ms, self._scale * _NODE_ROUNDS, deadline)

    def _ended(self, node: _Node[R, P], deadline: float) -> Iterator[_Node[R, P]]:
        """Go on where nothing can be split: only paths not yet stated can be wrong."""
        again = self._node(node.region, node.bound_ms, _ROOT_ROUNDS, deadline)
        rises = again.bound_ms > node.bound_ms * (1 + 1e-12)
        # Solved again, the same bound can have another solution, which can be split after all.
        if rises or (not again.point.is_whole and self._program.splits(again.region, again.point)):
            yield again
        elif not again.point.is_whole:
            self._left_ms = min(self._left_ms, again.bound_ms)
        else:
            self._take(again.point)
            self._left_ms = min(self._left_ms, max(again.bound_ms, self._closed_ms))
            for rest in self._program.set_apart(node.region, again.point):
                yield self._node(rest, node.bound_ms, self._scale * _NODE_ROUNDS, deadline)
