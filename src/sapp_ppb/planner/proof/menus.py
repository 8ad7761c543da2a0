"""
What the layers of one cell may choose their recompute types from.

A cell with one menu only ever uses the menu's types.  Where a target can not say
SELECTIVE and COMM in one cell there is a menu without each; where the working set
counts there is one for every size it can have, and a cell that uses a menu holds
that size, so that what the working set makes non-linear is settled by the menu.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.simulator.price import LayerTables


@dataclass(frozen=True, kw_only=True, eq=False)
class Menu:
    """
    Types to choose from, and what choosing from them holds.

    Attributes
    ----------
    usable
        Shape (BODY layers, types).
    again_mb
        Working set of a cell that uses the menu.
    """

    usable: NDArray[np.bool_]
    again_mb: float


def menus(tables: LayerTables, *, nested: bool) -> list[Menu]:
    """
    List menus such that every allowed cell uses one of them and holds what it says.

    Returns
    -------
    list
        One menu where nothing but the considered types restricts a cell.
    """
    return [
        Menu(usable=usable & (tables.again_mb <= again_mb), again_mb=again_mb)
        for usable in _sets(tables, nested=nested)
        for again_mb in np.unique(tables.again_mb[tables.considered]).tolist()
    ]


def _sets(tables: LayerTables, *, nested: bool) -> Iterator[NDArray[np.bool_]]:
    if not nested:
        yield tables.considered
        return
    for out in (Recompute.COMM, Recompute.SELECTIVE):
        usable = tables.considered.copy()
        usable[:, out] = False
        yield usable
