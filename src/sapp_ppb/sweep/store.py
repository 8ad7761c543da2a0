"""
What a sweep has found so far, kept in a file as it comes.

The first line says what the sweep is; every other is a bound or an answer.  A line is
written at once, so that whatever ends the process costs at most the last one, and a half
line at the end is dropped when the file is opened again.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from sapp_ppb.errors import InputError
from sapp_ppb.files import lock
from sapp_ppb.sweep.answer import SETTLED, Answer, from_object, to_object
from sapp_ppb.sweep.candidate import Candidate
from sapp_ppb.sweep.work import Effort
from sapp_ppb.writers.model_file import model_to_json
from sapp_ppb.writers.plan_file import problem_object

ROWS_FILE, OLD_ROWS_FILE = "rows.jsonl", "rows.old.jsonl"
FORMAT, VERSION = "sapp-ppb-sweep", 1
_LONGEST_HEADER, _MOST_NAMED = 2**20, 8  # bytes; lines
_WORDS = {
    "package": "another version of sapp-ppb",
    "models": "another model",
    "problems": "other problems",
    "options": "other options",
}


def fingerprint(candidates: Sequence[Candidate], effort: Effort, *, prune: bool) -> dict[str, object]:
    """
    Say what a sweep is: two that say the same have the same rows.

    Returns
    -------
    dict
        ``package``, ``models``, ``problems`` and ``options``, of which the second and third
        are hashes.
    """
    from sapp_ppb import __version__

    models = dict.fromkeys(model for each in candidates for model in (each.problem.model, each.base) if model)
    problems = [
        (problem_object(each.problem), each.micro_batch_size, each.tensor_parallel, each.data_parallel)
        for each in candidates
    ]
    return {
        "package": __version__,
        "models": _hash([model_to_json(model) for model in models]),
        "problems": _hash(problems),
        "options": {
            "time_limit_s": float(effort.time_limit_s),
            "gap": float(effort.gap),
            "seed": effort.seed,
            "prune": prune,
        },
    }


class Store:
    """
    The file of a sweep, open for more.

    Parameters
    ----------
    folder
        Where the file is, or is to be; missing folders are made.
    sweep
        As ``fingerprint`` says it.

    Attributes
    ----------
    answers, bounds_ms
        What the file held, by the candidate's place; answers that settle nothing are left out.
    news
        What is worth saying of the file: a half line, or why it was begun anew.

    Raises
    ------
    InputError
        If the file can not be read or written.
    """

    def __init__(self, folder: Path, sweep: Mapping[str, object]) -> None:
        self.answers: dict[int, Answer] = {}
        self.bounds_ms: dict[int, float] = {}
        self.news: list[str] = []
        self._path = folder / ROWS_FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            begun = self._path.exists() and self._go_on(dict(sweep))
            self._file: BinaryIO = self._path.open("ab")
            self._refuse_other_run(self._file)
            if not begun:
                self._append({"format": FORMAT, "version": VERSION, "sweep": dict(sweep)})
        except OSError as error:
            fault = f"can not be written ({error.strerror}); choose another folder"
            raise InputError(str(self._path), [fault]) from None

    def keep_answer(self, place: int, answer: Answer) -> None:
        """Write an answer down."""
        self._append({"place": place, "answer": to_object(answer)})

    def keep_bound(self, place: int, bound_ms: float) -> None:
        """Write a bound down; an infinite one as text, for which JSON has no number."""
        self._append({"place": place, "bound_ms": bound_ms if bound_ms < float("inf") else "inf"})

    def close(self) -> None:
        """Close the file; a line that could not be written has been refused already."""
        with suppress(OSError):
            self._file.close()

    def _append(self, line: Mapping[str, object]) -> None:
        try:
            self._file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            self.close()
            fault = f"can not be written ({error.strerror}); free some space and run the same command again"
            raise InputError(str(self._path), [fault]) from None

    def _go_on(self, sweep: dict[str, object]) -> bool:
        """Take what the file holds, unless another run is adding to it."""
        with self._path.open("rb") as file:
            self._refuse_other_run(file)
            return self._read(sweep)

    def _refuse_other_run(self, file: BinaryIO) -> None:
        """Refuse a file that another run has locked; lock it until it is closed."""
        if lock(file.fileno()) is False:
            file.close()
            fault = "another sweep is writing to it; wait until that ends, or choose another folder"
            raise InputError(str(self._path), [fault])

    def _read(self, sweep: dict[str, object]) -> bool:
        """Take what the file holds; False when it is put aside because it is another sweep's."""
        with self._path.open("rb") as file:
            first = file.readline(_LONGEST_HEADER)
            theirs = _header(first if first.endswith(b"\n") else b"")
            length, broken = (len(first), []) if theirs != sweep else self._take_all(file, len(first))
        if theirs != sweep:
            self._path.replace(self._path.with_name(OLD_ROWS_FILE))
            self.news.append(
                f"{self._path} is of {_difference(theirs, sweep)}: begins anew, and keeps what was there "
                f"as {OLD_ROWS_FILE}"
            )
            return False
        if length < self._path.stat().st_size:
            with self._path.open("rb+") as file:
                file.truncate(length)
            self.news.append(f"{self._path}: the last line was half written and is dropped")
        if broken:
            numbers = ", ".join(map(str, broken))
            self.news.append(f"{self._path}: line {numbers} can not be read; what it held is done again")
        return True

    def _take_all(self, file: BinaryIO, length: int) -> tuple[int, list[int]]:
        """Take every whole line; where they end, and the first numbers of those that can not be read."""
        broken: list[int] = []
        for number, line in enumerate(file, start=2):
            if not line.endswith(b"\n"):
                break
            length += len(line)
            if not self._take(line) and len(broken) < _MOST_NAMED:
                broken.append(number)
        return length, broken

    def _take(self, line: bytes) -> bool:
        """Take one line; False when it can not be read."""
        try:
            raw = json.loads(line)
            place = int(raw["place"])
            if "answer" in raw:
                answer = from_object(raw["answer"])
                if answer.status in SETTLED:
                    self.answers[place] = answer
            else:
                self.bounds_ms[place] = float(raw["bound_ms"])
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            return False
        return True


def is_sweep(folder: Path) -> bool:
    """Whether a folder is a sweep's own, whose files may be replaced."""
    try:
        with (folder / ROWS_FILE).open("rb") as file:
            return _header(file.readline(100_000)) is not None
    except OSError:
        return False


def _header(line: bytes) -> dict[str, Any] | None:
    """Read what a file says of its sweep; None where it is no file of a sweep, or a newer one."""
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        return None
    known = isinstance(raw, dict) and raw.get("format") == FORMAT and raw.get("version") == VERSION
    sweep = raw.get("sweep") if known else None
    return sweep if isinstance(sweep, dict) else None


def _difference(theirs: Mapping[str, object] | None, ours: Mapping[str, object]) -> str:
    if theirs is None:
        return "no sweep of this version"
    return (
        ", ".join(words for key, words in _WORDS.items() if theirs.get(key) != ours[key]) or "another sweep"
    )


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
