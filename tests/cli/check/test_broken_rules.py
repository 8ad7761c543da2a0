"""``sapp-ppb check``: rules that are broken, and values that are not known."""

import json

import pytest

from tests.cli.check.conftest import ALONE, EVEN

MINDFORMERS = """parallel_config:
  pipeline_stage: 2
  micro_batch_num: 4
model:
  model_config:
    num_layers: 10
    offset: [1, 0]
"""
TORCHTITAN = """[training]
local_batch_size = 4
[parallelism]
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "1F1B"
pipeline_parallel_microbatch_size = 1
module_fqns_per_model_part = [["tok_embeddings", "layers.0"], ["layers.0", "norm", "output"]]
[activation_checkpoint]
mode = "none"
"""
BROKEN = {
    "offsets that do not sum": ("a.yaml", MINDFORMERS, "offset", "10"),
    "a scheduler that is none": (
        "a.yaml",
        MINDFORMERS.replace("[1, 0]", "[0, 0]")
        + "parallel:\n  pipeline_config:\n    pipeline_interleave: true\n    pipeline_scheduler: fast\n",
        "pipeline_scheduler",
        "fast",
    ),
    "fewer micro-batches than stages": (
        "a.yaml",
        MINDFORMERS.replace("[1, 0]", "0").replace("micro_batch_num: 4", "micro_batch_num: 1"),
        "micro_batch_num",
        "1",
    ),
    "dropped layers": (
        "run.sh",
        EVEN.replace("t*5|t*5L", "t*5|t*4L"),
        "--pipeline-model-parallel-layout",
        "9",
    ),
    "multi-token prediction in an earlier chunk": (
        "run.sh",
        EVEN.replace("Et*5|t*5L", "Et*5m|t*5L") + "--mtp-num-layers 1",
        "--pipeline-model-parallel-layout",
        "m",
    ),
    "chunks that do not divide": (
        "run.sh",
        EVEN.replace(
            '--pipeline-model-parallel-layout "Et*5|t*5L"', "--num-layers-per-virtual-pipeline-stage 4"
        ),
        "--num-layers-per-virtual-pipeline-stage",
        "",
    ),
    "a layer twice": ("job.toml", TORCHTITAN, "module_fqns_per_model_part", "layers.0"),
    "a checkpoint mode that is none": (
        "job.toml",
        TORCHTITAN.replace('mode = "none"', 'mode = "half"').replace(
            '["layers.0", "norm"', '["layers.1", "norm"'
        ),
        "mode",
        "half",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_rule_is_exit_1_and_names_its_key(kind, config, model_file, run):
    name, text, key, found = BROKEN[kind]
    path = config(text, name)
    result = run("check", path)
    assert (result.exit_code, result.stderr) == (1, "")
    broken = result.stdout.split("rules broken\n")[1].split("\n\n")[0]
    assert key in broken
    assert found in broken
    document = json.loads(run("check", path, "--json").stdout)
    assert document["ok"] is False
    assert key in " ".join(rule["key"] for rule in document["broken"])
    # With a model it is still a broken rule, priced or not, and no fault of the file's form.
    assert run("check", path, "--model", model_file(ALONE), "--no-plan").exit_code == 1


def test_micro_batches_that_the_schedule_refuses_break_a_rule(config, model_file, run):
    text = EVEN.replace("Et*5|t*5L", "Et*3|t*2|t*3|t*2L")
    result = run("check", config(text), "--model", model_file(ALONE), "-mb", "3", "--no-plan")
    assert result.exit_code == 1
    # 3 micro-batches in groups of 2 leave one.
    said = result.stdout.split("rules broken\n")[1]
    assert "--microbatch-group-size-per-virtual-pipeline-stage: must leave no micro-batches over" in said
    assert "not priced: there is no order of the ops for these sizes" in said


def test_a_schedule_that_does_not_exist_for_the_sizes_breaks_a_rule(config, model_file, run):
    words = ("--model", model_file(ALONE), "--schedule", "zbv", "--no-plan")
    result = run("check", config(EVEN), *words)
    assert result.exit_code == 1
    assert "schedule: zbv" in result.stdout.split("rules broken\n")[1]


def test_an_option_that_the_framework_refuses_breaks_a_rule(config, model_file, run):
    words = ("--model", model_file(ALONE), "--no-plan", "--schedule", "gpipe")
    result = run("check", config(EVEN), *words)
    assert result.exit_code == 1
    assert "--schedule: Megatron-LM has no schedule gpipe" in result.stdout
    assert "makespan" in result.stdout


def test_an_unknown_value_is_exit_1_until_it_is_given(config, model_file, run):
    path = config(EVEN.replace("--global-batch-size 4", "--global-batch-size ${GBS}"))
    result = run("check", path)
    assert result.exit_code == 1
    assert "--global-batch-size" in result.stdout.split("not known\n")[1]
    assert run("check", path, "-mb", "4").exit_code == 0
    priced = run("check", path, "--model", model_file(ALONE), "--no-plan")
    assert priced.exit_code == 1
    assert "not priced: does not say the number of micro-batches; give --micro-batches" in priced.stdout
    assert "makespan" in run("check", path, "--model", model_file(ALONE), "-mb", "4", "--no-plan").stdout


def test_an_unknown_size_can_not_be_given(config, model_file, run):
    path = config(EVEN.replace("--pipeline-model-parallel-size 2", "--pipeline-model-parallel-size ${PP}"))
    result = run("check", path, "--model", model_file(ALONE), "-mb", "4")
    assert result.exit_code == 1
    assert "--pipeline-model-parallel-size" in result.stdout.split("not known\n")[1]
    assert "not priced: does not say the number of stages; write it into the file" in result.stdout


def test_a_default_of_the_shell_is_the_value(config, run):
    text = EVEN.replace("--pipeline-model-parallel-size 2", "--pipeline-model-parallel-size ${PP:-2}")
    assert run("check", config(text)).exit_code == 0


def test_what_a_file_holds_steers_no_terminal(config, run):
    text = EVEN.replace("--num-layers 10", "--recompute-granularity $'half\x1b[31m' --num-layers 10")
    result = run("check", config(text))
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
