"""A process of the soak that ends or hangs is told with its number, and the others go on."""

import os
import signal
import subprocess
import sys
import time

import pytest

from soak.workers import Lost, side_by_side
from tests.pages import ROOT


def ends_at_three(number):
    """End as a process does that the kernel kills for its memory, when it is the third one's turn."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def leaves(number):
    os._exit(number)


def raises(number):
    raise ValueError(number)


def hangs(number):
    time.sleep(100.0 if number == 1 else 0.0)
    return number


@pytest.mark.parametrize("processes", [1, 2])
def test_one_that_is_killed_is_told_and_the_rest_go_on(processes):
    results = list(side_by_side(ends_at_three, range(1, 8), processes=processes, hangs_s=300.0))
    lost = Lost(number=3, why="its process was ended by SIGKILL")
    assert lost in results
    assert {each for each in results if each != lost} == {1, 2, 4, 5, 6, 7}
    assert len(results) == 7


def test_one_that_leaves_is_told_by_its_code():
    (lost,) = side_by_side(leaves, [7], processes=1, hangs_s=300.0)
    assert lost == Lost(number=7, why="its process ended with exit code 7")


def test_one_that_raises_is_told(capfd):
    (lost,) = side_by_side(raises, [5], processes=1, hangs_s=300.0)
    assert lost == Lost(number=5, why="its process ended with exit code 1")
    assert "ValueError: 5" in capfd.readouterr().err


def test_one_that_hangs_is_told_and_killed():
    (lost,) = side_by_side(hangs, [1], processes=1, hangs_s=0.1)
    assert lost == Lost(number=1, why="no answer in 0.1 s")


def test_whoever_stops_to_listen_leaves_no_process_behind():
    results = side_by_side(hangs, [0, 1], processes=2, hangs_s=300.0)
    assert next(results) == 0
    began = time.monotonic()
    results.close()  # type: ignore[attr-defined]
    assert time.monotonic() - began < 50.0  # the other one would sleep for 100


# Whenever a second process starts, the first one is killed before that start is done, once.  The pool of
# concurrent.futures then told the second one nothing, and waited for it for ever: here, or at Python's end.
KILLED_WHILE_ANOTHER_STARTS = """
import multiprocessing, time
from multiprocessing.process import BaseProcess
from soak import laws

usual, killed = BaseProcess.start, []

def start(process):
    others = multiprocessing.active_children()
    usual(process)
    if others and not killed:
        killed.extend(others)
        for other in others:
            other.kill()
        time.sleep(0.5)

BaseProcess.start = start
laws.try_laws, laws.compile_kernels = abs, dict
if __name__ == "__main__":
    for result in laws._side_by_side(6, 0.0, 2):
        print(getattr(result, "number", result), getattr(result, "broken", "answered"))
    assert killed
"""


def test_one_that_is_killed_while_another_starts_keeps_nobody_waiting():
    done = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_ANOTHER_STARTS],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert "6 {'an answer': 'its process was ended by SIGKILL'}" in said
    assert "7 answered" in said
