"""
Paths as cuts: every path through the order is a lower bound linear in the plan.

    (C1)  T >= hops(p) + sum over cells of u(p, c) F_c + w(p, c) B_c

for every path p, F_c and B_c being a cell's forward and backward time.  An I costs
B - F and a W costs F, so their counts fold into u and w.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.planner.cut_kernel import long_paths
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import OpKind
from sapp_ppb.simulator.graph import graph_of
from sapp_ppb.simulator.timeline import hop_times

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class PathCut:
    """
    One path.

    Attributes
    ----------
    forward, backward
        How often it pays each cell's F and B; shape (cells,).
    hops_ms
        What it pays for sending.
    length_ms
        Its length at the point where it was found.
    """

    forward: Floats
    backward: Floats
    hops_ms: float
    length_ms: float


class Separator:
    """Finds paths that no cut of this run has stated yet."""

    def __init__(self, problem: Problem) -> None:
        graph = graph_of(problem)
        self._cells = problem.cells
        self._row_length = np.bincount(graph.stage, minlength=problem.stages).astype(np.int64)
        self._graph = (graph.stage, graph.price, graph.before, graph.giver, hop_times(problem, graph))
        self._known: set[bytes] = set()

    def forget(self) -> None:
        """Find every path again, also those that were found before."""
        self._known.clear()

    def paths(self, forward_ms: Floats, backward_ms: Floats, windows: int, above_ms: float) -> list[PathCut]:
        """
        Long paths at given cell times, longest first.

        Parameters
        ----------
        windows
            Parts of each stage's order of which one path each is wanted.
        above_ms
            Paths up to this length are left out.
        """
        cells = self._cells
        durations = np.concatenate([forward_ms, backward_ms, backward_ms - forward_ms, forward_ms])
        most = len(self._row_length) * windows
        uses, hops, totals = np.empty((most, len(OpKind) * cells)), np.empty(most), np.empty(most)
        found = long_paths(*self._graph, durations, self._row_length, windows, uses, hops, totals)
        cuts = []
        for k in np.argsort(-totals[:found], kind="stable"):
            f, b, i, w = uses[k].reshape(len(OpKind), cells)
            cut = PathCut(
                forward=f - i + w, backward=b + i, hops_ms=float(hops[k]), length_ms=float(totals[k])
            )
            name = cut.forward.tobytes() + cut.backward.tobytes()
            if cut.length_ms > above_ms and name not in self._known:
                self._known.add(name)
                cuts.append(cut)
        return cuts
