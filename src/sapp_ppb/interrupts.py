"""Ctrl-C and its like: one way to be stopped, and a way to finish first what must not be left half done."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# What asks a process to stop: Ctrl-C, a batch system or ``timeout``, a terminal that is gone.
STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def stop_as_by_ctrl_c() -> None:
    """Let what would end the process at once raise KeyboardInterrupt, so that the best plan is written."""
    for number in STOPPING:
        if signal.getsignal(number) is signal.SIG_DFL:  # one that is ignored (nohup) stays so
            signal.signal(number, signal.default_int_handler)


def stop_no_more() -> None:
    """Let nothing stop what the interpreter does at its end, when all is said and written."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def held_interrupts(*, patient: bool = False) -> Iterator[Callable[[], bool]]:
    """
    Hold a Ctrl-C back until the block is done; it comes at its end.

    In another thread than the main one, which no signal reaches, nothing is to be held.

    Parameters
    ----------
    patient
        Hold every one back; otherwise a second one is not held.

    Yields
    ------
    Callable
        Says whether one is held back.

    Examples
    --------
    >>> try:
    ...     with held_interrupts() as asked:
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("not yet", asked())
    ... except KeyboardInterrupt:
    ...     print("now")
    not yet True
    now
    """
    held: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def hold(number: int, frame: FrameType | None) -> None:
        held.append(number)
        if len(held) > 1 and not patient:
            raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in STOPPING}
    before = {number: handler for number, handler in before.items() if callable(handler)}
    try:
        for number in before:
            signal.signal(number, hold)
        yield lambda: bool(held)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if held:
        signal.raise_signal(held[0])  # to whoever would have had it
