"""The compiled passes over a graph: when each op ends, and which path says so."""

from sapp_ppb.simulator.kernel import kernel


@kernel
def longest_path(before, price, giver, hop_ms, durations_ms, end_ms):  # type: ignore[no-untyped-def]
    """
    Time every op in one pass; linear in ops.

    Parameters
    ----------
    before, price, giver
        Columns of the graph; shape (ops,).
    hop_ms
        What each op's input takes to arrive; shape (ops,).
    durations_ms
        The price list; shape (kinds x cells,).
    end_ms
        Filled here: when each op ends; shape (ops,).

    Returns
    -------
    float
        The makespan.
    """
    makespan = 0.0
    for i in range(len(price)):
        start = 0.0
        if before[i] >= 0:
            start = end_ms[before[i]]
        if giver[i] >= 0:
            arrival = end_ms[giver[i]] + hop_ms[i]
            if arrival > start:
                start = arrival
        end = start + durations_ms[price[i]]
        end_ms[i] = end
        if end > makespan:
            makespan = end
    return makespan


@kernel
def longest_paths(before, price, giver, hop_ms, price_lists, end_ms, makespans):  # type: ignore[no-untyped-def]
    """Time many price lists, shape (lists, kinds x cells), into makespans, shape (lists,)."""
    for k in range(len(price_lists)):
        makespans[k] = longest_path(before, price, giver, hop_ms, price_lists[k], end_ms)


@kernel
def trace_back(at, price, before, giver, hop_ms, end_ms, durations_ms, uses):  # type: ignore[no-untyped-def]
    """
    Follow a longest path from op ``at`` back to the start.

    ``uses``, shape (kinds x cells,), receives how often the path pays each
    price.  Returns the hops it pays, in milliseconds.
    """
    uses[:] = 0.0
    hops = 0.0
    while at >= 0:
        uses[price[at]] += 1.0
        start = end_ms[at] - durations_ms[price[at]]
        previous, source = before[at], giver[at]
        waits_for_stage = previous >= 0 and (source < 0 or end_ms[previous] >= end_ms[source] + hop_ms[at])
        if start <= 0.0 and (previous < 0 and source < 0):
            return hops
        if waits_for_stage:
            at = previous
        else:
            if source >= 0:
                hops += hop_ms[at]
            at = source
    return hops


@kernel
def counted_path(  # type: ignore[no-untyped-def]
    before, price, giver, hop_ms, durations_ms, one_op, one_hop, end_ms, ops, hops
):  # fmt: skip
    """
    Time every op as ``longest_path`` does, and count the ops and hops of a path that decides each.

    Parameters
    ----------
    one_op
        1 for every price that is of an op, 0 for one that is of none; shape (kinds x cells,).
    one_hop
        1 for every op whose input crosses an edge, 0 for the others; shape (ops,).
    end_ms, ops, hops
        Filled here: when each op ends, and the ops and hops up to there; shape (ops,).

    Returns
    -------
    int
        The op that ends last.
    """
    last = 0
    for i in range(len(price)):
        start, so_many, so_far = 0.0, 0.0, 0.0
        if before[i] >= 0:
            start, so_many, so_far = end_ms[before[i]], ops[before[i]], hops[before[i]]
        if giver[i] >= 0 and end_ms[giver[i]] + hop_ms[i] > start:
            start = end_ms[giver[i]] + hop_ms[i]
            so_many, so_far = ops[giver[i]], hops[giver[i]] + one_hop[i]
        end_ms[i] = start + durations_ms[price[i]]
        ops[i], hops[i] = so_many + one_op[price[i]], so_far
        if end_ms[i] > end_ms[last]:
            last = i
    return last
