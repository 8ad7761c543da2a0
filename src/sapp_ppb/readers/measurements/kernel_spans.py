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
from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from sapp_ppb.costs.measured import OpSpan, OpTrace, ScopeTrace, Spans
from sapp_ppb.readers.measurements.kernel_join import (
    Instants,
    Kernels,
    NamedSpan,
    Numbered,
    backwards,
    forwards,
)
from sapp_ppb.readers.measurements.trace_events import Clock, Event, duration

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


class KernelCollector:
    """Sees the events of one trace, and keeps what tells of ops and layers."""

    def __init__(self, wanted: Iterable[str], clock: Clock) -> None:
        self._wanted = {name: _pattern(name) for name in wanted}
        self._clock = clock
        # Ops in microseconds, with the thread of each, and in milliseconds, as our traces say it.
        self._ops: list[tuple[OpSpan, object]] = []
        self._exact: list[OpSpan] = []
        self._layers: list[NamedSpan] = []
        self._steps: list[tuple[float, float]] = []
        self._launches: dict[object, Numbered] = defaultdict(Instants)
        self._forward_ops: dict[object, Numbered] = defaultdict(Instants)
        self._backward_ops: dict[object, Numbered] = defaultdict(Numbered)
        self._kernels, self._arrivals = Numbered(), Instants()
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
            self._launches[event.get("tid")].add(arguments.get("correlation"), start, start)
        elif category in _NAMED:
            self._see_named(name, category, event.get("tid"), arguments, start, start + lasts)
        elif category in "FBIW" and len(category) == 1:
            self._see_exact(name, arguments)

    def _see_flow(self, event: Event) -> None:
        """Take an arrow of Ascend's traces, which leads from a launch to where its kernel begins."""
        at = self._clock.at(event.get("ts"))
        if at is not None and event.get("ph") == "s":
            self._launches[event.get("tid")].add(event.get("id"), at, at)
        elif at is not None and event.get("ph") == "f":
            self._arrivals.add(event.get("id"), at, at)

    def attach(self, device: Spans) -> None:
        """Make kernels of the spans of a device at which arrows arrive."""
        number, at, _ = self._arrivals.columns()
        if not len(at) or not len(device):
            return
        order = np.argsort(device.start_us, kind="stable")
        start, end = device.start_us[order], device.end_us[order]
        found = np.searchsorted(start, at, side="left").clip(max=len(start) - 1)
        met = start[found] == at  # both are the same text in the file
        for each, where in zip(number[met].tolist(), found[met].tolist(), strict=True):
            self._kernels.add(each, float(start[where]), float(end[where]))

    def _see_kernel(self, name: str, number: object, start: float, end: float) -> None:
        # A kernel that talks to the neighbouring stage waits for it; that is no cost of a layer.
        if "SendRecv" not in name and "send_recv" not in name:
            self._kernels.add(number, start, end)

    def _see_named(
        self, name: str, category: str, thread: object, arguments: Event, start: float, end: float
    ) -> None:
        op = _OP.fullmatch(name)
        if op and name.startswith("PP:"):
            self._ops.append((OpSpan(int(op[1]), op[2], int(op[3]), start, end), thread))
        elif _STEP.fullmatch(name):
            self._steps.append((start, end))
        elif category == "cpu_op":
            self._see_cpu_op(name, thread, arguments, start, end)
        if category != "cpu_op":
            if any(pattern.fullmatch(name) for pattern in self._wanted.values()):
                self._layers.append(NamedSpan(name, thread, start, end))
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
        backward = name.startswith(_BACKWARD) or arguments.get("Fwd thread id")
        ops = self._backward_ops if backward else self._forward_ops
        ops[thread].add(number, start, end)

    def _see_exact(self, name: str, arguments: Event) -> None:
        op, start, end = _OP.fullmatch(name), arguments.get("start_ms"), arguments.get("end_ms")
        starts_ms, ends_ms = duration(start), duration(end)
        if op and starts_ms is not None and ends_ms is not None and ends_ms >= starts_ms:
            self._exact.append(OpSpan(int(op[1]), op[2], int(op[3]), starts_ms, ends_ms))

    def ops(self, source: str) -> tuple[OpTrace | None, tuple[str, ...]]:
        """Give the times of whole ops; None when the trace has none."""
        times: dict[tuple[int, str], list[float]] = defaultdict(list)
        notes: tuple[str, ...] = ()
        runs = list(self._exact)
        for op in self._exact:
            times[op.cell, op.kind].append(op.end_ms - op.start_ms)
        found = len(self._kernels.number)
        if self._ops and not found:
            notes = ("no kernels: the spans of the ops count as they stand, with the waiting inside them",)
        kernels = Kernels(self._kernels, self._launches) if self._ops and found else None
        for (cell, kind, micro_batch, start, end), thread in self._ops:
            works_us = end - start
            if kernels is not None:
                spans = kernels.of_span(NamedSpan(kind, thread, start, end))
                works_us = _covered(spans)
                if len(spans):
                    start, end = float(spans.start_us.min()), float(spans.end_us.max())
            times[cell, kind].append(works_us / 1000)
            runs.append(OpSpan(cell, kind, micro_batch, start / 1000, end / 1000))
        if not times:
            return None, notes
        sorted_times = {key: tuple(found) for key, found in sorted(times.items())}
        return OpTrace(source=source, times_ms=sorted_times, spans=tuple(runs)), notes

    def scopes(self, source: str, rank: int | None) -> tuple[ScopeTrace | None, tuple[str, ...]]:
        """Layers by the kernels that they launch; None when none of those wanted is there."""
        if not self._layers or not len(self._kernels.number):
            return None, ()  # none that is wanted, no PyTorch trace, or one of the CPU alone
        kernels = Kernels(self._kernels, self._launches)
        trace = ScopeTrace(
            source=source,
            layers=forwards(kernels, self._layers),
            backwards=backwards(kernels, self._layers, self._forward_ops, self._backward_ops),
            steps_us=kernels.step_marks(self._steps),
            rank=rank,
        )
        return trace, ()


def _pattern(name: str) -> re.Pattern[str]:
    """Spans of a name: as it stands, as a module, and with a number behind it."""
    return re.compile(rf"(?:{re.escape(_MODULE)})?{re.escape(name)}(?:[_.:#]\d+)?")


def _covered(spans: Spans) -> float:
    """Time in which at least one of some spans runs."""
    order = np.argsort(spans.start_us, kind="stable")
    start, end = spans.start_us[order], np.maximum.accumulate(spans.end_us[order])
    before = np.concatenate([[-np.inf], end[:-1]])
    return float(np.maximum(end - np.maximum(start, before), 0.0).sum())
