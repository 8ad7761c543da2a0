"""
Times of layers out of the spans in which they run.

A span of a layer may reach from one micro-batch into the next, over a wait for the
neighbouring stage, so a layer's time is how long the device works inside its spans;
what of it is backward is told by the spans of the gradients.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs.measured import NO_SPANS, ScopeTrace, Spans

Floats = NDArray[np.float64]
_UNSTABLE_STEPS = 2  # the first steps compile and warm up


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerTimes:
    """
    Times of one layer in one trace: for one micro-batch, one value a step.

    Attributes
    ----------
    name
        Its name in the trace.
    forward_ms, backward_ms
        Milliseconds of a micro-batch; shape (steps,).
    again_ms
        What doing its forward again takes, which is in neither; shape (steps,).
    """

    name: str
    forward_ms: Floats
    backward_ms: Floats
    again_ms: Floats


def kept_steps(trace: ScopeTrace) -> tuple[Floats, int]:
    """
    Edges of the steps that count, and how many were dropped.

    The first two are dropped when there are more.  Without marks the whole trace is one step.

    Returns
    -------
    tuple
        Edges in microseconds, one more than steps; and the number of steps left out.
    """
    marks = np.asarray(trace.steps_us, dtype=np.float64)
    if len(marks) < 2:
        return np.array([-np.inf, np.inf]), 0
    steps = len(marks) - 1
    dropped = _UNSTABLE_STEPS if steps > _UNSTABLE_STEPS else 0
    return marks[dropped:], dropped


def layer_times(trace: ScopeTrace, micro_batches: int) -> list[LayerTimes]:
    """
    Find the times of every layer of a trace.

    Parameters
    ----------
    micro_batches
        Micro-batches of a step: how often a step runs each layer.

    Notes
    -----
    O(n log n) in spans, and O(log n) more for every span of a layer.

    Examples
    --------
    >>> def spans(*pairs):
    ...     start, end = np.array(pairs, dtype=float).T
    ...     return Spans(start_us=start, end_us=end)
    >>> trace = ScopeTrace(source="x", layers={"0-Dec": spans((0, 9000))}, gradients=spans((5000, 9000)),
    ...                    busy=spans((0, 2000), (5000, 9000)))
    >>> times = layer_times(trace, micro_batches=1)[0]  # works 0-2 ms forward and 5-9 ms backward
    >>> times.forward_ms.tolist(), times.backward_ms.tolist()
    ([2.0], [4.0])
    """
    edges, _ = kept_steps(trace)
    clocks = () if trace.backwards is not None else _clocks(trace)
    found = []
    for name, spans in trace.layers.items():
        if trace.backwards is not None:
            both = (spans, trace.backwards.get(name, NO_SPANS), NO_SPANS)
            parts = [_per_step(lambda at: at, union(part), edges) for part in both]
        else:
            parts = [_per_step(clock, union(spans), edges) for clock in clocks]
        forward, backward, again = (part / 1000 / micro_batches for part in parts)
        found.append(LayerTimes(name=name, forward_ms=forward, backward_ms=backward, again_ms=again))
    return found


def _clocks(trace: ScopeTrace) -> tuple[Callable[[Floats], Floats], ...]:
    """Work done until a time: forward, backward, forward again; each a function of microseconds."""
    everything = [*trace.layers.values(), trace.gradients, trace.again]
    busy = trace.busy
    sets = [spans for spans in [*everything, *([busy] if busy is not None else [])] if len(spans)]
    edges = np.unique(np.concatenate([part for spans in sets for part in (spans.start_us, spans.end_us)]))
    middles = (edges[1:] + edges[:-1]) / 2
    works = np.ones(len(middles), dtype=bool) if busy is None else _inside(busy, middles)
    again = _inside(trace.again, middles)
    gradients = _inside(trace.gradients, middles) & ~again
    lengths = np.diff(edges)

    def clock(counts: NDArray[np.bool_]) -> Callable[[Floats], Floats]:
        done = np.concatenate([[0.0], np.cumsum(lengths * counts)])
        return lambda at: np.interp(at, edges, done)

    return clock(works & ~gradients & ~again), clock(works & gradients), clock(works & again)


def _inside(spans: Spans, at_us: Floats) -> NDArray[np.bool_]:
    """Whether each time lies in a span; spans may overlap."""
    begun = np.searchsorted(np.sort(spans.start_us), at_us, side="right")
    ended = np.searchsorted(np.sort(spans.end_us), at_us, side="right")
    return np.asarray(begun > ended)


def union(spans: Spans) -> Spans:
    """
    Merge spans that overlap or touch.

    Examples
    --------
    >>> merged = union(Spans(start_us=np.array([5.0, 0.0, 2.0]), end_us=np.array([6.0, 2.0, 3.0])))
    >>> merged.start_us.tolist(), merged.end_us.tolist()
    ([0.0, 5.0], [3.0, 6.0])
    """
    if not len(spans):
        return spans
    order = np.argsort(spans.start_us, kind="stable")
    start, end = spans.start_us[order], np.maximum.accumulate(spans.end_us[order])
    first = np.concatenate([[True], start[1:] > end[:-1]])
    last = np.concatenate([first[1:], [True]])
    return Spans(start_us=start[first], end_us=end[last])


def _per_step(clock: Callable[[Floats], Floats], spans: Spans, edges: Floats) -> Floats:
    """Sum what a clock counts inside disjoint spans, for each step."""
    totals = []
    for begins, ends in pairwise(edges):
        start, end = np.clip(spans.start_us, begins, ends), np.clip(spans.end_us, begins, ends)
        totals.append(float((clock(end) - clock(start)).sum()))
    return np.array(totals)
