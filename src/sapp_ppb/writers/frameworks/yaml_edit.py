"""
Changes to single values of a YAML text, every other byte kept.

The text is parsed for the places of its nodes only, and new values are spliced in:
comments, anchors, order, spacing, quotes and line ends stay as they are.
"""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sapp_ppb.costs.checks import shown
from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.syntax.yaml_nodes import LONGEST_NUMBER, MOST_VALUES, bounded_yaml, too_many

_DEEPEST_VALUE = 5
_STEP = 2  # columns that a new section is indented by
_TAG = "tag:yaml.org,2002:"


@dataclass
class YamlEdit:
    r"""
    One text and what is to be changed in it.

    Attributes
    ----------
    text
        YAML of one document that is a mapping.
    where
        What errors name.

    Raises
    ------
    InputError
        If the text is no such YAML, or a place can not be changed.

    Examples
    --------
    >>> edit = YamlEdit("a: {b: [1,0]}  # kept\nc: &c 2\n", "x.yaml")
    >>> edit.set("a.b", [1, 3])
    >>> edit.set("c", 4)
    >>> edit.set("d", False)
    >>> print(edit.result(), end="")
    a: {b: [1,3]}  # kept
    c: &c 4
    d: False
    """

    text: str
    where: str
    _root: Any = field(init=False)
    _constructor: Any = field(init=False)
    _made: int = 0
    _splices: list[tuple[int, int, str]] = field(default_factory=list)
    _missing: dict[tuple[tuple[str, ...], str], dict[str, object]] = field(default_factory=dict)
    _wanted: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Parse the text."""
        from ruamel.yaml.error import ReusedAnchorWarning, YAMLError

        yaml = bounded_yaml(self.where)
        yaml.version = "1.1"  # as MindFormers reads it
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ReusedAnchorWarning)
                documents = list(islice(yaml.compose_all(self.text), 2))
        except (YAMLError, RecursionError) as error:
            reason = str(getattr(error, "problem", None) or "nested too deeply").splitlines()[0]
            raise InputError(self.where, [f"the YAML can not be read: {ascii(reason)[1:-1]}"]) from None
        if len(documents) != 1 or not _is_map(documents[0]):
            raise InputError(self.where, ["must hold one YAML document, a mapping, to be edited"])
        self._root, self._constructor = documents[0], yaml.constructor

    def value(self, place: str) -> object:
        """Value of a place such as ``a.b``; None where there is none."""
        found = self._pairs(place.split("."))
        return None if found is None else self._plain(found[-1][1], 0)

    def set(self, place: str, value: object, *, beside: Sequence[str] = ()) -> None:
        """
        Give a place another value; one that it has already keeps its text.

        Parameters
        ----------
        value
            A bool, whole number or text, a list of these or of such lists, or a mapping
            whose keys are there already.
        beside
            Keys of the same section, best first, after which a new one goes; the last
            of the section without.
        """
        path = place.split(".")
        self._wanted[place] = value
        pairs = self._pairs(path)
        if pairs is not None:
            self._change(*pairs[-1], value)
            return
        parent = self._deepest(path)
        section = self._section(parent)
        keys = [key.value for key, _ in section.value] if _is_map(section) else []
        sibling = next((key for key in beside if key in keys), "") if len(parent) == len(path) - 1 else ""
        here = self._missing.setdefault((parent, sibling), {})
        for key in path[len(parent) : -1]:
            here = here.setdefault(key, {})  # type: ignore[assignment]
        here[path[-1]] = value

    def result(self) -> str:
        """Text with the changes."""
        # At one place the keys of the innermost section come first, after a change of its last value.
        missing = sorted(self._missing.items(), key=lambda item: -len(item[0][0]))
        splices = [*self._splices, *(self._added(*at, new) for at, new in missing)]
        text = self.text
        for _, (start, end, new) in sorted(enumerate(splices), key=lambda x: (x[1][0], x[0]), reverse=True):
            text = text[:start] + new + text[end:]
        edited = YamlEdit(text, self.where) if splices else self
        wrong = [place for place, value in self._wanted.items() if repr(edited.value(place)) != repr(value)]
        if wrong:
            raise InputError(
                self.where, [f"{place} can not be edited in place; write it by hand" for place in wrong]
            )
        return text

    def _pairs(self, path: Sequence[str]) -> list[tuple[Any, Any]] | None:
        """Key and value nodes on the way to a place; None when it is not there."""
        node, pairs = self._root, list[tuple[Any, Any]]()
        for key in path:
            found = [pair for pair in node.value if pair[0].value == key] if _is_map(node) else []
            if len(found) > 1:
                raise InputError(self.where, [f"gives {shown(key)} more than once; keep one"])
            if not found:
                return None
            pairs.append(found[0])
            node = found[0][1]
        return pairs

    def _deepest(self, path: Sequence[str]) -> tuple[str, ...]:
        """Longest part of a path that is there."""
        lengths = range(len(path) - 1, 0, -1)
        return next((tuple(path[:n]) for n in lengths if self._pairs(path[:n]) is not None), ())

    def _section(self, path: tuple[str, ...]) -> Any:
        """Node of a section that takes keys: a mapping, or one that is still empty."""
        pairs = self._pairs(path) or []
        if any(_is_alias(*pair) for pair in pairs):
            raise InputError(
                self.where, [f"{'.'.join(path)} is an alias (*); write its keys out to edit them"]
            )
        node = pairs[-1][1] if pairs else self._root
        if not _is_map(node) and str(node.tag) != f"{_TAG}null":
            raise InputError(
                self.where, [f"{'.'.join(path)} must hold keys to be edited (got {_found(node)})"]
            )
        return node

    def _plain(self, node: Any, depth: int) -> object:
        """Value of a node; text where it is of no plain kind."""
        if depth > _DEEPEST_VALUE:
            raise InputError(self.where, ["a value to be edited is nested too deeply"])
        self._made = 1 if depth == 0 else self._made + 1
        if self._made > MOST_VALUES:  # aliases of aliases
            raise InputError(self.where, [too_many()])
        if _is_map(node):
            return {str(key.value): self._plain(value, depth + 1) for key, value in node.value}
        if isinstance(node.value, list):
            return [self._plain(item, depth + 1) for item in node.value]
        make = {
            f"{_TAG}bool": self._constructor.construct_yaml_bool,
            f"{_TAG}int": self._constructor.construct_yaml_int,
            f"{_TAG}null": self._constructor.construct_yaml_null,
        }.get(str(node.tag) if len(node.value) <= LONGEST_NUMBER else "")
        try:
            return make(node) if make else str(node.value)
        except (ValueError, KeyError, IndexError):
            return str(node.value)

    def _change(self, key: Any, node: Any, value: object) -> None:
        """Splice a value in for another one."""
        if repr(self._plain(node, 0)) == repr(value):
            return
        if _is_alias(key, node):
            self._splices.append((*self._alias(key), _flow(value, "")))
            return
        self._note_anchor(node)
        if _is_map(node) and isinstance(value, dict):
            for inner, part in node.value:
                self._change(inner, part, value[inner.value])
        elif isinstance(node.value, list) and isinstance(value, list) and self._has_shape(node, value):
            for inner, part in _leaves(node, value):
                if repr(self._plain(inner, 0)) != repr(part):
                    self._replace(inner, part)
        elif isinstance(node.value, list) and not node.flow_style:
            self._replace_block(key, node, value)
        elif _is_empty(node):
            self._splices.append((self._behind(key), self._behind(key), f" {_flow(value, '')}"))
        else:
            self._replace(node, value)

    def _note_anchor(self, node: Any) -> None:
        if node.anchor and re.search(rf"\*{re.escape(node.anchor)}(?![^\s,\]}}])", self.text):
            note = f"the value at &{node.anchor} changes, and so does all that refers to it as *{node.anchor}"
            warnings.warn(f"{self.where}: {note}", FileNote, stacklevel=5)

    def _has_shape(self, node: Any, value: object) -> bool:
        """Whether a list is written like another one, number for number, without aliases."""
        if not isinstance(value, list):
            return not isinstance(node.value, list)
        if not isinstance(node.value, list) or _is_map(node) or len(node.value) != len(value):
            return False
        # The node of an alias stands where its anchor is.
        starts = [item.start_mark.index for item in node.value]
        inside = starts == sorted(set(starts)) and all(start > node.start_mark.index for start in starts)
        return inside and all(
            self._has_shape(item, part) for item, part in zip(node.value, value, strict=True)
        )

    def _replace(self, node: Any, value: object) -> None:
        """Splice a value in for a scalar or a list in brackets; its anchor stays."""
        start, end = node.start_mark.index, node.end_mark.index
        old = self.text[start:end]
        marks = re.match(r"(?:[&!]\S*[ \t]*)*", old)
        kept = marks[0] if marks else ""
        if "!" in kept:
            raise InputError(
                self.where, [f"a value with a tag, {shown(old)}, can not be edited; write it plainly"]
            )
        new = _flow(value, old[len(kept) :])
        self._splices.append((start + len(kept), end, f" {new}" if kept == old else new))

    def _replace_block(self, key: Any, node: Any, value: object) -> None:
        """Splice a value in behind its key for the lines of a list or mapping below it."""
        after = self._behind(key)
        marks = re.match(r"[ \t]*&\S+", self.text[after:])
        after += marks.end() if marks else 0
        self._splices.append((after, after, f" {_flow(value, '')}"))
        self._splices.append((self._line_end(after), self._line_end(self._end(key, node)), ""))

    def _behind(self, key: Any) -> int:
        """Where the colon of a key ends."""
        return self.text.index(":", key.end_mark.index) + 1

    def _alias(self, key: Any) -> tuple[int, int]:
        """Start and end of the alias behind a key."""
        found = re.compile(r"\s*:\s*(\*[^\s,\[\]{}]+)").match(self.text, key.end_mark.index)
        if found is None:
            raise InputError(
                self.where, [f"the alias of {shown(key.value)} can not be edited; write its value"]
            )
        return found.span(1)

    def _end(self, key: Any, node: Any) -> int:
        """Where the text of a value ends, comments behind it left out."""
        if key is not None and _is_alias(key, node):
            return self._alias(key)[1]
        if key is not None and _is_empty(node):
            return self._behind(key)
        if isinstance(node.value, list) and node.value and not node.flow_style:
            last = node.value[-1]
            return self._end(*last) if isinstance(last, tuple) else self._end(None, last)
        end = int(node.end_mark.index)
        return len(self.text[:end].rstrip("\r\n"))

    def _line_end(self, at: int) -> int:
        """Where the line of a place ends, its line break left out."""
        end = self.text.find("\n", at)
        end = len(self.text) if end < 0 else end
        return end - 1 if self.text[at:end].endswith("\r") else end

    def _added(
        self, parent: tuple[str, ...], sibling: str, new: Mapping[str, object]
    ) -> tuple[int, int, str]:
        """Splice that gives a section new keys."""
        node, line_break = self._section(parent), "\r\n" if "\r\n" in self.text else "\n"
        if not _is_map(node):
            key = (self._pairs(parent) or [])[-1][0]
            at, column = self._line_end(self._end(key, node)), key.start_mark.column + _STEP
        elif node.flow_style:
            inner = _flow(dict(new), "")[1:-1]
            at = self._end(*node.value[-1]) if node.value else node.end_mark.index - 1
            return at, at, f", {inner}" if node.value else inner
        else:
            pair = next((pair for pair in node.value if pair[0].value == sibling), node.value[-1])
            at, column = self._line_end(self._end(*pair)), pair[0].start_mark.column
        return at, at, "".join(f"{line_break}{line}" for line in _lines(new, column))


def _is_map(node: Any) -> bool:
    return str(node.tag) == f"{_TAG}map" and isinstance(node.value, list)


def _is_alias(key: Any, node: Any) -> bool:
    """Whether a value stands elsewhere, before its key: where its anchor is."""
    return int(node.start_mark.index) < int(key.end_mark.index)


def _is_empty(node: Any) -> bool:
    """Whether nothing is written; the parser then puts the node anywhere before the next one."""
    return bool(node.value == "" and node.start_mark.index == node.end_mark.index)


def _leaves(node: Any, value: object) -> Iterator[tuple[Any, object]]:
    if not isinstance(value, list):
        yield node, value
        return
    for item, part in zip(node.value, value, strict=True):
        yield from _leaves(item, part)


def _lines(new: Mapping[str, object], column: int) -> Iterator[str]:
    """Lines of new keys, sections on lines of their own."""
    for key, value in new.items():
        if isinstance(value, dict):
            yield f"{' ' * column}{key}:"
            yield from _lines(value, column + _STEP)
        else:
            yield f"{' ' * column}{key}: {_flow(value, '')}"


def _flow(value: object, old: str) -> str:
    """
    Text of a value on one line, in the style of an old one.

    Examples
    --------
    >>> _flow([[1, 0], [0, 1]], "[ 1,2 ]"), _flow(True, "false"), _flow("gpipe", '"1f1b"')
    ('[ [ 1,0 ],[ 0,1 ] ]', 'true', '"gpipe"')
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(key, '')}: {_flow(part, old)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        comma = "," if "," in old and ", " not in old else ", "
        pad = " " if old.startswith("[ ") else ""
        return f"[{pad}{comma.join(_flow(part, old) for part in value)}{pad}]"
    if isinstance(value, bool):
        return str(value).lower() if old in ("true", "false") else str(value)
    return str(value) if isinstance(value, int) else _quoted(str(value), old)


def _quoted(text: str, old: str) -> str:
    """Text in the quotes of an old one; without any where it is a plain word."""
    if old[:1] == '"' and "\\" not in text and '"' not in text:
        return f'"{text}"'
    if re.fullmatch(r"[A-Za-z_]\w*", text) and old[:1] != "'":
        return text
    return "'" + text.replace("'", "''") + "'"


def _found(node: Any) -> str:
    """Show what stands where a mapping should."""
    return shown(node.value) if isinstance(node.value, str) else "a list"
