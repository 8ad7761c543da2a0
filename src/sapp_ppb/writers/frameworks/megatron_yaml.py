"""Edits of Megatron-LM's ``model_config.yaml`` that leave every other byte as it is."""

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sapp_ppb.costs.checks import shown
from sapp_ppb.errors import InputError
from sapp_ppb.syntax.yaml_nodes import bounded_yaml
from sapp_ppb.targets.megatron.flags import SWITCHES, flag_name

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node

_SECTION = "MODEL_ARGS"
_DEEPEST = 10
_ALIAS = re.compile(r"\s*:\s*(\*[^\s,]+)")
_ANCHOR = re.compile(r"&(\S+)\s*")
_ESCAPES = re.compile(r"\\+(?=[|*()])")


class YamlFlags:
    r"""
    Flags under MODEL_ARGS, found by their place in the text.

    Examples
    --------
    >>> file = YamlFlags("MODEL_ARGS:\n  --a: 1  # one\n  --b: 2\n", "model_config.yaml")
    >>> YamlFlags(file.replaced("a", "7"), "model_config.yaml").added("c", "3", "a")
    'MODEL_ARGS:\n  --a: 7  # one\n  --c: 3\n  --b: 2\n'
    """

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where

    @cached_property
    def _pairs(self) -> "dict[str, tuple[Node, Node]]":
        """Nodes of every key and value, by flag."""
        root = _parsed(self.text, self.where)
        for key, value in _entries(root):
            if key.value == _SECTION:
                root = value
        if not _entries(root) or root.flow_style:
            value = getattr(root, "value", None)  # an empty file has no root
            found = f" (got {shown(value)})" if isinstance(value, str) else ""
            fault = f"{_SECTION} must be a mapping of flags, one on a line{found}; paste the flags by hand"
            raise InputError(self.where, [fault])
        return {flag_name(str(key.value)): (key, value) for key, value in _entries(root)}

    @cached_property
    def given(self) -> dict[str, object]:
        """Values by flag; switches that are false are not given."""
        values = {name: _value(value) for name, (_, value) in self._pairs.items()}
        return {
            name: value
            for name, value in values.items()
            if name not in SWITCHES or str(value).lower() not in ("false", "no", "off")
        }

    def replaced(self, name: str, value: str) -> str:
        """Text with another value for a flag that is given."""
        start, stop = self._span(name)
        old = self.text[start:stop]
        if old.startswith("*"):
            return self.text[:start] + _as_text(value) + self.text[stop:]
        if anchor := _ANCHOR.match(old):
            if re.search(rf"\*{re.escape(anchor[1])}\b", self.text):
                fault = f"--{name} has the anchor &{anchor[1]}, which other keys use; write their values out"
                raise InputError(self.where, [fault])
            start, old = start + anchor.end(), old[anchor.end() :]
        return self.text[:start] + _like(old, value) + self.text[stop:]

    def added(self, name: str, value: str, after: str | None) -> str:
        """Text with one more flag on a line of its own, behind another or before all."""
        near = after if after in self._pairs else next(iter(self._pairs))
        key = self._pairs[near][0]
        written = str(key.value)
        line = self.text.rfind("\n", 0, key.start_mark.index) + 1
        indent = self.text[line : key.start_mark.index].removeprefix("\ufeff")
        name = name.replace("-", "_") if "_" in written else name
        ending = "\r\n" if "\r\n" in self.text else "\n"
        new = f"{indent}{'--' if written.startswith('-') else ''}{name}: {_as_text(value)}"
        if after is None:
            return self.text[:line] + new + ending + self.text[line:]
        stop = self._line_after(self._span(near)[1])
        if stop == len(self.text) and not self.text.endswith("\n"):
            return self.text + ending + new
        return self.text[:stop] + new + ending + self.text[stop:]

    def removed(self, name: str) -> str:
        """Text without a flag and the lines that it takes."""
        key = self._pairs[name][0]
        start = self.text.rfind("\n", 0, key.start_mark.index) + 1
        if self.text[start : key.start_mark.index].strip(" \ufeff"):
            raise InputError(self.where, [f"--{name} does not begin its line; take it out by hand"])
        return self.text[:start] + self.text[self._line_after(self._span(name)[1]) :]

    def _span(self, name: str) -> tuple[int, int]:
        """Place of a value as it is written, where it is an alias or nothing too."""
        key, node = self._pairs[name]
        if alias := _ALIAS.match(self.text, key.end_mark.index):
            return alias.span(1)
        start, stop = node.start_mark.index, _end(node)
        if start < stop:
            return start, stop
        colon = self.text.index(":", key.end_mark.index) + 1
        return colon, colon

    def _line_after(self, place: int) -> int:
        """Start of the line behind the one that ends at or after a place."""
        if place and self.text[place - 1] == "\n":
            return place
        end = self.text.find("\n", place)
        return len(self.text) if end < 0 else end + 1


def _parsed(text: str, where: str) -> Any:
    from ruamel.yaml.error import YAMLError

    try:
        return bounded_yaml(where).compose(text)
    except (YAMLError, RecursionError) as error:
        reason = str(getattr(error, "problem", None) or error).splitlines()[0]
        raise InputError(where, [f"the YAML is broken: {reason}"]) from None


def _entries(node: Any) -> "list[tuple[Any, Any]]":
    """Keys and values of a mapping; none of anything else."""
    value = getattr(node, "value", None)
    return [pair for pair in value if isinstance(pair, tuple)] if isinstance(value, list) else []


def _value(node: Any, depth: int = 0) -> object:
    """Text of a scalar, texts of a list or of a list of lists; None for what lies deeper or is a mapping."""
    if isinstance(node.value, str):
        return node.value
    if depth > 1 or _entries(node):
        return None
    return [_value(item, depth + 1) for item in node.value]


def _end(node: Any, depth: int = 0) -> int:
    """End of what a node holds, without comments behind a list."""
    if isinstance(node.value, list) and node.value and not node.flow_style and depth < _DEEPEST:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last, depth + 1)
    return int(node.end_mark.index)


def _like(old: str, value: str) -> str:
    """Write a value as another one is written: its quotes, and its backslashes before signs of a layout."""
    if escapes := _ESCAPES.search(old):
        value = re.sub(r"[|*()]", lambda sign: escapes[0] + sign[0], value)
    if not old:
        return f" {_as_text(value)}"
    if old[0] in "'\"":
        return f"{old[0]}{value}{old[0]}"
    return _as_text(value) + ("\n" if old.endswith("\n") else "")


def _as_text(value: str) -> str:
    """Put quotes round what YAML would read as a list, or fail to, such as [[1,1]*4]."""
    return f'"{value}"' if value.startswith("[") else value
