"""One line on stderr that says where a run stands; only on a terminal."""

import os
import shutil
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sapp_ppb.cli.guard import say

if TYPE_CHECKING:
    from sapp_ppb.planner import Progress
    from sapp_ppb.sweep import SweepProgress

_EVERY_S = 0.1
_LOG_EVERY_S = 10.0  # where there is no terminal
_CLEAR = "\r\x1b[K"


class _Line:
    """A line that is written over until the run is done, and then taken away."""

    def __init__(self, first: str) -> None:
        self._shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._first, self._next = first, 0.0

    def __enter__(self) -> Self:
        """Say at once that something happens."""
        self._write(f"{self._first} ...")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the line away, whatever happened."""
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def _may_write(self) -> bool:
        """Whether it is time again: a few times a second at most."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + _EVERY_S
        return True

    def _write(self, text: str) -> None:
        if self._shown:
            columns = shutil.get_terminal_size().columns
            sys.stderr.write(_CLEAR + text[: columns - 1])
            sys.stderr.flush()


class ProgressLine(_Line):
    """Where planning stands."""

    def __init__(self) -> None:
        super().__init__("planning")

    def __call__(self, progress: "Progress") -> None:
        """Show the progress."""
        if self._may_write():
            self._write(progress_text(progress))


class ShareLine(_Line):
    """How much of a long file is read."""

    def __call__(self, share: float) -> None:
        """Show the share."""
        if self._may_write():
            filled = int(20 * min(max(share, 0.0), 1.0))
            self._write(f"{self._first} [{'#' * filled}{'.' * (20 - filled)}] {share:.0%}")


class SweepLine(_Line):
    """How many problems of a sweep are done; lines of a log where there is no terminal."""

    def __init__(self) -> None:
        super().__init__("starting workers")
        self._next_log = 0.0

    def __call__(self, progress: "SweepProgress") -> None:
        """Show the progress, and what must not be lost for good."""
        if progress.news:
            self.say(progress.news)
        elif self._shown and self._may_write():
            self._write(sweep_progress_text(progress))
        elif not self._shown and self._may_log(progress):
            say(sweep_progress_text(progress))

    def say(self, words: str) -> None:
        """Say something that stays, above the line."""
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
        say(words)

    def _may_log(self, progress: "SweepProgress") -> bool:
        now = time.monotonic()
        if progress.phase != "plans" or (now < self._next_log and progress.done < progress.of):
            return False
        self._next_log = now + _LOG_EVERY_S
        return True


def sweep_progress_text(progress: "SweepProgress") -> str:
    """Put the progress of a sweep in words: problems done, the best plan so far, and the time left."""
    done = f"{progress.phase}: {progress.done} of {progress.of} problems"
    cut = f", {progress.cut} of them cut by bound" if progress.cut else ""
    best = ""
    if progress.best is not None and progress.best.candidate is not None:
        best = f", best {progress.best.answer.step_ms:,.1f} ms ({progress.best.candidate.text})"
    left = "" if not progress.left_s else f", at most {progress.left_s:,.0f} s left"
    return f"{done}{cut}{best}{left}"


def progress_text(progress: "Progress") -> str:
    """Put a progress in words: the best time, its bound, their gap, and the seconds so far."""
    bound = f"bound {progress.bound_ms:,.1f} ms"
    found = "nothing fits yet" if progress.best_ms is None else f"best {progress.best_ms:,.1f} ms"
    gap = "" if progress.gap is None else f", gap {progress.gap:.2%}"
    return f"{progress.phase}: {found}, {bound}{gap}, {progress.seconds:.1f} s"
