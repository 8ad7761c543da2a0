"""
Ops and layers in a PyTorch (Kineto) timeline.

A span on the CPU says when work was handed to the device, not how long it took: every
launch has a correlation number that its kernel bears too, and the kernels that a span
launches are what it costs.  Backwards have no span of their own, but their ops bear the
sequence numbers of the forward's.  Traces of torch_npu draw an arrow from a launch to its
kernel instead of giving both a number.  A trace without kernels is taken as it stands, which
is how one reads the traces of ``sapp-ppb simulate --emit-trace``.
"""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs.measured import OpTrace, ScopeTrace, Spans
from sapp_ppb.readers.trace_events import Clock, Event, duration

_OP = re.compile(r"(?:PP:)?(\d{1,6})([FBIW])(\d{1,7})")
_STEP = re.compile(r"ProfilerStep#\d+")
_LAUNCH = ("cuda_runtime", "cuda_driver")
_KERNEL = ("kernel", "gpu_memcpy", "gpu_memset")
_NAMED = ("user_annotation", "python_function", "cpu_op")
_BACKWARD = "autograd::engine::evaluate_function"
_FLOW = "async_npu"
_MODULE = "nn.Module: "
_NUMBER_BEHIND = re.compile(r"[_.:#]\d+$")
_MOST_NAMES = 5_000
Ints = NDArray[np.int64]


def _is_number(value: object) -> TypeGuard[int]:
    """Whether a value can be a correlation or sequence number."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


class _Pairs:
    """A number and when it was seen, many times."""

    def __init__(self) -> None:
        self.at, self.number = array("d"), array("q")

    def add(self, at: float, number: object) -> None:
        """Keep one more; what is no number is none."""
        if _is_number(number):
            self.at.append(at)
            self.number.append(number)


class KernelCollector:
    """Sees the events of one trace, and keeps what tells of ops and layers."""

    def __init__(self, wanted: Iterable[str], clock: Clock) -> None:
        self._wanted = {name: _pattern(name) for name in wanted}
        self._clock = clock
        self._ops: list[tuple[int, str, object, float, float]] = []  # cell, kind, thread, start, end
        self._exact: list[tuple[int, str, float]] = []  # the same with its time in ms, as our traces say it
        self._layers: list[tuple[str, object, float, float]] = []
        self._steps: list[tuple[float, float]] = []
        self.launches: dict[object, _Pairs] = defaultdict(_Pairs)
        self.forward_numbers: dict[object, _Pairs] = defaultdict(_Pairs)
        self._backwards: list[tuple[int, object, float, float]] = []  # sequence number, thread, start, end
        self._arrivals = _Pairs()
        self._kernel_number, self._kernel_start, self._kernel_end = array("q"), array("d"), array("d")
        self.names: Counter[str] = Counter()

    def see(self, event: Event) -> None:
        """Take what is of use from one event."""
        name, category = event.get("name"), event.get("cat")
        if category == _FLOW:
            self._see_flow(event)
        if event.get("ph") != "X" or not isinstance(name, str) or not isinstance(category, str):
            return
        start, lasts = self._clock.at(event.get("ts")), duration(event.get("dur", 0))
        if start is None or lasts is None:
            return
        arguments = event.get("args")
        arguments = arguments if isinstance(arguments, dict) else {}
        if category in _KERNEL:
            self._see_kernel(name, arguments.get("correlation"), start, start + lasts)
        elif category in _LAUNCH:
            self.launches[event.get("tid")].add(start, arguments.get("correlation"))
        elif category in _NAMED:
            self._see_named(name, category, event.get("tid"), arguments, start, start + lasts)
        elif category in "FBIW" and len(category) == 1:
            self._see_exact(name, arguments)

    def _see_flow(self, event: Event) -> None:
        """Take an arrow of Ascend's traces, which leads from a launch to where its kernel begins."""
        at = self._clock.at(event.get("ts"))
        if at is not None and event.get("ph") == "s":
            self.launches[event.get("tid")].add(at, event.get("id"))
        elif at is not None and event.get("ph") == "f":
            self._arrivals.add(at, event.get("id"))

    def attach(self, device: Spans) -> None:
        """Make kernels of the spans of a device at which arrows arrive."""
        if not len(self._arrivals.at) or not len(device):
            return
        order = np.argsort(device.start_us, kind="stable")
        start, end = device.start_us[order], device.end_us[order]
        at, number = _sorted(self._arrivals)
        found = np.searchsorted(start, at, side="left").clip(max=len(start) - 1)
        met = start[found] == at  # both are the same text in the file
        self._kernel_number.extend(number[met].tolist())
        self._kernel_start.extend(start[found[met]].tolist())
        self._kernel_end.extend(end[found[met]].tolist())

    def _see_kernel(self, name: str, number: object, start: float, end: float) -> None:
        # A kernel that talks to the neighbouring stage waits for it; that is no cost of a layer.
        if _is_number(number) and "SendRecv" not in name and "send_recv" not in name:
            self._kernel_number.append(number)
            self._kernel_start.append(start)
            self._kernel_end.append(end)

    def _see_named(
        self, name: str, category: str, thread: object, arguments: Event, start: float, end: float
    ) -> None:
        op = _OP.fullmatch(name)
        if op and name.startswith("PP:"):
            self._ops.append((int(op[1]), op[2], thread, start, end))
        elif _STEP.fullmatch(name):
            self._steps.append((start, end))
        elif category == "cpu_op":
            self._see_cpu_op(name, thread, arguments, start, end)
        if category != "cpu_op":
            if any(pattern.fullmatch(name) for pattern in self._wanted.values()):
                self._layers.append((name, thread, start, end))
            if category == "user_annotation" or name.startswith(_MODULE):
                self._count(_NUMBER_BEHIND.sub("", name.removeprefix(_MODULE)))

    def _count(self, name: str) -> None:
        """Remember a name for when none of those wanted is there."""
        if name in self.names or len(self.names) < _MOST_NAMES:
            self.names[name] += 1

    def _see_cpu_op(self, name: str, thread: object, arguments: Event, start: float, end: float) -> None:
        number = arguments.get("Sequence number")
        if not isinstance(number, int) or number < 0 or not self._wanted:
            return
        if name.startswith(_BACKWARD) or arguments.get("Fwd thread id"):
            self._backwards.append((number, thread, start, end))
        else:
            self.forward_numbers[thread].add(start, number)

    def _see_exact(self, name: str, arguments: Event) -> None:
        op, start, end = _OP.fullmatch(name), arguments.get("start_ms"), arguments.get("end_ms")
        if op and isinstance(start, int | float) and isinstance(end, int | float) and end >= start:
            self._exact.append((int(op[1]), op[2], float(end) - float(start)))

    def ops(self, source: str) -> tuple[OpTrace | None, tuple[str, ...]]:
        """Give the times of whole ops; None when the trace has none."""
        times: dict[tuple[int, str], list[float]] = defaultdict(list)
        notes: tuple[str, ...] = ()
        for cell, kind, lasts in self._exact:
            times[cell, kind].append(lasts)
        if self._ops and not len(self._kernel_number):
            notes = ("no kernels: the spans of the ops count as they stand, with the waiting inside them",)
        kernels = _Kernels(self) if self._ops and len(self._kernel_number) else None
        for cell, kind, thread, start, end in self._ops:
            if kernels is None:
                times[cell, kind].append((end - start) / 1000)
            else:
                spans = kernels.launched(thread, start, end)
                times[cell, kind].append(_covered(spans) / 1000)
        if not times:
            return None, notes
        return OpTrace(
            source=source, times_ms={key: tuple(found) for key, found in sorted(times.items())}
        ), notes

    def scopes(self, source: str, rank: int | None) -> tuple[ScopeTrace | None, tuple[str, ...]]:
        """Layers by the kernels that they launch; None when none of those wanted is there."""
        if not self._layers:
            return None, ()
        if not len(self._kernel_number):
            return None, ()  # no PyTorch trace, or one of the CPU alone
        kernels = _Kernels(self)
        forwards: dict[str, list[Spans]] = defaultdict(list)
        owner: dict[int, str] = {}
        # An op may bear the number of the next layer's first one, so the later of two layers counts.
        for name, thread, start, end in sorted(self._layers, key=lambda layer: layer[2]):
            forwards[name].append(kernels.launched(thread, start, end))
            owner.update(dict.fromkeys(kernels.numbers(thread, start, end), name))
        backwards: dict[str, list[Spans]] = {name: [] for name in forwards}
        for number, thread, start, end in self._backwards:
            if number in owner:
                backwards[owner[number]].append(kernels.launched(thread, start, end))
        trace = ScopeTrace(
            source=source,
            layers={name: _joined(parts) for name, parts in sorted(forwards.items())},
            backwards={name: _joined(parts) for name, parts in backwards.items() if parts},
            steps_us=kernels.step_marks(self._steps),
            rank=rank,
        )
        return trace, ()

    def columns(self) -> tuple[Ints, NDArray[np.float64], NDArray[np.float64]]:
        """Correlation, start and end of the kernels; shape (kernels,) each."""
        return (
            np.frombuffer(self._kernel_number, dtype=np.int64),
            np.frombuffer(self._kernel_start),
            np.frombuffer(self._kernel_end),
        )


class _Kernels:
    """Kernels by what launched them."""

    def __init__(self, seen: KernelCollector) -> None:
        number, start, end = seen.columns()
        order = np.argsort(number, kind="stable")
        self._number, self._start, self._end = number[order], start[order], end[order]
        self._launches = {thread: _sorted(pairs) for thread, pairs in seen.launches.items()}
        self._numbers = {thread: _sorted(pairs) for thread, pairs in seen.forward_numbers.items()}

    def launched(self, thread: object, start: float, end: float) -> Spans:
        """Kernels that a thread launches in a stretch of time."""
        return self._of(_between(self._launches.get(thread), start, end))

    def numbers(self, thread: object, start: float, end: float) -> list[int]:
        """Sequence numbers of the forward ops that a thread begins in a stretch of time."""
        return [int(number) for number in _between(self._numbers.get(thread), start, end)]

    def _of(self, correlations: Ints) -> Spans:
        first = np.searchsorted(self._number, correlations, side="left")
        last = np.searchsorted(self._number, correlations, side="right")
        at = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)] or [np.zeros(0)])
        at = at.astype(np.int64)
        return Spans(start_us=self._start[at], end_us=self._end[at])

    def step_marks(self, steps: list[tuple[float, float]]) -> tuple[float, ...]:
        """Where steps begin and the last one ends, on the device, which runs behind the CPU."""
        marks, last = [], 0.0
        for start, end in sorted(steps):
            parts = [self.launched(thread, start, end) for thread in self._launches]
            begun = [float(part.start_us.min()) for part in parts if len(part)]
            if begun:
                marks.append(min(begun))
                last = max(last, *(float(part.end_us.max()) for part in parts if len(part)))
        return (*sorted(marks), last) if marks else ()


def _pattern(name: str) -> re.Pattern[str]:
    """Spans of a name: as it stands, as a module, and with a number behind it."""
    return re.compile(rf"(?:{re.escape(_MODULE)})?{re.escape(name)}(?:[_.:#]\d+)?")


def _sorted(pairs: _Pairs) -> tuple[NDArray[np.float64], Ints]:
    at, number = np.frombuffer(pairs.at), np.frombuffer(pairs.number, dtype=np.int64)
    order = np.argsort(at, kind="stable")
    return at[order], number[order]


def _between(pairs: tuple[NDArray[np.float64], Ints] | None, start: float, end: float) -> Ints:
    if pairs is None:
        return np.zeros(0, dtype=np.int64)
    first, last = np.searchsorted(pairs[0], start, side="left"), np.searchsorted(pairs[0], end, side="right")
    return pairs[1][first:last]


def _joined(parts: list[Spans]) -> Spans:
    return Spans(
        start_us=np.concatenate([part.start_us for part in parts]),
        end_us=np.concatenate([part.end_us for part in parts]),
    )


def _covered(spans: Spans) -> float:
    """Time in which at least one of some spans runs."""
    order = np.argsort(spans.start_us, kind="stable")
    start, end = spans.start_us[order], np.maximum.accumulate(spans.end_us[order])
    before = np.concatenate([[-np.inf], end[:-1]])
    return float(np.maximum(end - np.maximum(start, before), 0.0).sum())
