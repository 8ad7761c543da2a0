"""
Coverage-led fuzzing of every reader.

``python -m soak.fuzz_readers [READER ...]`` changes good files at random for
``SAPP_PPB_SOAK_SECONDS`` seconds, 60 by default, shared among the readers.  A change that
reaches a line of the package that no file reached before is kept, and changed further.
What ends in anything but success or an ``InputError``, takes more than 5 s of work or ends in words
that steer a terminal is a finding; it is written to ``build/fuzz`` and makes the exit code 1.

``--engine atheris`` lets atheris choose the bytes instead (where it is installed; one reader a
process, since libFuzzer ends the process itself).
"""

import argparse
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

from sapp_ppb.errors import InputError
from soak.mutations import mutated
from tests.hostile.endings import is_said
from tests.hostile.readers import BY_NAME, READERS, ROOT, Reader

PACKAGE = str(ROOT / "src" / "sapp_ppb")
MOST_SECONDS = 5
_TOO_LONG = "takes more than"
_MEMORY = Path("/dev/shm")  # files that are written to a disk take most of the time
_ROUND = 25  # inputs for a reader before it is the next one's turn


def seconds_to_run() -> float:
    """How long to go on, from the environment."""
    return float(os.environ.get("SAPP_PPB_SOAK_SECONDS", "60"))


class _TooLong(BaseException):
    """What is raised in a reader that takes longer than it may."""


@dataclass
class Finding:
    """An input that ends as it should not."""

    reader: str
    why: str
    content: bytes


@dataclass
class Corpus:
    """Inputs of one reader that each reached something new."""

    reader: Reader
    inputs: list[bytes]
    tried: int = 0
    read: int = 0
    words: set[str] = field(default_factory=set)


class Lines:
    """Lines of the package that were run; new ones are counted until somebody sets the count to 0."""

    def __init__(self) -> None:
        self.seen: set[tuple[CodeType, int]] = set()
        self.new = 0
        self._left: dict[CodeType, set[int]] = {}

    def _line(self, code: CodeType, number: int) -> None:
        if (code, number) not in self.seen:
            self.seen.add((code, number))
            self.new += 1

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Count the lines that are run inside; each costs something once, so watch many inputs at once."""
        monitoring: Any = getattr(sys, "monitoring", None)
        if monitoring is None:  # before Python 3.12
            sys.settrace(self._trace)
            try:
                yield
            finally:
                sys.settrace(None)
            return
        tool = monitoring.COVERAGE_ID
        monitoring.use_tool_id(tool, "fuzz")

        def line(code: CodeType, number: int) -> object:
            if code.co_filename.startswith(PACKAGE):
                self._line(code, number)
            return monitoring.DISABLE  # once is enough

        monitoring.register_callback(tool, monitoring.events.LINE, line)
        monitoring.set_events(tool, monitoring.events.LINE)
        try:
            yield
        finally:
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        """Watch a function as long as a line of it has not been run."""
        code = frame.f_code
        left = self._left.get(code)
        if left is None:
            ours = code.co_filename.startswith(PACKAGE)
            left = {number for _, _, number in code.co_lines() if number} if ours else set()
            if len(left) > 1:
                left.discard(code.co_firstlineno)  # of its name, which is not run with it
            self._left[code] = left
        return self._local if left else None

    def _local(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        if event == "line":
            self._line(frame.f_code, frame.f_lineno)
            self._left[frame.f_code].discard(frame.f_lineno)
        return self._local


@contextmanager
def unwatched() -> Iterator[None]:
    """Run what is inside at its usual speed."""
    watcher = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(watcher)


def fault_of(reader: Reader, content: bytes, folder: Path, words: set[str] | None = None) -> str | None:
    """Why an input ends as it should not; None when it is read, or refused in words."""
    path = folder / reader.file_name
    path.write_bytes(content)
    handler = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(path)
    except InputError as error:
        if words is not None:
            words.update(fault[:40] for fault in error.faults[:3])
        return fault_of_words(error)
    except _TooLong:
        return f"{_TOO_LONG} {MOST_SECONDS} s: {traceback.format_exc(limit=-3)}"
    except Exception:
        return traceback.format_exc(limit=-4)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)
    return None


def _stop(number: int, frame: FrameType | None) -> None:
    raise _TooLong


def fault_of_words(error: InputError) -> str | None:
    """Why a message is none for people."""
    if not error.faults or not all(fault.strip() for fault in error.faults):
        return f"says nothing: {error!r}"
    text = str(error)
    if len(text) > 100_000:
        return f"says {len(text)} characters"
    steering = [fault for fault in error.faults if not is_said(fault)]
    if steering:
        return f"steers a terminal, or says too much: {steering[0][:300]!r}"
    if not error.where:
        return f"does not say where: {text}"
    return None


def fuzz(
    names: list[str], seconds: float, seed: int = 0, say: Callable[[str], object] = print
) -> list[Finding]:
    """Change the files of some readers until the time is over; the findings, each kind once."""
    rng, lines = Random(seed), Lines()
    corpora = [Corpus(reader=BY_NAME[name], inputs=list(BY_NAME[name].good)) for name in names]
    found: dict[str, Finding] = {}
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as place, lines.watched():
        folder = Path(place)
        for corpus in corpora:
            for content in corpus.inputs:
                fault_of(corpus.reader, content, folder)
        at_first, end = len(lines.seen), time.monotonic() + seconds
        while time.monotonic() < end:
            for corpus in corpora:
                for finding in _round(corpus, lines, folder, rng, end):
                    kind = f"{finding.reader}: {finding.why[-300:]}"
                    if kind not in found:
                        found[kind] = finding
                        say(f"FINDING {finding.reader}: {finding.why}")
    tried = sum(corpus.tried for corpus in corpora)
    kept = sum(len(corpus.inputs) - len(corpus.reader.good) for corpus in corpora)
    words = len(set().union(*(corpus.words for corpus in corpora)))
    say(
        f"{tried:,} inputs for {len(corpora)} readers in {seconds:.0f} s, {kept:,} kept, "
        f"{at_first:,} lines reached by good files and {len(lines.seen):,} in all, "
        f"{words:,} different messages, {len(found)} findings"
    )
    return list(found.values())


def _round(corpus: Corpus, lines: Lines, folder: Path, rng: Random, end: float) -> Iterator[Finding]:
    for _ in range(_ROUND):
        if time.monotonic() > end:
            return
        newest = corpus.inputs[-8:] if rng.random() < 0.4 else corpus.inputs
        content = mutated(corpus.reader, rng.choice(newest), corpus.inputs, rng)
        lines.new = 0
        why = fault_of(corpus.reader, content, folder, corpus.words)
        if why is not None and why.startswith(_TOO_LONG):  # watching takes some of the time
            with unwatched():
                why = fault_of(corpus.reader, content, folder)
        corpus.tried += 1
        if why is not None:
            yield Finding(reader=corpus.reader.name, why=why, content=content)
        elif lines.new:
            corpus.inputs.append(content)


def keep(findings: list[Finding]) -> None:
    """Write what was found, an input and its fault a finding."""
    folder = ROOT / "build" / "fuzz"
    for number, finding in enumerate(findings):
        folder.mkdir(parents=True, exist_ok=True)
        name = BY_NAME[finding.reader].file_name
        (folder / f"{number}-{name}").write_bytes(finding.content)
        (folder / f"{number}-{name}.why").write_text(f"{finding.reader}\n{finding.why}", encoding="utf-8")


def with_atheris(name: str, seconds: float) -> None:
    """Let atheris fuzz one reader; it ends the process."""
    try:
        atheris: Any = import_module("atheris")
    except ImportError:
        sys.exit("atheris is not installed; install it, or leave --engine out")
    reader, folder = BY_NAME[name], Path(tempfile.mkdtemp())
    (folder / "corpus").mkdir()
    for number, content in enumerate(reader.good):
        (folder / "corpus" / str(number)).write_bytes(content)
    atheris.instrument_all()

    def once(content: bytes) -> None:
        why = fault_of(reader, content, folder)
        if why is not None:
            keep([Finding(reader=name, why=why, content=content)])
            raise AssertionError(why)

    def change(content: bytes, most: int, seed: int) -> bytes:
        rng = Random(seed)
        if rng.random() < 0.5:
            return bytes(atheris.Mutate(content, most))
        return mutated(reader, content, list(reader.good), rng)[:most]

    options = [
        f"-max_total_time={seconds:.0f}",
        "-max_len=65536",
        f"-timeout={MOST_SECONDS}",
        "-rss_limit_mb=1500",
    ]
    atheris.Setup([sys.argv[0], *options, str(folder / "corpus")], once, custom_mutator=change)
    atheris.Fuzz()


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Fuzz the readers.")
    parser.add_argument("readers", nargs="*", default=[], metavar="READER")
    parser.add_argument("--engine", choices=("lines", "atheris"), default="lines")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    names = given.readers or [reader.name for reader in READERS]
    if given.engine == "atheris":
        if len(names) != 1:
            sys.exit("atheris fuzzes one reader at a time; name it")
        with_atheris(names[0], seconds_to_run())
        return 0
    findings = fuzz(names, seconds_to_run(), given.seed)
    keep(findings)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
