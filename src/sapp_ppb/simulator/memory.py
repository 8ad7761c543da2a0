"""
The most a stage holds, as a maximum of few linear rows.

With a fixed order the live micro-batches of each chunk after each op do not
depend on time.  The peak is therefore the maximum over those rows of live counts
times activations, and a row that another row, or a mix of two, dominates can
never be the maximum alone.  Where the working set of recomputation counts, a
backward's rows come on top: a layer that is recomputed holds again, while its
chunk's backward runs, what it had let go.  So do the rows of ops that need memory of
their own while they run, such as those of a cell with the logits of an output.  The
layers of an op run one after the other, so it never needs both at once.

A sequence chunk holds 1/k of its micro-batch's activations, its keys and values
among them.  Chunks go forward 0 to k-1 and backward k-1 to 0, so those of all
chunks before one are live for as long as it needs them, and nothing else is held.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.problem import Problem
from sapp_ppb.schedules import OpKind, Schedule

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
    transient_mb
        What the layers of the row's own op need for a moment, MB; shape (rows,).
    """

    rows: Floats
    ops: Ints
    again: Ints
    transient_mb: Floats

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
        return np.asarray(
            self.rows @ activation_mb + np.append(again_mb, 0.0)[self.again] + self.transient_mb
        )


def problem_rows(problem: Problem, *, working_set: bool = True) -> tuple[LiveRows, ...]:
    """
    Rows of live micro-batches that can be the peak of every stage of a problem.

    Parameters
    ----------
    working_set
        Whether the working set counts where the problem asks for it; without, the rows hold
        less than a plan does.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1)
    >>> output = layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=1, transient_mb=30)
    >>> model = Model(name="tiny", layers=(body, output))
    >>> last = problem_rows(Problem(model=model, stages=2, micro_batches=4))[-1]
    >>> last.rows.tolist(), last.transient_mb.tolist()  # 1F1B: one micro-batch is live on the last stage
    ([[1.0]], [30.0])
    """
    return live_rows(
        problem.order,
        working_set and problem.recompute_working_set,
        transients_mb(problem),
        overlapping=problem.overlap_factor > 0.0,
    )


def transients_mb(problem: Problem) -> tuple[float, ...]:
    """
    Memory that an op of each cell needs while it runs, MB; shape (cells,).

    Of the layers of a cell the one that needs most counts, as they run one after the other; a
    sequence chunk needs 1/k of it.
    """
    needed = [0.0] * problem.cells
    for cell, layers in ((0, problem.model.heads), (-1, problem.model.tails)):
        most = max((layer.transient_mb for layer in layers), default=0.0)
        needed[cell] = max(needed[cell], most / problem.sequence_chunks)
    return tuple(needed)


@lru_cache(maxsize=8)
def live_rows(
    schedule: Schedule,
    working_set: bool = False,
    transient_mb: tuple[float, ...] = (),
    *,
    overlapping: bool = False,
) -> tuple[LiveRows, ...]:
    """
    Rows of live micro-batches that can be the peak, for every stage.

    F adds one at its start; B, or W when the backward is split, frees it at its end.
    In an overlapped pair what F adds is there before B frees anything.

    Parameters
    ----------
    working_set
        Whether a chunk's backward holds more than its live micro-batches.
    transient_mb
        What an op of each cell needs while it runs, MB; shape (cells,), or empty for nothing.
    overlapping
        Whether the ops of a pair run at once, and so need theirs at once.
    """
    needed = np.array(transient_mb or (0.0,) * schedule.cells)
    return tuple(
        _stage_rows(schedule, stage, working_set, needed, overlapping) for stage in range(schedule.stages)
    )


def _stage_rows(
    schedule: Schedule, stage: int, working_set: bool, transient_mb: Floats, overlapping: bool
) -> LiveRows:
    kind, cell = np.array([op[:2] for op in schedule.rows[stage]], dtype=np.int64).T
    chunk, ops = cell // schedule.stages, schedule.rows[stage]
    change = np.zeros((len(ops), schedule.chunks))
    step = (kind == OpKind.F).astype(float) - (kind == OpKind.B) - (kind == OpKind.W)
    change[np.arange(len(ops)), chunk] = step
    # A backward frees at its end, so what it frees is live while it runs.
    live = (np.cumsum(change, axis=0) - np.minimum(change, 0.0)) / schedule.sequence_chunks
    forward, own_mb, beside_mb = kind == OpKind.F, transient_mb[cell], np.zeros(len(ops))
    if overlapping:
        pairs = np.array(schedule.pairs_of(stage), dtype=np.int64)
        beside_mb[pairs + 1] = own_mb[pairs]
    # Between two forwards live counts only fall, so without transients peaks stand right after a forward.
    groups = _grouped(live, forward | (own_mb + beside_mb > 0.0), np.full(len(ops), -1), own_mb + beside_mb)
    if working_set:
        groups += _grouped(live, ~forward, chunk, beside_mb)
    return _joined([_not_reached(group, groups) for group in groups])


def _grouped(live: Floats, where: NDArray[np.bool_], again: Ints, transient_mb: Floats) -> list[LiveRows]:
    """Rows at some ops, those together that hold the same besides."""
    ops = np.flatnonzero(where)
    besides, group = np.unique(np.column_stack([again, transient_mb])[ops], axis=0, return_inverse=True)
    return [
        _kept_rows(live, ops[group.ravel() == index], int(chunk), float(mb))
        for index, (chunk, mb) in enumerate(besides)
    ]


def _kept_rows(live: Floats, at: Ints, again: int, transient_mb: float) -> LiveRows:
    """Rows at some ops that no other of them, or mix of two, dominates."""
    rows, first = np.unique(live[at], axis=0, return_index=True)
    best = _without_dominated(rows)
    kept = _without_mixed(rows, _without_passed(rows, sorted(best, key=first.__getitem__)))
    return LiveRows(
        rows=rows[kept],
        ops=at[first[kept]],
        again=np.full(len(kept), again),
        transient_mb=np.full(len(kept), transient_mb),
    )


def _not_reached(group: LiveRows, groups: list[LiveRows]) -> LiveRows:
    """Rows of a group that none of those reaches that hold as much besides, or more."""
    others = [other for other in groups if other is not group and _holds_more(other, group)]
    reached = [any((other.rows >= row).all(axis=1).any() for other in others) for row in group.rows]
    kept = ~np.array(reached, dtype=np.bool_)
    return LiveRows(
        rows=group.rows[kept],
        ops=group.ops[kept],
        again=group.again[kept],
        transient_mb=group.transient_mb[kept],
    )


def _holds_more(one: LiveRows, other: LiveRows) -> bool:
    """Whether the rows of one group hold at least as much besides as those of another."""
    chunk, mb = other.again[0], other.transient_mb[0]
    return bool(chunk in (one.again[0], -1) and one.transient_mb[0] >= mb)


def _joined(groups: list[LiveRows]) -> LiveRows:
    return LiveRows(
        rows=np.concatenate([group.rows for group in groups]),
        ops=np.concatenate([group.ops for group in groups]),
        again=np.concatenate([group.again for group in groups]),
        transient_mb=np.concatenate([group.transient_mb for group in groups]),
    )


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
