"""The plan file as text: its keys, their order, and a line for each row of a matrix."""

import json
from dataclasses import replace

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.fix import Fix
from sapp_ppb.plan import Bubble, Outcome, Shortage, Status, StoppedBy, plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Flavour, P2PMode, ScheduleName
from sapp_ppb.writers import plan_to_json, write_plan


def problem_of(**more):
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=5,
        forward_ms=1,
        activation_mb={Recompute.NONE: 10, Recompute.FULL: 1},
    )
    values = {"stages": 2, "micro_batches": 4, "memory_limit_mb": 560.0} | more
    return Problem(model=Model(name="tiny", layers=(body,)), **values)


def outcome_of(problem):
    return Outcome(
        problem=problem,
        plan=plan_from_matrices(problem, {"Dec": {"none": [[1, 2]], "full": [[2, 0]]}}),
        status=Status.FEASIBLE,
        stopped_by=StoppedBy.BUDGET,
        makespan_ms=40.0,
        lower_bound_ms=30.0,
        peak_memory_mb=(24.0, 20.5),
        bubble=Bubble(fill_drain=0.25, imbalance=0.0, recompute=0.5, communication=0.0),
        seconds=1.5,
        seed=7,
    )


def test_the_text_is_this():
    assert plan_to_json(outcome_of(problem_of())) == (
        "{\n"
        '  "format": "sapp-ppb-plan",\n'
        '  "version": 1,\n'
        '  "model": "tiny",\n'
        '  "problem": {\n'
        '    "stages": 2,\n'
        '    "interleave": 1,\n'
        '    "micro_batches": 4,\n'
        '    "schedule": "1f1b",\n'
        '    "memory_limit_mb": 560,\n'
        '    "constant_memory_mb": 0,\n'
        '    "p2p_ms": 0.0,\n'
        '    "min_layers_per_cell": 1\n'
        "  },\n"
        '  "counts": {\n'
        '    "Dec": {\n'
        '      "none": [\n'
        "        [1, 2]\n"
        "      ],\n"
        '      "full": [\n'
        "        [2, 0]\n"
        "      ]\n"
        "    }\n"
        "  },\n"
        '  "outcome": {\n'
        '    "status": "feasible",\n'
        '    "makespan_ms": 40.0,\n'
        '    "lower_bound_ms": 30.0,\n'
        '    "gap": 0.25,\n'  # (40 - 30) / 40
        '    "stopped_by": "budget",\n'
        '    "seconds": 1.5,\n'
        '    "seed": 7,\n'
        '    "peak_memory_mb": [24.0, 20.5],\n'
        '    "bubble": {\n'
        '      "total": 0.75,\n'
        '      "fill_drain": 0.25,\n'
        '      "imbalance": 0.0,\n'
        '      "recompute": 0.5,\n'
        '      "communication": 0.0\n'
        "    }\n"
        "  }\n"
        "}\n"
    )


def test_seldom_keys_are_written_only_when_given():
    usual = json.loads(plan_to_json(outcome_of(problem_of())))["problem"]
    given = json.loads(plan_to_json(outcome_of(problem_of(target="mindformers"))))["problem"]
    assert set(given) - set(usual) == {"target"}


def test_types_and_margin_are_written_where_they_are_not_the_default():
    every = problem_of(recompute=tuple(Recompute), memory_margin="0%")
    assert plan_to_json(outcome_of(every)) == plan_to_json(outcome_of(problem_of()))
    narrow = problem_of(recompute=(Recompute.FULL, Recompute.NONE), memory_margin=60.0)
    given = json.loads(plan_to_json(outcome_of(narrow)))["problem"]
    assert (given["recompute"], given["memory_margin"]) == (["none", "full"], 60)
    share = json.loads(plan_to_json(outcome_of(problem_of(memory_margin=" 5.0 %"))))["problem"]
    assert share["memory_margin"] == "5%"


def test_what_is_fixed_is_laid_out_by_chunk_and_stage():
    problem = problem_of(stages=2)
    layers = problem.model.body_count
    fixed = replace(problem, fix=Fix(layers=(1, layers - 1)))
    assert json.loads(plan_to_json(outcome_of(fixed)))["problem"]["fix"] == {"layers": [[1, layers - 1]]}


def test_a_limit_on_types_and_a_working_set_are_written_where_they_are_given():
    usual = json.loads(plan_to_json(outcome_of(problem_of())))["problem"]
    given = json.loads(
        plan_to_json(outcome_of(problem_of(max_recompute_types=0, recompute_working_set=True)))
    )
    assert set(given["problem"]) - set(usual) == {"max_recompute_types", "recompute_working_set"}
    assert given["problem"]["max_recompute_types"] == 0
    assert given["problem"]["recompute_working_set"] is True


def test_ways_of_running_are_written_where_they_are_not_the_default():
    more = {"p2p_mode": P2PMode.BLOCKING, "flavour": Flavour.TORCH, "sequence_chunks": 2}
    given = json.loads(plan_to_json(outcome_of(problem_of(schedule=ScheduleName.SEQ1F1B, **more))))["problem"]
    assert {key: given[key] for key in more} == {
        "p2p_mode": "blocking",
        "flavour": "torch",
        "sequence_chunks": 2,
    }
    assert "overlap_factor" not in given
    assert "order" not in given


def test_limits_and_links_can_be_lists_and_no_limit_is_null():
    listed = json.loads(plan_to_json(outcome_of(problem_of(memory_limit_mb=(560, 570.5), stages=2))))
    assert listed["problem"]["memory_limit_mb"] == [560, 570.5]
    none = json.loads(plan_to_json(outcome_of(problem_of(memory_limit_mb=None))))
    assert none["problem"]["memory_limit_mb"] is None


def test_an_infeasible_outcome_has_no_counts_and_says_why():
    shortage = Shortage(
        stage=1,
        op="1F3",
        over_mb=2.5,
        smallest_limit_mb=12.5,
        remedies=(("memory_limit_mb", 12.5), ("type", "full")),
    )
    outcome = Outcome(
        problem=problem_of(),
        plan=None,
        status=Status.INFEASIBLE,
        stopped_by=StoppedBy.PROOF,
        shortage=shortage,
    )
    document = json.loads(plan_to_json(outcome))
    assert "counts" not in document
    said = document["outcome"]
    assert (said["makespan_ms"], said["gap"], said["bubble"]) == (None, None, None)
    assert said["infeasible"] == {
        "stage": 1,
        "op": "1F3",
        "over_mb": 2.5,
        "smallest_limit_mb": 12.5,
        "remedies": [{"change": "memory_limit_mb", "value": 12.5}, {"change": "type", "value": "full"}],
    }


def test_a_file_that_exists_is_replaced_only_by_force(tmp_path):
    path = tmp_path / "new" / "plan.json"
    outcome = outcome_of(problem_of())
    write_plan(outcome, path)
    with pytest.raises(InputError, match="--force"):
        write_plan(outcome, path)
    write_plan(outcome, path, force=True)
    assert path.read_text(encoding="utf-8") == plan_to_json(outcome)


def test_speeds_extra_times_and_the_order_of_stages_are_written_where_they_are_given():
    problem = problem_of(stage_speed=(1, 0.5), step_extra_ms=(0, 7))
    outcome = replace(outcome_of(problem), step_ms=43.0, stage_order=(1, 0))
    given = json.loads(plan_to_json(outcome))
    assert (given["problem"]["stage_speed"], given["problem"]["step_extra_ms"]) == ([1.0, 0.5], [0.0, 7.0])
    assert (given["outcome"]["makespan_ms"], given["outcome"]["step_ms"]) == (40.0, 43.0)
    assert given["outcome"]["gap"] == pytest.approx(13 / 43)  # (43 - 30) / 43
    assert given["outcome"]["stage_order"] == [1, 0]
    usual = problem_of(stage_speed=(1, 1), step_extra_ms=(0, 0))
    assert plan_to_json(outcome_of(usual)) == plan_to_json(outcome_of(problem_of()))
