"""
What measurements hold before anything is concluded from them.

Readers fill these and the estimation draws conclusions, so both know the same words
and neither knows the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Spans:
    """
    Stretches of time on one clock, which may overlap.

    Attributes
    ----------
    start_us, end_us
        Microseconds from any origin, in any order; shape (spans,).
    """

    start_us: Floats
    end_us: Floats

    def __len__(self) -> int:
        """How many there are."""
        return len(self.start_us)


NO_SPANS = Spans(start_us=np.zeros(0), end_us=np.zeros(0))


@dataclass(frozen=True, kw_only=True, eq=False)
class ScopeTrace:
    """
    One rank's timeline, seen through the names of its layers.

    Attributes
    ----------
    source
        File that it was read from.
    layers
        Spans in which each layer runs, by its name in the trace such as ``42-DecodeLayer``.
    gradients
        Spans of the backward, whatever they compute.
    again
        Spans of forwards that are done again for the backward.
    backwards
        Spans of the backward of each layer, where the trace tells them apart by layer;
        ``layers`` are then forwards alone, and ``gradients``, ``again`` and ``busy`` say nothing.
    busy
        Spans in which the device works; None when the trace does not say.
    steps_us
        Where each step begins, ascending, and where the last one ends; empty when the
        trace does not say.
    rank
        Rank that the file or the trace names; None when neither does.
    """

    source: str
    layers: Mapping[str, Spans]
    gradients: Spans = NO_SPANS
    again: Spans = NO_SPANS
    backwards: Mapping[str, Spans] | None = None
    busy: Spans | None = None
    steps_us: tuple[float, ...] = ()
    rank: int | None = None


class OpSpan(NamedTuple):
    """When one op of a micro-batch runs: its cell, F, B, I or W, its micro-batch, and ms on one clock."""

    cell: int
    kind: str
    micro_batch: int
    start_ms: float
    end_ms: float


@dataclass(frozen=True, kw_only=True, eq=False)
class OpTrace:
    """
    Times of whole ops, of one rank or of all.

    Attributes
    ----------
    source
        File that it was read from.
    times_ms
        Every time measured of the ops of a kind (F, B, I or W) in a cell.
    spans
        When the ops run, all on one clock; empty when only their times are known.
    """

    source: str
    times_ms: Mapping[tuple[int, str], tuple[float, ...]]
    spans: tuple[OpSpan, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class TraceContent:
    """
    What a trace file holds that can be used, and which names it has when that is nothing.

    Attributes
    ----------
    scopes, ops
        None when the trace has none of that sort.
    names
        Names that look like layers, and how often each was seen.
    notes
        What was left out and why, one sentence each.
    """

    scopes: ScopeTrace | None
    ops: OpTrace | None
    names: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
