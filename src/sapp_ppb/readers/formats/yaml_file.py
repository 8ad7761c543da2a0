"""
YAML from a path, read safely: values only, each named by its place and line.

Read as YAML 1.1, which is how PyYAML and so MindFormers read it (``on`` is true,
``010`` is 8), unless the file says ``%YAML 1.2``.  Nothing in a file makes an object,
and aliases are followed only as far as the values that they stand for stay few.
"""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any

from sapp_ppb.costs.checks import listed, printable, shown
from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.text_file import in_list, in_mapping, read_text
from sapp_ppb.syntax.yaml_nodes import (
    DEEPEST_NESTING,
    LONGEST_NUMBER,
    MOST_VALUES,
    bounded_yaml,
    too_deep,
    too_many,
)

if TYPE_CHECKING:
    from ruamel.yaml.nodes import MappingNode, Node

LARGEST_FILE_MB = 1
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, kw_only=True)
class YamlDocument:
    """
    A YAML value, what is wrong inside it, and on which line each place stands.

    Attributes
    ----------
    value
        Mappings (keys as text), lists, text, numbers, bools and None.
    faults
        One sentence a fault.
    lines
        Line of every place such as ``a.b[0]``, counted from 1.
    """

    value: object
    faults: tuple[str, ...]
    lines: Mapping[str, int]

    def at(self, place: str) -> str:
        """
        Say a place and its line.

        Examples
        --------
        >>> YamlDocument(value={"a": 1}, faults=(), lines={"a": 2}).at("a")
        'a (line 2)'
        """
        line, words = self.lines.get(place), printable(place)
        return words if line is None else f"{words} (line {line})"


def read_yaml(path: str | PathLike[str]) -> object:
    """
    Value of a YAML file.

    Raises
    ------
    InputError
        As ``read_yaml_document()``, and for every fault inside the document.
    """
    document = read_yaml_document(path)
    if document.faults:
        raise InputError(str(path), document.faults)
    return document.value


def read_yaml_document(path: str | PathLike[str]) -> YamlDocument:
    """
    Value of a YAML file with the faults inside it, for a reader that gathers more.

    Faults inside are keys given twice or that are no text, numbers that are not finite,
    tags, and merge keys.

    Raises
    ------
    InputError
        If the file is missing, a folder, unreadable, larger than 1 MB, empty, no UTF-8,
        no YAML (with line and column), several documents, nested deeper than 50 levels,
        refers to itself, or holds more than 30,000 values.
    """
    where = str(path)
    text = read_text(path, largest_mb=LARGEST_FILE_MB, format_name="YAML")
    root, constructor = _parsed(where, text)
    builder = _Builder(where, constructor)
    value = builder.build(root, "", 0)
    return YamlDocument(value=value, faults=tuple(builder.faults), lines=builder.lines)


def _parsed(where: str, text: str) -> tuple["Node", Any]:
    """Tree of the one document in a text, and what makes numbers of its leaves."""
    from ruamel.yaml.error import ReusedAnchorWarning, YAMLError

    yaml = bounded_yaml(where)
    yaml.version = "1.1"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReusedAnchorWarning)  # allowed: the later one counts
            documents: list[Node] = list(islice(yaml.compose_all(text), 2))
    except RecursionError:
        raise InputError(where, [too_deep()]) from None
    except YAMLError as error:
        raise InputError(where, [_broken(error, text)]) from None
    if not documents:
        raise InputError(where, ["the file is empty; it must hold YAML"])
    if len(documents) > 1:
        line = documents[1].start_mark.line + 1
        fault = f"holds several documents, the second from line {line} on; keep one in a file"
        raise InputError(where, [fault])
    return documents[0], yaml.constructor


def _broken(error: Any, text: str) -> str:
    """Say where a text stops being YAML, and why."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:  # a character that may stand nowhere
        position = getattr(error, "position", 0)
        line, reason = text.count("\n", 0, position) + 1, f"{text[position : position + 1]!a} is not allowed"
        return f"the YAML is broken at line {line}: the character {reason}"
    reason = printable(str(error.problem or error.context).splitlines()[0])
    return f"the YAML is broken at line {mark.line + 1}, column {mark.column + 1}: {reason}"


@dataclass
class _Builder:
    """Turns a tree into values, and gathers what is wrong on the way."""

    where: str
    constructor: Any
    faults: list[str] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    _values: int = 0
    _open: set[int] = field(default_factory=set)

    def build(self, node: Any, place: str, depth: int) -> object:
        """Value of a node; one that is not allowed becomes None and a fault."""
        self._guard(node, place, depth)
        self.lines[place] = node.start_mark.line + 1
        tag = str(node.tag)
        if isinstance(node.value, str):
            return self._scalar(node, tag, place)
        if tag not in (f"{_TAG}seq", f"{_TAG}map"):
            self._fault(place, f"has the tag {shown(tag)}, which is not read; write plain values")
            return None
        self._open.add(id(node))
        try:
            if tag == f"{_TAG}map":
                return self._mapping(node, place, depth)
            return [
                self.build(item, in_list(place, index), depth + 1) for index, item in enumerate(node.value)
            ]
        finally:
            self._open.discard(id(node))

    def _guard(self, node: "Node", place: str, depth: int) -> None:
        self._values += 1
        if id(node) in self._open:
            line = node.start_mark.line + 1
            raise InputError(self.where, [f"{place} refers to what it is a part of, from line {line} on"])
        if depth > DEEPEST_NESTING:
            raise InputError(self.where, [too_deep()])
        if self._values > MOST_VALUES:
            raise InputError(self.where, [too_many()])

    def _mapping(self, node: "MappingNode", place: str, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node.value, str):
                self._fault(place, "has a key that is no text; write plain keys", key_node)
            elif str(key_node.tag) == f"{_TAG}merge":
                self._fault(place, "has a merge key (<<), which is not read; write the keys out", key_node)
            else:
                inner = in_mapping(place, key_node.value)
                found[key_node.value] = self.build(value_node, inner, depth + 1)
        times = Counter(key.value for key, _ in node.value if isinstance(key.value, str))
        doubled = [shown(key) for key, count in times.items() if count > 1]
        if doubled:
            self._fault(place, f"gives a key more than once ({listed(doubled)}); keep one", node)
        return found

    def _scalar(self, node: Any, tag: str, place: str) -> object:
        text = {f"{_TAG}{name}" for name in ("str", "timestamp", "value")}
        make: Mapping[str, Callable[[Any], object]] = {
            f"{_TAG}null": self.constructor.construct_yaml_null,
            f"{_TAG}bool": self.constructor.construct_yaml_bool,
            f"{_TAG}int": self.constructor.construct_yaml_int,
            f"{_TAG}float": self.constructor.construct_yaml_float,
        }
        if tag in text:
            return str(node.value)
        if tag not in make:
            self._fault(place, f"has the tag {shown(tag)}, which is not read; write plain values")
            return None
        try:
            if len(node.value) > LONGEST_NUMBER:
                raise ValueError
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that YAML 1.1 wants a dot in 1e-8 helps nobody
                value = make[tag](node)
        except (ValueError, KeyError, IndexError):  # a tag that its text does not keep, or too many digits
            self._fault(place, f"can not be read (got {shown(node.value)})")
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self._fault(place, f"must be a finite number (got {value})")
            return None
        return value

    def _fault(self, place: str, words: str, node: "Node | None" = None) -> None:
        line = self.lines.get(place, 0) if node is None else node.start_mark.line + 1
        self.faults.append(f"{place or 'the top level'} (line {line}) {words}")
