"""
The compiled passes over all runs of layers of a chain, for problems with one chunk a stage.

Tables of runs have the shape (S, N + 1, N + 1), [stage][first layer][layer after the last], and
are infinite where a stage may not hold a run.  ``sizes`` are M, S and whether the order is 1F1B.
"""

import numpy as np

from sapp_ppb.simulator.kernel import kernel


@kernel
def price_runs(  # type: ignore[no-untyped-def]
    kind, per_entry, step_start, rank, steps, row_start, rows, per_stage, most, forward_ms, total_ms
):
    """
    Price every run that a stage has memory and time for; O(S N L) for runs of up to L layers.

    Of a run the layers begin at their fastest types, and take steps along their lower hulls,
    the cheapest first, until they fit.  A longer run holds and takes more, so the first that
    does not do ends those that begin with its layer.

    Parameters
    ----------
    per_entry
        Forward, parameters, and time and memory of the fastest type; shape (4, entries).
    step_start, rank, steps
        Where the steps of each entry begin, the place of each among all, and all of them with the
        cheapest first: milliseconds a MB, MB saved, and entry; shape (3, steps).
    row_start, rows
        Where the rows of each stage begin; room without parameters, and live micro-batches.
    per_stage
        Fixed forward, backward and activation, and longest time wanted; shape (4, S).
    most
        Fewest layers, and the only run allowed, as first layer and layer after the last, or -1;
        shape (3, S).
    forward_ms, total_ms
        Filled here.

    Returns
    -------
    bool
        Whether a run was left out because it takes longer than is wanted.
    """
    layers, stages = len(kind), len(row_start) - 1
    number, active = np.zeros(len(step_start) - 1, np.int64), np.empty(steps.shape[1], np.int64)
    going, cut = np.empty(stages, np.bool_), False
    for first in range(layers + 1):
        number[:], going[:] = 0, True
        left, forward, parameters, least_ms, held_mb = 0, 0.0, 0.0, 0.0, 0.0
        for last in range(first, layers + 1):
            if last > first:
                k = kind[last - 1]
                if number[k] == 0:
                    left = _merged(rank[step_start[k] : step_start[k + 1]], active, left)
                number[k] += 1
                forward += per_entry[0, k]
                parameters += per_entry[1, k]
                least_ms += per_entry[2, k]
                held_mb += per_entry[3, k]
            for s in range(stages):
                allowed = most[1, s] < 0 or (most[1, s] == first and most[2, s] == last)
                if not going[s] or not allowed or last - first < most[0, s]:
                    continue
                share = np.inf
                for row in range(row_start[s], row_start[s + 1]):
                    share = min(share, (rows[0, row] - parameters) / rows[1, row])
                share -= per_stage[2, s]
                over = held_mb - share
                backward = least_ms
                for at in range(left):
                    if over <= 0.0:
                        break
                    step = active[at]
                    relieved = min(over, number[int(steps[2, step])] * steps[1, step])
                    backward += relieved * steps[0, step]
                    over -= relieved
                run_ms = forward + per_stage[0, s]
                time_ms = run_ms + backward + per_stage[1, s]
                if over > 0.0:
                    going[s] = False
                elif time_ms > per_stage[3, s]:
                    going[s], cut = False, True
                else:
                    forward_ms[s, first, last], total_ms[s, first, last] = run_ms, time_ms
            if not going.any():
                break
    return cut


@kernel
def _merged(added, active, left):  # type: ignore[no-untyped-def]
    """Merge ascending numbers into the first ``left`` of a list; how many there are then."""
    for value in added:
        at = left
        while at > 0 and active[at - 1] > value:
            active[at] = active[at - 1]
            at -= 1
        active[at] = value
        left += 1
    return left


@kernel
def longest_family(t, f, before, after, stage, sizes, constants, extra_ms):  # type: ignore[no-untyped-def]
    """Greatest of LB1 to LB4 for a run of total time t and forward time f on a stage."""
    micro_batches, stages = sizes[0], sizes[1]
    crossing, worked, last_ms = constants[0], constants[1], constants[2]
    if not (np.isfinite(t) and np.isfinite(before) and np.isfinite(after)):
        return np.inf
    longest = max(crossing * before + worked * t + last_ms, worked * t + extra_ms)
    if sizes[2] == 0:
        return longest
    b, total, q = t - f, before + t + after, max(micro_batches - stages + stage, 0)
    longest = max(longest, total + (micro_batches - 1) * b + q * f + last_ms)
    longest = max(longest, total + (micro_batches - 1) * f + q * b + last_ms)
    if stage >= stages - micro_batches:
        longest = max(longest, total + after + q * t + last_ms)
    return longest


@kernel
def least_rest(usable, total_ms, ranges, speed, overhead_ms, rest):  # type: ignore[no-untyped-def]
    """Fill in the least time of stages s.. when they begin with layer i; shape (S + 1, N + 1)."""
    stages, size = total_ms.shape[0], total_ms.shape[1]
    rest[:, :] = np.inf
    rest[stages, size - 1] = 0.0
    for s in range(stages - 1, -1, -1):
        for first in range(size):
            best = np.inf
            for last in range(ranges[0, s, first], ranges[1, s, first]):
                if usable[s, first, last] and rest[s + 1, last] < np.inf:
                    best = min(
                        best, total_ms[s, first, last] / speed[s] + 2 * overhead_ms + rest[s + 1, last]
                    )
            rest[s, first] = best


@kernel
def reaches_end(  # type: ignore[no-untyped-def]
    forward_ms, total_ms, ranges, rest, speed, overhead_ms, sizes, constants, extra_ms, makespan_ms
):
    """Whether some chain of runs keeps the families within a makespan; ``ranges`` hold the finite runs."""
    stages, size = total_ms.shape[0], total_ms.shape[1]
    spent, then = np.full(size, np.inf), np.empty(size)
    spent[0] = 0.0
    for s in range(stages):
        then[:] = np.inf
        for first in range(size):
            if spent[first] == np.inf:
                continue
            for last in range(ranges[0, s, first], ranges[1, s, first]):
                t = total_ms[s, first, last] / speed[s] + 2 * overhead_ms
                f = forward_ms[s, first, last] / speed[s] + overhead_ms
                longest = longest_family(
                    t, f, spent[first], rest[s + 1, last], s, sizes, constants, extra_ms[s]
                )
                if longest <= makespan_ms:
                    then[last] = min(then[last], spent[first] + t)
        spent[:] = then
    return spent[size - 1] < np.inf


@kernel
def finite_ranges(total_ms, ranges):  # type: ignore[no-untyped-def]
    """Fill in where the finite runs from each layer begin and end; shape (2, S, N + 1)."""
    stages, size = total_ms.shape[0], total_ms.shape[1]
    for s in range(stages):
        for first in range(size):
            ranges[0, s, first] = ranges[1, s, first] = first
            found = False
            for last in range(first, size):
                if total_ms[s, first, last] < np.inf:
                    if not found:
                        ranges[0, s, first] = last
                    found = True
                    ranges[1, s, first] = last + 1


@kernel
def prune_runs(  # type: ignore[no-untyped-def]
    usable, forward_ms, total_ms, ranges, rest, speed, overhead_ms, sizes, constants, extra_ms, makespan_ms
):
    """Drop the runs with which no chain keeps the families within a makespan; how many that were."""
    stages, size = total_ms.shape[0], total_ms.shape[1]
    spent, then, dropped = np.full(size, np.inf), np.empty(size), 0
    spent[0] = 0.0
    for s in range(stages):
        then[:] = np.inf
        for first in range(size):
            for last in range(ranges[0, s, first], ranges[1, s, first]):
                if not usable[s, first, last]:
                    continue
                t = total_ms[s, first, last] / speed[s] + 2 * overhead_ms
                f = forward_ms[s, first, last] / speed[s] + overhead_ms
                longest = longest_family(
                    t, f, spent[first], rest[s + 1, last], s, sizes, constants, extra_ms[s]
                )
                if longest <= makespan_ms:
                    then[last] = min(then[last], spent[first] + t)
                else:
                    usable[s, first, last] = False
                    dropped += 1
        spent[:] = then
    return dropped
