"""What a number and a name must be; each check gives one sentence, or None when all is well."""

import math
import unicodedata
from collections.abc import Iterable
from numbers import Integral, Real

LARGEST_NUMBER = 1e15  # ms or MB: 30,000 years, a billion TB; more is a slip of the unit
SMALLEST_NUMBER = (
    1e-15  # what must be above 0 is at least this, so that sums and shares of it are numbers too
)
LARGEST_COUNT = 10**6  # layers
_LONGEST_NAME = 200  # characters of a key or path in a message
_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control, lone surrogate, line and paragraph separator
# Bidirectional classes of the characters that make text read backwards.
_TURNING = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def number_fault(field: str, value: object, *, above_zero: bool = False) -> str | None:
    """
    Fault of a time or memory, which must be finite and at least (or above) 0.

    Integers and floats of numpy are numbers like any other; bool and text are not.

    Examples
    --------
    >>> number_fault("forward_ms", -3.1)
    'forward_ms must be a number of at least 0 (got -3.1)'
    >>> number_fault("forward_ms", 0, above_zero=True)
    'forward_ms must be a number above 0 (got 0)'
    """
    wanted = "a number above 0" if above_zero else "a number of at least 0"
    number = _as_float(value)
    if not math.isfinite(number) or number < 0 or (above_zero and number == 0):
        return f"{field} must be {wanted} (got {shown(value)})"
    if above_zero and number < SMALLEST_NUMBER:
        return f"{field} must be at least {SMALLEST_NUMBER:g} (got {shown(value)}); check the unit"
    if number > LARGEST_NUMBER:
        return f"{field} must be at most {LARGEST_NUMBER:g} (got {shown(value)}); check the unit"
    return None


def count_fault(field: str, value: object) -> str | None:
    """
    Fault of a count, which must be an integer from 1 to a million.

    Examples
    --------
    >>> count_fault("count", 1.5)
    'count must be an integer of at least 1 (got 1.5)'
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or _as_float(value) < 1:
        return f"{field} must be an integer of at least 1 (got {shown(value)})"
    if _as_float(value) > LARGEST_COUNT:
        return f"{field} must be at most {LARGEST_COUNT} (got {shown(value)})"
    return None


def text_fault(field: str, value: object) -> str | None:
    """
    Fault of a name, which must be text that can be printed on one line.

    Examples
    --------
    >>> text_fault("name", "")
    "name must be text that is not empty (got '')"
    """
    if not isinstance(value, str) or not value.strip():
        return f"{field} must be text that is not empty (got {shown(value)})"
    if any(
        unicodedata.category(character) in _UNPRINTABLE or unicodedata.bidirectional(character) in _TURNING
        for character in value
    ):
        return f"{field} must be text without control characters (got {shown(value)})"
    return None


def _as_float(value: object) -> float:
    """Float of a number; NaN for what is none, infinity for an integer that no float can hold."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def shown(value: object, longest: int = 60) -> str:
    """
    Representation of a value that is short enough for a message.

    Examples
    --------
    >>> shown("x" * 100, longest=12)
    "'xxxxxxxx..."
    """
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**20:
        return "an integer of more than 20 digits"  # repr of a huge integer raises
    try:
        start = _beginning(value, longest, [longest])
        text = ascii(start) if isinstance(start, str) and not start.isprintable() else repr(start)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _beginning(value: object, longest: int, left: list[int]) -> object:
    """As much of a value as its representation shows: each entry takes a character at least."""
    if isinstance(value, str):
        return value[: longest + 1]
    if isinstance(value, list | dict):
        entries: list[tuple[object, object]] = []
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            if left[0] < 0:
                break
            left[0] -= 1
            entries.append((key, _beginning(entry, longest, left)))
        return dict(entries) if isinstance(value, dict) else [entry for _, entry in entries]
    return value


def printable(text: str) -> str:
    r"""
    Text as it can stand in a message whatever it holds, however long.

    Examples
    --------
    >>> printable("time"), printable("a\tb"), len(printable("x" * 1000))
    ('time', "'a\\tb'", 200)
    """
    start = text[: _LONGEST_NAME + 1]
    said = start if start.isprintable() else ascii(start)
    return said if len(said) <= _LONGEST_NAME else said[: _LONGEST_NAME - 3] + "..."


def listed(values: Iterable[object], most: int = 16) -> str:
    """
    Name the first of some values, and how many more there are.

    Examples
    --------
    >>> listed([1, 2, 4]), listed(range(20), most=3)
    ('1, 2, 4', '0, 1, 2 and 17 more')
    """
    words = [str(value) for value in values]
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
