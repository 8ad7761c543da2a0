"""
The compiled inner loop of the search: move layers, repair memory, time, accept.

A state is a chain cut into cells (``bound``) and a recompute type or strategy for every
layer in chain order (``rec``).  A move shifts layers between cells or chooses the
recompute types of a stage anew; every stage that it touches is repaired at once,
so that only plans that fit are ever timed.  See ``tables.py`` for the meaning of
the arrays, which all kernels here share:

``costs``   forward, backward, activation, parameters of each cell, HEAD and TAIL included,
            its working set, and weight gradients
``fwd bwd wgt act par again usable kind``   of each layer in chain order; ``again`` is empty where
            the working set is left out
``live``    live micro-batches of each chunk in every row, and last the MB that it holds for a moment
``again_of``   chunk whose working set a row of live counts holds besides, -1 for none
``kept``    recomputed layers by kind, type and cell where they are fixed, empty elsewhere
``form``    rule of places (see ``place_kernel.py``), and whether types must be nested across kinds
"""

import math

import numpy as np

from sapp_ppb.planner.search.moves_kernel import propose
from sapp_ppb.planner.search.nested_kernel import keeps_order, nest_types
from sapp_ppb.planner.search.path_pool_kernel import keep_path, pool_exceeds, set_durations
from sapp_ppb.planner.search.place_kernel import place_types
from sapp_ppb.planner.search.random_kernel import uniform
from sapp_ppb.simulator.kernel import kernel
from sapp_ppb.simulator.path_kernel import longest_path

# Memory is compared within this share of the limit, as the simulator does, with room to spare.
_SLACK = 1e-10
# Excess that stands for a layer in a cell that bans its only type, in MB.
_STUCK = 1e15


@kernel
def fastest(layer, banned, bwd, usable):  # type: ignore[no-untyped-def]
    """Usable type with the shortest backward; -1 when the cell bans the only one."""
    best = -1
    for r in range(usable.shape[1]):
        if usable[layer, r] and r != banned and (best < 0 or bwd[layer, r] < bwd[layer, best]):
            best = r
    return best


@kernel
def sum_again(cell, bound, rec, again, costs):  # type: ignore[no-untyped-def]
    """Find the working set of a cell: of its recomputed layers the one that holds most again."""
    if again.shape[0] == 0:
        return
    costs[4, cell] = 0.0
    for i in range(bound[cell], bound[cell + 1]):
        costs[4, cell] = max(costs[4, cell], again[i, rec[i]])


@kernel
def sum_cell(  # type: ignore[no-untyped-def]
    cell, bound, rec, fwd, bwd, wgt, act, par, again, fixed, costs
):  # fmt: skip
    """Add up a cell from its layers."""
    for q in range(6):
        costs[q, cell] = fixed[q, cell]
    for i in range(bound[cell], bound[cell + 1]):
        costs[0, cell] += fwd[i]
        costs[1, cell] += bwd[i, rec[i]]
        costs[2, cell] += act[i, rec[i]]
        costs[3, cell] += par[i]
        costs[5, cell] += wgt[i]
    sum_again(cell, bound, rec, again, costs)


@kernel
def most_over(stage, cells_of, held, limit, live, again_of, row_start, costs):  # type: ignore[no-untyped-def]
    """Row of live counts that exceeds the limit most, and by how many MB (negative: slack)."""
    base = held[stage] - limit[stage]
    for cell in cells_of[stage]:
        base += costs[3, cell]
    worst, over = -1, -math.inf
    for row in range(row_start[stage], row_start[stage + 1]):
        total = base
        for v in range(cells_of.shape[1]):
            total += live[row, v] * costs[2, cells_of[stage, v]]
        if again_of[row] >= 0:
            total += costs[4, cells_of[stage, again_of[row]]]
        total += live[row, cells_of.shape[1]]
        if total > over:
            worst, over = row, total
    return worst, over


@kernel
def squeeze(  # type: ignore[no-untyped-def]
    stage, cells_of, bound, rec, banned, bwd, act, again, usable, kind, form, held, limit, live, again_of,
    row_start, costs, weight, noise, random,
):  # fmt: skip
    """Recompute more until the stage fits; returns MB that are still too much, 0 when it fits."""
    tolerance = _SLACK * limit[stage]
    while True:
        worst, over = most_over(stage, cells_of, held, limit, live, again_of, row_start, costs)
        if over <= tolerance:
            return 0.0
        best, chosen, best_score = -1, -1, 0.0
        for v in range(cells_of.shape[1]):
            cell = cells_of[stage, v]
            lives = live[worst, v]
            if lives <= 0.0:
                continue
            for i in range(bound[cell], bound[cell + 1]):
                now = rec[i]
                if i > bound[cell] and kind[i] == kind[i - 1] and now == rec[i - 1]:
                    continue
                for r in range(usable.shape[1]):
                    if not usable[i, r] or r == banned[cell] or act[i, r] >= act[i, now]:
                        continue
                    if form[4] and not keeps_order(i, r, cell, bound, rec, kind):
                        continue
                    gain = min(over, lives * (act[i, now] - act[i, r]))
                    extra = (bwd[i, r] - bwd[i, now]) * weight[v]
                    score = gain / max(extra, 1e-9) * (1.0 + noise * uniform(random))
                    if score > best_score:
                        best, chosen, best_score = i, r, score
        if best < 0:
            return over
        retype(best, chosen, stage, cells_of, bound, rec, bwd, act, again, costs)


@kernel
def relax(  # type: ignore[no-untyped-def]
    stage, cells_of, bound, rec, banned, bwd, act, again, usable, kind, form, held, limit, live, again_of,
    row_start, costs, weight, noise, random,
):  # fmt: skip
    """Recompute less while that still fits, the most time saved first."""
    while True:
        best, chosen, best_score = -1, -1, 0.0
        for v in range(cells_of.shape[1]):
            cell = cells_of[stage, v]
            for i in range(bound[cell], bound[cell + 1]):
                now = rec[i]
                if i > bound[cell] and kind[i] == kind[i - 1] and now == rec[i - 1]:
                    continue
                for r in range(usable.shape[1]):
                    if not usable[i, r] or r == banned[cell] or bwd[i, r] >= bwd[i, now]:
                        continue
                    score = (bwd[i, now] - bwd[i, r]) * weight[v] * (1.0 + noise * uniform(random))
                    if score <= best_score:
                        continue
                    if form[4] and not keeps_order(i, r, cell, bound, rec, kind):
                        continue
                    costs[2, cell] += act[i, r] - act[i, now]
                    rec[i] = r
                    sum_again(cell, bound, rec, again, costs)
                    over = most_over(stage, cells_of, held, limit, live, again_of, row_start, costs)[1]
                    costs[2, cell] -= act[i, r] - act[i, now]
                    rec[i] = now
                    sum_again(cell, bound, rec, again, costs)
                    if over <= _SLACK * limit[stage]:
                        best, chosen, best_score = i, r, score
        if best < 0:
            return
        retype(best, chosen, stage, cells_of, bound, rec, bwd, act, again, costs)


@kernel
def retype(  # type: ignore[no-untyped-def]
    layer, recompute, stage, cells_of, bound, rec, bwd, act, again, costs
):  # fmt: skip
    """Give a layer another type and its cell the difference."""
    cell = cells_of[stage, 0]
    for v in range(cells_of.shape[1]):
        candidate = cells_of[stage, v]
        if bound[candidate] <= layer < bound[candidate + 1]:
            cell = candidate
    costs[1, cell] += bwd[layer, recompute] - bwd[layer, rec[layer]]
    costs[2, cell] += act[layer, recompute] - act[layer, rec[layer]]
    rec[layer] = recompute
    sum_again(cell, bound, rec, again, costs)


@kernel
def keep_types(cell, bound, rec, kind, kept):  # type: ignore[no-untyped-def]
    """Give a cell's layers the types that are fixed, and return how many layers it lacks for that."""
    lacking = 0
    for k in range(kept.shape[0]):
        i = bound[cell]
        while i < bound[cell + 1] and kind[i] != k:
            i += 1
        for r in range(kept.shape[1] - 1, 0, -1):
            for _ in range(kept[k, r, cell]):
                if i < bound[cell + 1] and kind[i] == k:
                    rec[i] = r
                    i += 1
                else:
                    lacking += 1
        while i < bound[cell + 1] and kind[i] == k:
            rec[i] = 0
            i += 1
    return lacking


@kernel
def repair(  # type: ignore[no-untyped-def]
    stage, afresh, cells_of, bound, rec, banned, fwd, bwd, wgt, act, par, again, usable, kind, kept, form,
    fixed, held, limit, live, again_of, row_start, costs, weight, noise, random,
):  # fmt: skip
    """Make a touched stage fit again with as little recompute as greed finds; returns MB over."""
    stuck = 0.0
    if form[2] > 0:
        for cell in cells_of[stage]:
            stuck += _STUCK * place_types(cell, bound, rec, usable, form)
            sum_cell(cell, bound, rec, fwd, bwd, wgt, act, par, again, fixed, costs)
        over = most_over(stage, cells_of, held, limit, live, again_of, row_start, costs)[1]
        return stuck + (over if over > _SLACK * limit[stage] else 0.0)
    if kept.shape[0] > 0:
        for cell in cells_of[stage]:
            stuck += _STUCK * keep_types(cell, bound, rec, kind, kept)
            sum_cell(cell, bound, rec, fwd, bwd, wgt, act, par, again, fixed, costs)
        over = most_over(stage, cells_of, held, limit, live, again_of, row_start, costs)[1]
        return stuck + (over if over > _SLACK * limit[stage] else 0.0)
    for cell in cells_of[stage]:
        for i in range(bound[cell], bound[cell + 1]):
            if afresh or not usable[i, rec[i]] or rec[i] == banned[cell]:
                rec[i] = fastest(i, banned[cell], bwd, usable)
                if rec[i] < 0:  # the layer's only type is banned here: no plan, however roomy
                    rec[i] = fastest(i, -1, bwd, usable)
                    stuck += _STUCK
        if form[4]:
            stuck += _STUCK * nest_types(cell, bound, rec, banned[cell], kind, bwd, usable)
        sum_cell(cell, bound, rec, fwd, bwd, wgt, act, par, again, fixed, costs)
    over = stuck + squeeze(
        stage, cells_of, bound, rec, banned, bwd, act, again, usable, kind, form, held, limit, live,
        again_of, row_start, costs, weight, noise, random,
    )  # fmt: skip
    if over == 0.0:
        relax(
            stage, cells_of, bound, rec, banned, bwd, act, again, usable, kind, form, held, limit, live,
            again_of, row_start, costs, weight, noise, random,
        )  # fmt: skip
    for cell in cells_of[stage]:
        sum_cell(cell, bound, rec, fwd, bwd, wgt, act, par, again, fixed, costs)
    return over


@kernel
def load_spread(costs, cells_of, rule):  # type: ignore[no-untyped-def]
    """
    How uneven the stages' loads are: their 8-norm over their mean.

    Unlike the makespan it falls with every stage that gets closer to the others, not
    with the worst alone, and so leads over plateaus.
    """
    stages = len(cells_of)
    total, powers = 0.0, 0.0
    for s in range(stages):
        load = 0.0
        for cell in cells_of[s]:
            # What a full backward takes, also where the order has it in two parts.
            load += rule[0, cell, 0] * costs[0, cell] + rule[1, cell, 1] * costs[1, cell]
        total += load
        powers += load**8
    return (powers / stages) ** 0.125 / (total / stages)


@kernel
def tie_break(  # type: ignore[no-untyped-def]
    bound, costs, weights, held, limit, live, again_of, row_start, cells_of
):  # fmt: skip
    """
    Rank plans of equal makespan: recompute, then highest peak, then unevenness of neighbours.

    The sum of all backwards is what recompute adds to; ``weights`` of a peak's share of its
    limit, and of a layer that neighbours differ by, are small enough to come after it.
    """
    total, highest, rough = 0.0, 0.0, 0.0
    for cell in range(costs.shape[1]):
        total += costs[1, cell]
    for s in range(len(cells_of)):
        over = most_over(s, cells_of, held, limit, live, again_of, row_start, costs)[1]
        highest = max(highest, (over + limit[s]) / max(limit[s], 1.0))
        if s > 0:
            for v in range(cells_of.shape[1]):
                here, there = cells_of[s, v], cells_of[s - 1, v]
                rough += abs((bound[here + 1] - bound[here]) - (bound[there + 1] - bound[there]))
    return total + weights[0] * highest + weights[1] * rough


@kernel
def anneal(  # type: ignore[no-untyped-def]
    moves, hot, cold, guidance, ceiling, ties, bound, rec, banned, costs, over, best_bound, best_rec,
    best_banned, score, random, nested, may_shift, fwd, bwd, wgt, act, par, again, usable, kind, kept, form,
    fixed, held, limit, live, again_of, row_start, least, stage_of, cells_of, g_price, g_before, g_giver,
    hop_ms, rule, paths, path_fixed, pool, order,
):  # fmt: skip
    """
    Anneal for a number of moves, from temperature ``hot`` down to ``cold``.

    ``over`` holds the MB that each stage is over, ``score`` excess MB and makespan of the
    current state, then of the best one; a state with less excess is always better,
    whatever its makespan.  Under a finite ``ceiling`` only plans that are no slower count,
    and ``tie_break`` takes the place of the makespan.
    """
    cells, stages, chunks = len(stage_of), len(cells_of), cells_of.shape[1]
    new_bound, new_rec, new_banned = bound.copy(), rec.copy(), banned.copy()
    new_costs = costs.copy()
    touched = np.zeros(stages, np.bool_)
    weight = np.ones(chunks)
    durations, ends = np.empty(rule.shape[0] * cells), np.empty(len(g_price))
    uses = np.empty(rule.shape[0] * cells)
    new_over = over.copy()
    spread = load_spread(costs, cells_of, rule)
    simulated = 0
    for move in range(moves):
        temperature = hot * (cold / hot) ** (move / moves)
        new_bound[:], new_rec[:], new_banned[:] = bound, rec, banned
        moved = propose(
            new_bound, new_rec, new_banned, kind, stage_of, cells_of, least, touched, nested, may_shift,
            random,
        )  # fmt: skip
        if not moved:
            continue
        new_costs[:, :] = costs
        new_over[:] = over
        plain = uniform(random) < 0.4
        for v in range(chunks):
            weight[v] = 1.0 if plain else math.exp(2.0 * uniform(random) - 1.0)
        noise = 0.0 if uniform(random) < 0.3 else uniform(random)
        for s in range(stages):
            if touched[s]:
                afresh = uniform(random) < 0.5
                new_over[s] = repair(
                    s, afresh, cells_of, new_bound, new_rec, new_banned, fwd, bwd, wgt, act, par, again,
                    usable, kind, kept, form, fixed, held, limit, live, again_of, row_start, new_costs,
                    weight, noise, random,
                )  # fmt: skip
        excess = new_over.sum()
        if excess > score[0]:
            continue
        threshold, guide = math.inf, temperature * guidance * load_spread(new_costs, cells_of, rule)
        if score[0] == 0.0:
            threshold = score[1] - temperature * math.log(1.0 - uniform(random))
            # The guide counts in comparisons only; it fades as the temperature falls.
            threshold += temperature * guidance * spread - guide
            slowest = threshold if ceiling == math.inf else ceiling
            if pool_exceeds(new_costs, paths, path_fixed, pool[0], order, slowest):
                continue
        makespan = math.inf
        if excess == 0.0:
            set_durations(new_costs, rule, durations)
            makespan = longest_path(g_before, g_price, g_giver, hop_ms, durations, ends)
            simulated += 1
            if makespan > (threshold if ceiling == math.inf else ceiling):
                keep_path(
                    (g_price, g_before, g_giver), hop_ms, rule, durations, ends, uses, paths, path_fixed,
                    pool, order,
                )  # fmt: skip
                continue
            if ceiling < math.inf:
                makespan = tie_break(
                    new_bound, new_costs, ties, held, limit, live, again_of, row_start, cells_of
                )  # fmt: skip
                if makespan > threshold:
                    continue
        bound[:], rec[:], banned[:] = new_bound, new_rec, new_banned
        costs[:, :] = new_costs
        over[:] = new_over
        spread = load_spread(costs, cells_of, rule)
        score[0], score[1] = excess, makespan
        if excess < score[2] or (excess == score[2] and makespan < score[3]):
            best_bound[:], best_rec[:], best_banned[:] = bound, rec, banned
            score[2], score[3] = excess, makespan
    return simulated
