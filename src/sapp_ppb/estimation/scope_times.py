"""
Times of layers out of the spans in which they run.

A span of a layer may reach from one micro-batch into the next, over a wait for the
neighbouring stage, so a layer's time is how long the device works inside its spans;
what of it is backward is told by the spans of the gradients.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs.measured import NO_SPANS, ScopeTrace, Spans

Floats = NDArray[np.float64]
_SPANS_A_BLOCK = 50_000  # of the longest list of spans: what is worked on at a time
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
    layers = {name: union(spans) for name, spans in trace.layers.items()}
    backwards = None
    if trace.backwards is not None:
        backwards = {name: union(spans) for name, spans in trace.backwards.items()}
    busy = None if trace.busy is None or backwards is not None else _sorted(trace.busy)
    gradients, again = _sorted(trace.gradients), _sorted(trace.again)
    totals = {name: np.zeros((3, len(edges) - 1)) for name in layers}
    for step, begins, ends in _blocks(trace, edges):
        clocks = _clocks(
            None if busy is None else _inside_of(busy, begins, ends),
            _inside_of(gradients, begins, ends),
            _inside_of(again, begins, ends),
        )
        for name, spans in layers.items():
            found = [_worked(clock, _inside_of(spans, begins, ends)) for clock in clocks]
            if backwards is not None:
                part = _inside_of(backwards.get(name, NO_SPANS), begins, ends)
                found[1] = float((part.end_us - part.start_us).sum())
            totals[name][:, step] += found
    return [
        LayerTimes(name=name, forward_ms=forward, backward_ms=backward, again_ms=again)
        for name, (forward, backward, again) in (
            (name, total / 1000 / micro_batches) for name, total in totals.items()
        )
    ]


def _blocks(trace: ScopeTrace, edges: Floats) -> Iterator[tuple[int, float, float]]:
    """Cut every step into stretches with not too many spans: step, begin and end in microseconds."""
    spans = [*trace.layers.values(), *(trace.backwards or {}).values(), trace.gradients, trace.again]
    spans += [trace.busy] if trace.busy is not None else []
    filled = [part for part in spans if len(part)]
    if not filled:
        return
    first = min(float(part.start_us.min()) for part in filled)
    last = max(float(part.end_us.max()) for part in filled)
    longest = max(filled, key=len)
    cuts = np.sort(longest.start_us[::_SPANS_A_BLOCK])
    for step, (begins, ends) in enumerate(pairwise(np.clip(edges, first, last).tolist())):
        inside = cuts[(cuts > begins) & (cuts < ends)].tolist()
        for low, high in pairwise([begins, *inside, ends]):
            yield step, low, high


def _inside_of(spans: Spans, begins_us: float, ends_us: float) -> Spans:
    """Parts of sorted spans that lie in a stretch of time; some may have no length."""
    last = int(np.searchsorted(spans.start_us, ends_us, side="left"))
    reach = np.maximum.accumulate(spans.end_us[:last]) if last else spans.end_us[:0]
    first = int(np.searchsorted(reach, begins_us, side="right"))
    return Spans(
        start_us=np.clip(spans.start_us[first:last], begins_us, ends_us),
        end_us=np.clip(spans.end_us[first:last], begins_us, ends_us),
    )


def _clocks(busy: Spans | None, gradients: Spans, again: Spans) -> tuple[Callable[[Floats], Floats], ...]:
    """Work done until a time: forward, backward, forward again; each a function of microseconds."""
    sets = [spans for spans in (busy, gradients, again) if spans is not None and len(spans)]
    if not sets:
        nothing = np.zeros_like
        return (nothing if busy is not None else lambda at: at), nothing, nothing
    ends = [part for spans in sets for part in (spans.start_us, spans.end_us)]
    edges = np.unique(np.concatenate(ends))
    middles = (edges[1:] + edges[:-1]) / 2
    works = np.ones(len(middles), dtype=bool) if busy is None else _inside(busy, middles)
    done_again = _inside(again, middles)
    backward = _inside(gradients, middles) & ~done_again
    lengths = np.diff(edges)

    def clock(counts: NDArray[np.bool_], *, outside: bool = False) -> Callable[[Floats], Floats]:
        done = np.concatenate([[0.0], np.cumsum(lengths * counts)])
        if not outside:
            return lambda at: np.interp(at, edges, done)
        # Without word of when the device works, it does so before the first edge and after the last.
        return lambda at: (
            np.interp(at, edges, done) + np.minimum(at - edges[0], 0.0) + np.maximum(at - edges[-1], 0.0)
        )

    forward = clock(works & ~backward & ~done_again, outside=busy is None)
    return forward, clock(works & backward), clock(works & done_again)


def _worked(clock: Callable[[Floats], Floats], spans: Spans) -> float:
    return float((clock(spans.end_us) - clock(spans.start_us)).sum())


def _inside(spans: Spans, at_us: Floats) -> NDArray[np.bool_]:
    """Whether each time lies in a span; spans may overlap."""
    begun = np.searchsorted(np.sort(spans.start_us), at_us, side="right")
    ended = np.searchsorted(np.sort(spans.end_us), at_us, side="right")
    return np.asarray(begun > ended)


def _sorted(spans: Spans) -> Spans:
    """Put spans in the order of their begin; those of a trace mostly are."""
    if np.all(spans.start_us[1:] >= spans.start_us[:-1]):
        return spans
    order = np.argsort(spans.start_us, kind="stable")
    return Spans(start_us=spans.start_us[order], end_us=spans.end_us[order])


def union(spans: Spans) -> Spans:
    """
    Merge spans that overlap or touch, in their order.

    Examples
    --------
    >>> merged = union(Spans(start_us=np.array([5.0, 0.0, 2.0]), end_us=np.array([6.0, 2.0, 3.0])))
    >>> merged.start_us.tolist(), merged.end_us.tolist()
    ([0.0, 5.0], [3.0, 6.0])
    """
    if not len(spans):
        return spans
    ordered = _sorted(spans)
    start, end = ordered.start_us, np.maximum.accumulate(ordered.end_us)
    first = np.concatenate([[True], start[1:] > end[:-1]])
    last = np.concatenate([first[1:], [True]])
    return Spans(start_us=start[first], end_us=end[last])
