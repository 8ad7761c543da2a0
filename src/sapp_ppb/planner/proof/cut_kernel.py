"""The compiled separation: long paths through ops of every stage, as linear functions of prices."""

import numpy as np

from sapp_ppb.simulator.kernel import kernel
from sapp_ppb.simulator.path_kernel import longest_path


@kernel
def long_paths(  # type: ignore[no-untyped-def]
    stage, price, before, giver, hop_ms, durations_ms, row_length, windows, uses, hops, totals
):
    """
    Find the longest path through the most critical op of each window of each stage.

    A window is one of ``windows`` equal parts of a stage's order.  The path through
    an op is the longest path that ends with it, joined to the longest that starts
    behind it; linear in ops.

    Parameters
    ----------
    stage, price, before, giver, hop_ms, durations_ms
        The graph, and what its ops and hops take.
    row_length
        Ops of each stage; shape (S,).
    uses, hops, totals
        Filled here: how often each path pays each price, shape (S x windows, prices),
        the hops it pays in milliseconds, and its length; shape (S x windows,).

    Returns
    -------
    int
        Paths found.
    """
    ops, stages = len(price), len(row_length)
    end, tail = np.empty(ops), np.zeros(ops)
    longest_path(before, price, giver, hop_ms, durations_ms, end)
    after = np.full(ops, -1, np.int64)
    by_hop = np.zeros(ops, np.bool_)
    for i in range(ops - 1, -1, -1):
        weight = tail[i] + durations_ms[price[i]]
        if before[i] >= 0 and (after[before[i]] < 0 or weight > tail[before[i]]):
            tail[before[i]], after[before[i]], by_hop[before[i]] = weight, i, False
        if giver[i] >= 0 and (after[giver[i]] < 0 or weight + hop_ms[i] > tail[giver[i]]):
            tail[giver[i]], after[giver[i]], by_hop[giver[i]] = weight + hop_ms[i], i, True
    best = np.full((stages, windows), -1, np.int64)
    seen = np.zeros(stages, np.int64)
    for i in range(ops):
        s = stage[i]
        window = seen[s] * windows // row_length[s]
        seen[s] += 1
        known = best[s, window]
        if known < 0 or end[i] + tail[i] > end[known] + tail[known]:
            best[s, window] = i
    found = 0
    for s in range(stages):
        for window in range(windows):
            op = best[s, window]
            if op < 0:
                continue
            uses[found, :] = 0.0
            totals[found] = end[op] + tail[op]
            hops[found] = 0.0
            at = op
            while at >= 0:
                uses[found, price[at]] += 1.0
                previous, source = before[at], giver[at]
                if source >= 0 and (previous < 0 or end[source] + hop_ms[at] > end[previous]):
                    hops[found] += hop_ms[at]
                    at = source
                else:
                    at = previous
            at = op
            while after[at] >= 0:
                if by_hop[at]:
                    hops[found] += hop_ms[after[at]]
                at = after[at]
                uses[found, price[at]] += 1.0
            found += 1
    return found
