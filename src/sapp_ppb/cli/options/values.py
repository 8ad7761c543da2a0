"""How text on the command line becomes numbers."""

import re

import typer

from sapp_ppb.errors import InputError

_GIGABYTES = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(?:g|gb|gib)", re.IGNORECASE)
_SEVERAL = re.compile(r"\s*\d+(\s*[,;:x .-]+\s*\d+)+\s*")
_THOUSANDS = re.compile(r"0\d\d")  # what 56,000 ends in, and no list of numbers


def numbers(option: str, text: str, unit: str) -> float | tuple[float, ...]:
    """
    Read one number, or several with commas between them.

    Raises
    ------
    InputError
        Naming the option and every entry that is no number.

    Examples
    --------
    >>> numbers("--memory-limit", "56000", "MB"), numbers("--p2p", "1,2.5", "ms")
    (56000.0, (1.0, 2.5))
    """
    entries = text.split(",")
    faults = [
        f"{entry.strip()!r} is not a number of {unit}{_in_mb(entry, unit)}"
        for entry in entries
        if not is_number(entry)
    ]
    if any(_THOUSANDS.fullmatch(entry) for entry in entries[1:]):
        faults = [f"{text!r} looks like one number with a thousands comma; write {text.replace(',', '')}"]
    if faults:
        raise InputError(option, faults)
    values = tuple(float(entry) for entry in entries)
    return values if len(values) > 1 else values[0]


def _in_mb(entry: str, unit: str) -> str:
    """Say what to write for a number of gigabytes where megabytes are asked for."""
    found = _GIGABYTES.fullmatch(entry.strip())
    return f"; write {1024 * float(found[1]):.10g} for {found[1]} GB" if found and unit == "MB" else ""


def one_size(text: str) -> int:
    """
    Read one whole number; where several stand, say which verb takes them.

    Raises
    ------
    BadParameter
        If it is none.

    Examples
    --------
    >>> one_size("16")
    16
    """
    try:
        return int(text)
    except ValueError:
        several = "; for several, ask 'sapp-ppb sweep'" if _SEVERAL.fullmatch(text) else ""
        raise typer.BadParameter(f"{text!r} is not a whole number{several}") from None


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """
    Read whole numbers of at least 1, with commas between them.

    Raises
    ------
    InputError
        Naming the option and every entry that is none.

    Examples
    --------
    >>> whole_numbers("--layers", "32"), whole_numbers("--layers", "12,24")
    ((32,), (12, 24))
    """
    entries = [entry.strip() for entry in text.split(",")]
    faults = [
        f"{entry!r} is not a whole number of at least 1"
        for entry in entries
        if not (entry.isascii() and entry.isdigit() and len(entry) < 10 and int(entry))
    ]
    if faults:
        raise InputError(option, faults)
    return tuple(int(entry) for entry in entries)


def is_number(text: str) -> bool:
    """Whether a text is one number, as people write it."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # which Python allows between digits


def share(option: str, text: str) -> float:
    """
    Read a share, written as 0.01 or as 1%.

    Examples
    --------
    >>> share("--gap", "1%"), share("--gap", "0.01")
    (0.01, 0.01)
    """
    number = text.strip().removesuffix("%")
    if not is_number(number):
        raise InputError(option, [f"{text!r} is not a share such as 0.01 or 1%"])
    return float(number) / 100 if text.strip().endswith("%") else float(number)


def layer_count(option: str, text: str) -> tuple[str, int | None]:
    """
    Read the name of a layer and how many there are, with a colon between them.

    Examples
    --------
    >>> layer_count("--body", "DecodeLayer:80"), layer_count("--body", "Block")
    (('DecodeLayer', 80), ('Block', None))
    """
    name, colon, number = text.rpartition(":")
    if not colon:
        name, number = text, ""
    elif not (number.isascii() and number.isdigit() and 0 < len(number) < 8 and int(number)):
        raise InputError(option, [f"{text!r} is not NAME or NAME:COUNT, with a count of at least 1"])
    if not name.strip():
        raise InputError(option, [f"{text!r} names no layer"])
    return name, int(number) if number else None
