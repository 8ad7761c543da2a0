"""Names that are given values in Python source, which is parsed and never run."""

import ast
import warnings
from collections.abc import Iterator

from sapp_ppb.errors import InputError


def python_tree(where: str, text: str) -> ast.Module:
    """
    Parse Python.

    Raises
    ------
    InputError
        If it is broken, or nested too deep.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in text that is not ours
            return ast.parse(text)
    except SyntaxError as error:
        raise InputError(where, [f"the Python is broken at line {error.lineno}: {error.msg}"]) from None
    except (RecursionError, MemoryError):
        raise InputError(where, ["the Python is nested too deep"]) from None
    except ValueError as error:
        raise InputError(where, [f"the Python can not be read ({error})"]) from None


def source_of(node: ast.expr) -> str:
    """
    Source of an expression.

    Examples
    --------
    >>> source_of(ast.parse("a [0]", mode="eval").body)
    'a[0]'
    """
    try:
        return ast.unparse(node)
    except ValueError:  # of an integer of 5,000 digits, which hexadecimal digits can make
        return "..."


def named_values(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """
    Every name that is given a value, with the expression.

    Names stand before ``=``, as keywords of calls and as keys of dicts.

    Examples
    --------
    >>> [(name, ast.unparse(node)) for name, node in named_values(ast.parse("a = run(b=2)"))]
    [('a', 'run(b=2)'), ('b', '2')]
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg is not None:
            yield node.arg, node.value
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((target.id, node.value) for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            whole = ast.BinOp(node.target, node.op, node.value)
            yield node.target.id, ast.copy_location(whole, node)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
