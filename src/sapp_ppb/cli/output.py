"""The result, to stdout: whole, in an encoding that it can take, and quiet when nobody reads on."""

import os
import sys

from sapp_ppb.errors import InputError


def write_result(text: str) -> None:
    """
    Write text for people; characters that the terminal does not know are escaped.

    When the reader closed the pipe (``| head``) the rest is dropped without a word.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    _write(text.encode(encoding, "backslashreplace"))


def write_document(text: str) -> None:
    """Write a file's text as it would be in the file: UTF-8, with its own line ends."""
    _write(text.encode("utf-8"))


def _write(content: bytes) -> None:
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except OSError as error:
        # What is still buffered would raise again when Python closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise InputError("stdout", [f"the result can not be written ({error.strerror})"]) from None


def can_draw_blocks() -> bool:
    """Whether stdout can show block characters."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        "█▌±".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
