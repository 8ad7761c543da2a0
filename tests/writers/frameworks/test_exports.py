"""Every form of a plan: told apart, checked by its framework, and read back on random plans."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from sapp_ppb.errors import InputError
from sapp_ppb.readers.config_plan import plan_of_config
from sapp_ppb.readers.frameworks.framework import framework_of, read_config
from sapp_ppb.targets import TARGETS
from sapp_ppb.targets.nearest import nearest
from sapp_ppb.writers.frameworks.exports import EXPORTS, export_named
from tests.strategies import plans


def test_every_framework_has_a_form_and_its_file():
    assert [name for name, form in EXPORTS.items() if form.target is not None] == list(TARGETS)
    assert len({form.file_name for form in EXPORTS.values()}) == len(EXPORTS)
    assert [name for name, form in EXPORTS.items() if form.into is None] == ["csv", "json"]


def test_an_unknown_form_is_refused_with_those_that_exist():
    with pytest.raises(
        InputError,
        match="'yaml' is unknown; one of mindformers, megatron, torchtitan, mindspeed, hyperparallel",
    ):
        export_named("yaml")


def told_as(name, text):
    """Name whose a text is told to be: flags that are all Megatron-LM's mean the same to MindSpeed."""
    own = ("num-layer-list", "pipeline-num", "noop-layers", "schedules-method", "per-pp-rank")
    return "megatron" if name == "mindspeed" and not any(flag in text for flag in own) else name


# torchtitan runs few of the micro-batch groups that are drawn.
@settings(suppress_health_check=[HealthCheck.filter_too_much])
@pytest.mark.parametrize("name", EXPORTS)
@given(plans())
def test_what_is_written_is_told_apart_and_read_back_as_the_same_plan(tmp_path_factory, name, plan):
    form = EXPORTS[name]
    if form.target is not None:
        near = nearest(plan, form.target)
        plan = plan if near is None else near.plan
    assume(not form.unsaid(plan))
    path = tmp_path_factory.mktemp("export") / form.file_name
    path.write_text(form.text(plan), encoding="utf-8")
    assert framework_of(path) == told_as(name, form.text(plan))
    problem = plan.problem
    config = read_config(
        path, name, layers=problem.model.body_count, micro_batches=problem.micro_batches, model=problem.model
    )
    assert config.broken == ()
    given_fields = {"micro_batches": problem.micro_batches, "schedule": problem.schedule_name}
    again = plan_of_config(
        config, problem.model, given_fields | {"micro_batch_group": problem.micro_batch_group}
    )
    assert np.array_equal(again.counts, plan.counts)


@pytest.mark.parametrize("name", TARGETS)
@given(plans())
def test_what_can_not_be_said_is_not_written(name, plan):
    form = EXPORTS[name]
    unsaid = form.unsaid(plan)
    assume(unsaid)
    with pytest.raises(InputError) as refused:
        form.text(plan)
    assert refused.value.faults == unsaid
