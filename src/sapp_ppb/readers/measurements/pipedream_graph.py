r"""
The ``graph.txt`` that PipeDream's profiler writes: a line for each operator, then one for each edge.

An operator is ``node4 -- Linear(in_features=8, ...) -- forward_compute_time=..,
backward_compute_time=.., activation_size=.., parameter_size=..``, in milliseconds and
bytes, with `` -- stage_id=N`` behind it where it was partitioned; an edge is a tab and
``node4 -- node5``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike

from sapp_ppb.costs.checks import printable, shown, text_fault
from sapp_ppb.costs.profiled import GraphNode, OperatorGraph
from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.number_text import number_of
from sapp_ppb.readers.formats.text_file import read_text, refuse_many

_LARGEST_MB = 64
_MOST_LINES = 100_000
_MOST_FAULTS = 20  # a file of another format has a fault on every line
_SEPARATOR = " -- "
_BYTES = 2.0**20  # of one MB
_LARGEST_BYTES = 1e13  # 10 TB in one operator is a slip of the unit
_NODE = re.compile(
    r"(?P<name>\S+) -- (?P<operator>.*) -- "
    r"forward_compute_time=(?P<forward_compute_time>[^,]*), "
    r"backward_compute_time=(?P<backward_compute_time>[^,]*), "
    r"activation_size=(?P<activation_size>[^,]*), "
    r"parameter_size=(?P<parameter_size>[^,]*?)(?: -- stage_id=\d+)?"
)
_TIMES = ("forward_compute_time", "backward_compute_time")
_SIZES = ("activation_size", "parameter_size")
_FORM = (
    "NAME -- OPERATOR -- forward_compute_time=MS, backward_compute_time=MS, activation_size=BYTES, "
    "parameter_size=BYTES"
)


@dataclass
class _Findings:
    nodes: dict[str, GraphNode] = field(default_factory=dict)
    edges: dict[tuple[str, str], int] = field(default_factory=dict)  # the line of each
    faults: list[str] = field(default_factory=list)


def read_operator_graph(path: str | PathLike[str]) -> OperatorGraph:
    r"""
    Graph of a ``graph.txt``.

    A size may be a list of several outputs, ``[6291456.0; 131072.0]``, which are added.
    Stages of a partitioned graph are not read.

    Raises
    ------
    InputError
        If the file can not be read, a line is neither an operator nor an edge, a value is
        not allowed, an operator stands there twice, an edge leads nowhere or edges lead in
        a circle; with the lines of all such faults at once.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> times = "forward_compute_time=1.5, backward_compute_time=2.0"
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "graph.txt")
    ...     _ = path.write_text(
    ...         f"a -- Conv2d(3, 64) -- {times}, activation_size=2097152.0, parameter_size=0.0\n"
    ...         f"b -- LSTM(8) -- {times}, activation_size=[524288.0; 524288.0], parameter_size=0.0\n"
    ...         "\ta -- b\n")
    ...     graph = read_operator_graph(path)
    >>> [node.activation_mb for node in graph.nodes], graph.inputs  # 2^21 and 2 * 2^19 bytes
    ([2.0, 1.0], ((), (0,)))
    """
    where = str(path)
    text = read_text(where, largest_mb=_LARGEST_MB, format_name="a graph of PipeDream")
    refuse_many(where, text, lines=_MOST_LINES, cells=10 * _MOST_LINES)
    found = _Findings()
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        if line[0].isspace() or _is_bare_edge(line, found):
            _read_edge(line.strip(), number, found)
        else:
            _read_node(line.strip(), number, found)
    if not found.nodes and not found.faults:
        found.faults.append(f"holds no operator; a line of one is {_FORM}")
    found.faults += _dangling(found)
    names = list(found.nodes)
    inputs = _inputs(names, found)
    if not found.faults:
        found.faults += _circle_fault(names, inputs, found)
    if found.faults:
        more = len(found.faults) - _MOST_FAULTS
        ends = [f"and {more} more faults"] if more > 0 else []
        raise InputError(str(path), [*found.faults[:_MOST_FAULTS], *ends])
    return OperatorGraph(source=str(path), nodes=tuple(found.nodes.values()), inputs=inputs)


def _is_bare_edge(line: str, found: _Findings) -> bool:
    """Whether a line is an edge that lost its tab: two operators that are known."""
    words = line.strip().split(_SEPARATOR)
    return len(words) == 2 and all(word in found.nodes for word in words)


def _read_edge(line: str, number: int, found: _Findings) -> None:
    words = line.split(_SEPARATOR)
    if len(words) != 2 or not all(words) or any(word.split() != [word] for word in words):
        found.faults.append(f"line {number}: an edge must be NAME -- NAME (got {shown(line)})")
    else:
        found.edges.setdefault((words[0], words[1]), number)


def _read_node(line: str, number: int, found: _Findings) -> None:
    place = f"line {number}"
    values = _NODE.fullmatch(line)
    if values is None:
        found.faults.append(f"{place}: must be {_FORM} (got {shown(line)}); is it cut off?")
        return
    name, operator = values["name"], values["operator"]
    faults = [text_fault(f"{place}: the name", name), text_fault(f"{place}: the operator", operator)]
    if name in found.nodes:
        faults.append(f"{place}: {shown(name)} stands there twice; its first line is the one to keep")
    times = [_number(place, key, values[key], faults) for key in _TIMES]
    sizes = [_bytes(place, key, values[key], faults) for key in _SIZES]
    found.faults += [fault for fault in faults if fault]
    # Kept in spite of faults, so that its edges do not seem to lead nowhere.
    found.nodes.setdefault(
        name,
        GraphNode(
            name=name,
            operator=operator,
            forward_ms=times[0],
            backward_ms=times[1],
            activation_mb=sizes[0] / _BYTES,
            parameter_mb=sizes[1] / _BYTES,
        ),
    )


def _number(place: str, key: str, text: str, faults: list[str | None]) -> float:
    number, fault = number_of(f"{place}: {key}", text)
    faults.append(fault)
    return number


def _bytes(place: str, key: str, text: str, faults: list[str | None]) -> float:
    """Bytes of a size, or of the several outputs that a bracketed list gives."""
    text = text.strip()
    parts = text[1:-1].split(";") if text.startswith("[") and text.endswith("]") else [text]
    size = sum(_number(place, key, part, faults) for part in parts)
    if size != int(size):
        faults.append(f"{place}: {key} must be a whole number of bytes (got {shown(text)}); check the unit")
    elif size > _LARGEST_BYTES:
        faults.append(
            f"{place}: {key} must be at most {_LARGEST_BYTES:g} bytes (got {shown(text)}); check the unit"
        )
    return size


def _dangling(found: _Findings) -> list[str]:
    """Faults of edges whose ends are no operators."""
    return [
        f"line {number}: the edge {printable(start)} -- {printable(end)} names {shown(name)}, "
        "which no line describes; give its line, or take the edge out"
        for (start, end), number in found.edges.items()
        for name in dict.fromkeys((start, end))
        if name not in found.nodes
    ]


def _inputs(names: Sequence[str], found: _Findings) -> tuple[tuple[int, ...], ...]:
    position = {name: at for at, name in enumerate(names)}
    inputs: list[list[int]] = [[] for _ in names]
    for start, end in found.edges:
        if start in position and end in position:
            inputs[position[end]].append(position[start])
    return tuple(tuple(sorted(known)) for known in inputs)


def _circle_fault(names: Sequence[str], inputs: Sequence[Sequence[int]], found: _Findings) -> Iterator[str]:
    """Name the operators of one circle, and the line of the edge that closes it."""
    waiting = _in_circles(inputs)
    if not waiting:
        return
    at, seen = min(waiting), dict[int, None]()
    while at not in seen:  # every one that waits has an input that waits
        seen[at] = None
        at = next(before for before in inputs[at] if before in waiting)
    # Against the edges was walked, so that the circle is the end of the way, reversed.
    circle = [names[other] for other in reversed(list(seen)[list(seen).index(at) :])]
    lines = [found.edges[edge] for edge in zip(circle, [*circle[1:], circle[0]], strict=True)]
    closing = lines.index(max(lines)) + 1
    circle = circle[closing:] + circle[:closing]
    circle = list(map(printable, circle))
    words = " -- ".join([*circle[:8], *(["..."] if len(circle) > 8 else []), circle[0]])
    yield f"line {max(lines)}: the edge closes a circle, {words}; operators must not wait for themselves"


def _in_circles(inputs: Sequence[Sequence[int]]) -> set[int]:
    """Operators that never get all of their inputs."""
    missing = [len(known) for known in inputs]
    users: list[list[int]] = [[] for _ in inputs]
    for at, known in enumerate(inputs):
        for before in known:
            users[before].append(at)
    ready = [at for at, number in enumerate(missing) if number == 0]
    while ready:
        for user in users[ready.pop()]:
            missing[user] -= 1
            if missing[user] == 0:
                ready.append(user)
    return {at for at, number in enumerate(missing) if number > 0}
