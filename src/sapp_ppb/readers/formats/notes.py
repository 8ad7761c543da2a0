"""What is odd in a file is said as warnings, each once, and never without end."""

import warnings
from collections.abc import Iterable
from os import PathLike

from sapp_ppb.errors import FileNote

_MOST_NOTES = 100


def warn_of(path: str | PathLike[str], notes: Iterable[str]) -> None:
    """
    Warn of notes about a file, on behalf of the caller's caller.

    Warns
    -----
    FileNote
        For each distinct note; of more than a hundred, how many more there are.
    """
    distinct = list(dict.fromkeys(notes))
    hidden = len(distinct) - _MOST_NOTES
    more = [f"and {hidden:,} more notes"] if hidden > 0 else []
    for note in [*distinct[:_MOST_NOTES], *more]:
        warnings.warn(f"{path}: {note}", FileNote, stacklevel=3)
