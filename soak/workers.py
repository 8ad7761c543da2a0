"""
Processes that work on one number at a time; one that ends or hangs is told, and another takes its place.

A pool of ``concurrent.futures`` will not do.  When one of its processes is killed while the next
is being started, nobody tells that one to end, and the pool, or Python at its end, waits for it for ever.
"""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Generic, TypeVar

T = TypeVar("T")
# Seconds after which processes are looked at that say nothing, and that a process has for its end.
_LOOK_EVERY_S, _ENDS_S = 1.0, 5.0


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A number whose process gave no answer, and why."""

    number: int
    why: str


def side_by_side(
    work: Callable[[int], T],
    numbers: Iterable[int],
    *,
    processes: int,
    hangs_s: float,
    prepare: Callable[[], object] = int,
) -> Iterator[T | Lost]:
    """
    Work on numbers in processes of their own, and give what comes of each.

    Parameters
    ----------
    work, prepare
        What a process does with a number, and once before the first; functions that can be imported.
    numbers
        Asked for the next one whenever a process is free.
    processes
        Most at work at once.
    hangs_s
        Seconds after which one that gives no answer is killed.

    Examples
    --------
    >>> sorted(side_by_side(abs, [-1, -2, -3], processes=2, hangs_s=60.0))
    [1, 2, 3]
    """
    left, busy = iter(numbers), list[_Worker[T]]()
    try:
        for number in islice(left, processes):
            busy.append(_Worker(work, prepare))
            busy[-1].begin(number)
        while busy:
            wait([each.answers for each in busy], _LOOK_EVERY_S)
            for worker in [each for each in busy if each.is_done(hangs_s)]:
                result, following = worker.result(hangs_s), next(left, None)
                if isinstance(result, Lost) or following is None:
                    busy.remove(worker)
                    worker.end()
                if following is not None:
                    if worker not in busy:
                        busy.append(worker := _Worker(work, prepare))
                    worker.begin(following)
                yield result
    finally:
        for worker in busy:
            worker.end()


class _Worker(Generic[T]):
    """A process, and the number that it works on."""

    def __init__(self, work: Callable[[int], T], prepare: Callable[[], object]) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.answers, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs, work, prepare))
        self._process.start()
        theirs.close()  # so that its end is the end of the pipe

    def begin(self, number: int) -> None:
        self._number, self._began = number, time.monotonic()
        with suppress(OSError):  # it was killed in the meantime, which shows when it is asked
            self.answers.send(number)

    def is_done(self, hangs_s: float) -> bool:
        """Whether there is something to tell: an answer, or why there is none."""
        return self.answers.poll() or not self._process.is_alive() or self._hangs(hangs_s)

    def result(self, hangs_s: float) -> T | Lost:
        with suppress(EOFError, OSError):
            if self.answers.poll():
                answer: T = self.answers.recv()
                return answer
        self._process.join(0.0 if self._hangs(hangs_s) else _ENDS_S)
        code = self._process.exitcode
        if code is None:
            why = f"no answer in {hangs_s:g} s"
        elif code < 0:
            why = f"its process was ended by {signal.Signals(-code).name}"
        else:
            why = f"its process ended with exit code {code}"
        return Lost(number=self._number, why=why)

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self.answers.close()

    def _hangs(self, hangs_s: float) -> bool:
        return time.monotonic() - self._began > hangs_s


def _serve(
    numbers: "Connection[object, int]", work: Callable[[int], T], prepare: Callable[[], object]
) -> None:
    """Answer until nobody asks any more; Ctrl-C is for the process that asks."""
    with suppress(EOFError, OSError, KeyboardInterrupt):
        prepare()
        while True:
            numbers.send(work(numbers.recv()))
