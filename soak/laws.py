"""
Laws of the planner on random problems, for as long as one likes: ``make soak``.

``python -m soak.laws`` draws problems for ``SAPP_PPB_SOAK_SECONDS`` seconds, 1200 by default, in a
process for each of up to two cores, and asks every answer for every law of ``tests/laws``.
``SAPP_PPB_SOAK_SEED`` chooses other problems.  It prints how often each law had something to
hold for, and every violation with the number of its problem; the exit code is 1 when there is one.

``python -m soak.laws NUMBER`` tries the problem of one number alone, and prints it.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count, takewhile
from pprint import pprint

from sapp_ppb.planner.warm_up import compile_kernels
from soak import tables
from soak.workers import Lost, side_by_side
from tests.laws.asked import Asked, is_repeatable
from tests.laws.drawing import SIZES, drawn
from tests.laws.laws import AN_ANSWER, LAWS, Tried, digest_of, try_laws

# Numbers that a seed has for itself.
_A_SEED = 10_000_000
# Seconds after which a problem counts as one that hangs.
_HANGS_S = 300.0
# Every so many problems one is planned once more, in a process of another hash seed, and the most.
_AGAIN_EVERY, _MOST_AGAIN = 20, 500
_IN_ANOTHER_PROCESS = "same bytes in another process"
_NO_ANSWER = "no answer"
_STATUSES = ("optimal", "feasible", "infeasible", "no plan in time", _NO_ANSWER)


def seconds_to_run() -> float:
    """Find in the environment how long to go on."""
    return float(os.environ.get("SAPP_PPB_SOAK_SECONDS", "1200"))


def first_number() -> int:
    """Find the number of the first problem in the environment."""
    return _A_SEED * int(os.environ.get("SAPP_PPB_SOAK_SEED", "0"))


def soak(first: int, seconds: float, processes: int) -> list[Tried]:
    """Try problem after problem until the time is over; violations are printed as they come."""
    found = []
    for tried in _side_by_side(first, seconds, processes):
        found.append(tried)
        for law, words in tried.broken.items():
            print(f"VIOLATION of '{law}' by problem {tried.number}: {words}", flush=True)
    return found


def _side_by_side(first: int, seconds: float, processes: int) -> Iterator[Tried]:
    """Try problems in processes of their own; one whose process ends or hangs broke a law too."""
    compile_kernels()
    results = side_by_side(
        try_laws,
        _numbers(first, time.monotonic() + seconds, processes),
        processes=processes,
        hangs_s=_HANGS_S,
        prepare=compile_kernels,
    )
    for result in results:
        yield _without_answer(result) if isinstance(result, Lost) else result


def _numbers(first: int, end: float, least: int) -> Iterator[int]:
    """Count from the first number on until the time is over, but some at least."""
    return takewhile(lambda number: number < first + least or time.monotonic() < end, count(first))


def _without_answer(lost: Lost) -> Tried:
    """Tell a problem of which nothing is known but its number: drawing it may be what ended the process."""
    return Tried(
        number=lost.number,
        size="",
        schedule="",
        status=_NO_ANSWER,
        held=(),
        broken={AN_ANSWER: lost.why},
        digest=None,
        late_s=0.0,
    )


def planned_again(found: list[Tried]) -> list[Tried]:
    """Plan some problems once more here, and compare the bytes with those of another process."""
    again = []
    for tried in [each for each in found if each.digest is not None][::_AGAIN_EVERY][:_MOST_AGAIN]:
        asked = Asked(drawn=drawn(tried.number))
        if not is_repeatable(asked.outcome):
            continue
        same = digest_of(asked.outcome) == tried.digest
        changes = (
            {"held": (_IN_ANOTHER_PROCESS,), "broken": {}}
            if same
            else {"held": (), "broken": {_IN_ANOTHER_PROCESS: "other bytes"}}
        )
        again.append(Tried(**vars(tried) | changes))
    return again


def table(found: list[Tried], again: list[Tried]) -> str:
    """Say how often each law had something to hold for, by the size of the problem, and what those were."""
    held = Counter((law, each.size) for each in (*found, *again) for law in (*each.held, *each.broken))
    statuses = Counter((each.status, each.size) for each in found)
    schedules = Counter(each.schedule for each in found if each.schedule)
    latest = max(found, key=lambda each: each.late_s)
    rows = [
        _counted("problems", Counter(each.size for each in found)),
        *(_counted(status, _of(statuses, status)) for status in _STATUSES),
        *(_counted(law, _of(held, law)) for law in (*LAWS, _IN_ANOTHER_PROCESS)),
        _counted("violations", Counter(e.size for e in (*found, *again) for _ in e.broken)),
    ]
    return "\n".join(
        [
            tables.table(["", *SIZES, "all"], rows),
            "",
            "Problems by schedule: "
            + ", ".join(f"{name} {n:,}" for name, n in schedules.most_common())
            + ".",
            f"The latest answer came {latest.late_s:.1f} s after its time limit (problem {latest.number}).",
        ]
    )


def _of(by_name: Counter[tuple[str, str]], name: str) -> Counter[str]:
    return Counter({size: number for (named, size), number in by_name.items() if named == name})


def _counted(name: str, by_size: Counter[str]) -> list[object]:
    """Make a row; all are more than the sizes together where that of a lost problem is not known."""
    return [name, *(by_size[size] for size in SIZES), by_size.total()]


def show(number: int) -> int:
    """Try one problem, and print it with what came of every law."""
    compile_kernels()
    one = drawn(number)
    pprint(one)
    tried = try_laws(number)
    for law in LAWS:
        said = tried.broken.get(law, "holds" if law in tried.held else "says nothing of it")
        print(f"{law}: {said}")
    print(f"{tried.status}, {tried.late_s:.1f} s after its time limit")
    return 1 if tried.broken else 0


def main(words: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Try laws of the planner on random problems.")
    parser.add_argument("number", nargs="?", type=int, help="problem to try alone")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    given = parser.parse_args(words)
    if given.number is not None:
        return show(given.number)
    first, seconds = first_number(), seconds_to_run()
    print(f"problems from {first} on, for {seconds:g} s in {given.processes} processes", flush=True)
    found = soak(first, seconds, given.processes)
    again = planned_again(found)
    for each in again:
        if each.broken:
            print(f"VIOLATION of '{_IN_ANOTHER_PROCESS}' by problem {each.number}")
    print(table(found, again))
    broken = sorted({each.number for each in (*found, *again) if each.broken})
    if broken:
        print(f"repeat with: python -m soak.laws {broken[0]}; numbers of all: {broken}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
