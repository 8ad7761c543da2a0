"""Strategies on the command line: from a model file to a plan file and back."""

import json
from pathlib import Path

import pytest

from sapp_ppb.readers import read_model
from tests.cli.conftest import BODY

SWAP = {"name": "swap", "memory_activation": 10, "backward_time": 21}
QUICK = ("-s", "2", "-mb", "4", "-mem", "1200", "-t", "0.3")
EXAMPLE = Path(__file__).parents[2] / "examples" / "swap.json"


@pytest.fixture
def swap_file(model_file):
    return model_file(strategies=[SWAP])


def test_a_plan_with_a_strategy_is_written_read_and_timed(swap_file, run, tmp_path):
    planned = run("plan", swap_file, *QUICK, "-o", tmp_path / "out")
    assert planned.exit_code == 0, planned.stderr
    assert " swap)" in planned.stdout
    assert "MindFormers has none for swap" in planned.stdout
    written = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert "swap" in written["counts"]["Dec"]
    timed = run("simulate", swap_file, tmp_path / "out" / "plan.json", "--json")
    assert timed.exit_code == 0, timed.stderr
    again = json.loads(timed.stdout)
    assert (again["counts"], again["outcome"]["makespan_ms"]) == (
        written["counts"],
        written["outcome"]["makespan_ms"],
    )
    compared = run("compare", swap_file, tmp_path / "out" / "plan.json", *QUICK)
    assert compared.exit_code == 0, compared.stderr
    assert compared.stdout.count(" swap\n") == 2  # the planner's row and the plan's


def test_a_model_without_the_strategy_does_not_read_the_plan(swap_file, model_file, run, tmp_path):
    assert run("plan", swap_file, *QUICK, "-o", tmp_path / "out").exit_code == 0
    refused = run("simulate", model_file(), tmp_path / "out" / "plan.json")
    assert refused.exit_code == 2
    said = " ".join(refused.stderr.split())
    assert "counts['Dec'] knows no type 'swap'; one of none, selective, comm, both, full" in said
    assert "Traceback" not in refused.stderr


def test_strategies_are_chosen_by_name(swap_file, run):
    with_it = json.loads(run("plan", swap_file, *QUICK, "--recompute", "none,full,swap", "--json").stdout)
    assert with_it["problem"]["recompute"] == ["none", "full", "swap"]
    assert "swap" in with_it["counts"]["Dec"]
    without = json.loads(run("plan", swap_file, *QUICK, "--recompute", "none,full", "--json").stdout)
    assert "swap" not in without["counts"]["Dec"]
    assert with_it["outcome"]["makespan_ms"] < without["outcome"]["makespan_ms"]
    refused = run("plan", swap_file, *QUICK, "--recompute", "none,swp")
    assert refused.exit_code == 2
    assert "'swp' is unknown; one or more of none, selective, comm, both, full, swap" in refused.stderr


def test_a_framework_plans_without_it_and_says_what_that_costs(swap_file, run):
    result = run("plan", swap_file, *QUICK, "--target", "mindformers")
    assert result.exit_code == 0, result.stderr
    assert "swap" not in result.stdout
    assert "MindFormers's limits cost" in result.stdout


def test_a_remedy_can_be_pasted(model_file, run):
    # Five layers on stage 0 hold 150 + 5 x (100 + 2 x 4) = 690 MB recomputed, 660 swapped; with four layers
    # there, stage 1 holds 120 + 6 x 104 = 744.
    path = model_file(strategies=[SWAP | {"memory_activation": 1}])
    words = ("plan", path, "-s", "2", "-mb", "4", "-mem", "685", "--recompute", "none,full")
    result = run(*words)
    assert result.exit_code == 1
    assert "recompute swap too (--recompute none,full,swap)" in result.stdout
    assert run(*words[:-1], "none,full,swap", "-t", "0.3").exit_code == 0


def test_the_example_swaps_where_the_other_recomputes(run):
    # 834 MB in 834 x 1.048576 / 20 = 43.73 ms each way: 0.4 x 100 ms hide 40 of the way out, 80 the way back.
    (layer,) = read_model(EXAMPLE).bodies
    assert layer.backward_ms[5] == pytest.approx(200 + 834 * 1.048576 / 20 - 40)
    sizes = ("-s", "8", "-mb", "64", "-mem", "50000", "--json")
    here = json.loads(run("plan", EXAMPLE, *sizes).stdout)
    there = json.loads(run("plan", EXAMPLE.with_name("llama2_70b.json"), *sizes).stdout)
    assert (here["outcome"]["status"], there["outcome"]["status"]) == ("optimal", "optimal")
    # As docs/strategies.md says.
    assert round(here["outcome"]["makespan_ms"]) == 274_796
    assert round(there["outcome"]["makespan_ms"]) == 285_968
    assert set(here["counts"]["LLamaDecodeLayer"]) == {"none", "swap"}


def test_a_plan_with_a_strategy_is_exported_as_a_list_and_to_no_framework(swap_file, run, tmp_path):
    plan, layers = tmp_path / "out" / "plan.json", tmp_path / "layers.csv"
    assert run("plan", swap_file, *QUICK, "-o", tmp_path / "out").exit_code == 0
    exported = run("export", plan, "--to", "csv", "--model", swap_file, "-o", layers)
    assert exported.exit_code == 0, exported.stderr
    assert ",swap" in layers.read_text()
    timed = run("simulate", swap_file, layers, "-s", "2", "-mb", "4", "--json")
    assert timed.exit_code == 0, timed.stderr
    written = json.loads(plan.read_text())
    assert json.loads(timed.stdout)["counts"] == written["counts"]
    checked = run("check", layers, "--model", swap_file, "-mb", "4", "--no-plan")
    assert checked.exit_code == 0, checked.stderr
    assert " swap)" in checked.stdout
    for target, title in (
        ("megatron", "Megatron-LM"),
        ("mindformers", "MindFormers"),
        ("torchtitan", "torchtitan"),
    ):
        refused = run("export", plan, "--to", target)
        assert refused.exit_code == 1, target
        said = " ".join(refused.stderr.split())
        assert f"{title} has no setting for 'swap'" in said
        near = run("export", plan, "--to", target, "--nearest")
        assert near.stdout.strip(), target
        assert "swap" not in near.stdout


def test_a_list_names_strategies_of_its_model_only(model_file, run, tmp_path):
    layers = tmp_path / "layers.csv"
    rows = [f"{k},Dec,{k // 5},0,{'swap' if k == 0 else 'none'}" for k in range(10)]
    layers.write_text("index,name,stage,chunk,recompute\n" + "\n".join(rows) + "\n")
    refused = run("simulate", model_file([BODY]), layers, "-s", "2", "-mb", "4")
    assert refused.exit_code == 2
    assert "line 2: recompute must be one of none, selective, comm, both, full" in " ".join(
        refused.stderr.split()
    )
