"""TOML from a path, as text that is checked and as values."""

import re
import tomllib
from os import PathLike

from sapp_ppb.costs.checks import printable
from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.text_file import read_text

LARGEST_FILE_MB = 1
DEEPEST_NESTING = 50
_PLACE = re.compile(r"(.*?)\s*\(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)


def read_toml(path: str | PathLike[str]) -> dict[str, object]:
    r"""
    Tables of a TOML file.

    Numbers that are not finite are left in, since a key that is of no interest may well
    be infinite.

    Raises
    ------
    InputError
        If the file is missing, a folder, unreadable, larger than 1 MB, empty, no UTF-8,
        no TOML (with line and column) or nested deeper than 50 levels.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "job.toml").write_text("[training]\nlocal_batch_size = 8")
    ...     read_toml(Path(folder, "job.toml"))
    {'training': {'local_batch_size': 8}}
    """
    where = str(path)
    text = read_text(path, largest_mb=LARGEST_FILE_MB, format_name="TOML")
    deep = InputError(where, [f"the TOML is nested deeper than {DEEPEST_NESTING} levels"])
    try:
        tables: dict[str, object] = tomllib.loads(text)
    except RecursionError:
        raise deep from None
    except ValueError as error:  # also of an integer of 5,000 digits, which is no TOMLDecodeError
        raise InputError(where, [_broken(str(error))]) from None
    if _depth(tables) > DEEPEST_NESTING:
        raise deep
    return tables


def _broken(message: str) -> str:
    """Say in our words where a text is no TOML."""
    found = _PLACE.fullmatch(message)
    if found is None:
        return "the TOML holds an integer that is too large"
    reason, line, column = found.groups()
    place = "its end" if line is None else f"line {line}, column {column}"
    return f"the TOML is broken at {place}: {printable(reason[:1].lower() + reason[1:])}"


def _depth(value: object) -> int:
    """Levels of tables and lists."""
    deepest, stack = 0, [(value, 0)]
    while stack:
        item, depth = stack.pop()
        deepest = max(deepest, depth)
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        stack += [(entry, depth + 1) for entry in inner]
    return deepest
