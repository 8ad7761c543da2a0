"""
Plain values of Python source, which is parsed and never run.

Read are literals, lists and tuples with ``*`` in them, comprehensions over a ``range``
of numbers, f-strings of their variable, and names that the module gives such a value.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_MOST_VALUES = 100_000
_LONGEST_TEXT = 1000
_LARGEST_SAID = 10**18  # str() of 5,000 digits raises
_MOST_NAMES = 20  # names of names


class NotPlainError(Exception):
    """An expression whose value only running it would show."""


@dataclass
class PlainValues:
    """
    Reads the values of expressions.

    Attributes
    ----------
    constants
        Expressions that the module gives a name.

    Examples
    --------
    >>> source = "[f'layers.{i}' for i in range(1, 3)]"
    >>> PlainValues().of(ast.parse(source, mode="eval").body)
    ['layers.1', 'layers.2']
    """

    constants: Mapping[str, ast.expr] = field(default_factory=dict)
    _values: int = 0
    _open: int = 0

    def of(self, node: ast.expr, known: Mapping[str, object] | None = None) -> object:
        """
        Value of an expression.

        Parameters
        ----------
        node
            The expression.
        known
            Values of the variables of the comprehensions around it.

        Raises
        ------
        NotPlainError
            If it is none that is read, or makes more than 100,000 values.
        """
        known = known or {}
        self._count()
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._negative(node.operand, known)
        if isinstance(node, ast.List | ast.Tuple):
            return self._items(node.elts, known)
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return [self.of(node.elt, inner) for inner in self._loop(node.generators, known)]
        if isinstance(node, ast.JoinedStr):
            return self._text(node, known)
        if isinstance(node, ast.Name):
            return self._named(node.id, known)
        raise NotPlainError

    def _count(self) -> None:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise NotPlainError

    def _negative(self, node: ast.expr, known: Mapping[str, object]) -> object:
        value = self.of(node, known)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NotPlainError
        return -value

    def _items(self, nodes: list[ast.expr], known: Mapping[str, object]) -> list[object]:
        items: list[object] = []
        for node in nodes:
            value = self.of(node.value if isinstance(node, ast.Starred) else node, known)
            if not isinstance(node, ast.Starred):
                items.append(value)
            elif isinstance(value, list):
                items += value
                self._values += len(value)
            else:
                raise NotPlainError
        return items

    def _loop(
        self, loops: list[ast.comprehension], known: Mapping[str, object]
    ) -> Iterator[Mapping[str, object]]:
        """Variables of each turn of one ``for NAME in range(...)``."""
        loop = loops[0]
        call, variable = loop.iter, loop.target
        if len(loops) > 1 or loop.ifs or not isinstance(variable, ast.Name):
            raise NotPlainError
        if not isinstance(call, ast.Call) or call.keywords:
            raise NotPlainError
        if not isinstance(call.func, ast.Name) or call.func.id != "range":
            raise NotPlainError
        given = [self.of(argument, known) for argument in call.args]
        numbers = [number for number in given if isinstance(number, int)]
        if len(numbers) < len(given):
            raise NotPlainError
        try:
            turns = range(*numbers)
        except (TypeError, ValueError):
            raise NotPlainError from None
        for turn in turns:
            yield {**known, variable.id: turn}

    def _text(self, node: ast.JoinedStr, known: Mapping[str, object]) -> str:
        text = ""
        for piece in node.values:
            text += self._piece(piece, known)
            if len(text) > _LONGEST_TEXT:
                raise NotPlainError
        return text

    def _piece(self, node: ast.expr, known: Mapping[str, object]) -> str:
        """Text of a part of an f-string."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if isinstance(node, ast.FormattedValue) and node.conversion == -1 and node.format_spec is None:
            value = self.of(node.value, known)
            if isinstance(value, str) or (isinstance(value, int) and abs(value) < _LARGEST_SAID):
                return str(value)
        raise NotPlainError

    def _named(self, name: str, known: Mapping[str, object]) -> object:
        if name in known:
            return known[name]
        if name not in self.constants or self._open >= _MOST_NAMES:
            raise NotPlainError
        self._open += 1
        try:
            return self.of(self.constants[name])
        finally:
            self._open -= 1
