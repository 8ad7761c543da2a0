"""
Events of a trace file one by one, so that a file of gigabytes takes little memory.

A trace is a bare list of events or an object with ``traceEvents``, plain or gzipped.
"""

import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from os import PathLike
from typing import IO, Any, cast

from sapp_ppb.costs.checks import shown
from sapp_ppb.errors import InputError
from sapp_ppb.files import opened

_CHUNK = 2**20  # characters that are read at a time
_BLANKS = re.compile(r"[ \t\r\n]*")
_TIME = re.compile(r"-?\d{1,18}(\.\d{0,30})?", re.ASCII)
_LARGEST_VALUE = 2**22  # characters of one event, or of one value beside the events
_LONGEST_SEARCH = 100_000  # entries among which there must be an event
Watch = Callable[[float], None]
Event = dict[str, Any]


def trace_events(
    path: str | PathLike[str], about: dict[str, object] | None = None, watch: Watch | None = None
) -> Iterator[Event]:
    """
    Give the events of a trace file, whatever they are; entries that are no objects are left out.

    An event's ``pid`` and ``tid`` are numbers or text, or None for anything else.

    Parameters
    ----------
    path
        JSON, or gzipped JSON under any name.
    about
        Is filled with what stands beside ``traceEvents``, once all events were given; what
        is more than 4 MB of it is left out.
    watch
        Called now and then with the share of the file that is read.

    Raises
    ------
    InputError
        If the file can not be read, is cut off or no JSON, or holds no list of events.
    """
    where = str(path)
    events, some = 0, False
    try:
        with opened(path) as raw, _unpacked(raw) as file:
            size = max(os.fstat(raw.fileno()).st_size, 1)
            stream = _Stream(file, _told(watch, raw, size))
            for value in _listed(stream, {} if about is None else about):
                events += 1
                if isinstance(value, dict):
                    some = some or "ph" in value
                    for key in ("pid", "tid"):
                        if not isinstance(value.get(key), int | str):
                            value[key] = None
                    yield value
                if events == _LONGEST_SEARCH and not some:
                    raise _Broken("nothing in the list is an event, which has a ph; is it a trace?")
    except (_Broken, EOFError, zlib.error, OSError, ValueError) as error:
        after = f", after {events:,} events" if events else ""
        raise InputError(where, [_reason(error) + after]) from None
    if events == 0:
        fault = "holds no events; a trace is a list of events, or an object with traceEvents"
        raise InputError(where, [fault])


def _told(watch: Watch | None, raw: IO[bytes], size: int) -> Callable[[], None]:
    """Tell how much of a file is read; nothing of a pipe, whose length is not known."""
    if watch is None or not raw.seekable():
        return lambda: None
    return lambda: watch(raw.tell() / size)


def _reason(error: Exception) -> str:
    """Say why a trace can not be read, and what to do."""
    if isinstance(error, _Broken):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return "the trace is not UTF-8 text; save it as UTF-8"
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        return f"the gzip file is broken ({error}); copy it again"
    if isinstance(error, FileNotFoundError):
        return "there is no such file; check the path"
    if isinstance(error, IsADirectoryError):
        return "is a folder; name a file in it"
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"the file can not be read ({reason}); check the path"


class _Broken(Exception):
    """What is wrong with the JSON, for a message that says after how many events."""


def _unpacked(raw: IO[bytes]) -> IO[bytes]:
    """File itself, or what is in it when it is gzipped."""
    # Looked at without going back, which a pipe can not.
    magic = cast("io.BufferedReader", raw).peek(2)[:2]
    return cast("IO[bytes]", gzip.open(raw)) if magic == b"\x1f\x8b" else raw


class _Stream:
    """JSON text of which no more than a chunk and a value is held."""

    def __init__(self, file: IO[bytes], progress: Callable[[], None]) -> None:
        self._progress = progress
        self._text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        self._decode = json.JSONDecoder().raw_decode
        self._buffer, self._at = "", 0
        self.length = 0  # characters of the last value

    def mark(self) -> str:
        """Next character that is no blank, which stays; empty at the end."""
        blanks = 0
        while True:
            behind = _BLANKS.match(self._buffer, self._at).end()  # type: ignore[union-attr]  # it always matches
            blanks += behind - self._at
            self._at = behind
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if blanks > _LARGEST_VALUE:
                raise _Broken("the trace has nothing but blanks for 4 MB")
            if not self._fill(_CHUNK):
                return ""

    def take(self, marks: str) -> str:
        """Next character that is no blank, which must be one of these."""
        found = self.mark()
        if not found or found not in marks:
            got = f"got {shown(found)}" if found else "it ends"
            raise _Broken(f"the trace is cut off or no JSON: {' or '.join(marks)} should follow ({got})")
        self._at += 1
        return found

    def value(self) -> object:
        """Next value, whole."""
        self.mark()
        more = _CHUNK
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                if len(self._buffer) - self._at > _LARGEST_VALUE:
                    raise _Broken(f"one event is no JSON or too large ({error.msg})") from None
                if not self._fill(more):
                    raise _Broken(f"the trace is cut off or no JSON ({error.msg})") from None
            except RecursionError:
                raise _Broken("an event is nested too deep") from None
            except ValueError:
                raise _Broken("a number has too many digits") from None
            else:
                # A number at the end of the buffer may go on.
                if end < len(self._buffer) or self._buffer[end - 1] in '}]"' or not self._fill(more):
                    self.length, self._at = end - self._at, end
                    return cast("object", value)
            more *= 2  # a long value is not decoded anew for every chunk

    def _fill(self, characters: int) -> bool:
        """Read on, and forget what was taken; whether there was more."""
        chunk = self._text.read(characters)
        self._buffer, self._at = self._buffer[self._at :] + chunk, 0
        self._progress()
        return bool(chunk)


def _listed(stream: _Stream, about: dict[str, object]) -> Iterator[object]:
    """Entries of the list, and what stands beside it."""
    first = stream.mark()
    if not first:
        raise _Broken("the file is empty; it must hold a trace")
    if stream.take("[{") == "[":
        yield from _entries(stream)
        return
    left = _LARGEST_VALUE  # characters beside the events that are kept
    while stream.mark() != "}":
        key = stream.value()
        stream.take(":")
        if key == "traceEvents" and stream.mark() == "[":
            stream.take("[")
            yield from _entries(stream)
        else:
            value, length = stream.value(), stream.length
            left -= length
            if left >= 0:
                about[str(key)] = value
        if stream.mark() != "}":
            stream.take(",")


def _entries(stream: _Stream) -> Iterator[object]:
    """Entries of a list whose bracket was taken."""
    if stream.mark() == "]":
        stream.take("]")
        return
    while True:
        yield stream.value()
        if stream.take(",]") == "]":
            return


class Clock:
    r"""
    Turns the times of a trace into microseconds from its first one.

    Times since 1970 have more digits than a float holds, and come as numbers or as text.

    Examples
    --------
    >>> clock = Clock()
    >>> clock.at("1736405443881410.320\t"), clock.at("1736405443881460.941")
    (0.32, 50.941)
    >>> clock.at(1736405443881411), clock.at("1.7364E+15") is None, clock.at(None) is None
    (1.0, True, True)
    """

    def __init__(self) -> None:
        self._origin: int | None = None

    def at(self, value: object) -> float | None:
        """Time of a value; None for what is no time, such as what a spreadsheet makes of one."""
        if isinstance(value, str):
            if _TIME.fullmatch(value.strip()) is None:
                return None
            whole, _, part = value.strip().partition(".")
            return self._from_origin(int(whole)) + (float(f"0.{part}") if part else 0.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            return None
        if abs(value) > 1e18:
            return None
        whole_number = int(value // 1)
        return self._from_origin(whole_number) + float(value - whole_number)

    def _from_origin(self, whole: int) -> float:
        if self._origin is None:
            self._origin = whole
        return float(whole - self._origin)


def duration(value: object) -> float | None:
    """Microseconds of a ``dur``, a number or text; None for what is none."""
    try:
        lasts = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
    except (ValueError, OverflowError):  # an integer of 400 digits
        return None
    return lasts if 0 <= lasts < 1e15 else None
