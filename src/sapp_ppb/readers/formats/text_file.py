"""Text from a path: what every reader of text asks of a file before it looks at its format."""

import codecs
from collections.abc import Iterator
from itertools import chain
from os import PathLike

from sapp_ppb.costs.checks import printable
from sapp_ppb.errors import InputError
from sapp_ppb.files import opened

_PIECE = 2**20  # bytes that are read at a time
_MOST_LINES = 5_000_000
_LONGEST_PLACE = 500  # characters


def read_text(
    path: str | PathLike[str], *, largest_mb: float, format_name: str, keep_mark: bool = False
) -> str:
    """
    Text of a UTF-8 file, all line ends kept.

    Parameters
    ----------
    path
        File to read.
    largest_mb
        Most that it may hold, MB; not a byte more is read than shows that it does.
    format_name
        What it should hold, for the message about an empty file.
    keep_mark
        Keep the byte order mark that some editors write; without, it is left out.

    Raises
    ------
    InputError
        If the file is missing, a folder, unreadable, too large, no UTF-8 or blank.
    """
    where = str(path)
    text = _decoded(where, b"".join(_pieces(where, path, largest_mb)))
    if not text.removeprefix("\ufeff").strip():
        raise InputError(where, [f"the file is empty; it must hold {format_name}"])
    return text if keep_mark else text.removeprefix("\ufeff")


def read_lines(path: str | PathLike[str], *, largest_mb: float, format_name: str) -> Iterator[str]:
    """
    Lines of a UTF-8 file that may be too large to be held, without their ends.

    A line of more than a million characters comes in several parts.

    Raises
    ------
    InputError
        As ``read_text()`` does, as soon as a fault is met, and of a file that is blank at its end.
    """
    where, rest, is_blank, first = str(path), "", True, True
    decoder = codecs.getincrementaldecoder("utf-8")()
    before = lines_seen = 0  # bytes of the pieces before
    for piece in chain(_pieces(where, path, largest_mb), [b""]):
        try:
            text = decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            raise _no_utf_8(where, error, before - (len(error.object) - len(piece))) from None
        before += len(piece)
        lines_seen += text.count("\n")
        if lines_seen > _MOST_LINES:
            raise InputError(where, [f"holds more than {_MOST_LINES:,} lines; is it the right file?"])
        text = rest + (text.removeprefix("\ufeff") if first else text)
        first = False
        *lines, rest = text.split("\n") if piece else [text, ""]
        if len(rest) > _PIECE:
            lines, rest = [*lines, rest], ""
        is_blank = is_blank and not text.strip()
        yield from (line for whole in lines for line in whole.splitlines() or [""])
    if is_blank:
        raise InputError(where, [f"the file is empty; it must hold {format_name}"])


def refuse_unreadable(path: str | PathLike[str]) -> None:
    """
    Refuse a file of which not even the beginning can be read.

    Raises
    ------
    InputError
        As ``read_text()`` does.
    """
    next(_pieces(str(path), path, 1.0), b"")


def refuse_many(where: str, text: str, *, lines: int, cells: int) -> None:
    """
    Refuse a table that is longer than any of its kind, before there is an object for each cell.

    Parameters
    ----------
    lines, cells
        Most that it may have, empty ones included.

    Raises
    ------
    InputError
        If it has more.
    """
    found = max(text.count("\n"), text.count("\r"))
    if found > lines:
        fault = f"holds {found:,} lines, and at most {lines:,} are read; is it the right file?"
        raise InputError(where, [fault])
    if text.count(",") > cells:
        raise InputError(where, [f"holds more than {cells:,} cells; is it the right file?"])


def in_mapping(place: str, key: str) -> str:
    """
    Place of a key of a mapping; the beginning, where keys are so long that it would fill the memory.

    Examples
    --------
    >>> in_mapping("", "layers"), in_mapping("layers[0]", "time")
    ('layers', 'layers[0].time')
    """
    return _cut(f"{place}.{printable(key)}" if place else printable(key))


def in_list(place: str, index: int) -> str:
    """
    Place of an entry of a list.

    Examples
    --------
    >>> in_list("layers", 0)
    'layers[0]'
    """
    return _cut(f"{place}[{index}]")


def _cut(place: str) -> str:
    return place if len(place) <= _LONGEST_PLACE else place[: _LONGEST_PLACE - 3] + "..."


def _pieces(where: str, path: str | PathLike[str], largest_mb: float) -> Iterator[bytes]:
    """Content of a file piece by piece, not a piece more than allowed."""
    left = int(largest_mb * 2**20)
    try:
        with opened(path) as file:
            while piece := file.read(_PIECE):
                left -= len(piece)
                if len(piece) == _PIECE and not any(piece):
                    raise InputError(where, ["holds nothing but null bytes; is it the right file?"])
                if left < 0:
                    fault = f"the file is larger than {largest_mb} MB; is it the right one?"
                    raise InputError(where, [fault])
                yield piece
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(where, ["there is no such file; check the path"]) from None
    except IsADirectoryError:
        raise InputError(where, ["is a folder; name a file in it"]) from None
    except PermissionError:
        raise InputError(where, ["the file may not be read; check its permissions"]) from None
    except (OSError, ValueError) as error:  # ValueError: a name that can not be encoded
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(where, [f"the file can not be read ({reason}); check the path"]) from None


def _decoded(where: str, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _no_utf_8(where, error, 0) from None


def _no_utf_8(where: str, error: UnicodeDecodeError, before: int) -> InputError:
    found = f"byte 0x{error.object[error.start]:02x} at position {before + error.start}"
    return InputError(where, [f"the file is not UTF-8 text ({found}); save it as UTF-8"])
