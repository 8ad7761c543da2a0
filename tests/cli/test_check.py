"""``sapp-ppb check``: rules, prices and gains, of real configurations and of broken ones."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import BODY, HEAD, TAIL

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
# BODY alone, so that steps can be computed by hand: 10 layers of 10 ms forward and 20 ms backward.
ALONE = [BODY]
EVEN = """--pipeline-model-parallel-size 2 \\
--pipeline-model-parallel-layout "Et*5|t*5L" \\
--num-layers 10 --micro-batch-size 1 --global-batch-size 4 --nnodes 1 --nproc-per-node 2
"""


def layers_of(count, mtp=0, **memory):
    """HEAD, so many layers with these types, layers of multi-token prediction, TAIL."""
    body = {key: value for key, value in BODY.items() if not key.startswith("memory_select")} | memory
    more = [body | {"name": "Mtp", "nb_layer": mtp, "mtp": True}] if mtp else []
    return [HEAD, body | {"nb_layer": count}, *more, TAIL]


@pytest.fixture
def config(tmp_path):
    def write(text, name="run.sh"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


# File, options beside it, exit code without and with a model, the model, and what is said.
BOTH = {"memory_both_comm_select": 30, "memory_select_rec": 45}
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


def test_an_even_pipeline_takes_what_1f1b_takes(config, model_file, run):
    words = ("check", config(EVEN), "--model", model_file(ALONE), "-mem", "1200", "--json", "-t", "0.2")
    result = run(*words)
    document = json.loads(result.stdout)
    # 5 layers a stage: (4 + 2 - 1) x 5 x (10 + 20) ms; 5 x 100 MB, and 2 and 1 micro-batches of 5 x 60 MB.
    assert document["price"]["makespan_ms"] == 750.0
    assert document["price"]["peak_memory_mb"] == [1100.0, 800.0]
    assert document["price"]["limit_mb"] == [1200.0, 1200.0]
    assert (document["planner"]["shorter"], document["planner"]["moved_layers"]) == (0.0, 0)
    assert result.exit_code == 0
    text = run(*words[:-3], "-t", "0.2").stdout
    assert "makespan      750.0 ms" in text
    assert "planner: nothing shorter was found; its plan of 750.0 ms is proven optimal" in text
    assert "to paste" not in text


def test_an_uneven_pipeline_is_told_what_it_would_gain(config, model_file, run):
    path = config(EVEN.replace("Et*5|t*5L", "Et*7|t*3L"))
    words = ("check", path, "--model", model_file(ALONE), "-t", "0.2")
    document = json.loads(run(*words, "--json").stdout)
    # Stage 0 works 4 x (70 + 140) ms and is idle once: its two forwards end at 140 ms, and the first
    # backward of stage 1 at 70 + 30 + 60 = 160.  The planner's 5 and 5 take 750, and 2 layers move.
    assert document["price"]["makespan_ms"] == 860.0
    page = (CONFIGS.parents[2] / "docs" / "frameworks.md").read_text(encoding="utf-8")
    shown = json.loads(page.split("```json\n")[1].split("```")[0])
    for part in ("price", "planner"):
        assert list(document[part]) == list(shown[part])
    planner = document["planner"]
    assert planner["shorter"] == pytest.approx(1 - 750 / 860)
    assert (planner["moved_layers"], planner["more_recomputed"]) == (2, 0)
    assert planner["plan"]["problem"]["target"] == "megatron"
    assert '"Et*5|t*5L"' in planner["text"]
    text = run(*words).stdout
    assert "planner: 750.0 ms, 12.8% shorter; proven optimal\n  moves 2 layers, recomputes as many" in text
    assert (
        '\nto paste:\n--pipeline-model-parallel-size 2 \\\n--pipeline-model-parallel-layout "Et*5|t*5L"'
        in text
    )


def test_a_limit_that_is_exceeded_is_exit_1_and_the_planner_says_what_fits(config, model_file, run):
    result = run("check", config(EVEN), "--model", model_file(ALONE), "-mem", "1000", "-t", "1")
    assert result.exit_code == 1
    assert "exceeds the memory limit" in result.stdout
    assert "over limit    stage 0 by 100.0 MB" in result.stdout
    assert "longer, and fits" in result.stdout
    assert "to paste" in result.stdout


def test_nothing_that_fits_is_said(config, model_file, run):
    result = run("check", config(EVEN), "--model", model_file(ALONE), "-mem", "300", "-t", "1")
    assert result.exit_code == 1
    assert "planner: no plan fits the memory" in result.stdout
    document = json.loads(
        run("check", config(EVEN), "--model", model_file(ALONE), "-mem", "300", "-t", "1", "--json").stdout
    )
    assert document["planner"]["shorter"] is None
    assert document["planner"]["plan"]["outcome"]["status"] == "infeasible"


def test_the_limit_of_the_file_counts_and_is_said(model_file, run):
    path = CONFIGS / "mindformers/pretrain_deepseek3_671b.yaml"
    words = ("check", path, "--model", model_file(layers_of(61, 1)), "--no-plan", "--json")
    result = run(*words)
    assert json.loads(result.stdout)["price"]["limit_mb"] == [56320.0] * 16
    assert "the memory limit is the file's; -mem gives another" in result.stderr
    other = run(*words, "-mem", "100")
    assert json.loads(other.stdout)["price"]["limit_mb"] == [100.0] * 16
    assert (other.exit_code, other.stderr) == (1, "")


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


def test_a_list_of_layers_is_planned_for_no_framework(config, model_file, run):
    rows = [f"{index},Dec,{index // 7},0,none" for index in range(10)]
    path = config("\n".join(["index,name,stage,chunk,recompute", *rows, ""]), "layers.csv")
    result = run("check", path, "--model", model_file(ALONE), "-mb", "4", "-t", "0.2", "--json")
    document = json.loads(result.stdout)
    assert (document["config"]["framework"], document["price"]["makespan_ms"]) == ("csv", 860.0)
    assert "target" not in document["planner"]["plan"]["problem"]
    assert document["planner"]["text"].startswith("index,name,stage,chunk,recompute\n0,Dec,0,0,none\n")


def test_what_is_to_be_pasted_into_python_is_python(config, model_file, run):
    uneven = [
        ["tok_embeddings", *(f"layers.{k}" for k in range(7))],
        ["layers.7", "layers.8", "layers.9", "norm"],
    ]
    uneven[1].append("output")
    settings = {
        "training.local_batch_size": 4,
        "parallelism.pipeline_parallel_degree": 2,
        "parallelism.pipeline_parallel_schedule": "1F1B",
        "parallelism.pipeline_parallel_microbatch_size": 1,
        "parallelism.module_fqns_per_model_part": uneven,
        "activation_checkpoint.mode": "none",
    }
    path = config("".join(f"config.{key} = {value!r}\n" for key, value in settings.items()), "job.py")
    result = run("check", path, "--model", model_file(ALONE), "-t", "0.2")
    assert "makespan      860.0 ms" in result.stdout
    assert "config.parallelism.pipeline_parallel_degree = 2" in result.stdout.split("to paste:\n")[1]


def test_what_the_frameworks_limits_cost_is_said(config, model_file, run):
    result = run("check", config(EVEN), "--model", model_file(ALONE), "-t", "0.5")
    # Both stages are equal and nothing is recomputed: no plan at all is faster than 750 ms.
    assert "what Megatron-LM can not say costs nothing: no plan at all is faster" in result.stdout


def test_a_framework_without_an_answer_says_why(model_file, run):
    path = CONFIGS / "torchtitan/debug_model.toml"
    result = run("check", path, "--model", model_file(layers_of(6)), "-t", "0.2")
    assert result.exit_code == 0
    assert "planner: no answer: " in result.stdout
    assert "torchtitan runs no pipeline on one stage" in result.stdout


def test_a_model_of_another_size_is_bad_input(config, model_file, run):
    result = run("check", config(EVEN), "--model", model_file(nb_layer=12))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "has 10 layers, and the model 'tiny' has 12 BODY layers" in result.stderr


def test_a_type_that_is_not_measured_is_bad_input_and_names_the_key(config, model_file, run):
    text = EVEN + "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
    result = run("check", config(text), "--model", model_file(memory_recompute=0))
    assert result.exit_code == 2
    assert "add memory_recompute in MB to this layer" in result.stderr


@pytest.mark.parametrize(
    ("name", "text", "words", "said"),
    [
        ("a.yaml", "parallel_config: [1\n", (), "the YAML is broken at line"),
        ("job.toml", "[parallelism\n", (), "the TOML is broken at line 1"),
        ("a.txt", "nothing of interest", (), "is no configuration that is known"),
        ("a.txt", "", (), "is no configuration that is known"),
        ("plan.json", '{"format": "sapp-ppb-plan"}', (), "is a plan file and no configuration"),
        ("model.json", '{"layers_description": []}', (), "is a model file and no configuration"),
        (
            "run.sh",
            EVEN,
            ("--from", "jax"),
            "--from: 'jax' is unknown; one of mindformers, megatron, torchtitan",
        ),
        ("run.sh", EVEN, ("--schedule", "auto"), "--schedule: auto goes with sapp-ppb plan"),
        ("run.sh", EVEN, ("-mem", "many"), "--memory-limit: 'many' is not a number of MB"),
    ],
)
def test_what_can_not_be_read_is_exit_2(name, text, words, said, config, run):
    result = run("check", config(text, name), *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_stages_of_another_split_are_refused(config, model_file, run):
    result = run("check", config(EVEN), "--model", model_file(ALONE), "-s", "4")
    assert result.exit_code == 2
    assert "has 2 stages, not 4; give --stages 2" in result.stderr


def test_the_same_words_print_the_same_document(config, model_file, run):
    path = config(EVEN.replace("Et*5|t*5L", "Et*7|t*3L"))
    words = ("check", path, "--model", model_file(ALONE), "-mem", "1500", "-t", "0.2", "--json")
    first, second = (json.loads(run(*words).stdout) for _ in range(2))
    for document in (first, second):
        del document["planner"]["plan"]["outcome"]["seconds"]
    assert first == second


def test_what_a_file_holds_steers_no_terminal(config, run):
    text = EVEN.replace("--num-layers 10", "--recompute-granularity $'half\x1b[31m' --num-layers 10")
    result = run("check", config(text))
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
