"""
JSON from a path, read strictly: what is not clear is refused, never guessed.

Python's own reader takes NaN, lets the last of two equal keys win and stops at
the first fault.  Here every doubled key and every number that is not finite is
found, and named by its place in the document.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from os import PathLike
from typing import NamedTuple

from sapp_ppb.errors import InputError
from sapp_ppb.readers.text_file import printable, read_text

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


def read_document(path: str | PathLike[str], otherwise: str = "") -> Document:
    """
    Value of a JSON file with the faults inside it, for a reader that gathers more.

    Parameters
    ----------
    path
        File to read.
    otherwise
        What a file whose very first character is not JSON's should have been, and what makes one.

    Raises
    ------
    InputError
        If the file is missing, a folder, unreadable, larger than 64 MB, empty, no
        UTF-8, no JSON (with line and column) or nested deeper than 100 levels.
    """
    where = str(path)
    text = read_text(path, largest_mb=LARGEST_FILE_MB, format_name="JSON")
    deep = InputError(where, [f"the JSON is nested deeper than {DEEPEST_NESTING} levels"])
    try:
        value: object = json.loads(text, object_pairs_hook=_object, parse_int=_integer)
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        fault = f"the JSON is broken at line {error.lineno}, column {error.colno}: {reason}"
        if otherwise and not error.doc[: error.pos].strip():
            fault = f"is no JSON; {otherwise}"
        raise InputError(where, [fault]) from None
    except RecursionError:
        raise deep from None
    faults = []
    for place, depth, item in _walk(value):
        if depth > DEEPEST_NESTING:
            raise deep
        faults += _faults_at(place, item)
    return Document(value, tuple(faults))


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
            inner = [(f"{place}{dot}{printable(key)}", depth + 1, entry) for key, entry in item.items()]
            stack.extend(reversed(inner))
        elif isinstance(item, list):
            inner = [(f"{place}[{index}]", depth + 1, entry) for index, entry in enumerate(item)]
            stack.extend(reversed(inner))


def _faults_at(place: str, item: object) -> list[str]:
    """Faults of one value, without what is inside it."""
    if isinstance(item, float) and not math.isfinite(item):
        return [f"{place or 'the value'} must be a finite number (got {item})"]
    if isinstance(item, _Doubled):
        keys = ", ".join(ascii(key) for key in item.keys_given_twice)
        return [f"{place or 'the top level'} gives a key more than once ({keys}); keep one"]
    return []
