"""Tasks in workers: every result comes once, whatever dies."""

from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapp_ppb.sweep.executor import Lost, Work
from tests.sweep.workers import die_always, die_once, square

SQUARES = {key: key * key for key in range(12)}


def run(function, heard=None, **where):
    """Results by key; each must come once."""
    said = [] if heard is None else heard
    pairs = list(Work(function, say=said.append, **where).run({key: key for key in range(12)}))
    assert len(pairs) == len(dict(pairs))
    return dict(pairs)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_processes_of_this_machine(workers):
    assert run(square, workers=workers) == SQUARES


def test_threads_and_processes_of_others():
    with ThreadPoolExecutor(3) as threads:
        assert run(square, executor=threads) == SQUARES
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert run(square, executor=processes) == SQUARES


def test_a_worker_that_dies_loses_no_result_and_is_told(tmp_path):
    heard: list[str] = []
    assert run(partial(die_once, place=str(tmp_path / "died")), heard, workers=2) == SQUARES
    assert heard[0].startswith("a worker died (TerminatedWorkerError: ")
    # Two may have run when it died: both are tried again, unless the other had just ended.
    assert heard[0].endswith(("2 tasks are tried again", "1 task is tried again"))


def test_a_task_that_kills_every_worker_is_given_up_and_the_others_are_done():
    heard: list[str] = []
    found = run(die_always, heard, workers=2)
    lost = found.pop(5)
    assert isinstance(lost, Lost)
    assert "TerminatedWorkerError" in lost.reason
    assert found == {key: value for key, value in SQUARES.items() if key != 5}
    assert heard  # once or twice: results that were on their way when it died hide which task ran


class Unsteady:
    """Runs calls at once, but those of a key fail so many times, as on a cluster whose workers die."""

    def __init__(self, failures):
        self.failures = dict(failures)

    def submit(self, function, /, *arguments):
        future: Future[Any] = Future()
        key = function.items[0][1][1]
        if self.failures.get(key, 0) > 0:
            self.failures[key] -= 1
            future.set_exception(RuntimeError("the worker is gone. More of it"))
        else:
            future.set_result(function(*arguments))
        return future


@settings(max_examples=25)
@given(st.dictionaries(st.integers(0, 11), st.integers(1, 3), max_size=6))
def test_what_fails_once_is_tried_again_and_what_fails_twice_is_given_up(failures):
    found = run(square, executor=Unsteady(failures))
    lost = {key for key, value in found.items() if isinstance(value, Lost)}
    assert lost == {key for key, times in failures.items() if times >= 2}
    assert all(found[key] == SQUARES[key] for key in found if key not in lost)
    assert {found[key].reason for key in lost} <= {"RuntimeError: the worker is gone"}


def test_an_executor_that_is_closed_gives_everything_up():
    with ThreadPoolExecutor(1) as closed:
        pass
    found = run(square, executor=closed)
    assert all(isinstance(value, Lost) for value in found.values())
    assert "shutdown" in found[0].reason
