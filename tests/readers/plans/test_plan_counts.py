"""A plan file without its model: names, counts, and which layers are of multi-token prediction."""

import json

import pytest
from hypothesis import given

from sapp_ppb.costs import LayerKind, LayerStrategy, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Outcome, Status, StoppedBy, plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.readers.plans.plan_counts import bodies_alone, read_plan_counts
from sapp_ppb.writers import plan_to_json
from tests.strategies import plans


def written(plan, folder):
    outcome = Outcome(
        problem=plan.problem,
        plan=plan,
        status=Status.FEASIBLE,
        stopped_by=StoppedBy.BUDGET,
        makespan_ms=1.0,
        lower_bound_ms=None,
        peak_memory_mb=(0.0,) * plan.problem.stages,
        bubble=None,
    )
    path = folder / "plan.json"
    path.write_text(plan_to_json(outcome), encoding="utf-8")
    return path


def by_label(plan):
    """Layers of every type in use; a strategy that no layer is under is not known without the model."""
    types = plan.problem.model.types
    return {r.label: plan.counts[:, r].tolist() for r in types if plan.counts[:, r].any()}


@given(plans())
def test_the_counts_of_any_plan_are_read_without_its_model(tmp_path_factory, plan):
    read = read_plan_counts(written(plan, tmp_path_factory.mktemp("plan")))
    assert by_label(read) == by_label(plan)
    assert [layer.name for layer in read.problem.model.bodies] == [
        layer.name for layer in plan.problem.model.bodies
    ]
    assert read.problem.order == plan.problem.order


@given(plans())
def test_without_its_ends_a_plan_has_body_layers_only(tmp_path_factory, plan):
    bare = bodies_alone(read_plan_counts(written(plan, tmp_path_factory.mktemp("plan"))))
    assert bare.problem.model.heads == bare.problem.model.tails == ()
    assert by_label(bare) == by_label(plan)


def test_layers_that_the_file_names_are_of_multi_token_prediction(tmp_path):
    document = {
        "format": "sapp-ppb-plan",
        "version": 1,
        "model": "tiny",
        "mtp": ["Mtp"],
        "problem": {
            "stages": 2,
            "interleave": 1,
            "micro_batches": 4,
            "schedule": "1f1b",
            "memory_limit_mb": None,
            "constant_memory_mb": 0,
            "p2p_ms": 0,
            "min_layers_per_cell": 1,
        },
        "counts": {"Dec": {"full": [[2, 1]]}, "Mtp": {"none": [[0, 1]]}},
        "outcome": {
            "status": "feasible",
            "makespan_ms": 1,
            "lower_bound_ms": None,
            "stopped_by": "budget",
            "seconds": 0,
            "seed": 0,
            "peak_memory_mb": [0, 0],
            "bubble": None,
        },
    }
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    model = read_plan_counts(path).problem.model
    assert [(layer.name, layer.is_mtp) for layer in model.bodies] == [("Dec", False), ("Mtp", True)]
    # More recompute holds less, so that a plan is never led to less recompute by made-up costs.
    held = [model.bodies[0].activation(recompute) for recompute in Recompute]
    assert held == sorted(held, reverse=True)
    path.write_text(json.dumps(document | {"mtp": ["Dec"]}), encoding="utf-8")
    with pytest.raises(InputError, match="'Dec' is for multi-token prediction and must come after 'Mtp'"):
        read_plan_counts(path)


def test_a_file_without_layers_is_refused(tmp_path):
    path = tmp_path / "plan.json"
    for text in ("[]", "{}", '{"counts": {"Dec": {"full": [[0]]}}}', '{"counts": [1]}', '{"mtp": 3}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="holds no layers; give a plan file that has a plan"):
            read_plan_counts(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"layers_description": []}', "is a model file, not a plan file"),
        ("torchrun x.py", "is no JSON; give a plan"),
    ],
)
def test_another_file_is_refused_with_what_to_give(tmp_path, text, said):
    (tmp_path / "other").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_plan_counts(tmp_path / "other")


def test_a_strategy_that_is_allowed_and_not_in_use_is_one(tmp_path):
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=4,
        forward_ms=1,
        activation_mb={Recompute.NONE: 9},
        strategies=[LayerStrategy(name="swap", backward_ms=3, activation_mb=1)],
    )
    model = Model(name="tiny", layers=(body,))
    problem = Problem(
        model=model, stages=2, micro_batches=4, recompute=(Recompute.NONE, model.type_named("swap"))
    )
    read = read_plan_counts(written(plan_from_matrices(problem, {"Dec": {"none": [[2, 2]]}}), tmp_path))
    assert [r.label for r in read.problem.recompute or ()] == ["none", "swap"]
    assert read.strategies == ()


def test_a_name_that_can_be_no_type_is_refused(tmp_path):
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=1)
    problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    path = written(plan_from_matrices(problem, {"Dec": {"none": [[2, 2]]}}), tmp_path)
    path.write_text(path.read_text().replace('"none"', '"a,b"'))
    with pytest.raises(InputError, match="knows no type 'a,b'; one of none, selective, comm, both, full"):
        read_plan_counts(path)
