"""
The compiled rule of places: recompute that follows from where a layer stands in its cell.

``form`` is the first N layers of a cell that are recomputed, or the n of every n-th one,
their type (0 without a rule), how many layers of the chain the rule is for, and, last, the
chunks that N is dealt over (1 for every cell on its own).
"""

from sapp_ppb.simulator.kernel import kernel


@kernel
def place_types(cell, bound, rec, usable, form):  # type: ignore[no-untyped-def]
    """Give a cell's layers the types of their places, and return how many layers can not have theirs."""
    stuck = 0
    every, chunks = form[1], form[5]
    chunk = cell // ((len(bound) - 1) // chunks)
    first = max(0, -((chunk - form[0]) // chunks))
    for i in range(bound[cell], bound[cell + 1]):
        place = i - bound[cell]
        picked = place < first if every == 0 else (place + 1) % every == 0
        rec[i] = form[2] if picked and i < form[3] else 0
        if not usable[i, rec[i]]:
            stuck += 1
    return stuck
