"""Models with special layers are planned, drawn, exported, and read back as they were."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from sapp_ppb.costs import Cost
from sapp_ppb.errors import FileNote
from sapp_ppb.estimation import TrainingSetup, estimate_transformer
from sapp_ppb.plan import Outcome, Plan, Status
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from sapp_ppb.readers import read_model, read_plan
from sapp_ppb.readers.frameworks.framework import read_config
from sapp_ppb.readers.frameworks.layer_list import read_layer_list
from sapp_ppb.readers.models.device_file import read_device
from sapp_ppb.readers.models.hf_config import read_hf_config
from sapp_ppb.report.memory_picture import draw_memory
from sapp_ppb.report.page import page_text
from sapp_ppb.report.summary import cell_text
from sapp_ppb.report.timeline_picture import draw_timeline
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator import simulate
from sapp_ppb.simulator.price import price
from sapp_ppb.targets.cell_types import plan_from_types
from sapp_ppb.writers import mindformers_lists, model_to_json, plan_to_json, write_model
from sapp_ppb.writers.frameworks.exports import EXPORTS
from sapp_ppb.writers.frameworks.layer_list import layers_csv_text, layers_json_text
from tests.reference import reference

ROOT = Path(__file__).parent.parent
DEEPSEEK, VISION = (
    read_model(ROOT / "examples" / f"{name}.json") for name in ("deepseek_v3", "vision_language")
)
SECONDS = 2.0


@cache
def planned(name: str, **given) -> Outcome:
    """Outcome of an example on a fixed budget."""
    model = {"deepseek": DEEPSEEK, "vision": VISION}[name]
    return plan_pipeline(Problem(model=model, **given), time_limit_s=SECONDS)


def deepseek(target: str | None = None) -> Outcome:
    return planned("deepseek", stages=16, micro_batches=64, memory_limit_mb=76_000, target=target)


def vision(schedule: ScheduleName | None = None, target: str | None = None) -> Outcome:
    return planned(
        "vision", stages=4, micro_batches=16, memory_limit_mb=24_000, schedule=schedule, target=target
    )


OUTCOMES = {
    "MTP and logits": deepseek,
    "MTP for Megatron-LM": lambda: deepseek("megatron"),
    "vision, tied": vision,
    "vision, tied on one stage": lambda: vision(ScheduleName.ZBV),
}
every_outcome = pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)


def plan_of(outcome: Outcome) -> Plan:
    assert outcome.plan is not None
    return outcome.plan


@every_outcome
def test_it_is_planned_and_holds_what_the_slow_simulator_says(outcome):
    plan, timeline = plan_of(outcome()), simulate(plan_of(outcome()))
    assert timeline.fits_memory
    assert timeline.peak_memory_mb == pytest.approx(reference(plan).peak_mb, rel=1e-9)
    assert timeline.makespan_ms == pytest.approx(reference(plan).makespan_ms, rel=1e-9)


@every_outcome
def test_it_is_drawn(outcome, tmp_path):
    timeline = simulate(plan_of(outcome()))
    for name, draw in (("timeline.png", draw_timeline), ("memory.svg", draw_memory)):
        draw(timeline, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 10_000
    page = page_text(outcome(), timeline)
    for stage in range(timeline.plan.problem.stages):
        assert cell_text(timeline.plan, stage, 0) in page


@every_outcome
def test_it_is_written_and_read_back(outcome, tmp_path):
    plan, problem = plan_of(outcome()), outcome().problem
    path = tmp_path / "plan.json"
    path.write_text(plan_to_json(outcome()), encoding="utf-8")
    assert read_plan(path, problem.model).plan == plan
    for name, text in (("layers.csv", layers_csv_text(plan)), ("layers.json", layers_json_text(plan))):
        (tmp_path / name).write_text(text, encoding="utf-8")
        types = read_layer_list(tmp_path / name).types
        assert types is not None
        assert plan_from_types(problem, types) == plan


@pytest.mark.parametrize(
    ("outcome", "to"),
    [(deepseek, "mindformers"), (deepseek, "megatron"), (vision, "mindformers"), (vision, "megatron"),
     (vision, "torchtitan")],
)  # fmt: skip
def test_it_is_exported_and_read_back_as_the_same_plan(outcome, to, tmp_path):
    plan = plan_of(outcome(target=to))
    path = tmp_path / EXPORTS[to].file_name
    path.write_text(EXPORTS[to].text(plan), encoding="utf-8")
    config = read_config(path, to)
    assert (config.broken, config.mtp_layers) == ((), plan.problem.model.mtp_count)
    assert config.types is not None
    assert plan_from_types(plan.problem, config.types) == plan


def test_torchtitan_is_not_told_of_layers_that_it_does_not_run():
    said = EXPORTS["torchtitan"].unsaid(plan_of(deepseek()))
    assert said[0].startswith("torchtitan runs no layers of multi-token prediction in a pipeline")


@pytest.mark.parametrize("name", ["deepseek_v3", "vision_language"])
def test_the_model_file_is_written_as_it_stands(name, tmp_path):
    path = ROOT / "examples" / f"{name}.json"
    assert model_to_json(read_model(path)) == path.read_text(encoding="utf-8")
    write_model(read_model(path), tmp_path / "model.json")
    assert read_model(tmp_path / "model.json") == read_model(path)


def test_deepseek_is_what_its_sizes_cost_and_the_gradient_of_its_logits():
    # docs/special-layers.md: costs hf --device h100 --dp 128 --ep 64 --seq 4096, and by hand the
    # gradient of 4,096 x 129,280 logits in fp32: 4 x 4,096 x 129,280 bytes are 2,020 MB.
    path = ROOT / "tests" / "data" / "hf_configs" / "deepseek_v3_config.json"
    with pytest.warns(FileNote, match="quantization_config is ignored"):
        config = read_hf_config(path, "deepseek_v3")
    setup = TrainingSetup(sequence_length=4096, data=128, expert=64, zero=1)
    layers = estimate_transformer(config, setup, read_device("h100")).model.layers
    assert DEEPSEEK.estimated == frozenset(Cost)
    assert DEEPSEEK.layers == (*layers[:-1], replace(layers[-1], transient_mb=4 * 4096 * 129_280 / 2**20))


def test_frameworks_are_told_of_the_mtp_layer_apart():
    assert 'mL"' in EXPORTS["megatron"].text(plan_of(deepseek("megatron")))  # the MTP layer, then the loss
    assert "num_layers: 61\n    mtp_depth: 1\n" in EXPORTS["mindformers"].text(
        plan_of(deepseek("mindformers"))
    )


def test_mindformers_counts_the_mtp_layer_in_its_last_cell():
    plan = plan_of(deepseek())
    # 62 layers on 16 stages: 62 div 16 = 3 and each offset on top.
    assert sum(mindformers_lists(plan).offset[0]) == 62 - 3 * 16
    assert cell_text(plan, 15, 0).endswith("mtp 1 + tail")


def test_the_logits_are_on_top_of_what_lives_on_the_last_stage():
    plan = plan_of(deepseek())
    # 1F1B keeps one micro-batch alive on the last stage, from its F to its B; both need 2,020 MB.
    costs, peak = price(plan), simulate(plan).peaks[-1]
    assert peak.memory_mb == costs.parameter_mb[-1] + costs.activation_mb[-1] + 2020
    assert str(peak.op) == "15F0"


def test_what_the_output_shares_is_held_once_where_the_chain_turns_back():
    # 4,096 MB of tokens and the same of output: once on stage 0 of a V, on both ends of a line.
    line, turned = (price(plan_of(outcome)).parameter_mb for outcome in (vision(), vision(ScheduleName.ZBV)))
    untied = replace(VISION, layers=tuple(replace(layer, tied_to=None) for layer in VISION.layers))
    for outcome, held, saved in ((vision(), line, 0.0), (vision(ScheduleName.ZBV), turned, 4096.0)):
        apart = replace(plan_of(outcome), problem=outcome.problem.changed(model=untied))
        assert price(apart).parameter_mb.sum() - held.sum() == saved
        by_stage = np.subtract(simulate(apart).peak_memory_mb, simulate(plan_of(outcome)).peak_memory_mb)
        assert by_stage.tolist() == [saved, 0.0, 0.0, 0.0]


def test_kinds_that_take_turns_are_named_together():
    assert [layer.name for layer in VISION.bodies[:4]] == ["vision", "projector", "mamba.0", "mlp.1"]
    text = " + ".join(cell_text(plan_of(vision()), stage, 0) for stage in range(4))
    assert "mamba.0" not in text
    assert {"vision", "projector", "mamba", "mlp", "attention"} <= set(text.split())


def test_a_vision_encoder_and_a_hybrid_model_are_planned_with_a_proof():
    # 36 entries that take turns and an encoder: 38 kinds of layers to place, 61 layers in all.
    assert (len(VISION.bodies), VISION.body_count) == (38, 61)
    assert vision().status is Status.OPTIMAL
