"""
JSON from a path, read strictly: what is not clear is refused, never guessed.

Python's own reader takes NaN, lets the last of two equal keys win and stops at
the first fault.  Here every doubled key and every number that is not finite is
found, and named by its place in the document.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import NamedTuple

from sapp_ppb.costs.checks import listed, shown
from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.text_file import in_list, in_mapping, read_text

LARGEST_FILE_MB = 64
DEEPEST_NESTING = 100
MOST_VALUES = 2_000_000
_LONGEST_INTEGER = 300  # digits; a float ends at 309 and int() of 4300 digits raises


class Document(NamedTuple):
    """A JSON value and what is wrong inside it, one sentence a fault."""

    value: object
    faults: tuple[str, ...]


class _Doubled(dict[str, object]):
    """An object in which some keys were given more than once."""

    keys_given_twice: tuple[str, ...] = ()


def read_json(path: str | PathLike[str], largest_mb: float = LARGEST_FILE_MB) -> object:
    """
    Value of a JSON file.

    Parameters
    ----------
    largest_mb
        As of ``read_document()``.

    Raises
    ------
    InputError
        As ``read_document()``, and if a key is doubled or a number is not finite.
    """
    document = read_document(path, largest_mb=largest_mb)
    if document.faults:
        raise InputError(str(path), document.faults)
    return document.value


def read_document(
    path: str | PathLike[str], otherwise: str = "", largest_mb: float = LARGEST_FILE_MB
) -> Document:
    """
    Value of a JSON file with the faults inside it, for a reader that gathers more.

    Parameters
    ----------
    path
        File to read.
    otherwise
        What a file whose very first character is not JSON's should have been, and what makes one.
    largest_mb
        Most that the file may hold, MB, where that is less than 64.

    Raises
    ------
    InputError
        If the file is missing, a folder, unreadable, too large, empty, no
        UTF-8, no JSON (with line and column), nested deeper than 100 levels, or holds
        more than two million values.
    """
    where = str(path)
    text = read_text(path, largest_mb=min(largest_mb, LARGEST_FILE_MB), format_name="JSON")
    _refuse_many(where, text)
    deep = InputError(where, [f"the JSON is nested deeper than {DEEPEST_NESTING} levels"])
    reading = _Reading()
    try:
        value: object = json.loads(
            text,
            object_pairs_hook=reading.object,
            parse_int=reading.integer,
            parse_float=reading.fraction,
            parse_constant=reading.fraction,
        )
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        fault = f"the JSON is broken at line {error.lineno}, column {error.colno}: {reason}"
        if otherwise and not error.doc[: error.pos].strip():
            fault = f"is no JSON; {otherwise}"
        raise InputError(where, [fault]) from None
    except RecursionError:
        raise deep from None
    if _depth(value) > DEEPEST_NESTING:
        raise deep
    if not reading.is_odd:
        return Document(value, ())
    return Document(value, tuple(fault for place, item in _walk(value) for fault in _faults_at(place, item)))


def _refuse_many(where: str, text: str) -> None:
    """Refuse a text of more values than fit the memory: a value of two characters takes a hundred bytes."""
    # Commas in text count too; a file of that many is none of ours either.
    if text.count(",") + text.count("[") + text.count("{") > MOST_VALUES:
        raise InputError(where, [f"holds more than {MOST_VALUES:,} values; is it the right file?"])


class _Reading:
    """Makes the values of a text, and notices when one of them is a fault."""

    def __init__(self) -> None:
        self.is_odd = False

    def object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        """Object, which remembers keys that were given more than once."""
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        self.is_odd = True
        doubled = _Doubled(found)
        times = Counter(key for key, _ in pairs)
        doubled.keys_given_twice = tuple(key for key in found if times[key] > 1)
        return doubled

    def integer(self, digits: str) -> float:
        """Integer; one that no float can hold becomes infinite, and so a fault."""
        if len(digits) <= _LONGEST_INTEGER:
            return int(digits)
        self.is_odd = True
        return -math.inf if digits.startswith("-") else math.inf

    def fraction(self, text: str) -> float:
        """Fraction, or one of the words NaN and Infinity."""
        number = float(text)
        self.is_odd = self.is_odd or not math.isfinite(number)
        return number


def _depth(value: object) -> int:
    """Levels of objects and lists."""
    deepest, level = 0, [value]
    while level := [
        inner
        for item in level
        if isinstance(item, dict | list)
        for inner in (item.values() if isinstance(item, dict) else item)
        if isinstance(inner, dict | list)
    ]:
        deepest += 1
        if deepest > DEEPEST_NESTING:
            break
    return deepest + 1


def _walk(value: object) -> Iterator[tuple[str, object]]:
    """Place and value of everything in a document, in its order."""
    stack: list[Iterator[tuple[str, object]]] = [iter([("", value)])]
    while stack:
        for place, item in stack[-1]:
            yield place, item
            if isinstance(item, dict | list):
                stack.append(_inside(place, item))
                break
        else:
            stack.pop()


def _inside(place: str, item: Mapping[str, object] | list[object]) -> Iterator[tuple[str, object]]:
    if isinstance(item, list):
        return ((in_list(place, index), entry) for index, entry in enumerate(item))
    return ((in_mapping(place, key), entry) for key, entry in item.items())


def _faults_at(place: str, item: object) -> list[str]:
    """Faults of one value, without what is inside it."""
    if isinstance(item, float) and not math.isfinite(item):
        return [f"{place or 'the value'} must be a finite number (got {item})"]
    if isinstance(item, _Doubled):
        keys = listed(shown(key) for key in item.keys_given_twice)
        return [f"{place or 'the top level'} gives a key more than once ({keys}); keep one"]
    return []
