"""
The compiled rule of nested types: what a layer runs again is a part of what the one before it runs.

Within a kind the order of the layers is free, so only layers of different kinds are compared.
"""

from sapp_ppb.simulator.kernel import kernel

# Parts that are run again, a bit each: NONE, SELECTIVE, COMM, BOTH, and FULL with all there is.
_PARTS = (0, 1, 2, 3, 7)
_TYPES = 5  # a target whose types are nested has no words for strategies, so that none is usable


@kernel
def keeps_order(layer, recompute, cell, bound, rec, kind):  # type: ignore[no-untyped-def]
    """Whether a layer of a cell may have a type beside the layers of other kinds."""
    parts = _PARTS[recompute]
    for i in range(bound[cell], bound[cell + 1]):
        other = _PARTS[rec[i]]
        if kind[i] < kind[layer] and other & parts != parts:
            return False
        if kind[i] > kind[layer] and parts & other != other:
            return False
    return True


@kernel
def nest_types(cell, bound, rec, banned, kind, bwd, usable):  # type: ignore[no-untyped-def]
    """Raise the types of earlier kinds to hold those of later ones; returns how many layers can not."""
    stuck, needed, later = 0, 0, 0
    for back in range(bound[cell + 1] - bound[cell]):
        i = bound[cell + 1] - 1 - back
        if back > 0 and kind[i] != kind[i + 1]:
            needed = later
        if _PARTS[rec[i]] & needed != needed:
            best = -1
            for r in range(_TYPES):
                allowed = usable[i, r] and r != banned and _PARTS[r] & needed == needed
                if allowed and (best < 0 or bwd[i, r] < bwd[i, best]):
                    best = r
            if best >= 0:
                rec[i] = best
            else:
                stuck += 1
        later |= _PARTS[rec[i]]
    return stuck
