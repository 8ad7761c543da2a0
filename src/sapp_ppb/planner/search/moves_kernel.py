"""The compiled moves of the search: which layers change cells; see ``search_kernel.py`` for the arrays."""

from sapp_ppb.planner.search.random_kernel import below, uniform
from sapp_ppb.simulator.kernel import kernel


@kernel
def shift(a, b, bound, rec, kind, stage_of, touched, random):  # type: ignore[no-untyped-def]
    """
    Take a layer out of cell ``a`` and put one into cell ``b``.

    Cells between keep their number of layers and slide by one layer; they are
    touched only where that layer is of another kind.
    """
    touched[stage_of[a]] = True
    touched[stage_of[b]] = True
    p = bound[a] + below(random, bound[a + 1] - bound[a])
    moved = rec[p]
    if a < b:
        q = bound[b] - 1
        for cell in range(a + 1, b):
            if kind[bound[cell] - 1] != kind[bound[cell + 1] - 1]:
                touched[stage_of[cell]] = True
        for i in range(p, q):
            rec[i] = rec[i + 1]
        for cell in range(a + 1, b + 1):
            bound[cell] -= 1
    else:
        q = bound[b + 1]
        for cell in range(b + 1, a):
            if kind[bound[cell]] != kind[bound[cell + 1]]:
                touched[stage_of[cell]] = True
        for i in range(p, q, -1):
            rec[i] = rec[i - 1]
        for cell in range(b + 1, a + 1):
            bound[cell] += 1
    rec[q] = moved


@kernel
def may_leave(cell, bound, least):  # type: ignore[no-untyped-def]
    """Whether a cell can give a layer away."""
    return bound[cell + 1] - bound[cell] > least[cell]


@kernel
def propose(  # type: ignore[no-untyped-def]
    bound, rec, banned, kind, stage_of, cells_of, least, touched, nested, may_shift, random
):  # fmt: skip
    """Draw a move and carry out its shifts; False when the drawn move does not exist."""
    cells, chunks, stages = len(stage_of), cells_of.shape[1], len(cells_of)
    touched[:] = False
    u = uniform(random)
    if nested and u < 0.08:  # let a cell use the other of SELECTIVE and COMM
        cell = below(random, cells)
        banned[cell] = 3 - banned[cell]
        touched[stage_of[cell]] = True
        return True
    if u < 0.22 or cells == 1 or not may_shift:  # another choice of recompute for one stage
        touched[below(random, stages)] = True
        return True
    if u < 0.50 or stages == 1:  # one layer, anywhere
        a, b = below(random, cells), below(random, cells)
    elif u < 0.62:  # one layer, to a neighbour
        a = below(random, cells)
        b = a + 1 if uniform(random) < 0.5 else a - 1
    elif u < 0.78 and chunks > 1:  # one layer, between chunks of a stage
        stage = below(random, stages)
        a, b = cells_of[stage, below(random, chunks)], cells_of[stage, below(random, chunks)]
    elif u < 0.88 and stages > 2:  # a relay: what a stage receives, it passes on from any chunk
        a = below(random, cells)
        for _ in range(2 + below(random, 2)):
            b = below(random, cells)
            if a == b or not may_leave(a, bound, least):
                return False
            shift(a, b, bound, rec, kind, stage_of, touched, random)
            a = cells_of[stage_of[b], below(random, chunks)]
        return True
    else:  # an exchange between two stages, which keeps their numbers of layers
        s, t = below(random, stages), below(random, stages)
        a, b = cells_of[s, below(random, chunks)], cells_of[t, below(random, chunks)]
        c, d = cells_of[t, below(random, chunks)], cells_of[s, below(random, chunks)]
        if s == t or a == b or c == d or not may_leave(a, bound, least):
            return False
        shift(a, b, bound, rec, kind, stage_of, touched, random)
        if not may_leave(c, bound, least):
            return False
        shift(c, d, bound, rec, kind, stage_of, touched, random)
        return True
    if a == b or b < 0 or b >= cells or not may_leave(a, bound, least):
        return False
    shift(a, b, bound, rec, kind, stage_of, touched, random)
    return True
