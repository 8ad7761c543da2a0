"""
Laws of the planner hold for a sample of random problems, and answers that are wrong break them.

``make soak`` tries the same laws on thousands of problems.
"""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.fix import Fix
from sapp_ppb.plan import Outcome, Plan, Status
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import simulate
from sapp_ppb.targets import TARGETS
from sapp_ppb.writers.plan_file import plan_to_json
from tests.laws import laws
from tests.laws.asked import Asked, Neighbours, changed_by
from tests.laws.drawing import SIZES, Drawn, drawn
from tests.laws.every_plan import least_ms
from tests.laws.laws import LAWS, Broken, try_laws
from tests.laws.units import with_times


@settings(max_examples=settings().max_examples * 2 // 5)
@given(number=st.integers(0, 2**32 - 1))
def test_every_law_holds(number):
    tried = try_laws(number)
    assert not tried.broken, f"python -m soak.laws {number}"


@pytest.mark.slow
def test_problems_are_of_every_kind():
    problems = [drawn(number) for number in range(150)]
    assert {each.size for each in problems} == set(SIZES)
    given = [each.problem for each in problems]
    assert max(problem.stages for problem in given) > 12
    assert {problem.interleave for problem in given} == {1, 2, 3, 4}
    assert max(problem.micro_batches for problem in given) > 48
    assert {len(problem.model.bodies) for problem in given} == {1, 2, 3, 4}
    assert len({problem.schedule_name for problem in given}) >= 10  # of 11; the smallest sample has most
    assert len({problem.target for problem in given} - {None}) >= len(TARGETS) // 2
    assert {problem.recompute_working_set for problem in given} == {False, True}
    for has in (
        lambda problem: problem.fix,
        lambda problem: problem.max_recompute_types is not None,
        lambda problem: problem.recompute,
        lambda problem: problem.memory_margin,
        lambda problem: problem.stage_speed,
        lambda problem: problem.has_extra,
        lambda problem: len(problem.model.types) > len(Recompute),
        lambda problem: any(layer.transient_mb for layer in problem.model.layers),
        lambda problem: any(layer.tied_to for layer in problem.model.layers),
    ):
        assert 3 <= sum(bool(has(problem)) for problem in given) < len(given)
    assert Counter(each.reorders for each in problems)[True] >= 3


def test_a_number_is_one_problem():
    assert drawn(11) == drawn(11)
    assert drawn(11).problem != drawn(12).problem


@pytest.fixture
def problem() -> Problem:
    """
    Three layers of each of two kinds on two stages, of which some must be recomputed.

    Of four micro-batches stage 0 holds two at once: of three layers left alone 2 x 3 x 60 = 360 MB.
    """
    memory = {Recompute.NONE: 60, Recompute.FULL: 5}
    layers = [
        layer_from_times(name=name, kind=LayerKind.BODY, count=3, forward_ms=forward_ms, activation_mb=memory)
        for name, forward_ms in (("a", 10), ("b", 12))
    ]
    model = Model(name="two kinds", layers=tuple(layers))
    return Problem(model=model, stages=2, micro_batches=4, memory_limit_mb=300)


def asked_of(problem):
    options = {"seed": 0, "reorder_stages": False}
    return Asked(drawn=Drawn(number=0, size="small", problem=problem, seconds=0.05, options=options))


@pytest.fixture
def asked(problem):
    asked = asked_of(problem)
    assert asked.outcome is not None
    assert asked.outcome.status is Status.OPTIMAL
    return asked


def spoil(asked, **changes):
    asked.outcome = replace(asked.outcome, **changes)


def with_counts(plan: Plan, counts) -> Plan:
    """Plan with counts that none would be made of."""
    other = replace(plan)
    object.__setattr__(other, "counts", counts)
    return other


def answering(asked, monkeypatch, outcome):
    monkeypatch.setattr(asked, "answer", lambda *_: outcome)


def test_the_laws_hold_for_the_problem_that_is_spoilt_below(asked):
    assert {name for name, law in LAWS.items() if not law(asked)} == {
        "what is asked is kept",  # nothing is
        "changes said to do do",  # it fits
    }


def test_a_plan_over_its_limit_is_found(asked):
    tighter = asked.problem.changed(memory_limit_mb=max(asked.outcome.peak_memory_mb) * 0.999)
    spoil(asked, plan=Plan(problem=tighter, counts=asked.outcome.plan.counts))
    with pytest.raises(Broken, match="holds"):
        laws.within_limits(asked)


def test_a_layer_too_many_is_found(asked):
    counts = asked.outcome.plan.counts.copy()
    counts[0, 0, 1] += 1
    spoil(asked, plan=with_counts(asked.outcome.plan, counts))
    with pytest.raises(Broken, match="a has not 3 layers"):
        laws.complete(asked)


def test_a_type_that_a_layer_may_not_have_is_found(asked):
    counts = asked.outcome.plan.counts.copy()
    counts[1, Recompute.COMM], counts[1, Recompute.NONE] = counts[1, Recompute.NONE], 0
    spoil(asked, plan=with_counts(asked.outcome.plan, counts))
    with pytest.raises(Broken, match="b may not be comm"):
        laws.complete(asked)


def test_an_empty_cell_is_found(asked):
    counts = asked.outcome.plan.counts.copy()
    counts[:, :, 1] += counts[:, :, 0]
    counts[:, :, 0] = 0
    spoil(asked, plan=with_counts(asked.outcome.plan, counts))
    with pytest.raises(Broken, match="cell 0 holds 0 layers"):
        laws.complete(asked)


def test_another_order_of_the_chain_is_found(asked):
    spoil(asked, plan=with_counts(asked.outcome.plan, asked.outcome.plan.counts[:, :, ::-1]))
    with pytest.raises(Broken, match="b stands in cell 0, before cell 1"):
        laws.in_order(asked)


def test_a_split_that_was_to_be_kept_is_found(asked):
    fixed = replace(asked.problem, fix=asked.outcome.plan.split)
    asked = asked_of(fixed)
    assert laws.keeps_what_is_asked(asked)
    counts = asked.outcome.plan.counts.copy()
    counts[0, 0] += (-1, 1)
    spoil(asked, plan=with_counts(asked.outcome.plan, counts))
    with pytest.raises(Broken, match="does not keep what is fixed"):
        laws.keeps_what_is_asked(asked)


def test_a_step_that_is_not_that_of_the_plan_is_found(asked):
    spoil(asked, makespan_ms=asked.outcome.makespan_ms * 1.00001)
    with pytest.raises(Broken, match="told"):
        laws.told_as_simulated(asked)


@pytest.mark.parametrize(
    "changes", [{"lower_bound_ms": 1e6}, {"lower_bound_ms": 1.0}, {"status": "feasible"}]
)
def test_a_bound_that_is_not_that_of_the_status_is_found(asked, changes):
    spoil(asked, **changes)
    with pytest.raises(Broken, match=r"bound|optimal|feasible"):
        laws.bound_below_step(asked)


def test_an_optimum_that_is_none_is_found(asked):
    # With all recomputed every layer takes half its backward more.
    counts = asked.outcome.plan.counts.copy()
    counts[:, Recompute.FULL] = counts.sum(axis=1)
    counts[:, Recompute.NONE] = 0
    slow = simulate(Plan(problem=asked.problem, counts=counts))
    best_ms = asked.outcome.step_ms
    assert least_ms(asked.problem) == pytest.approx(best_ms, rel=1e-9)
    spoil(asked, plan=slow.plan, makespan_ms=slow.makespan_ms, step_ms=slow.step_ms)
    with pytest.raises(Broken, match=f"optimal at {slow.step_ms!r} ms, and there is a plan of"):
        laws.agrees_with_all_plans(asked)
    spoil(asked, status=Status.FEASIBLE, lower_bound_ms=best_ms * 1.01)
    with pytest.raises(Broken, match="above the best of all"):
        laws.agrees_with_all_plans(asked)
    spoil(asked, plan=None)
    with pytest.raises(Broken, match="infeasible, and there is a plan"):
        laws.agrees_with_all_plans(asked)


def test_a_baseline_that_is_faster_is_found(asked):
    spoil(asked, makespan_ms=1e6, step_ms=1e6)
    with pytest.raises(Broken, match="even split, full recompute"):
        laws.no_baseline_is_faster(asked)


def test_another_outcome_out_of_a_plan_file_is_found(asked, monkeypatch):
    monkeypatch.setattr(laws, "plan_to_json", lambda outcome: plan_to_json(replace(outcome, seed=1)))
    with pytest.raises(Broken, match="read back as another"):
        laws.read_back(asked)


def test_other_bytes_of_the_same_seed_are_found(asked, monkeypatch):
    answering(asked, monkeypatch, replace(asked.outcome, lower_bound_ms=1.0))
    with pytest.raises(Broken, match=r"other bytes: .*lower_bound_ms"):
        laws.same_seed_same_bytes(asked)


def test_twice_the_times_are_twice_every_time(problem):
    given = replace(problem, p2p_ms=(1.0, 3.0), step_extra_ms=5.0)
    model = replace(given.model, op_overhead_ms=0.5, hop_ms=0.25)
    twice = with_times(replace(given, model=model), 2.0)
    assert [layer.forward_ms for layer in twice.model.bodies] == [20, 24]
    assert [layer.backward_ms[Recompute.FULL] for layer in twice.model.bodies] == [60, 72]
    assert (twice.p2p_ms, twice.step_extra_ms) == ((2.0, 6.0), 10.0)
    assert (twice.model.op_overhead_ms, twice.model.hop_ms) == (1.0, 0.5)


def test_an_answer_that_is_not_doubled_is_found(asked, monkeypatch):
    answering(asked, monkeypatch, asked.outcome)
    with pytest.raises(Broken, match=r"times \(1.0, 1.0\)"):
        laws.doubled_times_double_the_answer(asked)


def neighbours_of(asked: Asked, of_easier: Outcome) -> None:
    asked.neighbours = Neighbours(
        what="as asked",
        harder=asked.problem,
        easier=asked.problem,
        of_harder=asked.outcome,
        of_easier=of_easier,
    )


def test_an_easier_problem_that_is_slower_is_found(asked):
    found = asked.outcome
    neighbours_of(asked, replace(found, makespan_ms=1e6, step_ms=1e6))
    with pytest.raises(Broken, match=r"optimal at 1000000\.0 ms, and the harder took"):
        laws.easier_is_no_slower(asked)
    neighbours_of(asked, replace(found, lower_bound_ms=found.step_ms * 1.01, status=Status.FEASIBLE))
    with pytest.raises(Broken, match="of the easier, step"):
        laws.easier_is_no_slower(asked)
    neighbours_of(asked, replace(found, plan=None, status=Status.INFEASIBLE))
    with pytest.raises(Broken, match="the easier is infeasible"):
        laws.easier_is_no_slower(asked)


def test_a_warm_start_that_is_lost_is_found(asked, monkeypatch):
    neighbours_of(asked, asked.outcome)
    answering(asked, monkeypatch, replace(asked.outcome, step_ms=asked.outcome.step_ms * 1.001))
    with pytest.raises(Broken, match="ms from a plan of"):
        laws.warm_start_is_no_slower(asked)


def test_a_change_that_does_not_do_is_found(problem, monkeypatch):
    # All recomputed, two live on stage 0: of three and three layers 2 x 3 x 5 = 30 MB, of two and four 20 MB.
    asked = asked_of(replace(problem, memory_limit_mb=1))
    assert dict(asked.outcome.shortage.remedies)["memory_limit_mb"] == 20
    assert laws.every_change_said_to_do_does(asked)
    answering(asked, monkeypatch, asked.outcome)
    with pytest.raises(Broken, match=r"memory_limit_mb 20\.0 does not do"):
        laws.every_change_said_to_do_does(asked)


def test_changes_are_made_as_they_are_named(problem):
    wide = replace(
        problem, interleave=2, schedule="interleaved", constant_memory_mb=(5, 3), stage_speed=(1, 2)
    )
    assert changed_by(wide, "constant_memory_less_by_mb", 2.0).constant_memory_mb == (3, 1)
    assert changed_by(wide, "memory_limit_mb", 7.0).memory_limit_mb == 7
    assert changed_by(wide, "schedule", "interleaved-less-memory").schedule_name == "interleaved-less-memory"
    assert changed_by(wide, "interleave", 1).schedule_name == "1f1b"
    more = changed_by(replace(problem, stage_speed=(1, 2)), "stages", 3)
    assert (more.stages, more.stage_speed) == (3, None)
    only = replace(problem, recompute=(Recompute.FULL,))
    assert changed_by(only, "recompute", "none").recompute == (Recompute.NONE, Recompute.FULL)
    assert changed_by(only, "max_recompute_types", 1).max_recompute_types == 1
    fixed = replace(problem, fix=Fix(layers=(3, 3)))
    assert changed_by(fixed, "fix", "none").fix is None


def test_what_is_raised_is_told_once(monkeypatch):
    def fails(*_, **__):
        raise ZeroDivisionError("as if")

    monkeypatch.setattr("tests.laws.asked.plan_pipeline", fails)
    tried = try_laws(0)
    assert list(tried.broken) == ["an answer"]
    assert "ZeroDivisionError: as if" in tried.broken["an answer"]
    assert tried.held == ()


def test_a_law_that_raises_is_broken(monkeypatch):
    def fails(asked):
        raise ZeroDivisionError("as if")

    monkeypatch.setattr(laws, "LAWS", {"fails": fails, "fits": laws.within_limits})
    tried = try_laws(0)
    assert "ZeroDivisionError: as if" in tried.broken["fails"]
