"""``sapp-ppb plan``: a plan that exists, to begin with or to keep a part of."""

import json

import pytest

from tests.cli.conftest import QUICK, SIZES, one_message


class TestAPlanThatExists:
    """``--warm-start`` and ``--fix``."""

    @pytest.fixture
    def plan_path(self, model_file, run, tmp_path):
        run("plan", model_file(), *QUICK, "-mem", "1200", "-o", tmp_path)
        return tmp_path / "plan.json"

    def test_keeps_its_split_while_recompute_is_chosen_anew(self, model_file, plan_path, run):
        before = json.loads(plan_path.read_text())["counts"]["Dec"]
        stdout = run("plan", model_file(), *QUICK, "-mem", "1300", "--fix", plan_path, "--json").stdout
        document = json.loads(stdout)
        counts = document["counts"]["Dec"]
        split = [sum(matrix[0][stage] for matrix in before.values()) for stage in (0, 1)]
        assert document["problem"]["fix"] == {"layers": [split]}
        assert [sum(matrix[0][stage] for matrix in counts.values()) for stage in (0, 1)] == split

    def test_keeps_its_recompute_while_the_split_is_chosen_anew(self, model_file, plan_path, run):
        result = run("plan", model_file(), *QUICK, "--fix", plan_path, "--keep", "recompute")
        assert "no plan within the limits and with this recompute is faster" in result.stdout

    def test_is_where_a_run_begins(self, model_file, plan_path, run):
        makespan = json.loads(plan_path.read_text())["outcome"]["makespan_ms"]
        warm = ("--warm-start", plan_path, "-mem", "1200", "--json")
        again = json.loads(run("plan", model_file(), *SIZES, "-t", "1e-6", *warm).stdout)
        assert again["outcome"]["makespan_ms"] <= makespan

    def test_for_other_stages_is_refused(self, model_file, plan_path, run):
        said = one_message(run("plan", model_file(), "-s", "1", "-mb", "4", "--warm-start", plan_path))
        assert "the plan is for 2 stages x 1 chunks, the problem has 1 stages x 1 chunks" in said

    def test_that_says_nothing_fits_is_refused(self, model_file, run, tmp_path):
        run("plan", model_file(), *QUICK, "-mem", "10", "-o", tmp_path)
        said = one_message(run("plan", model_file(), *QUICK, "--fix", tmp_path / "plan.json"))
        assert "holds no plan" in said

    @pytest.mark.parametrize(
        ("words", "said"),
        [(("--keep", "split"), "there is no --fix"), (("--fix", "p", "--keep", "all"), "'all' is unknown")],
    )
    def test_is_kept_in_part_only_as_the_words_allow(self, words, said, model_file, run):
        assert said in one_message(run("plan", model_file(), *QUICK, *words))
