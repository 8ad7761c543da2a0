"""Which schedules are tried for a problem, and which is told to be the best."""

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import NoPlanFoundError
from sapp_ppb.plan import Outcome, Status, StoppedBy
from sapp_ppb.planner import every_schedule, plan_pipeline, plan_schedules, schedule_problems
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator import simulate


@pytest.fixture
def problem() -> Problem:
    """Sixteen layers on four stages, eight micro-batches: every schedule takes these sizes."""
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=16,
        forward_ms=10,
        activation_mb={Recompute.NONE: 100, Recompute.FULL: 10},
    )
    return Problem(
        model=Model(name="sixteen", layers=(body,)), stages=4, micro_batches=8, memory_limit_mb=2_000
    )


def names(problems) -> list[tuple[str, int]]:
    return [(each.schedule_name.value, each.interleave) for each in problems]


def test_every_schedule_that_takes_the_sizes_is_tried_once(problem):
    tried = names(schedule_problems(problem, None))
    assert len(tried) == len(set(tried))
    assert {("zbv", 2), ("dualpipev", 2), ("interleaved", 2), ("1f1b", 1), ("gpipe", 1)} <= set(tried)
    orders = [each.order.rows for each in schedule_problems(problem, None)]
    assert len(orders) == len(set(orders))


def test_only_the_chunks_that_were_given_are_tried(problem):
    assert {chunks for _, chunks in names(schedule_problems(problem, 2))} == {2}


def test_sizes_that_a_schedule_does_not_take_leave_it_out(problem):
    # DualPipeV needs M >= 2 S = 8.
    short = Problem(model=problem.model, stages=4, micro_batches=7)
    assert ("dualpipev", 2) not in names(schedule_problems(short, None))


def test_sequence_pipelining_is_tried_where_there_are_sequence_chunks(problem):
    pieces = Problem(
        model=problem.model, stages=4, micro_batches=8, schedule=ScheduleName.SEQ1F1B, sequence_chunks=2
    )
    found = schedule_problems(pieces, 1)
    assert ("seq1f1b", 1) in names(found)
    assert [each.sequence_chunks for each in found if each.schedule_name is not ScheduleName.SEQ1F1B] == [
        1
    ] * (len(found) - 1)


def test_the_fastest_plan_that_fits_comes_first_and_is_that_of_its_schedule(problem):
    choices = plan_schedules(schedule_problems(problem, None), time_limit_s=3)
    makespans = [choice.step_ms for choice in choices]
    assert makespans == sorted(makespans)
    for choice in choices:
        assert choice.outcome is not None
        assert choice.outcome.problem == choice.problem
        if choice.outcome.plan is not None:
            timeline = simulate(choice.outcome.plan)
            assert timeline.fits_memory
            assert timeline.makespan_ms == choice.step_ms
        if choice.outcome.status is Status.OPTIMAL:
            alone = plan_pipeline(choice.problem, time_limit_s=1)
            assert alone.makespan_ms is not None
            assert alone.makespan_ms >= choice.step_ms * (1 - 1e-6)


def test_a_schedule_under_which_nothing_fits_comes_last(problem):
    # GPipe keeps all eight micro-batches of a stage's four layers: 8 x 4 x 10 MB at least, of 300.
    tight = Problem(model=problem.model, stages=4, micro_batches=8, memory_limit_mb=300)
    choices = plan_schedules(schedule_problems(tight, 1), time_limit_s=2)
    assert choices[0].problem.schedule_name is not ScheduleName.GPIPE
    gpipe = [choice for choice in choices if choice.problem.schedule_name is ScheduleName.GPIPE]
    assert gpipe[0].outcome is not None
    assert gpipe[0].outcome.status is Status.INFEASIBLE
    assert choices.index(gpipe[0]) >= sum(choice.step_ms < float("inf") for choice in choices)


def test_a_schedule_without_a_plan_in_time_does_not_end_the_others(problem, monkeypatch):
    def late(given, **options):
        if given.schedule_name is ScheduleName.ONE_F_ONE_B:
            raise NoPlanFoundError("late")
        return plan_pipeline(given, **options)

    monkeypatch.setattr(every_schedule, "plan_pipeline", late)
    choices = plan_schedules(schedule_problems(problem, 1), time_limit_s=1)
    assert [choice.outcome is None for choice in choices].count(True) == 1
    assert choices[-1].problem.schedule_name is ScheduleName.ONE_F_ONE_B


def test_the_best_three_that_may_still_win_are_planned_again_for_longer(problem, monkeypatch):
    # Proven, or bounded above the best plan, a schedule can not become the fastest.
    tried: list[tuple[str, float]] = []
    told = {"1f1b": (300.0, 100.0), "gpipe": (400.0, 350.0), "looped-bfs": (310.0, 100.0)}

    def plan(each, time_limit_s, **options):
        tried.append((each.schedule_name.value, time_limit_s))
        step_ms, bound_ms = told.get(tried[-1][0], (500.0, 100.0))
        again = sum(name == tried[-1][0] for name, _ in tried) > 1
        return Outcome(
            problem=each,
            plan=None,
            status=Status.FEASIBLE,
            stopped_by=StoppedBy.BUDGET,
            makespan_ms=290.0 if again and tried[-1][0] == "looped-bfs" else step_ms,
            lower_bound_ms=bound_ms,
        )

    monkeypatch.setattr(every_schedule, "plan_pipeline", plan)
    problems = schedule_problems(problem, 1)
    choices = plan_schedules(problems, time_limit_s=10.0)
    first, again = tried[: len(problems)], tried[len(problems) :]
    assert {seconds for _, seconds in first} == {0.4 * 10 / len(problems)}
    assert [name for name, _ in again][:2] == ["1f1b", "looped-bfs"]
    assert len(again) == 3
    assert "gpipe" not in dict(again)
    assert [seconds for _, seconds in again] == pytest.approx([0.6 * 10 / 3] * 3)
    assert choices[0].problem.schedule_name.value == "looped-bfs"
    assert choices[0].step_ms == 290.0
