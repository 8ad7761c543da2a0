"""How the errors of this room list values and faults."""

from collections.abc import Sequence
from numbers import Integral

from sapp_ppb.errors import ScheduleError

SHOWN = 8  # entries of a list that a message spells out


def one_of(values: Sequence[object]) -> str:
    """
    Values in words, with the last joined by "or" and a long middle cut out.

    The last value is always shown, because it often is the one that works
    everywhere (a group of all micro-batches).

    Examples
    --------
    >>> one_of([5, 6, 10])
    '5, 6 or 10'
    >>> one_of(range(1, 21))  # 7 first, 1 last, so 12 are left out
    '1, 2, 3, 4, 5, 6, 7, 20 or one of 12 more'
    """
    words = [str(value) for value in values]
    if len(words) > SHOWN:
        words[SHOWN - 1 :] = [words[-1], f"one of {len(words) - SHOWN} more"]
    head, last = words[:-1], words[-1]
    return f"{', '.join(head)} or {last}" if head else last


def cut_list(words: Sequence[str], total: int | None = None) -> list[str]:
    """
    First entries of a list, and how many more there are.

    Parameters
    ----------
    words
        The entries, or only the first of them.
    total
        Length of the whole list; that of ``words`` when None.

    Examples
    --------
    >>> cut_list(["0B0", "1F1"])
    ['0B0', '1F1']
    >>> cut_list(["0B0"] * 10)[-1]  # 8 are shown
    'and 2 more'
    """
    more = (len(words) if total is None else total) - SHOWN
    return [*words[:SHOWN], f"and {more} more"] if more > 0 else list(words)


def schedule_error(where: str, faults: Sequence[str], total: int | None = None) -> ScheduleError:
    """
    Gather the faults of one schedule or text into one error.

    Parameters
    ----------
    where
        Name of the schedule or of what was read.
    faults
        One sentence a fault, at least one.
    total
        Number of faults if ``faults`` holds only the first of them.

    Examples
    --------
    >>> print(schedule_error("1f1b", ["stage 0: found 0F0 again", "stage 1: found 7F0"]))
    1f1b: 2 faults
      stage 0: found 0F0 again
      stage 1: found 7F0
    """
    count = len(faults) if total is None else total
    if count == 1:
        return ScheduleError(f"{where}: {faults[0]}")
    return ScheduleError("\n  ".join([f"{where}: {count} faults", *cut_list(faults, count)]))


def check_sizes(where: str, **sizes: object) -> None:
    """
    Refuse a number of stages, chunks or micro-batches that is no whole number from 1 up.

    Raises
    ------
    ScheduleError
        Naming every such size and its value.

    Examples
    --------
    >>> check_sizes("gpipe", stages=0, micro_batches=4)
    Traceback (most recent call last):
    sapp_ppb.errors.ScheduleError: gpipe: stages must be a whole number, at least 1 (got 0)
    """
    faults = [
        f"{name} must be a whole number, at least 1 (got {value!r})"
        for name, value in sizes.items()
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1
    ]
    if faults:
        raise schedule_error(where, faults)
