"""``sapp-ppb plan``: plans in the words of a framework, and what those words cost."""

import json

from tests.cli.conftest import QUICK


def test_selective_beside_comm_is_never_printed_as_lists(model_file, run, tmp_path):
    model = model_file(memory_select_comm=44)
    run("plan", model, *QUICK, "-o", tmp_path)
    document = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    # Stage 0 holds both types, which MindFormers would count as two layers of BOTH.
    document["counts"] = {"Dec": {"none": [[3, 5]], "selective": [[1, 0]], "comm": [[1, 0]]}}
    (tmp_path / "mixed.json").write_text(json.dumps(document), encoding="utf-8")
    result = run("simulate", model, tmp_path / "mixed.json")
    stdout = result.stdout
    assert "the model is another" in result.stderr  # the peaks are not those that were planned
    assert "# SELECTIVE beside COMM in stage 0 chunk 0" in stdout
    assert "# plan with --target mindformers" in stdout
    assert "recompute: [[" not in stdout
    assert "offset: [[0, 0]]" in stdout  # 3 + 1 + 1 and 5, of 10 div 2


def test_the_target_keeps_selective_and_comm_apart(model_file, run):
    model = model_file(memory_select_comm=44)
    stdout = run("plan", model, *QUICK, "-mem", "1000", "--target", "mindformers").stdout
    assert "select_recompute: [[" in stdout


def test_a_plan_for_a_target_is_printed_in_its_words_with_what_that_costs(model_file, run):
    stdout = run("plan", model_file(), *QUICK, "-mem", "1300", "--target", "megatron").stdout
    assert "for Megatron-LM\n--pipeline-model-parallel-size 2" in stdout
    assert "MindFormers lists" not in stdout
    assert "Megatron-LM's limits" in stdout or "what Megatron-LM can not say costs nothing" in stdout
    assert "no plan that Megatron-LM can say within the limits is faster" in stdout


def test_what_a_target_costs_is_in_the_plan_file(model_file, run):
    document = json.loads(
        run("plan", model_file(), *QUICK, "-mem", "1300", "--target", "megatron", "--json").stdout
    )
    outcome = document["outcome"]
    assert outcome["without_target"]["makespan_ms"] <= outcome["makespan_ms"]
    assert outcome["without_target"]["lower_bound_ms"] <= outcome["lower_bound_ms"]
