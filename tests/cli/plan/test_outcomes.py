"""``sapp-ppb plan``: its exit code where nothing fits, time is short or a key was pressed."""

import json

from sapp_ppb.errors import NoPlanFoundError
from tests.cli.conftest import QUICK, SIZES, one_message


class TestNothingFits:
    WORDS = (*SIZES, "-mem", "600", "-t", "5")  # the parameters alone take (150 + 1000 + 120) / 2 = 635

    def test_exit_1_and_what_would_do(self, model_file, run):
        result = run("plan", model_file(), *self.WORDS)
        assert (result.exit_code, result.stderr) == (1, "")
        assert "no plan fits" in result.stdout
        assert "--memory-limit" in result.stdout

    def test_the_limit_that_would_do_does(self, model_file, run):
        stdout = run("plan", model_file(), *self.WORDS).stdout
        limit = stdout.split("--memory-limit ")[1].split(")")[0]
        assert run("plan", model_file(), *SIZES, "-mem", limit, "-t", "5").exit_code == 0

    def test_a_type_that_is_forbidden_would_do(self, model_file, run):
        # 6 layers on stage 1: 120 + 6 x (100 + 60) = 1080 MB; on stage 0 with two live 150 + 4 x 220 = 1030.
        # SELECTIVE takes 6 x 15 = 90 MB off stage 1 and 4 x 2 x 15 = 120 off stage 0: 990 and 910 MB.
        words = ("plan", model_file(), *SIZES, "-mem", "1000", "--recompute", "none", "-t", "5")
        result = run(*words)
        assert result.exit_code == 1
        assert "recompute selective too (--recompute none,selective)" in result.stdout
        remedies = json.loads(run(*words, "--json").stdout)["outcome"]["infeasible"]["remedies"]
        assert {"change": "recompute", "value": "selective"} in remedies

    def test_a_limit_includes_the_margin(self, model_file, run):
        words = ("plan", model_file(), *SIZES, "-t", "5", "--memory-margin", "10%", "-mem")
        limit = run(*words, "600").stdout.split("--memory-limit ")[1].split(")")[0]
        assert run(*words, limit).exit_code == 0

    def test_json_says_it_too(self, model_file, run, tmp_path):
        result = run("plan", model_file(), *self.WORDS, "--json", "-o", tmp_path / "out")
        assert result.exit_code == 1
        document = json.loads(result.stdout)
        assert "counts" not in document
        assert document["outcome"]["status"] == "infeasible"
        assert document["outcome"]["infeasible"]["over_mb"] > 0
        assert (tmp_path / "out" / "plan.json").read_text(encoding="utf-8") == result.stdout


def test_no_plan_in_time_is_exit_3(model_file, run, monkeypatch):
    def none_found(*_, **__):
        raise NoPlanFoundError("no plan was found in 0.1 s")

    monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", none_found)
    assert one_message(run("plan", model_file(), *SIZES), code=3) == "error: no plan was found in 0.1 s\n"


def test_an_interrupt_before_any_plan_is_exit_3(model_file, run, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", interrupted)
    assert "interrupted before any plan" in one_message(run("plan", model_file(), *SIZES), code=3)


def test_an_interrupted_plan_is_printed_and_written_and_exit_3(model_file, run, monkeypatch, tmp_path):
    from dataclasses import replace

    from sapp_ppb.plan import StoppedBy
    from sapp_ppb.planner import plan_pipeline

    def interrupted(*arguments, **options):
        return replace(plan_pipeline(*arguments, **options), stopped_by=StoppedBy.INTERRUPT)

    monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", interrupted)
    result = run("plan", model_file(), *QUICK, "-o", tmp_path)
    assert result.exit_code == 3
    assert "interrupted; this is the best plan until then" in result.stdout
    assert (tmp_path / "plan.json").exists()
