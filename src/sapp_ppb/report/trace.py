"""
The trace: a timeline in the Trace Event format, which Perfetto and chrome://tracing open.

A process a stage, a slice an op, an arrow a message and a track for memory.  Events of
a stage stand in the order of their times, and of two slices that begin together the
outer one is first, which is what viewers nest by.
"""

import json
from collections.abc import Iterator
from os import PathLike

import numpy as np

from sapp_ppb.files import whole_file
from sapp_ppb.report.blocks import Blocks, Floats, Ints, messages, timeline_blocks
from sapp_ppb.report.memory_curve import memory_curve
from sapp_ppb.report.words import EXTRA_NAME
from sapp_ppb.schedules import OpKind
from sapp_ppb.schedules.op import WHOLE
from sapp_ppb.simulator import Timeline

_NS_PER_MS = 1_000_000
_COMPUTE, _OVERLAPPED = 1, 2  # threads: what overlaps would else stand on one of them at once


def write_trace(timeline: Timeline, path: str | PathLike[str], force: bool = False) -> None:
    """
    Write a trace file, event by event; linear in ops.

    ``ts`` and ``dur`` are microseconds, rounded to nanoseconds, which is what viewers
    count in; ``args`` of an op hold its times in milliseconds as the simulator has
    them, its stage, cell, chunk and micro-batch, and how much of it is recompute.  Of a
    pair of ops that overlap, the backward is on a thread of its own.

    Parameters
    ----------
    timeline
        What to write.
    path
        File to write; missing folders are made.
    force
        Replace a file that exists.

    Raises
    ------
    InputError
        If the file exists and ``force`` is not set, or if it can not be written.
    """
    with whole_file(path, force) as file:
        head = json.dumps(_about(timeline))
        file.write(f'{{"displayTimeUnit": "ms",\n"otherData": {head},\n"traceEvents": [\n'.encode())
        comma = b""
        for event in trace_events(timeline):
            file.write(comma + event.encode())
            comma = b",\n"
        file.write(b"\n]}\n")


def _about(timeline: Timeline) -> dict[str, object]:
    problem = timeline.plan.problem
    return {
        "format": "sapp-ppb-trace",
        "model": problem.model.name,
        **({"estimate": True} if problem.model.estimated else {}),
        "stages": problem.stages,
        "interleave": problem.interleave,
        "micro_batches": problem.micro_batches,
        "schedule": problem.schedule_name.value,
        "makespan_ms": timeline.makespan_ms,
        **({"step_ms": timeline.step_ms} if timeline.extra_ms else {}),
        "peak_memory_mb": list(timeline.peak_memory_mb),
        "units": "ts and dur in microseconds, args in milliseconds, memory in MB of 2^20 bytes",
    }


def trace_events(timeline: Timeline) -> Iterator[str]:
    """
    Give the events of a timeline one by one, each as JSON, stage after stage.

    Yields
    ------
    str
        One event on one line.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> from sapp_ppb.simulator import simulate
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=1, forward_ms=2)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=1, micro_batches=1)
    >>> events = trace_events(simulate(plan_from_matrices(problem, {"Dec": {"none": [[1]]}})))
    >>> slices = [event for event in map(json.loads, events) if event["ph"] == "X"]
    >>> [(event["name"], event["ts"], event["dur"]) for event in slices]  # F 2 ms, B 4 ms
    [('0F0', 0.0, 2000.0), ('0B0', 2000.0, 4000.0)]
    """
    ops, end = _Ops(timeline_blocks(timeline), messages(timeline)), 0
    for stage, curve in enumerate(memory_curve(timeline)):
        first, end = end, end + len(timeline.start_ms[stage])
        yield from _names(stage, beside=ops.overlap(first, end))
        for index in range(first, end):
            yield from ops.events(index)
        if timeline.extra_ms:
            yield _extra(stage, *timeline.extra_ms[stage])
        times_us = _microseconds(_nanoseconds(curve.time_ms)).tolist()
        for time_us, memory_mb in zip(times_us, curve.memory_mb.tolist(), strict=True):
            yield (
                f'{{"ph": "C", "pid": {stage}, "ts": {time_us}, "name": "memory", '
                f'"args": {{"MB": {memory_mb}}}}}'
            )


def _names(stage: int, *, beside: bool) -> Iterator[str]:
    """Name a process and its threads, and keep the stages in their order."""
    where = f'{{"ph": "M", "pid": {stage}, "tid": '
    yield f'{where}{_COMPUTE}, "name": "process_name", "args": {{"name": "stage {stage}"}}}}'
    yield f'{where}{_COMPUTE}, "name": "process_sort_index", "args": {{"sort_index": {stage}}}}}'
    yield f'{where}{_COMPUTE}, "name": "thread_name", "args": {{"name": "compute"}}}}'
    if beside:
        yield f'{where}{_OVERLAPPED}, "name": "thread_name", "args": {{"name": "overlapped backward"}}}}'


def _extra(stage: int, start_ms: float, end_ms: float) -> str:
    """Give the slice of what a stage does after its last op."""
    start_ns, end_ns = _nanoseconds(np.array([start_ms, end_ms]))
    start_us, lasts_us = _microseconds(np.array([start_ns, end_ns - start_ns])).tolist()
    return (
        f'{{"ph": "X", "pid": {stage}, "tid": {_COMPUTE}, "ts": {start_us}, "dur": {lasts_us}, '
        f'"name": "{EXTRA_NAME}", "cat": "extra", "args": {{"stage": {stage}, "start_ms": {start_ms}, '
        f'"end_ms": {end_ms}}}}}'
    )


class _Ops:
    """The ops of a timeline, in columns as lists, which are faster to take single values from."""

    def __init__(self, blocks: Blocks, sent: Ints) -> None:
        start_ns, end_ns = _nanoseconds(blocks.start_ms), _nanoseconds(blocks.end_ms)
        again_ns = _nanoseconds(blocks.start_ms + blocks.recompute_ms) - start_ns
        self._start_us = _microseconds(start_ns).tolist()
        self._lasts_us = _microseconds(end_ns - start_ns).tolist()
        self._again_us = _microseconds(again_ns).tolist()
        # An arrow must begin within its slice, and the next may begin where this one ends.
        self._leaves_us = _microseconds(np.maximum(start_ns, end_ns - 1)).tolist()
        self._start_ms, self._end_ms = blocks.start_ms.tolist(), blocks.end_ms.tolist()
        self._again_ms = blocks.recompute_ms.tolist()
        self._kind = [OpKind(kind).name for kind in blocks.kind.tolist()]
        self._stage, self._cell = blocks.stage.tolist(), blocks.cell.tolist()
        self._chunk, self._micro_batch = blocks.chunk.tolist(), blocks.micro_batch.tolist()
        pieces = blocks.sequence_chunk.tolist()
        self._piece = ["" if piece == WHOLE else f".{piece}" for piece in pieces]
        self._cut = ["" if piece == WHOLE else f', "sequence_chunk": {piece}' for piece in pieces]
        self._beside = blocks.overlapped & (blocks.kind != OpKind.F)
        self._thread = np.where(self._beside, _OVERLAPPED, _COMPUTE).tolist()
        self._sends: dict[int, list[int]] = {}
        for sender, receiver in sent.tolist():
            self._sends.setdefault(sender, []).append(receiver)
        self._receives = set(sent[:, 1].tolist())

    def overlap(self, first: int, end: int) -> bool:
        """Whether any of some ops runs beside another."""
        return bool(self._beside[first:end].any())

    def events(self, index: int) -> Iterator[str]:
        """Give the slice of an op, what arrives at it, its recompute part, and what it sends."""
        kind, cell, micro_batch = self._kind[index], self._cell[index], self._micro_batch[index]
        where = f'"pid": {self._stage[index]}, "tid": {self._thread[index]}'
        start_us, again_ms = self._start_us[index], self._again_ms[index]
        yield (
            f'{{"ph": "X", {where}, "ts": {start_us}, "dur": {self._lasts_us[index]}, '
            f'"name": "{cell}{kind}{micro_batch}{self._piece[index]}", "cat": "{kind}", "args": {{'
            f'"stage": {self._stage[index]}, "cell": {cell}, "chunk": {self._chunk[index]}, '
            f'"micro_batch": {micro_batch}{self._cut[index]}, "start_ms": {self._start_ms[index]}, '
            f'"end_ms": {self._end_ms[index]}, "recompute_ms": {again_ms}}}}}'
        )
        if index in self._receives:
            yield f'{{"ph": "f", "bp": "e", {where}, "ts": {start_us}, {_message(index)}}}'
        if again_ms > 0:
            yield (
                f'{{"ph": "X", {where}, "ts": {start_us}, "dur": {self._again_us[index]}, '
                f'"name": "recompute", "cat": "recompute"}}'
            )
        for receiver in self._sends.get(index, ()):
            yield f'{{"ph": "s", {where}, "ts": {self._leaves_us[index]}, {_message(receiver)}}}'


def _message(receiver: int) -> str:
    """Say what the two ends of an arrow share; an op receives one message at most."""
    return f'"id": {receiver}, "name": "message", "cat": "message"'


def _nanoseconds(time_ms: Floats) -> Floats:
    return np.rint(time_ms * _NS_PER_MS)


def _microseconds(time_ns: Floats) -> Floats:
    """
    Microseconds of whole nanoseconds, such that a viewer that cuts and one that rounds get them back.

    Examples
    --------
    >>> int(1.001 * 1000), int(_microseconds(np.array([1001.0]))[0] * 1000)
    (1000, 1001)
    """
    time_us = time_ns / 1000
    return np.where(np.floor(time_us * 1000) < time_ns, np.nextafter(time_us, np.inf), time_us)
