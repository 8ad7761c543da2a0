"""
The most a stage holds, as a maximum of few linear rows.

With a fixed order the live micro-batches of each chunk after each op do not
depend on time.  The peak is therefore the maximum over those rows of live counts
times activations, and a row that another row, or a mix of two, dominates can
never be the maximum alone.  Where the working set of recomputation counts, a
backward's rows come on top: a layer that is recomputed holds again, while its
chunk's backward runs, what it had let go.

A sequence chunk holds 1/k of its micro-batch's activations, its keys and values
among them.  Chunks go forward 0 to k-1 and backward k-1 to 0, so those of all
chunks before one are live for as long as it needs them, and nothing else is held.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.schedules import OpKind, Schedule

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveRows:
    """
    Live micro-batches of one stage where they can be most.

    Attributes
    ----------
    rows
        Live micro-batches of each chunk, a sequence chunk counted as 1/k; shape (rows, V).
    ops
        Index within the stage's order of the first op that reaches each row; shape (rows,).
    again
        Chunk whose working set each row holds besides, -1 for none; shape (rows,).
    """

    rows: Floats
    ops: NDArray[np.int64]
    again: NDArray[np.int64]

    def totals(self, activation_mb: Floats, again_mb: Floats) -> Floats:
        """
        MB of every row, given what a micro-batch and the working set hold in each chunk.

        Parameters
        ----------
        activation_mb, again_mb
            Shape (V,).

        Returns
        -------
        ndarray
            Shape (rows,).
        """
        return np.asarray(self.rows @ activation_mb + np.append(again_mb, 0.0)[self.again])


@lru_cache(maxsize=8)
def live_rows(schedule: Schedule, working_set: bool = False) -> tuple[LiveRows, ...]:
    """
    Rows of live micro-batches that can be the peak, for every stage.

    F adds one at its start; B, or W when the backward is split, frees it at its end.
    In an overlapped pair what F adds is there before B frees anything.

    Parameters
    ----------
    working_set
        Whether a chunk's backward holds more than its live micro-batches.
    """
    return tuple(_stage_rows(schedule, stage, working_set) for stage in range(schedule.stages))


def _stage_rows(schedule: Schedule, stage: int, working_set: bool) -> LiveRows:
    kind, cell = np.array([op[:2] for op in schedule.rows[stage]], dtype=np.int64).T
    chunk, ops = cell // schedule.stages, schedule.rows[stage]
    change = np.zeros((len(ops), schedule.chunks))
    step = (kind == OpKind.F).astype(float) - (kind == OpKind.B) - (kind == OpKind.W)
    change[np.arange(len(ops)), chunk] = step
    live = np.cumsum(change, axis=0)
    # Between two forwards live counts only fall, so peaks stand right after a forward.
    live /= schedule.sequence_chunks
    groups = [_kept_rows(live, np.flatnonzero(kind == OpKind.F), -1)]
    if working_set:
        # A backward frees at its end, so what it frees is live while it runs.
        before = live - np.minimum(change, 0.0) / schedule.sequence_chunks
        groups += [
            _kept_rows(before, np.flatnonzero((kind != OpKind.F) & (chunk == number)), number)
            for number in range(schedule.chunks)
        ]
        groups[0] = _not_reached(groups[0], groups[1:])
    return LiveRows(
        rows=np.concatenate([group.rows for group in groups]),
        ops=np.concatenate([group.ops for group in groups]),
        again=np.concatenate([group.again for group in groups]),
    )


def _kept_rows(live: Floats, at: NDArray[np.int64], again: int) -> LiveRows:
    """Rows at some ops that no other of them, or mix of two, dominates."""
    rows, first = np.unique(live[at], axis=0, return_index=True)
    best = _without_dominated(rows)
    kept = _without_mixed(rows, _without_passed(rows, sorted(best, key=first.__getitem__)))
    return LiveRows(rows=rows[kept], ops=at[first[kept]], again=np.full(len(kept), again))


def _not_reached(plain: LiveRows, others: list[LiveRows]) -> LiveRows:
    """Rows that none of the others reaches, which hold a working set besides."""
    reached = [any((other.rows >= row).all(axis=1).any() for other in others) for row in plain.rows]
    kept = ~np.array(reached)
    return LiveRows(rows=plain.rows[kept], ops=plain.ops[kept], again=plain.again[kept])


def _without_dominated(rows: Floats) -> list[int]:
    """Find the rows that no other row reaches in every chunk; rows are distinct."""
    return [
        index
        for index, row in enumerate(rows)
        if not np.any(np.all(rows >= row, axis=1) & (np.arange(len(rows)) != index))
    ]


def _without_passed(rows: Floats, kept: list[int]) -> list[int]:
    """
    Drop rows that a mix of their neighbours in time reaches; linear in rows.

    A stage trades one chunk for another step by step, so most rows lie between
    two others, and few are left for the search through all pairs.
    """
    left: list[int] = []
    for index in kept:
        while len(left) > 1 and _mix_reaches(rows[left[-2]], rows[index], rows[left[-1]]):
            left.pop()
        left.append(index)
    return sorted(left)


def _without_mixed(rows: Floats, kept: list[int]) -> list[int]:
    """Drop, one after the other, the rows that a mix of two kept ones reaches."""
    for index in list(kept):
        others = [other for other in kept if other != index]
        if any(_mix_reaches(rows[a], rows[b], rows[index]) for a in others for b in others if a < b):
            kept = others
    return kept


def _mix_reaches(a: Floats, b: Floats, row: Floats) -> bool:
    """Whether some share x of a and 1 - x of b is at least the row in every chunk."""
    low, high = 0.0, 1.0
    for ours, theirs, wanted in zip(a, b, row, strict=True):
        rise = ours - theirs
        if rise == 0.0:
            if theirs < wanted:
                return False
        elif rise > 0.0:
            low = max(low, (wanted - theirs) / rise)
        else:
            high = min(high, (wanted - theirs) / rise)
    return low <= high
