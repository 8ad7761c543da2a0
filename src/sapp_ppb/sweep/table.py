"""The table of a sweep as files: CSV, Parquet and JSON."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from os import PathLike
from typing import Any

from sapp_ppb.files import whole_file
from sapp_ppb.sweep.answer import RowStatus
from sapp_ppb.sweep.row import INPUTS, RESULTS, Row
from sapp_ppb.writers.plan_file import json_text

COLUMNS = (*INPUTS, *RESULTS)


def to_csv(rows: Sequence[Row]) -> str:
    """
    Text of a table: a line of names, then a line for each row.

    A column that is empty has nothing between its commas; the numbers of a list have
    blanks between them.
    """
    to = io.StringIO()
    writer = csv.writer(to, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_plain(value) for value in row.cells.values()] for row in rows)
    return to.getvalue()


def can_write_parquet() -> bool:
    """Whether the extra ``parquet`` is installed."""
    from importlib.util import find_spec

    return find_spec("pyarrow") is not None


def write_parquet(rows: Sequence[Row], path: str | PathLike[str], force: bool = False) -> None:
    """
    Write the same table as Parquet: a number where every value of a column is one, else text.

    Raises
    ------
    InputError
        If the file exists and ``force`` is not set, or if it can not be written.
    """
    import pyarrow
    from pyarrow import parquet

    cells = [row.cells for row in rows]
    table = pyarrow.table({name: _column(name, [each[name] for each in cells]) for name in COLUMNS})
    with whole_file(path, force) as file:
        parquet.write_table(table, file)


def to_json(rows: Sequence[Row]) -> str:
    """Text of a sweep as one JSON object: ``rows`` as in the table, and ``counts`` of each status."""
    document: dict[str, object] = {
        "counts": counts(rows),
        "rows": [_json_cells(row) for row in rows],
    }
    return json_text(document) + "\n"


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """
    Rows of each status that there is, in the order of ``RowStatus``.

    Examples
    --------
    >>> counts([])
    {}
    """
    found = Counter(row.answer.status for row in rows)
    return {status.value: found[status] for status in RowStatus if found[status]}


def _json_cells(row: Row) -> dict[str, object]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in row.cells.items()}


def _plain(value: object) -> object:
    """Value as a cell of a CSV shows it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return " ".join(str(_plain(each)) for each in value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value


def _column(name: str, values: list[Any]) -> Any:
    """Values of one type: whole numbers, numbers, truth values, or text for all others."""
    import pyarrow

    given = [value for value in values if value is not None]
    if name in ("pareto", "recompute_working_set"):
        return pyarrow.array(values, pyarrow.bool_())
    if given and all(isinstance(value, int) for value in given):
        return pyarrow.array(values, pyarrow.int64())
    if given and all(isinstance(value, int | float) for value in given):
        return pyarrow.array([None if value is None else float(value) for value in values], pyarrow.float64())
    return pyarrow.array(
        [None if value is None else str(_plain(value)) for value in values], pyarrow.string()
    )
