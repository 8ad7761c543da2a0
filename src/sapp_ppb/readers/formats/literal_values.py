"""
Values under known names in a Python file, which is parsed and never run, or in a JSON.

A name stands before ``=`` (``PARTS = [0, 9, 18]``), as a keyword of a call
(``HybridParallelPlugin(pp_size=4)``) or as the key of a dict, in any case of letters.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import NoReturn

from sapp_ppb.costs.checks import shown
from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.json_file import read_document
from sapp_ppb.readers.formats.python_settings import Unread
from sapp_ppb.readers.formats.python_values import NotPlainError, PlainValues
from sapp_ppb.readers.formats.text_file import read_text
from sapp_ppb.syntax.python_names import named_values, python_tree, source_of

_LARGEST_FILE_MB = 1
_MOST_REPEATED = 100_000
_SPLIT_POINT = "SplitPoint"


@dataclass(frozen=True, kw_only=True)
class Literals:
    """
    What a file says.

    Attributes
    ----------
    where
        The file, for errors.
    values
        By name, in small letters; ``Unread`` for what only running the file would show.
    calls, keywords
        Names of everything that is called, and of every keyword.
    """

    where: str
    values: Mapping[str, object]
    calls: frozenset[str] = frozenset()
    keywords: frozenset[str] = frozenset()


def read_literals(path: str | PathLike[str], names: Collection[str]) -> Literals:
    r"""
    Read the values of names, out of JSON (``.json``) or Python.

    Raises
    ------
    InputError
        If the file can not be read, or is not what its name says.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "job.py").write_text("PARTS = [0, *[9] * 2]\nrun(stages=n)")
    ...     found = read_literals(Path(folder, "job.py"), ["parts", "stages"])
    >>> found.values["parts"], found.values["stages"].why
    ([0, 9, 9], "line 2 gives 'n', which only running it would show")
    """
    where = str(path)
    if where.lower().endswith(".json"):
        document = read_document(path, largest_mb=_LARGEST_FILE_MB)
        if document.faults or not isinstance(document.value, dict):
            faults = document.faults or [f"must hold an object (got {shown(document.value)})"]
            raise InputError(where, faults)
        return Literals(where=where, values=dict(_of_json(document.value, names)))
    text = read_text(path, largest_mb=_LARGEST_FILE_MB, format_name="Python")
    tree = python_tree(where, text)
    values = _Values(constants=_constants(tree))
    found: dict[str, object] = {}
    try:
        for name, node in named_values(tree):
            if name.lower() in names:
                _keep(found, name.lower(), node, values)
        calls = frozenset(_name(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call))
        keywords = frozenset(node.arg or "" for node in ast.walk(tree) if isinstance(node, ast.keyword))
    except RecursionError:
        raise InputError(where, ["the Python is nested too deep"]) from None
    return Literals(where=where, values=found, calls=calls, keywords=keywords)


def _of_json(value: Mapping[str, object], names: Collection[str]) -> Iterator[tuple[str, object]]:
    """Values of an object and of the objects in it; the outermost one of a name wins."""
    for key, inner in value.items():
        if isinstance(inner, dict) and key.lower() not in names:
            yield from _of_json(inner, names)
    yield from ((key.lower(), inner) for key, inner in value.items() if key.lower() in names)


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Expressions that the module gives a name, once."""
    given: dict[str, list[ast.expr]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    given.setdefault(target.id, []).append(node.value)
    return {name: values[0] for name, values in given.items() if len(values) == 1}


def _keep(found: dict[str, object], name: str, node: ast.expr, values: "_Values") -> None:
    try:
        value = values.of(node)
    except NotPlainError:
        source = shown(source_of(node))
        value = Unread(why=f"line {node.lineno} gives {source}, which only running it would show")
    if name in found and found[name] != value:
        value = Unread(why=f"line {node.lineno} gives another value than a line before")
    found[name] = value


def _name(node: ast.expr) -> str:
    """Last name of ``a.b.c``."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


@dataclass
class _Values(PlainValues):
    """Reads also dicts, lists that are repeated or joined, and where a model is split."""

    constants: Mapping[str, ast.expr] = field(default_factory=dict)

    def of(self, node: ast.expr, known: Mapping[str, object] | None = None) -> object:
        """Value of an expression."""
        if isinstance(node, ast.Dict):
            return self._dict(node, known)
        if isinstance(node, ast.BinOp):
            return self._joined(node, known)
        if isinstance(node, ast.Attribute) and _name(node.value) == _SPLIT_POINT:
            return node.attr
        return super().of(node, known)

    def _dict(self, node: ast.Dict, known: Mapping[str, object] | None) -> dict[object, object]:
        found: dict[object, object] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            name = None if key is None else self.of(key, known)
            if not isinstance(name, str | int):
                _not_plain()
            found[name] = self.of(value, known)
        return found

    def _joined(self, node: ast.BinOp, known: Mapping[str, object] | None) -> object:
        left, right = self.of(node.left, known), self.of(node.right, known)
        if isinstance(node.op, ast.Add) and isinstance(left, list) and isinstance(right, list):
            return self._counted(left + right)
        if isinstance(node.op, ast.Mult) and isinstance(left, list) and isinstance(right, int):
            if max(len(left), 1) * right > _MOST_REPEATED:
                _not_plain()
            return self._counted(left * right)
        return _not_plain()

    def _counted(self, values: list[object]) -> list[object]:
        """Count the values of a list among those that may be made."""
        self._values += len(values)
        self._count()
        return values


def _not_plain() -> NoReturn:
    raise NotPlainError
