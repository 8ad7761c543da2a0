"""Fix: the part of a plan that is given, while the rest is still to be decided."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Model, Recompute, RecomputeType
from sapp_ppb.costs.checks import shown

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PlaceRule:
    """
    Recompute that follows from a layer's place in its cell: the first ones, or every n-th.

    Attributes
    ----------
    recompute
        Type of the layers that the rule picks; the others are left alone.
    first
        How many layers from the start of a cell it picks.
    every
        It picks the n-th layer of a cell, the 2n-th and so on.  One of the two is given.
    entries_left
        BODY entries at the end of the chain that it never picks, such as those of
        multi-token prediction in Megatron.
    chunks
        Chunks of a stage that the first layers are dealt over, one layer a chunk in turn, as
        MindSpeed counts them by stage; 1 counts them by cell.

    Examples
    --------
    >>> rule = PlaceRule(recompute=Recompute.FULL, first=2)
    >>> rule.picked(0, 3), rule.picked(3, 4)  # layers 0, 1, 2 of the chain in a cell, then layer 3 alone
    (range(0, 2), range(3, 4))
    >>> PlaceRule(recompute=Recompute.FULL, every=2).picked(3, 8)  # the second and fourth of 3 to 7
    range(4, 8, 2)
    >>> dealt = PlaceRule(recompute=Recompute.FULL, first=5, chunks=3)  # to chunks 0, 1, 2, 0, 1
    >>> [dealt.of_cell(cell, 6).first for cell in (0, 3, 5)]  # two stages: cell 3 is the second's chunk 1
    [2, 2, 1]
    """

    recompute: Recompute
    first: int | None = None
    every: int | None = None
    entries_left: int = 0
    chunks: int = 1

    def of_cell(self, cell: int, cells: int) -> "PlaceRule":
        """Rule of one cell of the chain: with its own number of first layers, where they are dealt."""
        if self.chunks == 1 or self.first is None:
            return self
        chunk = cell // (cells // self.chunks)
        return replace(self, first=max(0, -((chunk - self.first) // self.chunks)), chunks=1)

    def picked(self, start: int, stop: int) -> range:
        """Layers of a cell that the rule picks, if it held ``start`` to ``stop - 1`` and none is left."""
        if self.first is not None:
            return range(start, min(start + self.first, stop))
        step = self.every or 1
        return range(start + step - 1, stop, step)

    def counts(self, by_entry: Ints, types: int = len(Recompute)) -> Ints:
        """
        Types of the layers of every cell.

        Parameters
        ----------
        by_entry
            Layers of each BODY entry in each cell; shape (BODY layers, cells).
        types
            How many types the model has.

        Returns
        -------
        ndarray
            Shape (BODY layers, types, cells).
        """
        kind = np.repeat(np.arange(len(by_entry)), by_entry.sum(axis=1))
        counts = np.zeros((len(by_entry), types, by_entry.shape[1]), dtype=np.int64)
        counts[:, Recompute.NONE] = by_entry
        stops = np.cumsum(by_entry.sum(axis=0))
        for cell, stop in enumerate(stops.tolist()):
            rule = self.of_cell(cell, by_entry.shape[1])
            for layer in rule.picked(stop - int(by_entry[:, cell].sum()), stop):
                if kind[layer] < len(by_entry) - self.entries_left:
                    counts[kind[layer], [Recompute.NONE, self.recompute], cell] += (-1, 1)
        return counts

    def faults(self, chunks: int, entries: int) -> list[str]:
        """Say what is wrong with the rule for numbers of chunks a stage and of BODY entries."""
        given = [number for number in (self.first, self.every) if number is not None]
        if len(given) != 1 or given[0] < 1 or self.recompute is Recompute.NONE:
            return ["a rule of places picks the first layers or every n-th, at least 1, to be recomputed"]
        if not 0 <= self.entries_left <= entries:
            return [f"a rule of places leaves 0 to {entries} entries at the end (got {self.entries_left})"]
        if self.chunks != 1 and (self.first is None or self.chunks != chunks):
            return [f"a rule of places deals its first layers over the {chunks} chunks of a stage, or none"]
        return []


@dataclass(frozen=True, kw_only=True)
class Fix:
    """
    The layers of every cell, the layers that every cell recomputes, or a rule for the latter.

    Attributes
    ----------
    layers
        BODY layers of each cell along the chain, so that only recompute is to be
        chosen; shape (cells,).  None leaves the split open.
    recompute
        Recomputed layers by BODY entry, type and cell; shape (BODY layers, types, cells),
        NONE all zero.  Only layers under NONE are then to be spread.  None leaves
        recompute open.
    places
        Rule from which recompute follows once the split is known; it goes with
        ``layers`` too, and None leaves recompute open.

    Examples
    --------
    >>> Fix(layers=(2, 3)).layers
    (2, 3)
    """

    layers: tuple[int, ...] | None = None
    recompute: tuple[tuple[tuple[int, ...], ...], ...] | None = None
    places: PlaceRule | None = None

    @property
    def settles_recompute(self) -> bool:
        """Whether nothing but the split is left to decide, if that."""
        return self.recompute is not None or self.places is not None

    @property
    def recomputed(self) -> Ints:
        """Recomputed layers as an array; shape (BODY layers, types, cells), of size 0 where they are open."""
        if self.recompute is None:
            return np.zeros((0, len(Recompute), 0), dtype=np.int64)
        return np.array(self.recompute, dtype=np.int64)

    def mixed(self, model: Model) -> tuple[RecomputeType, ...]:
        """Types of a model besides NONE that fixed recompute mixes, the least recompute first."""
        if self.recompute is None:
            return ()
        kept = self.recomputed
        return tuple(r for r in model.types if r is not Recompute.NONE and kept[:, r].any())

    def allows(self, counts: Ints) -> bool:
        """
        Whether counts keep what is fixed.

        Parameters
        ----------
        counts
            Shape (BODY layers, types, cells).
        """
        if self.layers is not None and counts.sum(axis=(0, 1)).tolist() != list(self.layers):
            return False
        if self.places is not None and not np.array_equal(
            counts, self.places.counts(counts.sum(axis=1), counts.shape[1])
        ):
            return False
        if self.recompute is None:
            return True
        return np.array_equal(counts[:, 1:], self.recomputed[:, 1:])  # NONE, the first, is open

    def faults(self, model: Model, stages: int, chunks: int) -> list[str]:
        """Say what does not fit a model and its cells."""
        cells = stages * chunks
        given = [self.layers is not None, self.recompute is not None, self.places is not None]
        if given not in (
            [True, False, False],
            [False, True, False],
            [False, False, True],
            [True, False, True],
        ):
            return ["fix must give the layers of every cell or their recompute, one of the two"]
        faults = [] if self.places is None else self.places.faults(chunks, len(model.bodies))
        if self.recompute is not None:
            faults += self._type_faults(model, cells)
        return faults if self.layers is None else faults + self._layer_faults(model, cells)

    def _layer_faults(self, model: Model, cells: int) -> list[str]:
        layers = self.layers or ()
        if len(layers) != cells:
            return [f"fix must give the layers of {cells} cells (got {len(layers)})"]
        if min(layers) < 0 or sum(layers) != model.body_count:
            return [f"the layers of fix must be at least 0 and {model.body_count} in all (got {sum(layers)})"]
        return []

    def _type_faults(self, model: Model, cells: int) -> list[str]:
        kept, shape = self.recomputed, (len(model.bodies), len(model.types), cells)
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
        self, model: Model, considered: Sequence[tuple[RecomputeType, ...]], most: int | None
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
        if most is not None and len(self.mixed(model)) > most:
            mixed = ", ".join(r.label for r in self.mixed(model))
            return [f"fix mixes {mixed}, more than the {most} of max-recompute-types"]
        if self.places is not None:
            return self._place_faults(considered, most)
        if self.recompute is None:
            return []
        faults = []
        for layer, kept, types in zip(model.bodies, self.recomputed, considered, strict=True):
            name, rest = shown(layer.name), layer.count - int(kept.sum())
            faults += [
                f"fix recomputes {name} as {r.label}, which recompute or the model does not allow"
                for r in model.types
                if kept[r].any() and r not in types
            ]
            if rest and Recompute.NONE not in types:
                faults.append(
                    f"fix recomputes {kept.sum()} layers of {name} and none of the other {rest}, "
                    "which recompute or the model does not allow"
                )
        return faults

    def _place_faults(self, considered: Sequence[tuple[RecomputeType, ...]], most: int | None) -> list[str]:
        """Say why a rule of places picks nothing; a layer that lacks a type may keep clear of it."""
        rule = self.places
        assert rule is not None, "a rule of places"  # noqa: S101
        if most == 0:
            return [f"fix recomputes layers as {rule.recompute.label}, and max-recompute-types is 0"]
        if any(rule.recompute in types for types in considered[: len(considered) - rule.entries_left]):
            return []
        return [f"fix recomputes layers as {rule.recompute.label}, which no layer that it is for can be"]
