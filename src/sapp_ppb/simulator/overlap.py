"""
Overlapped pairs as longest paths: max() of two sums is two paths side by side.

A forward and a backward that run together take

    F + B - a min(F, B) = max(F + (1 - a) B, (1 - a) F + B)

for an overlap factor a from 0 to 1, begin when the inputs of both are there, and
give both results at their end.  As six nodes, each with one price and at most two
nodes that it waits for::

    ready -+- F ------ (1-a) B -+- done
           +- (1-a) F ------ B -+

``ready`` waits for the stage and the forward's input, the first node of either path
also for the backward's input, ``done`` for both paths.  So durations stay linear in
the cells' times, and what holds for paths holds for pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.schedules import OpKind

Ints = NDArray[np.int32]

# Rows of the price list behind those of the four kinds of ops; the last is no part of a pair but what a
# stage does after its last op.
PART_F, PART_B, NOTHING, EXTRA = 4, 5, 6, 7
_READY, _F, _PART_B, _PART_F, _B, _DONE = range(6)
_NODES = 6


@dataclass(frozen=True, kw_only=True, eq=False)
class PairNodes:
    """Columns of a graph, as ``Graph`` has them."""

    stage: Ints
    price: Ints
    before: Ints
    giver: Ints
    edge: Ints
    first: Ints
    last: Ints


def pair_nodes(ops: PairNodes, forward: NDArray[np.bool_], cells: int) -> PairNodes:
    """
    Put six nodes in the place of the two ops of every pair.

    Parameters
    ----------
    ops
        Columns with a node for each op; the ops of a pair follow each other.
    forward
        Whether an op is the forward of a pair; shape (ops,).
    cells
        Number of cells.

    Returns
    -------
    PairNodes
        Columns over nodes; both ops of a pair begin and end together.
    """
    of_pair = np.flatnonzero(forward)
    sizes = np.ones(len(forward), dtype=np.int32)
    sizes[of_pair], sizes[of_pair + 1] = _NODES, 0
    begin = np.cumsum(sizes, dtype=np.int32) - sizes
    first, last = begin.copy(), begin.copy()
    for op in (of_pair, of_pair + 1):
        first[op], last[op] = begin[of_pair] + _F, begin[of_pair] + _DONE
    alone = np.ones(len(forward), dtype=np.bool_)
    alone[of_pair] = alone[of_pair + 1] = False

    node = begin[of_pair]
    nothing = np.full(len(of_pair), NOTHING * cells, dtype=np.int32)
    cell_f, cell_b = ops.price[of_pair] % cells, ops.price[of_pair + 1] % cells
    inputs = [(ops.giver[at], ops.edge[at]) for at in (of_pair, of_pair + 1)]
    (f_giver, f_edge), (b_giver, b_edge) = [(_at(last, giver), edge) for giver, edge in inputs]
    none = np.full(len(of_pair), -1, dtype=np.int32)
    rows = {
        _READY: (nothing, _at(last, ops.before[of_pair]), f_giver, f_edge),
        _F: (OpKind.F * cells + cell_f, node + _READY, b_giver, b_edge),
        _PART_B: (PART_B * cells + cell_b, node + _F, none, none),
        _PART_F: (PART_F * cells + cell_f, node + _READY, b_giver, b_edge),
        _B: (OpKind.B * cells + cell_b, node + _PART_F, none, none),
        _DONE: (nothing, node + _PART_B, node + _B, none),
    }
    columns = np.empty((4, int(sizes.sum())), dtype=np.int32)
    columns[:, begin[alone]] = (
        ops.price[alone],
        _at(last, ops.before[alone]),
        _at(last, ops.giver[alone]),
        ops.edge[alone],
    )
    for offset, values in rows.items():
        columns[:, node + offset] = values
    price, before, giver, edge = columns
    return PairNodes(
        stage=np.repeat(ops.stage, sizes),
        price=price,
        before=before,
        giver=giver,
        edge=edge,
        first=first[ops.first],
        last=last[ops.last],
    )


def _at(nodes: Ints, pointer: Ints) -> Ints:
    """Nodes that pointers stand for; -1 stays."""
    return np.where(pointer >= 0, nodes[pointer], -1).astype(np.int32)
