"""What is written for DeepSpeed is what it would run, and a file keeps everything else."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given

from sapp_ppb.errors import InputError
from sapp_ppb.readers.frameworks.deepspeed_config import read_deepspeed
from sapp_ppb.targets.cell_types import plan_from_types
from sapp_ppb.targets.deepspeed import DEEPSPEED, entries_beside
from sapp_ppb.writers.frameworks.deepspeed import deepspeed_into, deepspeed_text
from tests.pages import DOCS, shown
from tests.parts_plans import FULL, NONE, deepspeed_plans, plan_along

PAGE = DOCS / "frameworks" / "deepspeed.md"


def small_plan(kind=FULL):
    return plan_along([8], [[kind] * size for size in (3, 2, 2, 1)], stages=4, micro_batches=8)


def assert_same(config, plan):
    problem = plan.problem
    assert (config.broken, config.unknown) == ((), ())
    assert (config.stages, config.interleave, config.micro_batches) == (
        problem.stages,
        1,
        problem.micro_batches,
    )
    assert config.schedule == problem.schedule_name
    assert config.layers == problem.model.body_count
    assert plan_from_types(problem, config.types) == plan


@given(deepspeed_plans())
def test_what_is_written_is_read_as_the_same_plan(tmp_path_factory, plan):
    assert DEEPSPEED.unsaid(plan) == ()
    path = tmp_path_factory.mktemp("deepspeed") / "plan.py"
    path.write_text(deepspeed_text(plan))
    assert_same(read_deepspeed(path), plan)
    assert_same(read_deepspeed(path, plan.problem.model.body_count), plan)


@given(deepspeed_plans())
def test_a_file_says_the_plan_and_keeps_the_rest(tmp_path_factory, plan):
    before = "# mine\r\n" + deepspeed_text(small_plan()).replace("\n", "\r\n")
    after = deepspeed_into(before, plan, "model.py")
    path = tmp_path_factory.mktemp("deepspeed") / "model.py"
    path.write_text(after, newline="")
    assert_same(read_deepspeed(path), plan)
    assert after.replace("\r\n", "\n") == "# mine\n" + deepspeed_text(plan)
    assert "\n" not in after.replace("\r\n", "")


class _Module:
    """What the class that is written takes from DeepSpeed's PipelineModule."""

    def __init__(self, layers, num_stages, activation_checkpoint_interval=0, stage=0):
        self._layer_specs, self.num_stages = list(layers), num_stages
        self.interval, self.global_rank = activation_checkpoint_interval, stage
        self._topo = SimpleNamespace(get_coord=lambda rank: SimpleNamespace(pipe=rank))
        self._partition_layers(method="parameters")

    def _partition_layers(self, method):
        raise NotImplementedError(method)

    def _set_bounds(self, start=None, stop=None):
        self.held = self._layer_specs[start:stop]


@given(deepspeed_plans())
def test_the_class_that_is_written_builds_the_layers_of_its_stage(plan):
    fake = ModuleType("deepspeed.pipe")
    fake.PipelineModule = _Module  # type: ignore[attr-defined]
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "deepspeed", ModuleType("deepspeed"))
        patch.setitem(sys.modules, "deepspeed.pipe", fake)
        exec(deepspeed_text(plan), names)
    before, behind = entries_beside(plan.problem)
    layers = [f"layer {index}" for index in range(plan.problem.model.body_count)]
    specs = [f"before {index}" for index in range(before)] + layers
    specs += [f"behind {index}" for index in range(behind)]
    built = [names["PlannedPipelineModule"](specs, stage=stage) for stage in range(plan.problem.stages)]
    assert [spec for module in built for spec in module.held] == specs
    held = [sum(spec.startswith("layer") for spec in module.held) for module in built]
    assert held == plan.layers_per_cell.tolist()
    assert {module.num_stages for module in built} == {plan.problem.stages}
    assert {module.interval for module in built} == {int(plan.counts[:, FULL].any())}
    with pytest.raises(ValueError, match="PARTS is for"):
        names["PlannedPipelineModule"]([*specs, "one more"], stage=0)


@pytest.mark.parametrize(
    ("text", "words"),
    [("PARTS = [0", "the Python is broken"), ("PARTS = [0, 3]\n", "gives entries_before, .* nowhere")],
)
def test_what_can_not_be_edited_is_refused(text, words):
    with pytest.raises(InputError, match=words):
        deepspeed_into(text, small_plan(), "model.py")


def test_a_plan_that_can_not_be_said_is_refused_with_the_reason():
    plan = plan_along([4], [[FULL, NONE], [NONE, NONE]], stages=2)
    for write in (deepspeed_text, lambda plan: deepspeed_into("PARTS = 1", plan, "model.py")):
        with pytest.raises(InputError, match="one activation_checkpoint_interval holds for all stages"):
            write(plan)


def test_the_page_shows_what_is_written():
    assert deepspeed_text(small_plan()) in shown(PAGE, "python")
