"""The compiled sort of ops: each after the one before it on its stage and the one whose result it needs."""

from sapp_ppb.simulator.kernel import kernel


@kernel
def sort_ops(starts, needs, pairs, done, pointers, order):  # type: ignore[no-untyped-def]
    """
    Run every stage as far as it can, round after round; neighbours stay close in memory.

    Linear in ops, and in rounds times stages.

    Parameters
    ----------
    starts
        Where each stage's ops begin; shape (S + 1,).
    needs
        Op whose result each op needs, -1 for none; shape (ops,).
    pairs
        Whether each op begins only when the op behind it can too; shape (ops,).
    done
        False for each op, and at last True for what nobody has to make; shape (ops + 1,).
    pointers
        Where each stage's ops begin; where they got, in the end; shape (S,).
    order
        Filled here; shape (ops,).

    Returns
    -------
    int
        Ops that could be sorted; fewer than there are when some wait for each other.
    """
    known, before = 0, -1
    while before < known < len(needs):
        before = known
        for stage in range(len(pointers)):
            at = pointers[stage]
            while at < starts[stage + 1] and done[needs[at]] and not (pairs[at] and not done[needs[at + 1]]):
                done[at] = True
                order[known] = at
                known += 1
                at += 1
            pointers[stage] = at
    return known
