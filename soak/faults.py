"""What faults of the machine are counted as, and what must hold after each of them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from tests.cli.conftest import environment

SECONDS = float(os.environ.get("SAPP_PPB_SOAK_SECONDS", "20"))
# What is counted, in the order of the table; what begins with "of them" is a part of the row above.
FAULTS = (
    KILLED := "processes killed while files are written",
    INTERRUPTED := "processes interrupted, or told to end, while planning",
    WITH_A_PLAN := "of them ended by exit code 3, with the best plan written",
    WITHOUT_A_PLAN := "of them ended by exit code 3, before there was a plan",
    TOO_LATE := "of them planned to the end",
    TOO_EARLY := "of them not yet at a line of ours",
    FILLING := "disks that fill up while files are written",
    FULL := "of them before the last file",
    UNWRITABLE := "places that can not be written, refused before any planning",
    PAIRS := "pairs of runs that write into one folder",
    PAIRS_KILLED := "of them with one killed on the way",
    UNHEARD := "outputs that nobody reads, closed or full",
    SURROUNDINGS := "odd locales, time zones, homes, caches and terminals",
    UNSOLVED := "solvers that can not be loaded",
    COMPILED := "kernels compiled by two at once while a third is killed",
    FINDINGS := "findings",
)
# What whole files end with, by the ends of their names.
_ENDS = {".json": b"}", ".png": b"IEND\xaeB`\x82", ".svg": b"</svg>", ".html": b"</html>"}


def rounds(share: float) -> Iterator[int]:
    """Count until a share of the time is over, once at least."""
    end = time.monotonic() + share * SECONDS
    return takewhile(lambda number: number == 0 or time.monotonic() < end, count())


def words_of(*words: object) -> list[str]:
    """Give the command of these words."""
    return [sys.executable, "-m", "sapp_ppb", *map(str, words)]


def run(
    *words: object, env: dict[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        words_of(*words),
        env=environment() if env is None else env,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def begun(*words: object, env: dict[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
    """Begin the command; nobody sees what it prints unless the options say so."""
    return subprocess.Popen(
        words_of(*words),
        env=environment() if env is None else env,
        text=True,
        **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | options,
    )


def left_over(folder: Path) -> list[str]:
    """Hidden files of a folder, which no run that ends by itself may leave, nor any before it."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def check_whole(folder: Path) -> None:
    """Look whether every file of a folder is a whole one."""
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        content = path.read_bytes()
        assert content, path
        assert content.rstrip().endswith(_ENDS.get(path.suffix, b"")), path
        if path.suffix == ".json":
            json.loads(content)


def check_of_one_plan(folder: Path) -> None:
    """Look whether plan, trace and page of a folder tell the same step."""
    of_plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))["outcome"]["makespan_ms"]
    trace = json.loads((folder / "trace.json").read_text(encoding="utf-8"))
    page = (folder / "report.html").read_text(encoding="utf-8").replace("&quot;", '"')
    assert trace["otherData"]["makespan_ms"] == of_plan
    assert f'"makespan_ms": {of_plan}' in page
