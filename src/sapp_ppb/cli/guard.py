"""What every verb promises: faults in clear lines on stderr, and an exit code that says what happened."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import ParamSpec

import typer

from sapp_ppb.errors import NoPlanFoundError, Note, PpbError

FITS, NOTHING_FITS, BAD_INPUT, NO_PLAN_IN_TIME = 0, 1, 2, 3
P = ParamSpec("P")


def verb(command: Callable[P, int]) -> Callable[P, None]:
    """Turn a function that returns an exit code into a command that keeps the promises."""

    @wraps(command)
    def kept(*arguments: P.args, **options: P.kwargs) -> None:
        try:
            with _notes_on_stderr():
                code = command(*arguments, **options)
        except NoPlanFoundError as error:
            code = _failed(str(error), NO_PLAN_IN_TIME)
        except PpbError as error:
            code = _failed(str(error), BAD_INPUT)
        except KeyboardInterrupt:
            code = _failed("interrupted", NO_PLAN_IN_TIME)
        except OSError as error:  # of a file that no reader or writer looks after
            code = _failed(_of_the_system(error), BAD_INPUT)
        except MemoryError:
            code = _failed(
                "there is not enough memory; give the process more, or a smaller problem", BAD_INPUT
            )
        raise typer.Exit(code)

    return kept


def _of_the_system(error: OSError) -> str:
    if error.filename is None:
        return f"the system refused: {error.strerror or error}"
    return f"{error.filename}: {error.strerror}; check the path and its permissions"


def _failed(message: str, code: int) -> int:
    say(f"error: {message}")
    return code


def say(message: str) -> None:
    """Print one message to stderr, in an encoding that it can take, with nothing that steers a terminal."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    # A path may hold any character, an escape sequence included.
    shown = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in message)
    try:
        print(shown.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr)
    except OSError:  # nobody listens; the code still tells, unless the rest is tried again at the end
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


@contextmanager
def _notes_on_stderr() -> Iterator[None]:
    """Print every Note once as a line of its own; other warnings stay as they are."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: object, **more: object) -> None:
        if issubclass(category, Note):
            say(f"note: {message}")
        else:
            usual(message, category, *place, **more)  # type: ignore[arg-type]

    with warnings.catch_warnings():
        warnings.simplefilter("always", Note)
        warnings.showwarning = show
        yield
