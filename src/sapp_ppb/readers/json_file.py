"""
JSON from a path, read strictly: what is not clear is refused, never guessed.

Python's own reader takes NaN, lets the last of two equal keys win and stops at
the first fault.  Here every doubled key and every number that is not finite is
found, and named by its place in the document.
"""

import codecs
import json
import math
from collections import Counter
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from sapp_ppb.errors import InputError

LARGEST_FILE_MB = 64
DEEPEST_NESTING = 100
_LONGEST_INTEGER = 300  # digits; a float ends at 309 and int() of 4300 digits raises


class Document(NamedTuple):
    """A JSON value and what is wrong inside it, one sentence a fault."""

    value: object
    faults: tuple[str, ...]


class _Doubled(dict[str, object]):
    """An object in which some keys were given more than once."""

    keys_given_twice: tuple[str, ...] = ()


def read_json(path: str | PathLike[str]) -> object:
    """
    Value of a JSON file.

    Raises
    ------
    InputError
        As ``read_document()``, and if a key is doubled or a number is not finite.
    """
    document = read_document(path)
    if document.faults:
        raise InputError(str(path), document.faults)
    return document.value


def read_document(path: str | PathLike[str]) -> Document:
    """
    Value of a JSON file with the faults inside it, for a reader that gathers more.

    Raises
    ------
    InputError
        If the file is missing, a folder, unreadable, larger than 64 MB, empty, no
        UTF-8, no JSON (with line and column) or nested deeper than 100 levels.
    """
    where = str(path)
    text = _decoded(where, _bytes_of(where, path))
    if not text.strip():
        raise InputError(where, ["the file is empty; it must hold JSON"])
    deep = InputError(where, [f"the JSON is nested deeper than {DEEPEST_NESTING} levels"])
    try:
        value: object = json.loads(text, object_pairs_hook=_object, parse_int=_integer)
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        fault = f"the JSON is broken at line {error.lineno}, column {error.colno}: {reason}"
        raise InputError(where, [fault]) from None
    except RecursionError:
        raise deep from None
    faults = []
    for place, depth, item in _walk(value):
        if depth > DEEPEST_NESTING:
            raise deep
        faults += _faults_at(place, item)
    return Document(value, tuple(faults))


def read_text(path: str | PathLike[str]) -> str:
    """
    Text of a UTF-8 file, a byte order mark and all line ends kept.

    Raises
    ------
    InputError
        If the file is missing, a folder, unreadable, larger than 64 MB or no UTF-8.
    """
    where = str(path)
    content = _bytes_of(where, path)
    mark = "\ufeff" if content.startswith(codecs.BOM_UTF8) else ""
    return mark + _decoded(where, content)


def _bytes_of(where: str, path: str | PathLike[str]) -> bytes:
    """Content of a file, one byte more than allowed at most."""
    limit = LARGEST_FILE_MB * 2**20
    try:
        with Path(path).open("rb") as file:
            content = file.read(limit + 1)
    except FileNotFoundError:
        raise InputError(where, ["there is no such file; check the path"]) from None
    except IsADirectoryError:
        raise InputError(where, ["is a folder; name a file in it"]) from None
    except PermissionError:
        raise InputError(where, ["the file may not be read; check its permissions"]) from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(where, [f"the file can not be read ({reason}); check the path"]) from None
    if len(content) > limit:
        raise InputError(where, [f"the file is larger than {LARGEST_FILE_MB} MB; is it the right one?"])
    return content


def _decoded(where: str, content: bytes) -> str:
    """Text of UTF-8 bytes, without the byte order mark that some editors write."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02x} at position {error.start}"
        raise InputError(where, [f"the file is not UTF-8 text ({found}); save it as UTF-8"]) from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Object of a JSON text, which remembers keys that were given more than once."""
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    doubled = _Doubled(found)
    times = Counter(key for key, _ in pairs)
    doubled.keys_given_twice = tuple(key for key in found if times[key] > 1)
    return doubled


def _integer(digits: str) -> float:
    """Integer of its digits; one that no float can hold becomes infinite, and so a fault."""
    if len(digits) <= _LONGEST_INTEGER:
        return int(digits)
    return -math.inf if digits.startswith("-") else math.inf


def _walk(value: object) -> Iterator[tuple[str, int, object]]:
    """Place, depth and value of everything in a document, in its order."""
    stack: list[tuple[str, int, object]] = [("", 0, value)]
    while stack:
        place, depth, item = stack.pop()
        yield place, depth, item
        if isinstance(item, dict):
            dot = "." if place else ""
            inner = [(f"{place}{dot}{_printable(key)}", depth + 1, entry) for key, entry in item.items()]
            stack.extend(reversed(inner))
        elif isinstance(item, list):
            inner = [(f"{place}[{index}]", depth + 1, entry) for index, entry in enumerate(item)]
            stack.extend(reversed(inner))


def _printable(key: str) -> str:
    """Key that can stand in a message whatever it holds."""
    return key if key.isprintable() else ascii(key)


def _faults_at(place: str, item: object) -> list[str]:
    """Faults of one value, without what is inside it."""
    if isinstance(item, float) and not math.isfinite(item):
        return [f"{place or 'the value'} must be a finite number (got {item})"]
    if isinstance(item, _Doubled):
        keys = ", ".join(ascii(key) for key in item.keys_given_twice)
        return [f"{place or 'the top level'} gives a key more than once ({keys}); keep one"]
    return []
