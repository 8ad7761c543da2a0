"""
Laws of the planner on random problems, for as long as one likes: ``make soak``.

``python -m soak.laws`` draws problems for ``SAPP_PPB_SOAK_SECONDS`` seconds, 1200 by default, in a
process for each of up to two cores, and asks every answer for every law of ``tests/laws``.
``SAPP_PPB_SOAK_SEED`` chooses other problems.  It prints how often each law had something to
hold for, and every violation with the number of its problem; the exit code is 1 when there is one.

``python -m soak.laws NUMBER`` tries the problem of one number alone, and prints it.
"""

import argparse
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pprint import pprint

from sapp_ppb.planner.warm_up import compile_kernels
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
_STATUSES = ("optimal", "feasible", "infeasible", "no plan in time")


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
    """Try problems in processes of their own; one that ends or hangs is told by the numbers at work."""
    compile_kernels()
    spawn, number = multiprocessing.get_context("spawn"), first
    end = time.monotonic() + seconds
    with ProcessPoolExecutor(processes, mp_context=spawn, initializer=compile_kernels) as pool:
        at_work: dict[Future[Tried], int] = {}
        while at_work or number == first or time.monotonic() < end:
            while len(at_work) < processes and (number < first + processes or time.monotonic() < end):
                at_work[pool.submit(try_laws, number)] = number
                number += 1
            done, _ = wait(at_work, timeout=_HANGS_S, return_when=FIRST_COMPLETED)
            try:
                yield from [each.result() for each in done]
            except BrokenProcessPool:
                yield from (_lost(each, "the process ended") for each in at_work.values())
                return
            if not done:
                yield from (_lost(each, f"no answer in {_HANGS_S:g} s") for each in at_work.values())
                for process in multiprocessing.active_children():
                    os.kill(process.pid or 0, signal.SIGKILL)
                return
            at_work = {each: its for each, its in at_work.items() if each not in done}


def _lost(number: int, words: str) -> Tried:
    return Tried(
        number=number,
        size=SIZES[0],
        schedule="",
        status=_STATUSES[-1],
        held=(),
        broken={AN_ANSWER: words},
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
    sizes = Counter(each.size for each in found)
    schedules = Counter(each.schedule for each in found)
    latest = max(found, key=lambda each: each.late_s)
    return "\n".join(
        [
            _row("", SIZES, "all"),
            "|---|---|---|---|---|",
            _counted("problems", sizes),
            *(_counted(status, _of(statuses, status)) for status in _STATUSES),
            *(_counted(law, _of(held, law)) for law in (*LAWS, _IN_ANOTHER_PROCESS)),
            _counted("violations", Counter(e.size for e in (*found, *again) for _ in e.broken)),
            "",
            "Problems by schedule: "
            + ", ".join(f"{name} {n:,}" for name, n in schedules.most_common())
            + ".",
            f"The latest answer came {latest.late_s:.1f} s after its time limit (problem {latest.number}).",
        ]
    )


def _of(counted: Counter[tuple[str, str]], name: str) -> Counter[str]:
    return Counter({size: counted[name, size] for size in SIZES})


def _counted(name: str, by_size: Counter[str]) -> str:
    return _row(name, [f"{by_size[size]:,}" for size in SIZES], f"{by_size.total():,}")


def _row(name: str, cells: "list[str] | tuple[str, ...]", last: str) -> str:
    return f"| {' | '.join((name, *cells, last))} |"


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
