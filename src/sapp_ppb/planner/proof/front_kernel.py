"""The compiled sieve of patterns: of those with the same layers, the ones that no other beats."""

import numpy as np

from sapp_ppb.simulator.kernel import kernel


@kernel
def sieve(group, times_ms, slack, kept):  # type: ignore[no-untyped-def]
    """
    Mark the rows that no other row of their group beats in every column.

    Rows of a group stand together, by rising sum, so that a row is beaten only by one before it.

    Parameters
    ----------
    group
        Group of each row; shape (rows,).
    times_ms
        Shape (rows, columns).
    slack
        Share within which two times are the same.
    kept
        Filled here; shape (rows,).
    """
    front = np.empty(len(group), np.int64)
    members = 0
    for row in range(len(group)):
        if row > 0 and group[row] != group[row - 1]:
            members = 0
        beaten = False
        for k in range(members):
            beaten = True
            for column in range(times_ms.shape[1]):
                if times_ms[front[k], column] > times_ms[row, column] * (1 + slack):
                    beaten = False
                    break
            if beaten:
                break
        kept[row] = not beaten
        if not beaten:
            front[members] = row
            members += 1
