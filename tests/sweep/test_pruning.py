"""What is planned when, and what is cut."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.sweep import Answer, RowStatus, list_candidates
from sapp_ppb.sweep.pruning import cut_by, waves
from tests.sweep.conftest import GRID, MODEL

CANDIDATES = list_candidates(MODEL, replace(GRID, interleave=(1, 2)))[0] * 4  # 32, of two questions
times = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), min_size=32, max_size=32)


def planned(makespans):
    """Plan in waves, each candidate taking the time that it is given; the wave that cut each."""
    bounds = [float(bound) for bound, _ in makespans]
    answers: dict[int, Answer] = {}
    cut: dict[int, str] = {}
    for wave in waves(CANDIDATES, bounds):
        found = cut_by(wave, CANDIDATES, bounds, answers)
        cut |= found
        for place in wave:
            if place not in found:
                time_ms = float(sum(makespans[place]))
                answers[place] = Answer(status=RowStatus.FEASIBLE, makespan_ms=time_ms)
    return answers, cut


@given(times)
def test_every_candidate_is_in_one_wave_and_waves_double(makespans):
    found = waves(CANDIDATES, [float(bound) for bound, _ in makespans])
    assert [len(wave) for wave in found] == [8, 8, 16]
    assert sorted(place for wave in found for place in wave) == list(range(32))


@given(times)
def test_the_best_of_every_question_is_never_cut(makespans):
    answers, cut = planned(makespans)
    assert sorted([*answers, *cut]) == list(range(32))
    for question in {each.question for each in CANDIDATES}:
        here = [place for place, each in enumerate(CANDIDATES) if each.question == question]
        best = min(sum(makespans[place]) for place in here)
        assert best == min(answers[place].makespan_ms for place in here if place in answers)
        assert all(makespans[place][0] > best for place in here if place in cut)


def test_another_limit_is_another_question():
    # The plans of 1,200 MB take 10 ms, the bounds of 900 MB are 20 ms: the faster ones do not cut them.
    bounds = [10.0 if each.problem.memory_limit_mb == 1200 else 20.0 for each in CANDIDATES]
    roomy = {
        place: Answer(status=RowStatus.FEASIBLE, makespan_ms=10.0)
        for place, each in enumerate(CANDIDATES)
        if each.problem.memory_limit_mb == 1200
    }
    assert cut_by(range(32), CANDIDATES, bounds, roomy) == {}
    slow = {place: Answer(status=RowStatus.FEASIBLE, makespan_ms=15.0) for place in (0,)}
    assert CANDIDATES[0].problem.memory_limit_mb == 900
    cut = cut_by(range(32), CANDIDATES, bounds, slow)
    assert set(cut) == {place for place, each in enumerate(CANDIDATES) if each.problem.memory_limit_mb == 900}
    assert cut[2] == "its bound is above the best plan of the same limit, 15.0 ms"


def test_what_is_no_slower_and_what_fits_nowhere_is_not_cut():
    answers = {0: Answer(status=RowStatus.OPTIMAL, makespan_ms=10.0)}
    bounds = [10.0] * 30 + [float("inf")] * 2  # places 30 and 31 are of the two limits, 0 is of that of 30
    assert CANDIDATES[30].question == CANDIDATES[0].question
    assert cut_by(range(32), CANDIDATES, bounds, answers) == {}


def test_the_most_promising_of_every_question_come_first():
    bounds = [float(place) for place in range(32)]
    first = waves(CANDIDATES, bounds)[0]
    # Places alternate between 900 and 1,200 MB: the four lowest bounds of each.
    assert sorted(first) == list(range(8))
