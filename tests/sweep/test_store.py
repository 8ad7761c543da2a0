"""Rows that are kept as they come."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.errors import InputError
from sapp_ppb.plan import Bubble, StoppedBy
from sapp_ppb.sweep import Answer, Candidate, RowStatus
from sapp_ppb.sweep.answer import from_object, to_object
from sapp_ppb.sweep.store import Store, fingerprint, is_sweep
from sapp_ppb.sweep.work import Effort
from tests.sweep.conftest import MODEL

numbers = st.floats(0, 1e12)
rows = st.tuples(*[st.integers(0, 80)] * 4)
answers = st.builds(
    Answer,
    status=st.sampled_from(
        [RowStatus.OPTIMAL, RowStatus.FEASIBLE, RowStatus.INFEASIBLE, RowStatus.NOT_FOUND]
    ),
    reason=st.text(max_size=20),
    makespan_ms=st.none() | numbers,
    lower_bound_ms=st.none() | numbers,
    peak_memory_mb=st.lists(numbers, max_size=4).map(tuple),
    bubble=st.none()
    | st.builds(Bubble, fill_drain=numbers, imbalance=numbers, recompute=numbers, communication=numbers),
    counts=st.just(()) | st.tuples(st.tuples(*[rows] * 5)),
    stopped_by=st.none() | st.sampled_from(StoppedBy),
    seconds=numbers,
    seed=st.integers(0, 2**32 - 1),
)
FEASIBLE = Answer(status=RowStatus.FEASIBLE, makespan_ms=1.5, counts=(((1, 2),) * 5,))


@given(answers)
def test_an_answer_is_the_same_after_its_way_through_json(answer):
    assert from_object(json.loads(json.dumps(to_object(answer)))) == answer


@pytest.fixture
def sweep(candidates):
    return fingerprint(candidates, Effort(), prune=True)


def opened(folder, sweep):
    store = Store(folder, sweep)
    store.close()
    return store


@given(st.lists(st.tuples(st.integers(0, 9), answers), max_size=5), st.integers(0, 200))
def test_what_was_kept_is_there_again_wherever_the_file_was_cut_off(kept, cut):
    with TemporaryDirectory() as name:
        folder, sweep = Path(name), {"package": "1", "models": "", "problems": "", "options": {}}
        store = Store(folder, sweep)
        store.keep_bound(3, float("inf"))
        for place, answer in kept:
            store.keep_answer(place, answer)
        store.close()
        path = folder / "rows.jsonl"
        content = path.read_bytes()
        header = content.index(b"\n") + 1
        left = content[: max(header, len(content) - cut)]
        path.write_bytes(left)
        again = opened(folder, sweep)
        whole = left.count(b"\n") - 2  # without the header and the bound
        assert again.answers == dict(kept[: max(whole, 0)])
        assert again.bounds_ms == ({3: float("inf")} if whole >= 0 else {})
        assert bool(again.news) == (not left.endswith(b"\n"))
        # The half line is gone, and what comes next stands on a line of its own.
        store = Store(folder, sweep)
        store.keep_answer(7, FEASIBLE)
        store.close()
        assert opened(folder, sweep).answers[7] == FEASIBLE


def test_answers_that_settle_nothing_are_not_taken_for_done(tmp_path, sweep):
    store = Store(tmp_path, sweep)
    store.keep_answer(0, Answer(status=RowStatus.FAILED, reason="its workers died"))
    store.close()
    assert opened(tmp_path, sweep).answers == {}


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "[]",
        "1",
        "{}",
        '{"place": 1}',
        '{"place": "a", "bound_ms": 1}',
        '{"place": 1, "answer": {"status": "great"}}',
        '{"place": 1, "answer": null}',
        '{"place": 1, "bound_ms": null}',
        "[" * 100_000,
        "\\xff",
    ],
)
def test_a_line_that_can_not_be_read_is_said_and_done_again(line, tmp_path, sweep):
    store = Store(tmp_path, sweep)
    store.close()
    path = tmp_path / "rows.jsonl"
    with path.open("ab") as file:
        file.write(line.encode() + b'\n{"place": 2, "bound_ms": 5}\n')
    again = opened(tmp_path, sweep)
    assert (again.answers, again.bounds_ms) == ({}, {2: 5.0})
    assert again.news == [f"{path}: line 2 can not be read; what it held is done again"]


def changes(candidates):
    """Name of a change, and the fingerprint that it has."""
    first = candidates[0]
    heavier = replace(MODEL, constant_memory_mb=1.0)
    slower = replace(first.problem, p2p_ms=1.0)
    yield "other problems", fingerprint(candidates[1:], Effort(), prune=True)
    yield "other problems", fingerprint([Candidate(problem=slower), *candidates[1:]], Effort(), prune=True)
    yield "other options", fingerprint(candidates, Effort(seed=1), prune=True)
    yield "other options", fingerprint(candidates, Effort(time_limit_s=5), prune=True)
    yield "other options", fingerprint(candidates, Effort(), prune=False)
    for words, key in (("another version of sapp-ppb", "package"), ("another model", "models")):
        yield words, fingerprint(candidates, Effort(), prune=True) | {key: "x"}
    changed = [Candidate(problem=replace(each.problem, model=heavier)) for each in candidates]
    yield "another model", fingerprint(changed, Effort(), prune=True)


@pytest.mark.parametrize("number", range(8))
def test_what_is_of_another_sweep_is_put_aside_and_said(number, tmp_path, candidates, sweep):
    words, other = list(changes(candidates))[number]
    assert other != sweep
    store = Store(tmp_path, sweep)
    store.keep_answer(0, FEASIBLE)
    store.close()
    before = (tmp_path / "rows.jsonl").read_bytes()
    again = opened(tmp_path, other)
    assert again.answers == {}
    assert words in again.news[0]
    assert "begins anew" in again.news[0]
    assert (tmp_path / "rows.old.jsonl").read_bytes() == before
    assert opened(tmp_path, other).news == []


@pytest.mark.parametrize("other", [False, True], ids=["the same sweep", "another sweep"])
def test_two_runs_in_one_folder_are_refused(other, tmp_path, candidates, sweep):
    # The second one put aside, or cut off, the file that the first one was adding to.
    first = Store(tmp_path, sweep)
    first.keep_answer(0, FEASIBLE)
    asked = fingerprint(candidates[1:], Effort(), prune=True) if other else sweep
    with pytest.raises(
        InputError, match=r"rows\.jsonl: another sweep is writing to it; wait until that ends"
    ):
        Store(tmp_path, asked)
    first.keep_answer(1, FEASIBLE)
    first.close()
    assert set(opened(tmp_path, sweep).answers) == {0, 1}


def test_the_same_sweep_has_the_same_fingerprint(candidates, sweep):
    again = [replace(each, problem=replace(each.problem)) for each in candidates]
    assert fingerprint(again, Effort(), prune=True) == sweep
    assert json.loads(json.dumps(sweep)) == sweep


def test_a_folder_is_a_sweeps_own_only_with_its_rows(tmp_path, sweep):
    assert not is_sweep(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"format": "other"}\n', encoding="utf-8")
    assert not is_sweep(tmp_path)
    opened(tmp_path / "new", sweep)
    assert is_sweep(tmp_path / "new")


def test_a_folder_that_can_not_be_written_is_refused(tmp_path, sweep):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="can not be written"):
        Store(tmp_path / "file", sweep)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_a_full_disk_is_said_once(tmp_path, sweep):
    """To close the file writes what is left in its buffer, which failed once more and hid the words."""
    store = Store(tmp_path, sweep)
    store.close()
    store._file = Path("/dev/full").open("ab")  # noqa: SIM115  the store closes it
    with pytest.raises(
        InputError, match=r"rows\.jsonl: can not be written \(No space left on device\); free"
    ):
        store.keep_bound(0, 1.0)
    store.close()


def test_effort_is_checked():
    with pytest.raises(InputError, match="time-limit must be above 0"):
        Effort(**asdict(Effort()) | {"time_limit_s": 0})
