"""Plan files: what is written is read back, and what is no plan is refused with all its faults."""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import Cost, Recompute
from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.fix import Fix, PlaceRule
from sapp_ppb.plan import Bubble, Outcome, Shortage, Status, StoppedBy, WithoutTarget
from sapp_ppb.readers import read_plan
from sapp_ppb.schedules import OrderFile, ScheduleName
from sapp_ppb.writers import plan_to_json
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


def with_mtp(problem):
    """Make the last BODY entry one of multi-token prediction."""
    last = problem.model.bodies[-1].name
    layers = tuple(replace(layer, is_mtp=layer.name == last) for layer in problem.model.layers)
    return replace(problem, model=replace(problem.model, layers=layers))


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


def custom_plan(folder: Path) -> Path:
    """Plan file that was made with an order beside it."""
    (folder / "order.csv").write_text("0F0,0B0", encoding="utf-8")
    rng = Random(1)
    problem = random_problem(rng, stages=1, chunks=1, micro_batches=1)
    problem = replace(
        problem, schedule=None, micro_batch_group=None, order_file=OrderFile(path="order.csv", text="0F0,0B0")
    )
    plan = random_plan(rng, problem)
    path = folder / "plan.json"
    outcome = replace(PLAN, problem=problem, plan=plan, peak_memory_mb=(1.0,))
    path.write_text(plan_to_json(outcome), encoding="utf-8")
    assert json.loads(path.read_text())["problem"]["order"] == {
        "path": "order.csv",
        # printf 0F0,0B0 | sha256sum
        "sha256": "b83c824ac403bb94d0612931fa7b07911716fc95e49669128e81b813c1be33b2",
    }
    assert read_plan(path, problem.model).problem == problem
    return path


def test_an_order_is_found_beside_the_plan_and_known_by_its_hash(tmp_path):
    custom_plan(tmp_path)


def test_an_order_that_was_changed_since_is_refused(tmp_path):
    path = custom_plan(tmp_path)
    (tmp_path / "order.csv").write_text("0F0,0B0\n", encoding="utf-8")
    with pytest.raises(InputError, match="the order is not the one that was planned with: its SHA-256 is"):
        read_plan(path, MODEL)


def test_an_order_that_is_gone_is_refused(tmp_path):
    path = custom_plan(tmp_path)
    (tmp_path / "order.csv").unlink()
    with pytest.raises(InputError, match="there is no such file"):
        read_plan(path, MODEL)


def small_plan():
    rng = Random(5)
    plan = random_plan(rng, random_problem(rng, stages=2, chunks=1, micro_batches=4))
    return Outcome(
        problem=plan.problem,
        plan=plan,
        status=Status.FEASIBLE,
        stopped_by=StoppedBy.BUDGET,
        makespan_ms=40.0,
        lower_bound_ms=30.0,
        peak_memory_mb=(1.0, 2.0),
        bubble=Bubble(fill_drain=0.25, imbalance=0.0, recompute=0.5, communication=0.0),
    )


PLAN = small_plan()
MODEL = PLAN.problem.model


@pytest.fixture
def changed(tmp_path):
    """Write the small plan after a change of its document."""

    def write(change):
        document = json.loads(plan_to_json(PLAN))
        change(document)
        path = tmp_path / "plan.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    return write


def faults(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FileNote)
        with pytest.raises(InputError) as caught:
            read_plan(path, MODEL)
    assert caught.value.where == str(path)
    return caught.value.faults


REFUSALS = {
    "no plan": (lambda d: d.update(format="x"), "is no plan file: format must be 'sapp-ppb-plan' (got 'x')"),
    "model file": (
        lambda d: (d.clear(), d.update(layers_description=[])),
        "is a model file, not a plan file; the model comes first, then the plan",
    ),
    "newer": (
        lambda d: d.update(version=2),
        "has version 2, newer than 1, the newest known here; update sapp-ppb",
    ),
    "older": (lambda d: d.update(version=0), "version must be 1 (got 0)"),
    "true": (lambda d: d.update(version=True), "version must be 1 (got True)"),
    "no problem": (lambda d: d.pop("problem"), "problem is missing"),
    "problem a list": (lambda d: d.update(problem=[]), "problem must be an object (got [])"),
    "text for a number": (
        lambda d: d["problem"].update(stages="2"),
        "problem.stages must be a whole number of at least 1 (got '2')",
    ),
    "unknown schedule": (
        lambda d: d["problem"].update(schedule="2f2b"),
        f"problem.schedule must be one of {', '.join(ScheduleName)} (got '2f2b')",
    ),
    "negative limit": (
        lambda d: d["problem"].update(memory_limit_mb=-1),
        "problem.memory_limit_mb must be a number of at least 0 (got -1)",
    ),
    "negative in a list": (
        lambda d: d["problem"].update(memory_limit_mb=[1, -1]),
        "problem.memory_limit_mb[1] must be a number of at least 0 (got -1)",
    ),
    "group": (
        lambda d: d["problem"].update(micro_batch_group="last"),
        "problem.micro_batch_group must be a whole number of at least 1 or \"remainder-first\" (got 'last')",
    ),
    "speed of 0": (
        lambda d: d["problem"].update(stage_speed=[1, 0]),
        "stage-speed must be a number from 0.001 to 1,000, 1 for a device as measured (got 0)",
    ),
    "speed in words": (
        lambda d: d["problem"].update(stage_speed="fast"),
        "problem.stage_speed must be a number of at least 0 (got 'fast')",
    ),
    "too many speeds": (
        lambda d: d["problem"].update(stage_speed=[1, 1, 0.5]),
        "stage-speed must be one number or 2 of them (got 3)",
    ),
    "negative extra time": (
        lambda d: d["problem"].update(step_extra_ms=[1, -1]),
        "problem.step_extra_ms[1] must be a number of at least 0 (got -1)",
    ),
    "a device twice": (
        lambda d: d["outcome"].update(stage_order=[1, 1]),
        "outcome.stage_order must list every device from 0 to 1 once (got [1, 1])",
    ),
    "a device that is none": (
        lambda d: d["outcome"].update(stage_order=[0, 1, 2]),
        "outcome.stage_order must list every device from 0 to 1 once (got [0, 1, 2])",
    ),
    "an order of text": (
        lambda d: d["outcome"].update(stage_order=["0", 1]),
        "outcome.stage_order[0] must be a whole number of at least 0 (got '0')",
    ),
    "overlap factor": (
        lambda d: d["problem"].update(overlap_factor="all"),
        "problem.overlap_factor must be a number of at least 0 (got 'all')",
    ),
    "p2p mode": (
        lambda d: d["problem"].update(p2p_mode="late"),
        "problem.p2p_mode must be one of async, blocking (got 'late')",
    ),
    "flavour": (
        lambda d: d["problem"].update(flavour="jax"),
        "problem.flavour must be one of torch (got 'jax')",
    ),
    "order": (lambda d: d["problem"].update(order="o.csv"), "problem.order must be an object (got 'o.csv')"),
    "hash": (
        lambda d: d["problem"].update(order={"path": "o.csv", "sha256": "12"}),
        "problem.order.sha256 must be a SHA-256 of 64 hexadecimal digits (got '12')",
    ),
    "no counts": (lambda d: d.pop("counts"), "counts is missing, which a status of feasible needs"),
    "counts beside infeasible": (
        lambda d: d["outcome"].update(
            status="infeasible",
            infeasible={"stage": 0, "op": "0F0", "over_mb": 1, "smallest_limit_mb": 1, "remedies": []},
        ),
        "counts must be left out when the status is infeasible",
    ),
    "infeasible without why": (
        lambda d: (d["outcome"].update(status="infeasible"), d.pop("counts")),
        "outcome.infeasible is missing, which says why nothing fits",
    ),
    "unknown type": (
        lambda d: d["counts"].update(Dec={"selectve": [[1]]}),
        "counts['Dec'] knows no type 'selectve'; one of none, selective, comm, both, full",
    ),
    "flat matrix": (
        lambda d: d["counts"].update(Dec={"none": [1, 2]}),
        "counts['Dec'].none must be a list of lists of counts (got [1, 2])",
    ),
    "half a layer": (
        lambda d: d["counts"].update(Dec={"none": [[1, 0.5]]}),
        "counts['Dec'].none[0][1] must be a whole number of at least 0 (got 0.5)",
    ),
    "no makespan": (
        lambda d: d["outcome"].update(makespan_ms=None),
        "outcome.makespan_ms must be a number when there is a plan (got None)",
    ),
    "peaks": (
        lambda d: d["outcome"].update(peak_memory_mb=[1]),
        "outcome.peak_memory_mb must list 2 stages (got 1)",
    ),
    "mtp is no list": (
        lambda d: d.update(mtp="body0"),
        "mtp must be a list of names (got 'body0')",
    ),
    "mtp holds no name": (
        lambda d: d.update(mtp=["body0", 3]),
        "mtp[1] must be text that is not empty (got 3)",
    ),
    "mtp names no layer": (
        lambda d: d.update(mtp=["other"]),
        "mtp names 'other', which is no BODY layer of the model; it has "
        + ", ".join(layer.name for layer in MODEL.bodies),
    ),
    "huge": (
        lambda d: d["problem"].update(micro_batches=10**30),
        "problem.micro_batches must be a whole number of at least 1 (got an integer of more than 20 digits)",
    ),
}


@pytest.mark.parametrize(("change", "fault"), REFUSALS.values(), ids=REFUSALS.keys())
def test_one_clear_fault(changed, change, fault):
    assert faults(changed(change)) == (fault,)


def test_all_faults_are_raised_at_once(changed):
    def change(document):
        document["problem"]["stages"] = 0
        document["outcome"]["status"] = "best"
        del document["outcome"]["seed"]

    assert len(faults(changed(change))) == 3


def test_counts_that_do_not_fit_the_model_are_refused_with_the_file(changed):
    assert (
        "is unknown; the model's BODY layers are" in faults(changed(lambda d: d.update(counts={"X": {}})))[0]
    )


def test_a_problem_that_can_not_be_is_refused_with_the_file(changed):
    def change(document):
        document["problem"]["schedule"] = "gpipe"
        document["problem"]["interleave"] = 2
        document["problem"]["min_layers_per_cell"] = 0

    assert "gpipe: chunks must be 1 (got 2)" in faults(changed(change))[0]


def test_another_model_name_is_noted(changed):
    with pytest.warns(FileNote, match="was made for the model 'other', not 'random'"):
        read_plan(changed(lambda d: d.update(model="other")), MODEL)


def test_layers_of_multi_token_prediction_are_named_where_there_are_some():
    assert "mtp" not in json.loads(plan_to_json(PLAN))
    problem = with_mtp(PLAN.problem)
    outcome = replace(PLAN, problem=problem, plan=replace(PLAN.plan, problem=problem))
    assert json.loads(plan_to_json(outcome))["mtp"] == [problem.model.bodies[-1].name]


def test_a_model_that_marks_other_layers_is_noted(changed):
    names = [layer.name for layer in MODEL.bodies]
    with pytest.warns(FileNote, match=f"mtp names '{names[-1]}', and the model marks none; the model counts"):
        read = read_plan(changed(lambda d: d.update(mtp=names[-1:])), MODEL)
    assert read == PLAN
    # A file that names none speaks of none, and fits a model that marks some.
    marked = with_mtp(PLAN.problem).model
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_plan(changed(lambda d: None), marked).problem.model == marked


@pytest.mark.parametrize("section", ["problem", "outcome"])
def test_an_unknown_key_is_noted_with_the_nearest(changed, section):
    near = {"problem": ("stage", "stages"), "outcome": ("statu", "status")}[section]
    with pytest.warns(
        FileNote, match=f"'{near[0]}' is unknown and ignored; the nearest known key is {near[1]}"
    ):
        read_plan(changed(lambda d: d[section].update({near[0]: 1})), MODEL)


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
