"""``sapp-ppb plan``: every schedule and every way of running it, and orders of one's own."""

import hashlib
import json

import pytest

from tests.cli.conftest import SIZES, one_message


class TestEverySchedule:
    """``--schedule auto``."""

    def test_prints_a_row_a_schedule_below_the_best_plan(self, model_file, run):
        stdout = run("plan", model_file(), *SIZES, "-t", "1", "--schedule", "auto").stdout
        rows = stdout[stdout.index("schedule  ") :].splitlines()[1:]
        found = [row.split()[0] for row in rows if row.strip()]
        assert {"1f1b", "gpipe", "zbv", "dualpipev", "interleaved"} <= set(found)
        assert f", {found[0]}\n" in stdout.splitlines(keepends=True)[0]

    def test_gives_the_plan_file_of_the_best(self, model_file, run):
        text = run("plan", model_file(), *SIZES, "-t", "1", "--schedule", "auto", "--json").stdout
        best = json.loads(text)
        one = json.loads(run("plan", model_file(), *SIZES, "-t", "1", "--json").stdout)
        assert best["problem"]["schedule"] != "auto"
        assert best["outcome"]["makespan_ms"] <= one["outcome"]["makespan_ms"]

    def test_exits_with_1_when_nothing_fits_under_any(self, model_file, run):
        result = run("plan", model_file(), *SIZES, "-t", "1", "--schedule", "auto", "-mem", "10")
        assert result.exit_code == 1
        assert "no plan fits" in result.stdout

    @pytest.mark.parametrize("option", ["--fix", "--warm-start"])
    def test_takes_no_plan_of_one_schedule(self, option, model_file, run):
        said = one_message(run("plan", model_file(), *SIZES, "--schedule", "auto", option, "plan.json"))
        assert "goes with one schedule" in said

    def test_is_for_plan_alone(self, model_file, run):
        said = one_message(run("compare", model_file(), *SIZES, "--schedule", "auto"))
        assert "auto goes with sapp-ppb plan" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--schedule", "zbv"), {"schedule": "zbv", "interleave": 2}),
        (
            ("--schedule", "dualpipev", "--overlap-factor", "0.5"),
            {"schedule": "dualpipev", "interleave": 2, "overlap_factor": 0.5},
        ),
        (("--schedule", "seq1f1b", "--sequence-chunks", "2"), {"schedule": "seq1f1b", "sequence_chunks": 2}),
        (("-i", "2", "--p2p-mode", "blocking"), {"schedule": "interleaved", "p2p_mode": "blocking"}),
        (("--schedule", "zb-auto", "--flavour", "torch"), {"schedule": "zb-auto", "flavour": "torch"}),
    ],
)
def test_every_way_of_running_reaches_the_plan_file_and_is_timed_again(
    model_file, run, tmp_path, words, said
):
    model, path = model_file(), tmp_path / "plan.json"
    result = run("plan", model, "-s", "2", "-mb", "4", "-t", "0.3", "--json", *words)
    assert result.exit_code == 0, result.stderr
    problem = json.loads(result.stdout)["problem"]
    assert {key: problem[key] for key in said} == said
    path.write_text(result.stdout, encoding="utf-8")
    again = run("simulate", model, path, "--json")
    assert (again.exit_code, again.stderr) == (0, "")
    makespans = [json.loads(text)["outcome"]["makespan_ms"] for text in (result.stdout, again.stdout)]
    assert makespans[0] == makespans[1]


def test_a_plan_for_an_order_of_ones_own_says_which_file_it_was(model_file, run, tmp_path):
    file = tmp_path / "order.csv"
    file.write_text("0F0,0F1,,0B0,0B1\n,1F0,1B0,1F1,1B1\n", encoding="utf-8")
    result = run("plan", model_file(), "-s", "2", "-mb", "2", "-t", "0.3", "--json", "--order", file)
    problem = json.loads(result.stdout)["problem"]
    assert (problem["schedule"], problem["order"]["path"]) == ("custom", str(file))
    assert problem["order"]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()


def test_an_order_that_waits_for_itself_is_refused_before_anything_is_planned(model_file, run, tmp_path):
    file = tmp_path / "order.csv"
    file.write_text("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", encoding="utf-8")
    result = run("plan", model_file(), "-s", "2", "-mb", "2", "--order", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: {file}: these ops wait for each other: 0B0, 1F1\n"


def test_a_layer_that_can_not_be_split_is_named(model_file, run):
    # forward 10, backward 8: nothing is left for the input gradients.
    result = run("plan", model_file(backward_time=8), "-s", "2", "-mb", "4", "--schedule", "zbv")
    assert result.exit_code == 2
    assert "zbv splits the backward, and layer 'Dec' does not let it: weight_grad_ms must be" in result.stderr
