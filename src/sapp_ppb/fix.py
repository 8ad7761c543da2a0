"""Fix: the part of a plan that is given, while the rest is still to be decided."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Model, Recompute
from sapp_ppb.costs.checks import shown

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Fix:
    """
    Either the layers of every cell, or the layers that every cell recomputes.

    Attributes
    ----------
    layers
        BODY layers of each cell along the chain, so that only recompute is to be
        chosen; shape (cells,).  None leaves the split open.
    recompute
        Recomputed layers by BODY entry, type and cell; shape (BODY layers, 5, cells),
        NONE all zero.  Only layers under NONE are then to be spread.  None leaves
        recompute open.

    Examples
    --------
    >>> Fix(layers=(2, 3)).layers
    (2, 3)
    """

    layers: tuple[int, ...] | None = None
    recompute: tuple[tuple[tuple[int, ...], ...], ...] | None = None

    @property
    def recomputed(self) -> Ints:
        """Recomputed layers as an array; shape (BODY layers, 5, cells), of size 0 where they are open."""
        if self.recompute is None:
            return np.zeros((0, len(Recompute), 0), dtype=np.int64)
        return np.array(self.recompute, dtype=np.int64)

    @property
    def types(self) -> tuple[Recompute, ...]:
        """Types besides NONE that fixed recompute mixes, the least recompute first."""
        kept = self.recomputed
        return tuple(r for r in Recompute if r is not Recompute.NONE and kept[:, r].any())

    def allows(self, counts: Ints) -> bool:
        """
        Whether counts keep what is fixed.

        Parameters
        ----------
        counts
            Shape (BODY layers, 5, cells).
        """
        if self.layers is not None and counts.sum(axis=(0, 1)).tolist() != list(self.layers):
            return False
        if self.recompute is None:
            return True
        types = [r for r in Recompute if r is not Recompute.NONE]
        return np.array_equal(counts[:, types], self.recomputed[:, types])

    def faults(self, model: Model, cells: int) -> list[str]:
        """Say what does not fit a model and a number of cells."""
        if (self.layers is None) is (self.recompute is None):
            return ["fix must give the layers of every cell or their recompute, one of the two"]
        if self.layers is None:
            return self._type_faults(model, cells)
        return self._layer_faults(model, cells)

    def _layer_faults(self, model: Model, cells: int) -> list[str]:
        layers = self.layers or ()
        if len(layers) != cells:
            return [f"fix must give the layers of {cells} cells (got {len(layers)})"]
        if min(layers) < 0 or sum(layers) != model.body_count:
            return [f"the layers of fix must be at least 0 and {model.body_count} in all (got {sum(layers)})"]
        return []

    def _type_faults(self, model: Model, cells: int) -> list[str]:
        kept, shape = self.recomputed, (len(model.bodies), len(Recompute), cells)
        if kept.shape != shape:
            return [f"the recompute of fix must have the shape {shape} (got {kept.shape})"]
        if (kept < 0).any() or kept[:, Recompute.NONE].any():
            return ["the recompute of fix must be counts of at least 0, and none under none"]
        return [
            f"fix recomputes {number} layers of {layer.name}, which has {layer.count}"
            for layer, number in zip(model.bodies, kept.sum(axis=(1, 2)).tolist(), strict=True)
            if number > layer.count
        ]

    def size_faults(self, least: Sequence[int]) -> list[str]:
        """Say which cells have fewer layers than they must; ``least`` of shape (cells,)."""
        return [
            f"fix leaves cell {cell} {number} of at least {fewest} layers; allow fewer with --min-layers"
            for cell, (number, fewest) in enumerate(zip(self.layers or (), least, strict=True))
            if number < fewest
        ]

    def recompute_faults(
        self, model: Model, considered: Sequence[tuple[Recompute, ...]], most: int | None
    ) -> list[str]:
        """
        Say which recompute is not allowed, or leaves layers that can not be left alone.

        Parameters
        ----------
        considered
            Types that each BODY entry may have.
        most
            How many types besides NONE may be mixed; None for any number.
        """
        if most is not None and len(self.types) > most:
            mixed = ", ".join(r.label for r in self.types)
            return [f"fix mixes {mixed}, more than the {most} of max-recompute-types"]
        faults = []
        for layer, kept, types in zip(model.bodies, self.recomputed, considered, strict=True):
            name, rest = shown(layer.name), layer.count - int(kept.sum())
            faults += [
                f"fix recomputes {name} as {r.label}, which recompute or the model does not allow"
                for r in Recompute
                if kept[r].any() and r not in types
            ]
            if rest and Recompute.NONE not in types:
                faults.append(
                    f"fix recomputes {kept.sum()} layers of {name} and none of the other {rest}, "
                    "which recompute or the model does not allow"
                )
        return faults
