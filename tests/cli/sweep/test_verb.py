"""``sapp-ppb sweep``: the table, the files, and a folder that goes on."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.conftest import environment

# 8 devices, 16 samples: 4 pipelines of 2 stages with 4 micro-batches, or 2 of 4 stages with 8.
GRID = ("--devices", "8", "--global-batch", "16", "-s", "2,4", "-i", "1,2", "-mem", "900,1200")
QUICK = ("-t", "1", "--workers", "1")
PICTURES = ["makespan.png", "makespan.svg", "pareto.png", "pareto.svg"]


def table(folder, *without):
    """Rows of a folder, without what may differ."""
    with (folder / "sweep.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{name: value for name, value in row.items() if name not in ("seconds", *without)} for row in rows]


def test_the_page_has_the_plans_the_counts_and_the_reasons(model_file, run):
    result = run("sweep", model_file(), *GRID, "-s", "2,3,4", *QUICK)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    (head,) = (line for line in lines if line.startswith("stages  chunks"))
    assert "limit, MB" in head
    assert "8 problems: " in result.stdout
    assert "; 1 combinations skipped" in result.stdout
    assert "  1 skipped: 8 devices do not divide into pipelines of 3 stages" in lines
    first = lines[lines.index(head) + 1].split()
    stages, _, micro_batches, data_parallel = map(int, first[:4])
    assert (stages * data_parallel, micro_batches * data_parallel) == (8, 16)
    assert "1.000" in first


def test_json_is_the_table_and_its_best_row_is_planning_that_problem_alone(model_file, run):
    result = run("sweep", model_file(), *GRID, *QUICK, "--json")
    document = json.loads(result.stdout)
    best = document["rows"][0]
    words = ("-s", best["stages"], "-i", best["interleave"], "-mb", best["micro_batches"])
    more = ("-mem", best["memory_limit_mb"], "-t", "1", "--json")
    alone = json.loads(run("plan", model_file(), *words, *more).stdout)["outcome"]
    assert alone["makespan_ms"] == best["makespan_ms"]
    assert alone["lower_bound_ms"] == best["lower_bound_ms"]
    assert alone["peak_memory_mb"] == best["peaks_mb"]
    assert alone["bubble"]["total"] == pytest.approx(best["bubble"], rel=1e-12)


def test_a_folder_has_the_table_the_pictures_and_the_best_plan(model_file, run, tmp_path):
    folder = tmp_path / "new" / "out"
    result = run("sweep", model_file(), *GRID, *QUICK, "-o", folder)
    assert result.exit_code == 0
    names = {path.name for path in folder.iterdir()}
    assert {"sweep.csv", "rows.jsonl", "best", *PICTURES} <= names
    plan = json.loads((folder / "best" / "plan.json").read_text(encoding="utf-8"))
    best = table(folder)[0]
    assert plan["outcome"]["makespan_ms"] == float(best["makespan_ms"])
    assert plan["problem"]["stages"] == int(best["stages"])
    assert "plans: 8 of 8 problems" in result.stderr
    assert f"wrote {folder}: sweep.csv" in result.stderr
    assert f"wrote {folder / 'best'}: plan.json" in result.stderr
    again = run("simulate", model_file(), folder / "best" / "plan.json", "--json")
    assert json.loads(again.stdout)["outcome"]["makespan_ms"] == float(best["makespan_ms"])


def test_the_same_command_goes_on_and_a_changed_model_begins_anew(model_file, run, tmp_path):
    words = (*GRID, *QUICK, "-o", tmp_path / "out")
    run("sweep", model_file(), *words)
    before = table(tmp_path / "out")
    again = run("sweep", model_file(), *words)
    assert again.exit_code == 0
    assert "problems were planned before" in again.stderr
    assert table(tmp_path / "out") == before
    changed = run("sweep", model_file(time=11), *words)
    assert changed.exit_code == 0
    assert "is of another model: begins anew, and keeps what was there as rows.old.jsonl" in changed.stderr
    assert table(tmp_path / "out") != before


def test_files_of_others_are_refused_before_any_planning(model_file, run, tmp_path, monkeypatch):
    monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", lambda *_, **__: pytest.fail("planned"))
    (tmp_path / "sweep.csv").write_text("mine", encoding="utf-8")
    result = run("sweep", model_file(), *GRID, *QUICK, "-o", tmp_path)
    assert result.exit_code == 2
    assert "sweep.csv: the file exists; give --force to replace it" in result.stderr
    assert (tmp_path / "sweep.csv").read_text(encoding="utf-8") == "mine"


def test_a_grid_file_says_the_same_as_options(model_file, run, tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text(
        "devices: 8\nglobal-batch: 16\nstages: [2, 4]\ninterleave: 1-2\n"
        "memory-limit: [900, 1200]\ntime-limit: 1\n",
        encoding="utf-8",
    )
    one = json.loads(run("sweep", model_file(), "--grid", path, "--workers", "1", "--json").stdout)
    other = json.loads(run("sweep", model_file(), *GRID, *QUICK, "--json").stdout)
    for row in (*one["rows"], *other["rows"]):
        row.pop("seconds")
    assert one == other


def test_nothing_that_fits_is_exit_code_1_and_has_no_pictures(model_file, run, tmp_path):
    words = ("--devices", "2", "--global-batch", "4", "-s", "2", "-i", "1", "-mem", "100", *QUICK)
    result = run("sweep", model_file(), *words, "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "1 problems: 1 infeasible" in result.stdout
    assert "no plan fits: stage " in result.stdout
    assert {"sweep.csv", "rows.jsonl"} <= {path.name for path in (tmp_path / "out").iterdir()}
    assert not (tmp_path / "out" / "best").exists()
    assert not (tmp_path / "out" / "pareto.png").exists()


def test_other_micro_batch_sizes_are_said_to_be_an_estimate(model_file, run):
    words = ("--devices", "2", "--global-batch", "4", "-s", "2", "-i", "1", *QUICK)
    assert "an estimate" not in run("sweep", model_file(), *words).stdout
    result = run("sweep", model_file(), *words, "--micro-batch-size", "1,2")
    assert "in proportion, an estimate" in result.stdout
    assert "batch size" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--global-batch", "8"), "--devices must be given"),
        (("--devices", "8", "--global-batch", "8", "-s", "3"), "no problem is left: 8 devices do not divide"),
        (("--devices", "8", "--global-batch", "8", "-s", "x"), "--stages must hold whole numbers"),
        ((*GRID, "-t", "0"), "time-limit must be above 0"),
        ((*GRID, "--workers", "0"), "workers: must be from 1 to 4096 (got 0)"),
        ((*GRID, "--backend", "spark"), "--backend: 'spark' is unknown; one of local, dask, ray"),
        ((*GRID, "--backend", "dask"), "--address: must say where dask runs, such as tcp://10.0.0.1:8786"),
        ((*GRID, "--address", "x"), "--address: is of a cluster, and the backend is local"),
        ((*GRID, "--target", "nemo"), "nemo"),
        ((*GRID, "--grid", "nowhere.yaml"), "nowhere.yaml: there is no such file"),
    ],
)
def test_bad_input_is_said(words, said, model_file, run):
    result = run("sweep", model_file(), *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs groups of processes")
def test_ctrl_c_keeps_the_rows_says_so_and_the_same_command_ends_with_the_same_table(
    model_file, run, tmp_path
):
    words = ("--devices", "8", "--global-batch", "16", "-s", "2,4", "-mem", "800:1200:50", "-t", "1")
    run("sweep", model_file(), *words, "-o", tmp_path / "whole")
    command = [sys.executable, "-m", "sapp_ppb", "sweep", model_file(), *words, "--workers", "2"]
    process = subprocess.Popen(
        [*map(str, command), "-o", str(tmp_path / "out")],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    rows = tmp_path / "out" / "rows.jsonl"
    until = time.monotonic() + 60
    while time.monotonic() < until and (not rows.exists() or rows.read_bytes().count(b'"answer"') < 3):
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers hear it too
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "Traceback" not in stderr
    kept = rows.read_bytes().count(b'"answer"')
    assert 3 <= kept < 36
    assert f"of 36 problems are settled and kept in {tmp_path / 'out'}; the same command goes on" in stderr
    assert len(table(tmp_path / "out")) >= kept
    assert " problems: " in stdout
    again = run("sweep", model_file(), *words, "-o", tmp_path / "out")
    assert again.exit_code == 0
    assert f"goes on: {kept} of 36 problems were planned before" in again.stderr
    assert table(tmp_path / "out") == table(tmp_path / "whole")
