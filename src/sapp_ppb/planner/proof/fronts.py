"""
Exact choices of recompute for a run of layers: time against activation memory.

A run is some layers in chain order; its front holds every choice of types that no
other choice beats in both backward time and activation memory.  The front of a
run grows from that of the run without its last layer, so all runs that begin at
one layer cost little more than the longest.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.fix import PlaceRule
from sapp_ppb.planner.proof.menus import Menu, menus
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.price import LayerTables
from sapp_ppb.targets import is_nested

Floats = NDArray[np.float64]

# A run: the BODY entry it begins with, and how many layers of it and of the next entries.
Run = tuple[int, tuple[int, ...]]


class FrontTooLargeError(Exception):
    """A front has more points than are worth their memory; the caller goes on without."""


@dataclass(frozen=True, eq=False)
class Front:
    """
    Best choices of a run, by rising activation memory and falling time.

    Attributes
    ----------
    activation_mb, backward_ms
        Shape (points,).
    parent, recompute
        Point of the shorter run's front, and type of the last layer; shape (points,).
    """

    activation_mb: Floats
    backward_ms: Floats
    parent: NDArray[np.int64]
    recompute: NDArray[np.int64]

    def within(self, share_mb: float) -> int:
        """Fastest point that holds at most a share of memory; -1 when none does."""
        return int(np.searchsorted(self.activation_mb, share_mb, side="right")) - 1


class Fronts:
    """
    Fronts of all runs that are asked for.

    Attributes
    ----------
    again_mb
        What a cell whose types come from here holds besides while its backward runs.

    Parameters
    ----------
    menu
        Types that may be used, and what using them holds.
    slowest_ms
        Choices with a longer backward are of no use to the caller.
    most_points
        Size at which a front is given up.
    most_in_all
        Points of all fronts together that are kept: 32 bytes each.
    """

    def __init__(
        self,
        tables: LayerTables,
        menu: Menu,
        slowest_ms: float,
        most_points: int = 20_000,
        most_in_all: int = 10_000_000,
    ) -> None:
        self._left = most_in_all
        self.again_mb = menu.again_mb
        self._types = menu.usable.shape[1]
        self._choices = [
            [
                (r, tables.activation_mb[k, r], tables.backward_ms[k, r])
                for r in np.flatnonzero(usable).tolist()
            ]
            for k, usable in enumerate(menu.usable)
        ]
        self._slowest_ms = slowest_ms
        self._most_points = most_points
        self._known: dict[Run, Front] = {}

    def front(self, run: Run) -> Front:
        """
        Front of a run.

        Raises
        ------
        FrontTooLargeError
            When it has too many points, or all of them together.
        """
        return self._front(run)

    def _front(self, run: Run) -> Front:
        """Front of a run, grown layer by layer from the longest part of it that is known."""
        unknown: list[Run] = []
        at: Run | None = run
        while at is not None and at not in self._known:
            unknown.append(at)
            at = without_last(at)
        front = self._single_point() if at is None else self._known[at]
        for each in reversed(unknown):
            if without_last(each) is not None:
                front = self._grown(front, last_entry(each))
            self._left -= len(front.parent)
            if self._left < 0:
                raise FrontTooLargeError
            self._known[each] = front
        return front

    @staticmethod
    def _single_point() -> Front:
        nothing = np.array([-1])
        return Front(np.zeros(1), np.zeros(1), nothing, nothing)

    def _grown(self, front: Front, entry: int) -> Front:
        """Give every point one more layer of an entry, then keep what nothing beats."""
        choices = self._choices[entry]
        if not choices:
            return Front(*(np.empty(0),) * 2, *(np.empty(0, np.int64),) * 2)
        activation = np.concatenate([front.activation_mb + memory for _, memory, _ in choices])
        backward = np.concatenate([front.backward_ms + time for _, _, time in choices])
        parent = np.tile(np.arange(len(front.activation_mb)), len(choices))
        recompute = np.repeat([r for r, _, _ in choices], len(front.activation_mb))
        order = np.lexsort((backward, activation))
        time = backward[order]
        fastest_before = np.concatenate([[np.inf], np.minimum.accumulate(time)[:-1]])
        # Sums of the same numbers in another order differ in the last bits only.
        kept = order[(time < fastest_before - 1e-12 * np.abs(time)) & (time <= self._slowest_ms)]
        if len(kept) > self._most_points:
            raise FrontTooLargeError
        return Front(activation[kept], backward[kept], parent[kept], recompute[kept])

    def counts(self, run: Run, point: int, entries: int) -> NDArray[np.int64]:
        """Layers of each entry and type at a point; shape (entries, types)."""
        counts = np.zeros((entries, self._types), dtype=np.int64)
        at: Run | None = run
        while at is not None and (shorter := without_last(at)) is not None:
            front = self.front(at)
            counts[last_entry(at), front.recompute[point]] += 1
            point, at = int(front.parent[point]), shorter
        return counts


class NestedFronts(Fronts):
    """
    Fronts of cells in which what a layer runs again is a part of what the one before it runs.

    A point is beaten only by one whose last layer leaves as much freedom to the next.
    Within an entry the order of the layers is free, so that they may as well come with
    the most recomputed first.
    """

    def front(self, run: Run) -> Front:
        """Front of a run, whatever its last layer is."""
        nested = self._front(run)
        order = np.lexsort((nested.backward_ms, nested.activation_mb))
        time = nested.backward_ms[order]
        fastest_before = np.concatenate([[np.inf], np.minimum.accumulate(time)[:-1]])
        kept = order[time < fastest_before]
        # A point of this front points to itself in the nested one.
        return Front(nested.activation_mb[kept], nested.backward_ms[kept], kept, nested.recompute[kept])

    def _grown(self, front: Front, entry: int) -> Front:
        """Give every point one more layer, of a part of what its last one runs."""
        parts = [
            Front(
                front.activation_mb[within] + memory,
                front.backward_ms[within] + time,
                np.flatnonzero(within),
                np.full(int(within.sum()), r),
            )
            for r, memory, time in self._choices[entry]
            for within in (np.array([_runs_within(r, int(last)) for last in front.recompute], dtype=bool),)
        ]
        return _joined([part for part in parts if len(part.parent)], self._slowest_ms, self._most_points)

    def counts(self, run: Run, point: int, entries: int) -> NDArray[np.int64]:
        """Layers of each entry and type at a point; shape (entries, types)."""
        counts = np.zeros((entries, self._types), dtype=np.int64)
        at, place = run, int(self.front(run).parent[point])
        while (shorter := without_last(at)) is not None:
            front = self._front(at)
            counts[last_entry(at), front.recompute[place]] += 1
            place, at = int(front.parent[place]), shorter
        return counts


def _runs_within(recompute: int, last: int) -> bool:
    """Whether a layer may follow one of another type; -1 is no layer."""
    return last < 0 or _PARTS[Recompute(recompute)] <= _PARTS[Recompute(last)]


_PARTS = {recompute: frozenset(recompute.mindformers_lists) for recompute in Recompute}


def _joined(parts: list[Front], slowest_ms: float, most_points: int) -> Front:
    """Join points, and drop those that another one beats whose last layer runs as much or more."""
    if not parts:
        return Front(*(np.empty(0),) * 2, *(np.empty(0, np.int64),) * 2)
    joined = Front(*(np.concatenate(columns) for columns in zip(*map(_columns, parts), strict=True)))
    kept = []
    for r in np.unique(joined.recompute).tolist():
        rivals = np.flatnonzero([_runs_within(r, int(other)) for other in joined.recompute])
        # Its own come last among equals, so that of two alike the one with more freedom stays.
        own = joined.recompute[rivals] == r
        order = rivals[np.lexsort((own, joined.backward_ms[rivals], joined.activation_mb[rivals]))]
        time = joined.backward_ms[order]
        fastest_before = np.concatenate([[np.inf], np.minimum.accumulate(time)[:-1]])
        # Sums of the same numbers in another order differ in the last bits only.
        best = (time < fastest_before - 1e-12 * np.abs(time)) & (time <= slowest_ms)
        kept.append(order[best & (joined.recompute[order] == r)])
    chosen = np.concatenate(kept)
    if len(chosen) > most_points:
        raise FrontTooLargeError
    return Front(*(column[chosen] for column in _columns(joined)))


def _columns(front: Front) -> tuple[NDArray[np.float64] | NDArray[np.int64], ...]:
    return front.activation_mb, front.backward_ms, front.parent, front.recompute


class KeptFronts:
    """
    One choice for every run of a cell whose recomputed layers are fixed: the others are left alone.

    Parameters
    ----------
    kept
        Layers to recompute, by entry and type; shape (entries, types).
    """

    def __init__(self, tables: LayerTables, kept: NDArray[np.int64]) -> None:
        self.again_mb = float((tables.again_mb * (kept > 0)).max())
        self._tables, self._kept = tables, kept

    def front(self, run: Run) -> Front:
        """Front of a run: one point, or none when the run lacks layers that are to be recomputed."""
        counts = self.counts(run, 0, len(self._kept))
        points = int((counts >= 0).all())
        nothing = np.full(points, -1)
        return Front(
            np.full(points, float((counts * self._tables.activation_mb).sum())),
            np.full(points, float((counts * self._tables.backward_ms).sum())),
            nothing,
            nothing,
        )

    def counts(self, run: Run, point: int, entries: int) -> NDArray[np.int64]:
        """Layers of each entry and type; shape (entries, types)."""
        first, numbers = run
        layers = np.zeros(entries, dtype=np.int64)
        layers[first : first + len(numbers)] = numbers
        counts = self._kept.copy()
        counts[:, Recompute.NONE] = layers - self._kept.sum(axis=1)
        return counts


class PlaceFronts:
    """
    One choice for every run: what a rule of places makes of it.

    Attributes
    ----------
    again_mb
        0: the working set depends on the run and is left out, so a choice may hold more.
    """

    again_mb = 0.0

    def __init__(self, tables: LayerTables, rule: PlaceRule) -> None:
        self._tables, self._rule = tables, rule

    def front(self, run: Run) -> Front:
        """Front of a run: one point, or none where a layer can not have the type of its place."""
        counts = self.counts(run, 0, len(self._tables.considered))
        points = int(not counts[~self._tables.considered].any())
        nothing = np.full(points, -1)
        return Front(
            np.full(points, float((counts * self._tables.activation_mb).sum())),
            np.full(points, float((counts * self._tables.backward_ms).sum())),
            nothing,
            nothing,
        )

    def counts(self, run: Run, point: int, entries: int) -> NDArray[np.int64]:
        """Layers of each entry and type; shape (entries, types)."""
        first, numbers = run
        layers = np.zeros((entries, 1), dtype=np.int64)
        layers[first : first + len(numbers), 0] = numbers
        return np.asarray(self._rule.counts(layers, self._tables.considered.shape[1])[:, :, 0])


CellFronts = Fronts | KeptFronts | PlaceFronts


def cell_fronts(problem: Problem, tables: LayerTables, slowest_ms: float) -> list[list[CellFronts]]:
    """
    List for every cell the fronts that its choices come from.

    Parameters
    ----------
    slowest_ms
        Choices with a longer backward are of no use.
    """
    fix = problem.fix
    if fix is not None and fix.recompute is not None:
        return [[KeptFronts(tables, fix.recomputed[:, :, cell])] for cell in range(problem.cells)]
    if fix is not None and fix.places is not None:
        rules = [fix.places.of_cell(cell, problem.cells) for cell in range(problem.cells)]
        alike: dict[PlaceRule, list[CellFronts]] = {rule: [PlaceFronts(tables, rule)] for rule in rules}
        return [alike[rule] for rule in rules]
    nested = is_nested(problem.target)
    several = nested and len(tables.considered) > 1
    make = NestedFronts if several else Fronts
    shared: list[CellFronts] = [make(tables, menu, slowest_ms) for menu in menus(tables, nested=nested)]
    return [shared] * problem.cells


def last_entry(run: Run) -> int:
    """BODY entry of a run's last layer."""
    first, numbers = run
    return first + len(numbers) - 1


def without_last(run: Run) -> Run | None:
    """Run without its last layer; None for the empty run."""
    first, numbers = run
    if not numbers:
        return None
    if numbers[-1] > 1:
        return first, (*numbers[:-1], numbers[-1] - 1)
    return (first, numbers[:-1]) if len(numbers) > 1 else (0, ())


def run_between(kind: NDArray[np.int64], first: int, last: int) -> Run:
    """
    Run of layers first..last-1, given the BODY entry of every layer.

    Examples
    --------
    >>> run_between(np.array([0, 0, 1, 1, 1]), 1, 4)
    (0, (1, 2))
    """
    if first >= last:
        return (0, ())
    entries = kind[first:last]
    numbers = np.bincount(entries - entries[0])
    return int(entries[0]), tuple(int(number) for number in numbers)
