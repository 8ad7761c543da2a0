"""
Settings of a Python configuration of torchtitan, which is parsed and never run.

Found are keywords of calls (``ParallelismConfig(pipeline_parallel_degree=4)``),
assignments (``config.parallelism.pipeline_parallel_degree = 4``) and entries of dicts.
A file may hold many configurations, each made by a function; one that starts from what
another function of the file returns starts from its settings.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike

from sapp_ppb.costs.checks import shown
from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.python_values import NotPlainError, PlainValues
from sapp_ppb.readers.formats.text_file import read_text
from sapp_ppb.syntax.python_names import python_tree, source_of

_LARGEST_FILE_MB = 1
_SHOWN = 6
_MOST_VISITS = 1_000_000
CHECKPOINT = "activation_checkpoint"
# Classes that stand for a table of the same meaning, and what a class of checkpointing means.
_TABLES = {
    "ParallelismConfig": "parallelism",
    "Parallelism": "parallelism",
    "TrainingConfig": "training",
    "Training": "training",
    "ActivationCheckpointConfig": CHECKPOINT,
    "ActivationCheckpoint": CHECKPOINT,
}
_CHECKPOINTS = {
    "FullAC": {"mode": "full"},
    "SelectiveAC": {"mode": "selective", "selective_ac_option": "op"},
    "MemoryBudgetAC": {"mode": "memory_budget"},
}
_UNCERTAIN = (ast.If, ast.For, ast.While, ast.Try, ast.Match, ast.IfExp)


@dataclass(frozen=True, kw_only=True)
class Unread:
    """A value that is given and that only running the file would show; ``why`` is a sentence's end."""

    why: str


def read_python_settings(
    path: str | PathLike[str], keys: Collection[str], function: str | None = None
) -> dict[str, dict[str, object]]:
    """
    Tables of settings.

    Parameters
    ----------
    path
        Python file.
    keys
        Names of the settings wanted; ``mode`` is found in activation checkpointing alone.
    function
        Function whose configuration is read; None takes the only one that has settings.

    Returns
    -------
    dict
        By table and key, as in TOML; ``Unread`` for what is given and is no plain value.

    Raises
    ------
    InputError
        If the file can not be read, is no Python, or holds several configurations, or
        not the one asked for.
    """
    where = str(path)
    tree = python_tree(where, read_text(path, largest_mb=_LARGEST_FILE_MB, format_name="Python"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if function is not None:
        if function not in functions:
            known = ", ".join(list(functions)[:_SHOWN]) or "none"
            raise InputError(where, [f"has no function {shown(function)}; it has {known}"])
        return _settings(where, tree, keys, functions, function)
    having = _having(where, keys, functions)
    public = [name for name in having if not name.startswith("_")]
    names = public or having
    if len(names) > 1:
        listed = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        raise InputError(
            where, [f"holds {len(names)} configurations ({listed}); name one as FILE::{names[0]}"]
        )
    return _settings(where, tree, keys, functions, names[0] if names else None)


def _settings(
    where: str,
    tree: ast.Module,
    keys: Collection[str],
    functions: Mapping[str, ast.FunctionDef],
    function: str | None,
) -> dict[str, dict[str, object]]:
    """Find the settings of the module, and then of a function."""
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    finder = _Finder(keys=keys, functions=functions, values=PlainValues(constants=constants))
    try:
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                finder.visit(node)
        if function is not None:
            finder.call(function)
    except RecursionError:
        raise InputError(where, ["the Python is nested too deep"]) from None
    return finder.tables


def _having(where: str, keys: Collection[str], functions: Mapping[str, ast.FunctionDef]) -> list[str]:
    """Name the functions that give settings, or call one that does."""
    callers: dict[str, set[str]] = {name: set() for name in functions}
    found: set[str] = set()
    for name, node in functions.items():
        for called in _called(node):
            if called in callers:
                callers[called].add(name)
        finder = _Finder(keys=keys, functions={}, values=PlainValues())
        try:
            for statement in node.body:
                finder.visit(statement)
        except RecursionError:
            raise InputError(where, ["the Python is nested too deep"]) from None
        found |= {name} if any(finder.tables.values()) else set()
    new = set(found)
    while new:
        new = {caller for name in new for caller in callers[name]} - found
        found |= new
    return [name for name in functions if name in found]


def _called(node: ast.AST) -> Iterator[str]:
    """Names of the functions that are called somewhere in a node."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
            yield inner.func.id


@dataclass
class _Finder:
    """Walks through statements in the order of the file; what comes later wins."""

    keys: Collection[str]
    functions: Mapping[str, ast.FunctionDef]
    values: PlainValues
    tables: dict[str, dict[str, object]] = field(
        default_factory=lambda: {"parallelism": {}, "training": {}, CHECKPOINT: {}}
    )
    _uncertain: int = 0
    _visits: int = 0
    _calling: list[str] = field(default_factory=list)

    def call(self, name: str) -> None:
        """Take the settings of a function of the file."""
        if name in self._calling:
            return
        self._calling.append(name)
        for node in self.functions[name].body:
            self.visit(node)
        self._calling.pop()

    def visit(self, node: ast.AST) -> None:
        """Find settings in a statement or an expression, the inner ones first."""
        self._visits += 1
        if self._visits > _MOST_VISITS:  # functions that call one another twice and twice again
            raise RecursionError
        uncertain = isinstance(node, _UNCERTAIN)
        self._uncertain += uncertain
        for inner in ast.iter_child_nodes(node):
            if isinstance(node, ast.Call) and isinstance(inner, ast.keyword):
                continue
            self.visit(inner)
        self._take(node)
        self._uncertain -= uncertain

    def _take(self, node: ast.AST) -> None:
        """Take the settings that a node itself makes."""
        if isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.AugAssign):
            self._assign(node.target, ast.BinOp(node.target, node.op, node.value, lineno=node.lineno))
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    self._set(key.value, value)

    def _call(self, node: ast.Call) -> None:
        names = list(_names(node.func))
        table = next((_TABLES[name] for name in names if name in _TABLES), None)
        if table is not None:
            self.tables[table].clear()
        made = next((_CHECKPOINTS[name] for name in names if name in _CHECKPOINTS), None)
        if made is not None:
            self.tables[CHECKPOINT].clear()
            for key, value in made.items():
                self._store(CHECKPOINT, key, value, node)
        if table == CHECKPOINT:
            self._store(CHECKPOINT, "mode", "selective", node)
        inner = CHECKPOINT if made is not None or table == CHECKPOINT else None
        if isinstance(node.func, ast.Name) and node.func.id in self.functions:
            self.call(node.func.id)
        for keyword in node.keywords:
            self.visit(keyword.value)
            if keyword.arg is not None:
                self._set(keyword.arg, keyword.value, inner)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        names = list(_names(target))
        if names:
            self._set(names[0], value, names[1] if len(names) > 1 else None)

    def _set(self, key: str, value: ast.expr, table: str | None = None) -> None:
        """Keep a setting, if it is one that is wanted."""
        if key == CHECKPOINT:
            self._checkpoint(value)
        elif key == "mode":
            if table == CHECKPOINT:
                self._keep(CHECKPOINT, key, value)
        elif key in self.keys:
            self._keep(_table_of(key), key, value)

    def _checkpoint(self, value: ast.expr) -> None:
        """Take None, or a dict, that checkpointing as a whole is given."""
        if isinstance(value, ast.Constant) and value.value is None:
            self.tables[CHECKPOINT].clear()
            self._store(CHECKPOINT, "mode", "none", value)
        elif isinstance(value, ast.Dict):
            for key, inner in zip(value.keys, value.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "mode":
                    self._keep(CHECKPOINT, "mode", inner)

    def _keep(self, table: str, key: str, node: ast.expr) -> None:
        try:
            value = self.values.of(node)
        except NotPlainError:
            source = source_of(node)
            value = Unread(why=f"line {node.lineno} gives {shown(source)}, which only running it would show")
        self._store(table, key, value, node)

    def _store(self, table: str, key: str, value: object, node: ast.expr) -> None:
        if self._uncertain and self.tables[table].get(key) != value:
            value = Unread(why=f"line {node.lineno} gives it under a condition or in a loop")
        self.tables[table][key] = value


def _names(node: ast.expr) -> Iterator[str]:
    """Names of ``a.b.c``, the last one first."""
    while isinstance(node, ast.Attribute):
        yield node.attr
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _table_of(key: str) -> str:
    if key in ("local_batch_size", "batch_size"):
        return "training"
    return CHECKPOINT if key in ("selective_ac_option", "memory_budget") else "parallelism"
