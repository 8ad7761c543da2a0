"""
Layers in an Ascend or MindSpore timeline (``trace_view*.json``, ``msprof*.json``).

A process named *Scope Layer* has a track a depth, and on it one span for each run of
ops that share a name there: ``42-DecodeLayer`` on one track, ``Gradients`` on another
while that is the backward.  Older files have no such process, and the ops of the
device bear the whole path as their name.
"""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from sapp_ppb.costs.measured import NO_SPANS, ScopeTrace, Spans
from sapp_ppb.readers.measurements.trace_events import Clock, Event, duration

_SCOPES = "Scope Layer"
_DEVICE = ("Ascend Hardware", "HCCL", "Communication")
_P2P = re.compile(r"send|recv|receive|notify|event_wait|event_record", re.IGNORECASE)
_STEP = re.compile(r"(?:ProfilerStep#|Iteration )\d+")
_UNIQUE_OP = re.compile(r"-op\d+$")
_NUMBERED = re.compile(r"\d+-([A-Za-z]\w*)")
_MOST_NAMES = 5_000
_CANDIDATES = 64  # ops whose repetition shows the steps


class _Growing:
    """Spans that are found one by one."""

    def __init__(self) -> None:
        self.start, self.end = array("d"), array("d")

    def add(self, start: float, lasts: float) -> None:
        """Keep one more."""
        self.start.append(start)
        self.end.append(start + lasts)


def _spans(parts: Iterable[_Growing]) -> Spans:
    found = list(parts)
    if not found:
        return NO_SPANS
    if len(found) == 1:  # millions of spans are not copied
        return Spans(start_us=np.frombuffer(found[0].start), end_us=np.frombuffer(found[0].end))
    return Spans(
        start_us=np.concatenate([np.frombuffer(part.start) for part in found]),
        end_us=np.concatenate([np.frombuffer(part.end) for part in found]),
    )


class ScopeCollector:
    """Sees the events of one trace, and keeps what tells of layers."""

    def __init__(self, wanted: Iterable[str], clock: Clock) -> None:
        self._wanted = tuple(wanted)
        self._clock = clock
        self._process: dict[object, str] = {}
        # By process, then by name: of two processes only one may be about scopes.
        self._layers: dict[object, dict[str, _Growing]] = defaultdict(lambda: defaultdict(_Growing))
        self._gradients: dict[object, _Growing] = defaultdict(_Growing)
        self._again: dict[object, _Growing] = defaultdict(_Growing)
        self._busy: dict[object, _Growing] = defaultdict(_Growing)
        self._in_paths: dict[str, _Growing] = defaultdict(_Growing)
        self._path_gradients, self._path_again = _Growing(), _Growing()
        self._steps = _Growing()
        self._repeated: dict[str, list[float]] = {}
        self._last = 0.0
        self.names: Counter[str] = Counter()
        self.without_time = 0

    def see(self, event: Event) -> None:
        """Take what is of use from one event."""
        name, phase = event.get("name"), event.get("ph")
        if phase == "M" and name == "process_name" and isinstance(event.get("args"), dict):
            self._process[event.get("pid")] = str(event["args"].get("name", ""))
        if phase != "X" or not isinstance(name, str):
            return
        start, lasts = self._clock.at(event.get("ts")), duration(event.get("dur", 0))
        if start is None or lasts is None:
            self.without_time += 1
            return
        self._last = max(self._last, start + lasts)
        # Spans of PyTorch have a category, and there may be millions of them that are no work of a device.
        self._see_span(event.get("pid"), name, start, lasts, plain="cat" not in event)

    def _see_span(self, process: object, name: str, start: float, lasts: float, *, plain: bool) -> None:
        if _STEP.fullmatch(name):
            self._steps.add(start, lasts)
            return
        known = self._process.get(process)
        if plain and (known is None or known.startswith(_DEVICE)):
            self._see_op(process, name, start, lasts)
        if "/" in name:
            self._see_path(name.split("/"), start, lasts)
            return
        self._count(name)
        if name == "Gradients":
            self._gradients[process].add(start, lasts)
        elif name.startswith("recompute"):
            self._again[process].add(start, lasts)
        elif self._is_wanted(name):
            self._layers[process][name].add(start, lasts)

    def _see_op(self, process: object, name: str, start: float, lasts: float) -> None:
        """Keep when the device works: waiting for a neighbour is no work."""
        if not _P2P.search(name):
            self._busy[process].add(start, lasts)
        if _UNIQUE_OP.search(name):
            if name in self._repeated:
                self._repeated[name].append(start)
            elif len(self._repeated) < _CANDIDATES:
                self._repeated[name] = [start]

    def _see_path(self, path: list[str], start: float, lasts: float) -> None:
        for part in path:
            self._count(part)
        layer = next((part for part in path if self._is_wanted(part)), None)
        if layer is None:
            return
        self._in_paths[layer].add(start, lasts)
        if "Gradients" in path:
            self._path_gradients.add(start, lasts)
        elif any(part.startswith("recompute") for part in path):
            self._path_again.add(start, lasts)

    def _is_wanted(self, name: str) -> bool:
        return any(name == wanted or name.endswith(f"-{wanted}") for wanted in self._wanted)

    def _count(self, name: str) -> None:
        """Remember names that look like layers, for when none of those wanted is there."""
        numbered = _NUMBERED.fullmatch(name)
        if numbered or name[-5:] in ("Layer", "Block") or "Embedding" in name:
            plain = numbered[1] if numbered else name
            if plain in self.names or len(self.names) < _MOST_NAMES:
                self.names[plain] += 1

    def result(self, source: str, rank: int | None) -> tuple[ScopeTrace | None, tuple[str, ...]]:
        """Trace of the layers that were wanted, None when there is none; and what is to be said of it."""
        notes = []
        if self.without_time:
            notes.append(f"{self.without_time:,} spans have no usable time and are left out")
        scopes = [pid for pid, name in self._process.items() if name.startswith(_SCOPES)]
        found = [pid for pid in self._layers if not scopes or pid in scopes]
        layers: dict[str, Spans]
        if found:
            names = sorted({name for pid in found for name in self._layers[pid]})
            layers = {
                name: _spans(self._layers[pid][name] for pid in found if name in self._layers[pid])
                for name in names
            }
            device = [part for pid, part in self._busy.items() if self._is_device(pid) and pid not in found]
            if not device:
                notes.append("no process of the device: spans count whole, with the waiting inside them")
            gradients = _spans(self._gradients[pid] for pid in found if pid in self._gradients)
            again = _spans(self._again[pid] for pid in found if pid in self._again)
            busy = _spans(device) if device else None
        elif self._in_paths:
            layers = {name: _spans([part]) for name, part in sorted(self._in_paths.items())}
            gradients, again, busy = _spans([self._path_gradients]), _spans([self._path_again]), None
        else:
            return None, tuple(notes)
        trace = ScopeTrace(
            source=source,
            layers=layers,
            gradients=gradients,
            again=again,
            busy=busy,
            steps_us=self._step_marks(),
            rank=rank,
        )
        return trace, tuple(notes)

    def device(self) -> Spans:
        """Give the spans in which the device works, waiting for neighbours left out."""
        return _spans(part for pid, part in self._busy.items() if self._is_device(pid))

    def _is_device(self, process: object) -> bool:
        return self._process.get(process, "").startswith(_DEVICE)

    def _step_marks(self) -> tuple[float, ...]:
        """Where steps begin, by the marks of the profiler or else by an op that comes once a step."""
        if len(self._steps.start):
            return (*sorted(self._steps.start), max(self._steps.end))
        times = Counter(len(starts) for starts in self._repeated.values())
        if not times:
            return ()
        steps = times.most_common(1)[0][0]
        first = min((starts for starts in self._repeated.values() if len(starts) == steps), key=min)
        return (*sorted(first), self._last) if steps > 1 else ()
