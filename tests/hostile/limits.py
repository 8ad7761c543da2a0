"""
Reads files in processes of their own, which may take 5 s of work and 500 MB more than they began with.

``python -m tests.hostile.limits`` takes a line ``READER<tab>PATH`` on its standard input and
answers each with a JSON object: what the reader said, how long it worked and what it held.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

MOST_SECONDS, MOST_MB = 5, 500


class Limited:
    """A process that reads files one by one, each in a child with limits."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.limits"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join([*sys.path, str(Path(__file__).parents[2])])),
        )

    def read(self, reader: str, path: Path) -> dict[str, Any]:
        """Read a file; what came of it: ``said``, ``seconds`` and ``mb``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{reader}\t{path}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=60)


def beyond(answer: dict[str, Any]) -> str:
    """Say what is wrong with an answer; nothing when the file was read, or refused in words, in limits."""
    if answer["said"].startswith("CRASH"):
        return str(answer["said"][-500:])
    if answer["seconds"] > MOST_SECONDS or answer["mb"] > MOST_MB:
        return f"took {answer['seconds']:.1f} s and {answer['mb']:.0f} MB"
    return ""


def said(reader: str, path: Path) -> str:
    """Message of the ``InputError`` that reading a file ends in, empty when it is read."""
    from sapp_ppb.errors import InputError
    from tests.hostile.readers import BY_NAME

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            BY_NAME[reader].read(path)
        except InputError as error:
            return str(error)
    return ""


def _child(reader: str, path: Path, answer: int) -> None:
    """Read a file within the limits, and write what came of it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    before_mb = _held_mb()
    cage = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (cage + MOST_MB * 2**20,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (int(_worked()) + MOST_SECONDS + 1,) * 2)
    started = _worked()
    signal.alarm(12 * MOST_SECONDS)  # a wait for something that never comes takes no work
    try:
        words = said(reader, path)
    except BaseException:
        words = "CRASH " + traceback.format_exc()
    result = {"said": words, "seconds": _worked() - started, "mb": _held_mb() - before_mb}
    os.write(answer, json.dumps(result).encode())
    os._exit(0)


def _worked() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _held_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _serve() -> None:
    import tests.hostile.readers

    for reader in tests.hostile.readers.READERS:  # compile and import everything once
        path = Path(f"/proc/{os.getpid()}/nothing")
        _quietly(reader.name, path)
    for line in sys.stdin:
        name, _, place = line.rstrip("\n").partition("\t")
        sys.stdout.write(json.dumps(_answer(name, Path(place))) + "\n")
        sys.stdout.flush()


def _quietly(name: str, path: Path) -> None:
    try:
        said(name, path)
    except Exception:
        return


def _answer(name: str, path: Path) -> dict[str, Any]:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        _child(name, path, theirs)
    os.close(theirs)
    text = b""
    while piece := os.read(ours, 2**16):
        text += piece
    os.close(ours)
    _, status = os.waitpid(child, 0)
    if text:
        answer: dict[str, Any] = json.loads(text)
        return answer
    why = signal.Signals(status & 127).name if status & 127 else f"exit code {status >> 8}"
    return {"said": f"CRASH killed by {why}", "seconds": float(MOST_SECONDS), "mb": 0.0}


if __name__ == "__main__":
    _serve()
