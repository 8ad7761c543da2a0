"""``sapp-ppb check``: rules and prices of the frameworks' own configurations."""

import json

import pytest

from tests.cli.check.conftest import CONFIGS, layers_of

BOTH = {"memory_both_comm_select": 30, "memory_select_rec": 45}
# File, options beside it, exit code without and with a model, the model, and what is said.
REAL = {
    "mindformers/pretrain_deepseek3_671b.yaml": (
        (),
        (0, 0),
        layers_of(61, 1),
        "32 micro-batches, 1f1b, 62 layers, 1 of them for multi-token prediction, a limit of 56,320 MB",
    ),
    "mindformers/finetune_llama3_1_70b.yaml": (
        (),
        (0, 0),
        layers_of(80, **BOTH),
        "8 stages, 256 micro-batches",
    ),
    "mindformers/finetune_qwen2_5_32b_8k.yaml": (
        (),
        (0, 0),
        layers_of(64, **BOTH),
        "2 stages, 128 micro-batches",
    ),
    "mindformers/finetune_telechat_115b.yaml": (
        (),
        (0, 0),
        layers_of(96, **BOTH),
        "8 stages, 3 chunks a stage, 8 micro-batches",
    ),
    "megatron/deepseekv3_proxy_pp4_model_config.yaml": (
        ("-mb", "64"),
        (1, 0),
        layers_of(14, 1),
        "4 stages, 2 chunks a stage, unknown micro-batches, interleaved, 15 layers",
    ),
    "megatron/uneven_pipeline_model_config.yaml": (
        ("-mb", "8"),
        (1, 0),
        layers_of(12),
        "4 stages, unknown micro-batches, 1f1b, 12 layers",
    ),
    "torchtitan/debug_model.toml": ((), (1, 0), layers_of(6), "1 stage, 1 micro-batch, 1f1b"),
    "torchtitan/deepseek_v3_671b.toml": ((), (1, 0), layers_of(61, **BOTH), "1 stage, 1 micro-batch, 1f1b"),
}


@pytest.mark.parametrize("name", REAL)
def test_real_configurations_break_no_rule(name, run):
    _, (code, _), _, said = REAL[name]
    result = run("check", CONFIGS / name)
    assert said in result.stdout
    assert "rules broken" not in result.stdout
    assert ("not known" in result.stdout) is (code == 1)
    assert (result.exit_code, result.stderr) == (code, "")


@pytest.mark.parametrize("name", REAL)
def test_real_configurations_are_priced(name, run, model_file):
    options, (_, code), layers, _ = REAL[name]
    words = ("--model", model_file(layers), *options, "--no-plan")
    result = run("check", CONFIGS / name, *words)
    assert result.exit_code == code, result.stderr
    assert "makespan " in result.stdout
    assert "not known" not in result.stdout
    document = json.loads(run("check", CONFIGS / name, *words, "--json").stdout)
    assert (document["ok"], document["broken"], document["planner"]) == (True, [], None)
    assert document["price"]["fits"] is True
    # The counts of the file are those of the model, and each has one place.
    counts = document["config"]["counts"]
    assert sum(sum(map(sum, matrix)) for matrix in counts.values()) == sum(
        layer["nb_layer"] for layer in layers if layer["type"] == "BODY"
    )
