"""
The compiled pool of known paths: a plan that one of them makes too slow need not be timed.

Every path is a lower bound linear in the cells' times, above what it pays for hops and
overheads; the paths that decided
earlier plans decide most later ones too.
"""

from sapp_ppb.simulator.kernel import kernel
from sapp_ppb.simulator.path_kernel import trace_back


@kernel
def pool_exceeds(costs, paths, path_fixed, used, order, threshold):  # type: ignore[no-untyped-def]
    """Whether a known path is already longer than the threshold; that path moves to the front."""
    cells = costs.shape[1]
    for k in range(used):
        path = order[k]
        total = path_fixed[path]
        for c in range(cells):
            total += paths[path, 0, c] * costs[0, c] + paths[path, 1, c] * costs[1, c]
            total += paths[path, 2, c] * costs[5, c]
        if total > threshold:
            for j in range(k, 0, -1):
                order[j] = order[j - 1]
            order[0] = path
            return True
    return False


@kernel
def set_durations(costs, rule, durations):  # type: ignore[no-untyped-def]
    """Write the price list of a state by a rule of shape (kinds, cells, 4), for F, B, W and overhead."""
    cells = costs.shape[1]
    for k in range(rule.shape[0]):
        for c in range(cells):
            durations[k * cells + c] = (
                rule[k, c, 0] * costs[0, c]
                + rule[k, c, 1] * costs[1, c]
                + rule[k, c, 2] * costs[5, c]
                + rule[k, c, 3]
            )


@kernel
def keep_path(  # type: ignore[no-untyped-def]
    graph_columns, hop_ms, rule, durations, ends, uses, paths, path_fixed, pool, order
):  # fmt: skip
    """Add the path that decided the last simulation to the pool, over the one used longest ago."""
    price, before, giver = graph_columns
    cells = paths.shape[2]
    last = 0
    for i in range(len(ends)):
        if ends[i] > ends[last]:
            last = i
    hops = trace_back(last, price, before, giver, hop_ms, ends, durations, uses)
    if pool[0] < len(order):
        slot = pool[0]
        order[slot] = slot
        pool[0] += 1
    slot = order[pool[0] - 1]
    for j in range(pool[0] - 1, 0, -1):
        order[j] = order[j - 1]
    order[0] = slot
    path_fixed[slot] = hops
    for k in range(rule.shape[0]):
        for c in range(cells):
            path_fixed[slot] += rule[k, c, 3] * uses[k * cells + c]
    for q in range(3):
        for c in range(cells):
            paths[slot, q, c] = 0.0
            for k in range(rule.shape[0]):
                paths[slot, q, c] += rule[k, c, q] * uses[k * cells + c]
