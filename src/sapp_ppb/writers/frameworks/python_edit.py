"""Python whose values are changed in place: every byte beside them stays."""

import ast
import re
from collections.abc import Mapping

from sapp_ppb.errors import InputError
from sapp_ppb.syntax.python_names import named_values, python_tree

_MARK = "\ufeff"
_LINE_ENDS = re.compile(rb"(?<=\n)|(?<=\r)(?!\n)")  # those that Python counts
# Line and column in bytes, as Python counts them, and what comes to stand between the two places.
_Place = tuple[int, int]
_Edit = tuple[_Place, _Place, str]


def with_values(text: str, where: str, values: Mapping[str, str], *, call: str | None = None) -> str:
    r"""
    Text with other expressions behind the names of assignments, keywords and keys of dicts.

    Parameters
    ----------
    text
        Python.
    where
        The file, for errors.
    values
        Expressions by name, whose case does not count.
    call
        Call that is given the keywords that stand nowhere; None refuses those.

    Raises
    ------
    InputError
        If the text is no Python, gives a name twice, or lacks what can not be added.

    Examples
    --------
    >>> with_values("PARTS = [0, 9]  # mine\n", "job.py", {"parts": "[0, 4, 9]"})
    'PARTS = [0, 4, 9]  # mine\n'
    >>> with_values("p = Plugin(tp_size=2)\n", "job.py", {"pp_size": "4"}, call="Plugin")
    'p = Plugin(pp_size=4, tp_size=2)\n'
    """
    whole = text.removeprefix(_MARK)
    tree = python_tree(where, whole)
    places: dict[str, list[ast.expr]] = {}
    for name, node in named_values(tree):
        if name.lower() in values:
            places.setdefault(name.lower(), []).append(_behind(tree, node))
    distinct = {name: {id(node): node for node in nodes} for name, nodes in places.items()}
    doubled = [name for name, nodes in distinct.items() if len(nodes) > 1]
    if doubled:
        raise InputError(
            where, [f"{name} is given more than once; leave one, or paste the snippet" for name in doubled]
        )
    shared = _shared(distinct)
    if shared:
        raise InputError(where, [f"gives {shared} by one name; give each a value, or paste the snippet"])
    edits = [_replaced(next(iter(nodes.values())), values[name]) for name, nodes in distinct.items()]
    missing = {name: value for name, value in values.items() if name not in distinct and value != "None"}
    if missing:
        edits.append(_added(tree, where, missing, call))
    return _MARK * text.startswith(_MARK) + _edited(whole, edits)


def _shared(distinct: Mapping[str, Mapping[int, ast.expr]]) -> str:
    """Names that stand for one expression and must be two; empty when there are none."""
    said: dict[int, str] = {}
    for name, nodes in distinct.items():
        other = said.setdefault(next(iter(nodes)), name)
        if other != name:
            return f"{other} and {name}"
    return ""


def _behind(tree: ast.Module, node: ast.expr) -> ast.expr:
    """Expression that the module gives the name that a value is, which is the one to change."""
    if isinstance(node, ast.Name):
        for other in tree.body:
            if isinstance(other, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == node.id for target in other.targets
            ):
                return other.value
    return node


def _replaced(node: ast.expr, value: str) -> _Edit:
    assert node.end_lineno is not None, "of parsed text"  # noqa: S101
    assert node.end_col_offset is not None, "of parsed text"  # noqa: S101
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), value


def _added(tree: ast.Module, where: str, missing: Mapping[str, str], call: str | None) -> _Edit:
    """Put keywords into a call, before those that it has."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_of(node.func, call)]
    if len(calls) != 1 or not calls[0].keywords:
        names = ", ".join(missing)
        raise InputError(where, [f"gives {names} nowhere; leave it out, and paste the snippet"])
    first = calls[0].keywords[0]
    words = "".join(f"{name}={value}, " for name, value in missing.items())
    return (first.lineno, first.col_offset), (first.lineno, first.col_offset), words


def _is_of(node: ast.expr, name: str | None) -> bool:
    """Whether ``name`` or ``a.b.name`` is called."""
    return name == (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", ""))


def _edited(text: str, edits: list[_Edit]) -> str:
    """Make the changes, the last one of the text first."""
    lines = _LINE_ENDS.split(text.encode())
    for (line, column), (last, end), value in sorted(edits, reverse=True):
        lines[line - 1 : last] = [lines[line - 1][:column] + value.encode() + lines[last - 1][end:]]
    return b"".join(lines).decode()
