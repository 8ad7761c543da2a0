"""Kernels by what launched them, and backwards by the forwards that they belong to."""

from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs.measured import NO_SPANS, Spans

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def is_number(value: object) -> TypeGuard[int]:
    """Whether a value can be a correlation or sequence number."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


class Numbered:
    """Stretches of time that bear a number, found one by one."""

    def __init__(self) -> None:
        self.number, self.start, self.end = array("q"), array("d"), array("d")

    def add(self, number: object, start: float, end: float) -> None:
        """Keep one more; what bears no number is none."""
        if is_number(number):
            self.number.append(number)
            self.start.append(start)
            self.end.append(end)

    def columns(self) -> tuple[Ints, Floats, Floats]:
        """Give number, begin and end of each; shape (stretches,) each."""
        return np.frombuffer(self.number, dtype=np.int64), np.frombuffer(self.start), np.frombuffer(self.end)


class Instants(Numbered):
    """Moments that bear a number; there are millions of them, and their end is their begin."""

    def __init__(self) -> None:
        super().__init__()
        self.end = self.start

    def add(self, number: object, start: float, end: float = 0.0) -> None:
        """Keep one more, whose end says nothing."""
        if is_number(number):
            self.number.append(number)
            self.start.append(start)


class NamedSpan(NamedTuple):
    """A span on the CPU, with its name and thread."""

    name: str
    thread: object
    start: float
    end: float


class Kernels:
    """
    Kernels of a device, by the numbers of their launches.

    Parameters
    ----------
    kernels
        Stretches on the device, by correlation number.
    launches
        Instants at which each thread launches, by correlation number.
    """

    def __init__(self, kernels: Numbered, launches: Mapping[object, Numbered]) -> None:
        number, start, end = kernels.columns()
        order = np.argsort(number, kind="stable")
        self._number, self._start, self._end = number[order], start[order], end[order]
        self._launches = {thread: _by_start(found) for thread, found in launches.items()}

    def launched(self, thread: object, start: Floats, end: Floats) -> Spans:
        """Give the kernels that a thread launches in some stretches of time; shape (stretches,) each."""
        if thread not in self._launches:
            return NO_SPANS
        at, number = self._launches[thread]
        first, last = np.searchsorted(at, start, side="left"), np.searchsorted(at, end, side="right")
        numbers = number[_ranges(first, last)]
        kernels = _ranges(
            np.searchsorted(self._number, numbers, side="left"),
            np.searchsorted(self._number, numbers, side="right"),
        )
        return Spans(start_us=self._start[kernels], end_us=self._end[kernels])

    def of_span(self, span: NamedSpan) -> Spans:
        """Give the kernels that one span launches."""
        return self.launched(span.thread, np.array([span.start]), np.array([span.end]))

    def step_marks(self, steps: Sequence[tuple[float, float]]) -> tuple[float, ...]:
        """Find where steps begin and the last one ends, on the device, which runs behind the CPU."""
        begins, ends = [], []
        for start, end in steps:
            stretch = np.array([start]), np.array([end])
            parts = [self.launched(thread, *stretch) for thread in self._launches]
            filled = [part for part in parts if len(part)]
            if filled:
                begins.append(min(float(part.start_us.min()) for part in filled))
                ends.append(max(float(part.end_us.max()) for part in filled))
        return (*sorted(begins), max(ends)) if begins else ()


def forwards(kernels: Kernels, layers: Sequence[NamedSpan]) -> dict[str, Spans]:
    """Give the kernels of each name, sorted by name."""
    found: dict[str, list[Spans]] = {}
    for layer in layers:
        found.setdefault(layer.name, []).append(kernels.of_span(layer))
    return {name: joined(parts) for name, parts in sorted(found.items())}


def backwards(
    kernels: Kernels,
    layers: Sequence[NamedSpan],
    forward_ops: Mapping[object, Numbered],
    backward_ops: Mapping[object, Numbered],
) -> dict[str, Spans]:
    """
    Give the kernels of each name's backward, through the sequence numbers of its forward.

    An op may bear the number of the next layer's first one, so the later of two layers counts.
    """
    names = sorted({layer.name for layer in layers})
    numbers, owners = _owners(sorted(layers, key=lambda layer: layer.start), names, forward_ops)
    found: dict[str, list[Spans]] = {}
    for thread, ops in backward_ops.items():
        number, start, end = ops.columns()
        if not len(numbers):
            break
        at = np.searchsorted(numbers, number).clip(max=len(numbers) - 1)
        owner = np.where(numbers[at] == number, owners[at], -1)
        for index, name in enumerate(names):
            mine = owner == index
            if mine.any():
                found.setdefault(name, []).append(kernels.launched(thread, start[mine], end[mine]))
    return {name: joined(parts) for name, parts in found.items()}


def _owners(
    layers: Sequence[NamedSpan], names: Sequence[str], forward_ops: Mapping[object, Numbered]
) -> tuple[Ints, Ints]:
    """Sequence numbers of the forward ops in layers, ascending, and the index of each one's name."""
    ordered = {thread: _by_start(found) for thread, found in forward_ops.items()}
    numbers, owners = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    index = {name: at for at, name in enumerate(names)}
    for layer in layers:
        if layer.thread in ordered:
            at, number = ordered[layer.thread]
            inside = number[np.searchsorted(at, layer.start) : np.searchsorted(at, layer.end, side="right")]
            numbers.append(inside)
            owners.append(np.full(len(inside), index[layer.name], dtype=np.int64))
    every, whose = np.concatenate(numbers), np.concatenate(owners)
    order = np.argsort(every, kind="stable")
    every, whose = every[order], whose[order]
    last = np.append(every[1:] != every[:-1], True)[: len(every)]
    return every[last], whose[last]


def _ranges(first: Ints, last: Ints) -> Ints:
    """
    Write out ranges, one after the other.

    Examples
    --------
    >>> _ranges(np.array([3, 9]), np.array([5, 10])).tolist()
    [3, 4, 9]
    """
    lengths = last - first
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(first - before, lengths))


def _by_start(found: Numbered) -> tuple[Floats, Ints]:
    number, start, _ = found.columns()
    if np.all(start[1:] >= start[:-1]):
        return start, number  # as they mostly are
    order = np.argsort(start, kind="stable")
    return start[order], number[order]


def joined(parts: Sequence[Spans]) -> Spans:
    """Put spans one after the other."""
    return Spans(
        start_us=np.concatenate([part.start_us for part in parts]),
        end_us=np.concatenate([part.end_us for part in parts]),
    )
