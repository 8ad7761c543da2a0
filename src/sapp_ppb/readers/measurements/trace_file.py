"""A profiler's timeline: the layers or ops that it tells of, whoever wrote it."""

import re
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from sapp_ppb.costs.measured import TraceContent
from sapp_ppb.errors import InputError
from sapp_ppb.files import is_folder
from sapp_ppb.readers.measurements.kernel_spans import KernelCollector
from sapp_ppb.readers.measurements.scope_spans import ScopeCollector
from sapp_ppb.readers.measurements.trace_events import Clock, Watch, trace_events

_RANK = re.compile(r"(?:rank|device)[-_]?(\d{1,6})", re.IGNORECASE)
_BESIDE = re.compile(r"profiler_info_(\d{1,6})\.json")
_NUMBER = re.compile(r"(\d{1,6})$")
_TRACES = ("*.json", "*.json.gz", "*.raw.gz")
# What profilers write beside their timelines.
_NO_TRACES = re.compile(r"(communication|profiler_info|profiler_metadata|analysis|step_trace)", re.IGNORECASE)


def read_trace(path: str | PathLike[str], wanted: Iterable[str], watch: Watch | None = None) -> TraceContent:
    """
    Layers and ops of a trace: Ascend, MindSpore, PyTorch, or one of our own.

    Parameters
    ----------
    path
        JSON, or gzipped JSON; read as a stream.
    wanted
        Names of layers.  ``DecodeLayer`` stands for ``42-DecodeLayer`` in a scope, and for
        ``nn.Module: DecodeLayer_42`` and ``DecodeLayer.42`` in a PyTorch trace.
    watch
        Called now and then with the share of the file that is read.

    Raises
    ------
    InputError
        If the file can not be read, or is no trace.
    """
    about: dict[str, object] = {}
    names = tuple(wanted)
    clock = Clock()
    scopes, kernels = ScopeCollector(names, clock), KernelCollector(names, clock)
    for event in trace_events(path, about, watch):
        scopes.see(event)
        kernels.see(event)
    source, rank = str(path), _rank(Path(path), about)
    kernels.attach(scopes.device())
    ops, notes = kernels.ops(source)
    found, more = kernels.scopes(source, rank)
    if found is None:
        found, most = scopes.result(source, rank)
        more = (*more, *most)
    names_seen = dict((scopes.names + kernels.names).most_common())
    return TraceContent(scopes=found, ops=ops, names=names_seen, notes=(*notes, *more))


def trace_files(paths: Iterable[str | PathLike[str]]) -> list[Path]:
    """
    Trace files that paths name: files as they are, and those in folders, in the order of their names.

    Raises
    ------
    InputError
        If a folder has none, or a path is none.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if not is_folder(path):
            found.append(path)
            continue
        inside = {file for pattern in _TRACES for file in path.rglob(pattern) if file.is_file()}
        traces = sorted(file for file in inside if not _NO_TRACES.match(file.name))
        if not traces:
            raise InputError(str(path), [f"holds no trace; one of {', '.join(_TRACES)} is wanted"])
        found += traces
    return found


def _rank(path: Path, about: dict[str, object]) -> int | None:
    """Rank that a trace names, or else its path."""
    distributed = about.get("distributedInfo")
    if isinstance(distributed, dict) and isinstance(distributed.get("rank"), int):
        return int(distributed["rank"])
    name = path.name.split(".")[0]
    beside = [
        file.name for folder in path.parents[:2] for file in sorted(folder.glob("profiler_info_*.json"))
    ]
    # Ascend's profiler leaves its rank in the name of a file beside, one for each rank in a folder.
    told = _BESIDE.fullmatch(beside[0]) if len(beside) == 1 else None
    found = _RANK.search(name) or told or _NUMBER.search(name) or _RANK.search(str(path.parent))
    return int(found[1]) if found else None
