"""Plan files: what is no plan is refused with all its faults, and what is odd is noted."""

import json
import warnings
from dataclasses import replace

import pytest

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import FileNote
from sapp_ppb.fix import Fix, PlaceRule
from sapp_ppb.readers import read_plan
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.writers import plan_to_json
from tests.readers.plans.conftest import MODEL, PLAN, with_mtp
from tests.readers.refusals import faults_of


def faults(path):
    return faults_of(read_plan, path, MODEL)


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


def test_an_unknown_key_of_a_rule_of_places_is_noted_too(changed):
    """It was handed on to a rule, which knows no such thing, and ended in a traceback."""
    places = {"recompute": "full", "first": 2, "firsts": 1}
    with pytest.warns(FileNote, match="'firsts' is unknown and ignored; the nearest known key is first"):
        read = read_plan(changed(lambda d: d["problem"].update(fix={"places": places})), MODEL)
    assert read.problem.fix == Fix(places=PlaceRule(recompute=Recompute.FULL, first=2))
