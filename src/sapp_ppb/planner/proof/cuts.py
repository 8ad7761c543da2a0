"""
Paths as cuts: every path through the order is a lower bound linear in the plan.

    (C1)  T >= fixed(p) + sum over cells of u(p, c) F_c + w(p, c) B_c + z(p, c) W_c

for every path p, F_c, B_c and W_c being a cell's forward and backward time and the part
of the latter that is weight gradients, and fixed what its hops and the overheads of its ops
take.  An I costs B - W, so it counts in w and, negative, in z; ``price_rule`` says what
every kind of op counts in.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.planner.proof.cut_kernel import long_paths
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.graph import graph_of
from sapp_ppb.simulator.price import OVERHEAD, TIMES, price_lists, price_rule
from sapp_ppb.simulator.timeline import hop_times

Floats = NDArray[np.float64]

_SAME = 1e-9  # two times are equal within this share


@dataclass(frozen=True, kw_only=True, eq=False)
class PathCut:
    """
    One path.

    Attributes
    ----------
    uses
        How often it pays each cell's F, B and W; shape (3, cells).
    fixed_ms
        What it pays whatever the cells' times are: for sending, and the overhead of every op.
    length_ms
        Its length at the point where it was found.
    """

    uses: Floats
    fixed_ms: float
    length_ms: float


class Separator:
    """Finds paths that no cut of this run has stated yet."""

    def __init__(self, problem: Problem) -> None:
        graph = graph_of(problem)
        self._rule = price_rule(problem)
        self._row_length = np.bincount(graph.stage, minlength=problem.stages).astype(np.int64)
        self._graph = (graph.stage, graph.price, graph.before, graph.giver, hop_times(problem, graph))
        self._known: dict[bytes, float] = {}

    def forget(self) -> None:
        """Find every path again, also those that were found before."""
        self._known.clear()

    def paths(self, times_ms: Floats, windows: int, above_ms: float) -> list[PathCut]:
        """
        Long paths at given cell times, longest first.

        Parameters
        ----------
        times_ms
            F, B and W; shape (3, cells).
        windows
            Parts of each stage's order of which one path each is wanted.
        above_ms
            Paths up to this length are left out.
        """
        durations = price_lists(self._rule, times_ms[None])[0]
        most = len(self._row_length) * windows
        uses, hops, totals = np.empty((most, len(durations))), np.empty(most), np.empty(most)
        found = long_paths(*self._graph, durations, self._row_length, windows, uses, hops, totals)
        cuts = []
        for k in np.argsort(-totals[:found], kind="stable"):
            paid = uses[k].reshape(self._rule.shape[:2])
            folded = np.einsum("kc,kcq->qc", paid, self._rule[:, :, TIMES])
            fixed_ms = float(hops[k]) + float((paid * self._rule[:, :, OVERHEAD]).sum())
            cut = PathCut(uses=folded, fixed_ms=fixed_ms, length_ms=float(totals[k]))
            name = folded.tobytes()
            # Paths through the same ops may end with what different stages do after their last one.
            known_ms = self._known.get(name, -math.inf) + _SAME * cut.length_ms
            if cut.length_ms > above_ms and fixed_ms > known_ms:
                self._known[name] = fixed_ms
                cuts.append(cut)
        return cuts
