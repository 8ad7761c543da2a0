"""``sapp-ppb check``: the price of a configuration, and what the planner would gain."""

import json

import pytest

from tests.cli.check.conftest import ALONE, CONFIGS, EVEN, layers_of


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


def test_the_same_words_print_the_same_document(config, model_file, run):
    path = config(EVEN.replace("Et*5|t*5L", "Et*7|t*3L"))
    words = ("check", path, "--model", model_file(ALONE), "-mem", "1500", "-t", "0.2", "--json")
    first, second = (json.loads(run(*words).stdout) for _ in range(2))
    for document in (first, second):
        del document["planner"]["plan"]["outcome"]["seconds"]
    assert first == second
