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
from sapp_ppb.planner.menus import Menu, menus
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.price import LayerTables

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
        # Sums are exact to rounding only, as everywhere memory meets its limit.
        room = share_mb + 1e-9 * max(abs(share_mb), 1.0)
        return int(np.searchsorted(self.activation_mb, room, side="right")) - 1


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
    """

    def __init__(self, tables: LayerTables, menu: Menu, slowest_ms: float, most_points: int = 20_000) -> None:
        self.again_mb = menu.again_mb
        self._choices = [
            [(r, tables.activation_mb[k, r], tables.backward_ms[k, r]) for r in Recompute if usable[r]]
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
            When it has too many points.
        """
        known = self._known.get(run)
        if known is None:
            shorter = without_last(run)
            known = (
                self._single_point() if shorter is None else self._grown(self.front(shorter), last_entry(run))
            )
            self._known[run] = known
        return known

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
        recompute = np.repeat([int(r) for r, _, _ in choices], len(front.activation_mb))
        order = np.lexsort((backward, activation))
        time = backward[order]
        fastest_before = np.concatenate([[np.inf], np.minimum.accumulate(time)[:-1]])
        # Sums of the same numbers in another order differ in the last bits only.
        kept = order[(time < fastest_before - 1e-12 * np.abs(time)) & (time <= self._slowest_ms)]
        if len(kept) > self._most_points:
            raise FrontTooLargeError
        return Front(activation[kept], backward[kept], parent[kept], recompute[kept])

    def counts(self, run: Run, point: int, entries: int) -> NDArray[np.int64]:
        """Layers of each entry and type at a point; shape (entries, 5)."""
        counts = np.zeros((entries, len(Recompute)), dtype=np.int64)
        at: Run | None = run
        while at is not None and (shorter := without_last(at)) is not None:
            front = self.front(at)
            counts[last_entry(at), front.recompute[point]] += 1
            point, at = int(front.parent[point]), shorter
        return counts


class KeptFronts:
    """
    One choice for every run of a cell whose recomputed layers are fixed: the others are left alone.

    Parameters
    ----------
    kept
        Layers to recompute, by entry and type; shape (entries, 5).
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
        """Layers of each entry and type; shape (entries, 5)."""
        first, numbers = run
        layers = np.zeros(entries, dtype=np.int64)
        layers[first : first + len(numbers)] = numbers
        counts = self._kept.copy()
        counts[:, Recompute.NONE] = layers - self._kept.sum(axis=1)
        return counts


CellFronts = Fronts | KeptFronts


def cell_fronts(
    problem: Problem, tables: LayerTables, slowest_ms: float, *, may_mix: bool
) -> list[list[CellFronts]]:
    """
    List for every cell the fronts that its choices come from.

    Parameters
    ----------
    slowest_ms
        Choices with a longer backward are of no use.
    may_mix
        Whether SELECTIVE and COMM may stand in one cell.
    """
    if problem.fix is not None and problem.fix.recompute is not None:
        kept = problem.fix.recomputed
        return [[KeptFronts(tables, kept[:, :, cell])] for cell in range(problem.cells)]
    shared: list[CellFronts] = [Fronts(tables, menu, slowest_ms) for menu in menus(tables, may_mix=may_mix)]
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
