"""Plan files: what is written is read back."""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import Cost, Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.fix import Fix, PlaceRule
from sapp_ppb.plan import Bubble, Outcome, Shortage, Status, StoppedBy, WithoutTarget
from sapp_ppb.readers import read_plan
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.writers import plan_to_json
from tests.readers.plans.conftest import PLAN, with_mtp
from tests.strategies import plans, random_mode, random_plan, random_problem, with_devices

NUMBERS = st.floats(0, 1e9)
SIGNED = st.floats(-10, 10)


def knows_none(problem) -> bool:
    """Whether every layer may be left alone and says what it holds then."""
    return all(Recompute.NONE in problem.considered(layer) for layer in problem.model.bodies)


PLACE_RULES = (
    PlaceRule(recompute=Recompute.FULL, first=2),
    PlaceRule(recompute=Recompute.SELECTIVE, first=1, entries_left=1),
    PlaceRule(recompute=Recompute.FULL, every=3),
    PlaceRule(recompute=Recompute.FULL, first=3, chunks=2),
)


def may_follow(problem, rule) -> bool:
    """Whether a rule of places can be given for a problem."""
    try:
        replace(problem, fix=Fix(places=rule))
    except InputError:
        return False
    return True


@st.composite
def outcomes(draw):
    """Outcome of a random plan; what is said of it need not be true to be read back."""
    plan = draw(plans())
    problem = plan.problem
    if draw(st.booleans()):
        problem = with_mtp(problem)
        plan = replace(plan, problem=problem)
    if draw(st.booleans()):
        types = {r for layer in problem.model.bodies for r in layer.considered}
        limited = problem.memory_limit_mb is not None
        margin = draw(st.floats(0, 900) | st.floats(0, 99.9).map("{}%".format)) if limited else 0.0
        problem = replace(problem, recompute=tuple(types), memory_margin=margin)
        plan = replace(plan, problem=problem)
    problem = replace(
        problem,
        max_recompute_types=draw(st.none() | st.integers(0, 4)),
        recompute_working_set=draw(st.booleans()) and knows_none(problem),
        fix=draw(st.sampled_from([None, plan.split])),
    )
    if (
        draw(st.booleans())
        and problem.max_recompute_types is None
        and problem.fix is None
        and knows_none(problem)
    ):
        problem = replace(problem, fix=plan.recompute)
    rules = [rule for rule in PLACE_RULES if may_follow(problem, rule)]
    if rules and draw(st.booleans()):
        layers = draw(st.sampled_from([None, plan.split.layers]))
        problem = replace(problem, fix=Fix(layers=layers, places=draw(st.sampled_from(rules))))
    plan = replace(plan, problem=problem)
    infeasible = draw(st.booleans())
    known = draw(st.booleans())
    shortage = Shortage(
        stage=0 if known else None,
        op="0F1" if known else None,
        over_mb=draw(NUMBERS | st.none()),
        smallest_limit_mb=draw(NUMBERS) if known else None,
        proven=draw(st.booleans()),
        remedies=tuple(draw(st.lists(st.tuples(st.sampled_from(["a", "b"]), NUMBERS | st.just("text"))))),
    )
    return Outcome(
        problem=plan.problem,
        plan=None if infeasible else plan,
        status=Status.INFEASIBLE if infeasible else draw(st.sampled_from([Status.OPTIMAL, Status.FEASIBLE])),
        stopped_by=draw(st.sampled_from(StoppedBy)),
        makespan_ms=None if infeasible else draw(st.floats(1, 1e9)),
        lower_bound_ms=None if infeasible else draw(st.none() | NUMBERS),
        peak_memory_mb=() if infeasible else tuple(draw(NUMBERS) for _ in range(plan.problem.stages)),
        bubble=None
        if infeasible
        else Bubble(
            fill_drain=draw(SIGNED),
            imbalance=draw(SIGNED),
            recompute=draw(SIGNED),
            communication=draw(SIGNED),
        ),
        seconds=draw(NUMBERS),
        seed=draw(st.integers(0, 2**32 - 1)),
        shortage=shortage if infeasible else None,
        without_target=None
        if infeasible or draw(st.booleans())
        else WithoutTarget(makespan_ms=draw(NUMBERS), lower_bound_ms=draw(NUMBERS)),
    )


@given(outcomes())
def test_what_is_written_is_read_back_and_written_again_byte_for_byte(tmp_path_factory, outcome):
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    path.write_text(plan_to_json(outcome), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a file of ours holds nothing odd
        read = read_plan(path, outcome.problem.model)
    assert read == outcome
    assert plan_to_json(read) == path.read_text(encoding="utf-8")


def test_every_way_of_running_every_schedule_is_read_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the paths of custom orders start
    names = set()
    for seed in range(80):
        rng = Random(seed)
        problem = random_mode(rng, random_problem(rng))
        plan = random_plan(rng, with_devices(rng, problem) if seed % 2 else problem)
        if plan.problem.order_file is not None:
            Path(plan.problem.order_file.path).write_bytes(plan.problem.order_file.text.encode())
        outcome = replace(PLAN, problem=plan.problem, plan=plan, peak_memory_mb=(1.0,) * plan.problem.stages)
        if plan.problem.has_extra:
            outcome = replace(outcome, step_ms=(outcome.makespan_ms or 0.0) + 1.5)
        if plan.problem.stage_speed is not None:
            devices = tuple(rng.sample(range(plan.problem.stages), plan.problem.stages))
            outcome = replace(outcome, stage_order=devices)
        path = tmp_path / "plan.json"
        path.write_text(plan_to_json(outcome), encoding="utf-8")
        read = read_plan(path, plan.problem.model)
        assert read == outcome
        assert plan_to_json(read) == path.read_text(encoding="utf-8")
        names.add(plan.problem.schedule_name)
    assert names == set(ScheduleName)


def test_a_plan_of_estimates_says_so_and_is_read_back(tmp_path):
    plan = random_plan(Random(3), random_problem(Random(3)))
    outcome = Outcome(
        problem=plan.problem,
        plan=plan,
        status=Status.FEASIBLE,
        stopped_by=StoppedBy.BUDGET,
        makespan_ms=1.0,
        peak_memory_mb=(1.0,) * plan.problem.stages,
    )
    assert '"estimate"' not in plan_to_json(outcome)
    first, *others = plan.problem.model.layers
    guessed = replace(first, estimated=frozenset({Cost.FORWARD}))
    problem = replace(plan.problem, model=replace(plan.problem.model, layers=(guessed, *others)))
    marked = replace(outcome, problem=problem, plan=replace(plan, problem=problem))
    path = tmp_path / "plan.json"
    path.write_text(plan_to_json(marked), encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8"))["problem"]["estimate"] is True
    back = read_plan(path, problem.model)
    assert (back, plan_to_json(back)) == (marked, plan_to_json(marked))
    # The model has the last word: one that was measured meanwhile makes no estimate of the plan.
    assert "estimate" not in plan_to_json(read_plan(path, plan.problem.model))
