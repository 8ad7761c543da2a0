"""``dryrun-guide``, ``costs dryrun`` and ``costs init``: from runs to a model file, and back to the model."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sapp_ppb.cli.main import app
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.readers import read_model
from sapp_ppb.readers.older.init_yaml import read_init
from sapp_ppb.simulator import simulate

DATA = Path(__file__).parents[2] / "data"
SAPP = DATA / "sapp"


def logs_of_dry_runs(guide, model, folder):
    """Write what dry runs of a guide would log if the simulator were the machine."""
    folders = []
    for number, run in enumerate(read_init(guide).runs):
        ran = run.plan.problem
        problem = Problem(model=model, stages=ran.stages, micro_batches=ran.micro_batches)
        plan = Plan(problem=problem, counts=run.plan.counts)
        folders.append(folder / f"round{number}")
        for stage, peak in enumerate(simulate(plan).peak_memory_mb):
            path = folders[-1] / f"stage_{stage}_rank_{8 * stage}" / "mindformer.log"
            path.parent.mkdir(parents=True)
            path.write_text(f"Used peak memory usage (without fragments): {peak!r}M\n", encoding="utf-8")
    return folders


@pytest.mark.parametrize(("stages", "rounds"), [(8, 1), (3, 3)])
def test_a_model_is_got_back_from_its_dry_runs(stages, rounds, model_file, run, tmp_path):
    guide = tmp_path / "guide.yaml"
    words = ("-s", stages, "-l", 10, "--recompute", "selective,full", "-o", guide)
    result = run("dryrun-guide", *words)
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"{rounds} round" in result.stderr
    assert f"wrote {guide}" in result.stderr
    model = read_model(model_file())
    folders = logs_of_dry_runs(guide, model, tmp_path)
    assert len(folders) == rounds
    result = run("costs", "dryrun", *folders, "--runs", guide, "--times", model_file(), "--json")
    assert result.exit_code == 0
    path = tmp_path / "back.json"
    path.write_bytes(result.stdout_bytes)
    back = read_model(path)
    for found, had in zip(back.layers, model.layers, strict=True):
        assert (found.name, found.count, found.forward_ms) == (had.name, had.count, had.forward_ms)
        assert found.parameter_mb == pytest.approx(had.parameter_mb, rel=1e-6)
        if had in model.bodies:
            assert found.considered == had.considered
            for recompute in had.considered:
                assert found.activation(recompute) == pytest.approx(had.activation(recompute), rel=1e-6)
    assert back.constant_memory_mb == pytest.approx(0.0, abs=1e-3)


def test_the_guide_is_printed_where_no_file_is_named(run):
    result = run("dryrun-guide", "-s", "4", "-l", "80")
    assert result.exit_code == 0
    assert "  pipeline_num: 4\n  num_layer: 80\n" in result.stdout
    assert "memories: [[null, null], [null, null, null, null]]" in result.stdout
    assert result.stderr.startswith("2 rounds of 4 stages tell constant, parameters, activation none, ")


def test_the_guide_asks_on_a_terminal_what_was_not_given(run, monkeypatch):
    monkeypatch.setattr("sapp_ppb.cli.costs.dryrun_guide._somebody_is_there", lambda: True)
    result = CliRunner().invoke(app, ["dryrun-guide"], input="8\n61\nselective,full\n")
    assert result.exit_code == 0
    # The runner shows what is typed before what is printed.
    words = ("dryrun-guide", "-s", "8", "-l", "61", "--recompute", "selective,full")
    assert result.stdout.endswith(run(*words).stdout)
    assert "pipeline stages" in result.stderr


def test_an_init_yaml_with_times_is_a_model(run, tmp_path):
    path, model = tmp_path / "init.yaml", tmp_path / "model.json"
    times = "\ntime_config: {head: 30, body: 90, tail: 45}\n"
    path.write_text((SAPP / "mem_pp4.yaml").read_text(encoding="utf-8") + times, encoding="utf-8")
    result = run("costs", "init", path, "-o", model)
    assert result.exit_code == 0
    assert "rebuilt within  0.0 MB in each of 6 peaks" in result.stdout
    read = read_model(model)
    assert [(layer.forward_ms, layer.count) for layer in read.layers] == [(30, 1), (90, 80), (45, 1)]
    assert read.name == "init"
    assert run("plan", model, "-s", "4", "-mb", "8", "-t", "0.2", "-mem", "60000").exit_code == 0


def test_without_times_the_page_is_printed_and_that_is_said(run):
    result = run("costs", "init", SAPP / "mem.yaml")
    assert result.exit_code == 0
    for word in (
        "parameters BODY            1,860.8",
        "    1     10      32,341.0     32,558.3        -217.3",
        "rebuilt within  224.8 MB in each of 8 peaks",
        "spare peaks     1",
        "condition       47, which is how many times an error of the peaks can grow",
    ):
        assert word in result.stdout
    assert "constant would come out negative and is taken for 0" in result.stderr
    assert "has no times, so there is no model file; give --times" in result.stderr


def test_a_profile_in_the_init_yaml_is_read(run, tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    layers = ["LlamaEmbedding", "0-LLamaDecodeLayer", "1-LLamaDecodeLayer", "lm_head-Linear"]
    events = [
        {
            "ph": "X",
            "name": f"net/{name}/Mul-op{at}",
            "pid": 1,
            "tid": 0,
            "ts": 8000 * at,
            "dur": 1000 * (at + 1),
        }
        for at, name in enumerate(layers)
    ]
    (folder / "trace_view0.json").write_text(json.dumps(events), encoding="utf-8")
    path = tmp_path / "init.yaml"
    profile = "\nprofiling_config: {micro_batch_num: 1, folder_path: traces}\n"
    path.write_text((SAPP / "mem_pp4.yaml").read_text(encoding="utf-8") + profile, encoding="utf-8")
    result = run("costs", "init", path, "--json")
    assert result.exit_code == 0
    entries = json.loads(result.stdout)["layers_description"]
    assert [(entry["name"], entry["time"], entry["nb_layer"]) for entry in entries] == [
        ("LlamaEmbedding", 1, 1),
        ("LLamaDecodeLayer", 2.5, 80),  # 2 and 3 ms
        ("lm_head-Linear", 4, 1),
    ]


class TestRefusals:
    def refused(self, result):
        assert (result.exit_code, result.stdout) == (2, "")
        assert "Traceback" not in result.stderr
        assert result.stderr.count("error: ") == 1
        return result.stderr

    def test_a_model_file_needs_times(self, run, tmp_path):
        message = self.refused(run("costs", "init", SAPP / "mem_pp4.yaml", "-o", tmp_path / "model.json"))
        assert "has no times, which a model file needs" in message
        assert not (tmp_path / "model.json").exists()

    def test_a_guide_that_is_not_filled_in_has_no_peaks(self, run, tmp_path):
        guide = tmp_path / "guide.yaml"
        run("dryrun-guide", "-s", "8", "-l", "40", "-o", guide)
        assert "has no peaks; fill in memory_usage" in self.refused(run("costs", "init", guide))

    def test_rounds_need_as_many_folders(self, run, tmp_path):
        message = self.refused(run("costs", "dryrun", tmp_path, "--runs", SAPP / "mem_pp4.yaml"))
        assert "there are 2 rounds; give as many folders or files, in their order (got 1)" in message

    def test_a_stage_that_did_not_run(self, run, tmp_path):
        path = tmp_path / "peaks.yaml"
        path.write_text("peak_memory_mb: {0: 100, 16: 100}")
        message = self.refused(run("costs", "dryrun", path, "--runs", SAPP / "mem.yaml"))
        assert "are of stage 16, and " in message

    def test_too_few_peaks_name_what_they_do_not_tell(self, run, tmp_path):
        path = tmp_path / "peaks.yaml"
        path.write_text("peak_memory_mb: {0: 100, 1: 100}")
        message = self.refused(run("costs", "dryrun", path, "--runs", SAPP / "mem.yaml"))
        assert "2 peaks do not tell apart " in message
        assert "dryrun-guide says which" in message

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ((), "--stages and --layers must be given"),
            (("-s", "4"), "--layers must be given"),
            (("-s", "4", "-l", "4"), "needs at least 2 stages, and one layer more than stages"),
            (("-s", "2", "-l", "40"), "no 8 rounds of 2 stages and 40 layers tell all unknowns"),
            (("-s", "4", "-l", "40", "--recompute", "some"), "'some' is unknown"),
        ],
    )
    def test_of_the_guide(self, words, said, run):
        assert said in self.refused(run("dryrun-guide", *words))

    def test_a_constant_that_is_none(self, run):
        message = self.refused(run("costs", "init", SAPP / "mem.yaml", "-mc", "-5"))
        assert "--constant-memory: must be a number of at least 0 (got -5.0)" in message

    def test_runs_of_two_sorts(self, run, tmp_path):
        words = ("costs", "dryrun", tmp_path, "--runs", SAPP / "mem.yaml", "--runs", tmp_path / "plan.json")
        assert "is one init YAML, which holds every round, or a plan file for each run" in self.refused(
            run(*words)
        )


def test_times_and_memory_come_back_from_traces_of_simulated_plans(model_file, run, tmp_path):
    # Three plans with other limits, so that layers and recompute differ from run to run.
    traces, plans = [], []
    for limit in ("900", "800", "700"):
        folder = tmp_path / limit
        words = ("-s", "5", "-mb", "8", "-t", "0.2", "-mem", limit, "-o", folder)
        assert run("plan", model_file(), *words).exit_code == 0
        plans += ["--runs", folder / "plan.json"]
        traces.append(tmp_path / f"{limit}.json")
        result = run("simulate", model_file(), folder / "plan.json", "--emit-trace", traces[-1])
        assert result.exit_code == 0
    names = ("--body", "Dec", "--head", "Emb", "--tail", "Out")
    ran = [word.replace("--runs", "--plan") if isinstance(word, str) else word for word in plans]
    result = run("costs", "trace", *traces, *names, *ran, "-o", tmp_path / "times.json")
    assert result.exit_code == 0, result.stderr
    result = run("costs", "dryrun", *traces, *plans, "--times", tmp_path / "times.json", "--json")
    assert result.exit_code == 0, result.stderr
    path = tmp_path / "back.json"
    path.write_bytes(result.stdout_bytes)
    back, model = read_model(path), read_model(model_file())
    for found, had in zip(back.layers, model.layers, strict=True):
        assert (found.name, found.kind, found.count) == (had.name, had.kind, had.count)
        assert found.forward_ms == pytest.approx(had.forward_ms, rel=1e-6)
        assert found.parameter_mb == pytest.approx(had.parameter_mb, rel=1e-6)
        for recompute in found.considered:
            assert found.backward_ms[recompute] == pytest.approx(had.backward_ms[recompute], rel=1e-6)
            assert found.activation(recompute) == pytest.approx(had.activation(recompute), rel=1e-6)
