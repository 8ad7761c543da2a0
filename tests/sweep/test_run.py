"""sweep(): the same table wherever and however it came about."""

import os
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from sapp_ppb.errors import InputError, PlannerNote
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import simulate
from sapp_ppb.sweep import Candidate, RowStatus, SweepProgress, list_candidates, outcome, sweep
from tests.cli.conftest import environment
from tests.sweep.conftest import GRID, MODEL, settled
from tests.sweep.workers import is_alive, own_processes

QUICK: Any = {"time_limit_s": 1.0}


@pytest.fixture(scope="module")
def alone():
    """Make the table of the eight problems, made in this process."""
    candidates, _ = list_candidates(MODEL, GRID)
    return sweep(candidates, workers=1, **QUICK)


def test_rows_are_sorted_and_say_what_is_known(alone):
    times = [row.answer.makespan_ms for row in alone.rows if row.answer.makespan_ms is not None]
    assert times == sorted(times)
    assert len(alone.rows) == 8
    assert alone.best is alone.rows[0]
    cells = alone.best.cells
    # 16 samples a step.
    assert cells["ms_per_sample"] == pytest.approx(cells["makespan_ms"] / 16, rel=1e-12)
    assert cells["samples_per_s"] == pytest.approx(16_000 / cells["makespan_ms"], rel=1e-12)
    assert cells["peak_memory_mb"] == max(cells["peaks_mb"]) <= cells["memory_limit_mb"]
    assert cells["peaks_mb"][cells["peak_stage"]] == cells["peak_memory_mb"]
    parts = ("fill_drain", "imbalance", "recompute", "communication")
    assert cells["bubble"] == pytest.approx(sum(cells[f"bubble_{part}"] for part in parts), rel=1e-12)


def test_every_row_equals_planning_its_problem_alone(alone):
    planned = [row for row in alone.rows if row.answer.makespan_ms is not None]
    assert len(planned) >= 4
    for row in planned:
        one = plan_pipeline(row.candidate.problem, **QUICK)
        again = outcome(row)
        assert again == replace(one, seconds=again.seconds, runners_up=())
        assert again.plan is not None
        assert simulate(again.plan).makespan_ms == row.answer.makespan_ms
        assert row.cells["recomputed_layers"] == again.plan.recomputed_layers


def test_rows_are_compared_by_the_whole_step():
    # The same 5 ms after the last op of every stage delay the step by 5 ms, and no op.
    candidates, _ = list_candidates(
        MODEL, replace(GRID, stages=(2,), interleave=(1,), given={"step_extra_ms": 5.0})
    )
    found = sweep(candidates, workers=1, **QUICK)
    plain, _ = list_candidates(MODEL, replace(GRID, stages=(2,), interleave=(1,)))
    without = sweep(plain, workers=1, **QUICK)
    for row, other in zip(found.rows, without.rows, strict=True):
        assert row.answer.step_ms
        assert row.answer.lower_bound_ms
        assert other.answer.makespan_ms
        assert row.answer.step_ms == pytest.approx(other.answer.makespan_ms + 5)
        assert row.answer.makespan_ms == pytest.approx(other.answer.makespan_ms)
        assert row.answer.lower_bound_ms <= row.answer.step_ms
        assert row.cells["ms_per_sample"] == pytest.approx(row.answer.step_ms / 16)
        assert row.cells["step_extra_ms"] == 5.0


def test_what_is_cut_is_slower_and_the_best_is_the_same_without_cutting(alone, candidates):
    everything = sweep(candidates, workers=1, prune=False, **QUICK)
    best = {row.inputs["memory_limit_mb"]: row for row in reversed(everything.rows)}
    cut = [row for row in alone.rows if row.answer.status is RowStatus.CUT]
    for row in cut:
        assert row.answer.lower_bound_ms > best[row.inputs["memory_limit_mb"]].answer.makespan_ms
    kept = {str(row.inputs): row.answer.makespan_ms for row in alone.rows if row not in cut}
    assert kept.items() <= {str(row.inputs): row.answer.makespan_ms for row in everything.rows}.items()
    assert everything.best is not None
    assert everything.best.answer.makespan_ms == alone.best.answer.makespan_ms


def test_cutting_cuts_something_and_counts_it():
    # One stage loses nothing to filling and draining (M = 1), eight lose (8 - 1) / 8 at M = 8: their bound
    # is above its plan.  The first wave has eight of the twelve; those after it are cut.
    grid = replace(GRID, stages=(1, 2, 4, 8), memory_limits_mb=(None,), global_batch=8, interleave=(1,))
    candidates, _ = list_candidates(MODEL, grid)
    seen: list[SweepProgress] = []
    found = sweep([*candidates, *candidates, *candidates], workers=1, watch=seen.append, **QUICK)
    cut = sum(row.answer.status is RowStatus.CUT for row in found.rows)
    assert cut == seen[-1].cut > 0
    assert seen[-1].done == seen[-1].of == 12


def test_processes_and_executors_make_the_same_table(alone, candidates):
    assert settled(sweep(candidates, workers=2, **QUICK)) == settled(alone)
    with ThreadPoolExecutor(2) as threads:
        assert settled(sweep(candidates, executor=threads, **QUICK)) == settled(alone)


def test_a_worker_killed_in_the_middle_changes_no_row_and_is_said(alone, candidates):
    killed: list[int] = []
    news: list[str] = []

    def watch(progress):
        news.extend([progress.news] if progress.news else [])
        if progress.phase == "plans" and not progress.news and not killed:
            killed.append(own_processes()[0])
            os.kill(killed[0], signal.SIGKILL)

    found = sweep(candidates, workers=2, watch=watch, **QUICK)
    assert killed
    assert settled(found) == settled(alone)
    assert any("tried again" in words for words in news)


def test_what_was_kept_is_not_planned_again(alone, candidates, tmp_path, monkeypatch):
    first = sweep(candidates, workers=1, folder=tmp_path, watch=lambda _: None, **QUICK)
    assert settled(first) == settled(alone)
    monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", lambda *_, **__: pytest.fail("planned"))
    monkeypatch.setattr("sapp_ppb.planner.proof.bounds.lower_bound", lambda *_: pytest.fail("bounded"))
    with pytest.warns(PlannerNote, match="problems were planned before"):
        again = sweep(candidates, workers=1, folder=tmp_path, **QUICK)
    assert [row.cells for row in again.rows] == [row.cells for row in first.rows]


def test_an_interrupt_keeps_what_is_done_and_the_same_call_goes_on(alone, candidates, tmp_path):
    def interrupt(progress):
        if progress.phase == "plans" and progress.done == 3 and not progress.news:
            raise KeyboardInterrupt

    stopped = sweep(candidates, workers=1, folder=tmp_path, watch=interrupt, **QUICK)
    assert stopped.interrupted
    assert len(stopped.rows) == 3
    seen: list[SweepProgress] = []
    found = sweep(candidates, workers=1, folder=tmp_path, watch=seen.append, **QUICK)
    assert "goes on: 3 of 8 problems were planned before" in [progress.news for progress in seen]
    assert not found.interrupted
    assert settled(found) == settled(alone)


def test_an_interrupted_planner_gives_no_row(candidates, monkeypatch):
    def interrupted(problem, **options):
        from sapp_ppb.plan import StoppedBy

        return replace(plan_pipeline(problem, **QUICK), stopped_by=StoppedBy.INTERRUPT)

    monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", interrupted)
    found = sweep(candidates, workers=1, **QUICK)
    assert (found.interrupted, found.rows, found.best) == (True, (), None)


def test_a_problem_that_fails_is_a_row_and_is_tried_again(alone, candidates, tmp_path, monkeypatch):
    def fails(problem, **options):
        if problem.stages == 2:
            raise ZeroDivisionError("a fault\nof ours")
        return plan_pipeline(problem, **options)

    monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", fails)
    found = sweep(candidates, workers=1, folder=tmp_path, **QUICK)
    failed = [row for row in found.rows if row.answer.status is RowStatus.FAILED]
    assert failed
    assert {row.answer.reason for row in failed} == {"ZeroDivisionError: a fault of ours"}
    with pytest.raises(InputError, match="has no plan: it is failed"):
        outcome(failed[0])
    monkeypatch.undo()
    again = sweep(candidates, workers=1, folder=tmp_path, watch=lambda _: None, **QUICK)
    assert settled(again) == settled(alone)


def test_what_fits_nowhere_says_what_would_do(candidates):
    tight = replace(candidates[0].problem, memory_limit_mb=300.0)
    (row,) = sweep([tight], workers=1, **QUICK).rows
    # One of two stages has at least four layers: 100 MB each, and its share of Emb or Out: above 300 MB.
    assert row.answer.status is RowStatus.INFEASIBLE
    assert row.answer.reason.startswith("no plan fits: stage ")
    assert row.answer.reason.endswith(" MB a stage would do")


def test_plain_problems_are_compared_within_their_question():
    problems = [Problem(model=MODEL, stages=stages, micro_batches=8) for stages in (2, 4)]
    found = sweep(problems, workers=1, **QUICK)
    assert [row.inputs["devices"] for row in found.rows] == [4, 2]
    assert all(row.pareto for row in found.rows)  # of other numbers of devices: not comparable
    assert Candidate(problem=problems[0]).question != Candidate(problem=problems[1]).question


def test_nothing_to_plan_is_an_empty_table():
    assert sweep([], workers=1).rows == ()


@pytest.mark.parametrize("workers", [0, -1, True, 5000])
def test_workers_that_can_not_be_are_refused(workers):
    with pytest.raises(InputError, match="must be from 1 to 4096"):
        sweep([], workers=workers)


def test_candidates_are_kept_and_sent_without_their_orders(candidates):
    assert all("order" not in vars(each.problem) for each in candidates)
    light = Candidate(problem=Problem(model=MODEL, stages=4, micro_batches=8)).light
    assert light.problem == Problem(model=MODEL, stages=4, micro_batches=8)


PROGRAM = """
import sys
from sapp_ppb.sweep import list_candidates, sweep
from tests.sweep.conftest import GRID, MODEL
from dataclasses import replace
found, _ = list_candidates(MODEL, replace(GRID, memory_limits_mb=tuple(range(800, 1400, 50))))
if __name__ == "__main__":
    sweep(found, workers=2, folder=sys.argv[1], time_limit_s=1.0)
"""


def test_a_killed_process_loses_at_most_a_row_and_its_folder_goes_on(tmp_path):
    found, _ = list_candidates(MODEL, replace(GRID, memory_limits_mb=tuple(range(800, 1400, 50))))
    whole = sweep(found, workers=2, **QUICK)
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    words = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "out")]
    process = subprocess.Popen(words, env=environment(), stderr=subprocess.DEVNULL)
    rows = tmp_path / "out" / "rows.jsonl"
    until = time.monotonic() + 60
    while time.monotonic() < until and (not rows.exists() or rows.read_bytes().count(b'"answer"') < 3):
        time.sleep(0.005)
    workers = own_processes(process.pid)
    process.kill()
    process.wait()
    assert len(workers) == 2
    while time.monotonic() < until and any(is_alive(worker) for worker in workers):
        time.sleep(0.05)
    assert not any(is_alive(worker) for worker in workers)  # they worked on for minutes, for nobody
    kept = rows.read_bytes().count(b'"answer"')
    assert 3 <= kept < len(found)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", PlannerNote)
        again = sweep(found, workers=2, folder=tmp_path / "out", **QUICK)
    assert any(f"goes on: {kept} of {len(found)}" in str(note.message) for note in notes)
    assert settled(again) == settled(whole)
