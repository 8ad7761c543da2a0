"""``sapp-ppb plan``: the plan file that options make, on stdout and in a folder."""

import json

from sapp_ppb.errors import InputError
from tests.cli.conftest import QUICK, SIZES


def test_json_is_the_plan_file_and_nothing_else(model_file, run, tmp_path):
    result = run("plan", model_file(), *QUICK, "-mem", "1200", "-o", tmp_path / "out", "--json")
    assert result.exit_code == 0
    written = (tmp_path / "out" / "plan.json").read_bytes()
    assert result.stdout_bytes == written
    document = json.loads(written)
    assert document["problem"] == {
        "stages": 2,
        "interleave": 1,
        "micro_batches": 4,
        "schedule": "1f1b",
        "memory_limit_mb": 1200,
        "constant_memory_mb": 0,
        "p2p_ms": 0.0,
        "min_layers_per_cell": 1,
    }
    assert max(document["outcome"]["peak_memory_mb"]) <= 1200


def test_every_flag_reaches_the_problem(model_file, run):
    result = run(
        *("plan", model_file(), *SIZES, "-i", "2", "-t", "0.2", "--schedule", "interleaved", "--seed", "3"),
        *("--micro-batch-group", "remainder-first", "-mem", "3000,3100", "-mc", "5.5", "--p2p", "0.5,0.25"),
        *("--min-layers", "0", "--target", "mindformers", "--gap", "90%", "--json"),
        *("--recompute", "full,none", "--memory-margin", "2.50%"),
    )
    document = json.loads(result.stdout)
    assert document["problem"] == {
        "stages": 2,
        "interleave": 2,
        "micro_batches": 4,
        "schedule": "interleaved",
        "memory_limit_mb": [3000, 3100],
        "constant_memory_mb": 5.5,
        "p2p_ms": [0.5, 0.25],
        "min_layers_per_cell": 0,
        "micro_batch_group": "remainder-first",
        "target": "mindformers",
        "recompute": ["none", "full"],
        "memory_margin": "2.5%",
    }
    assert document["outcome"]["seed"] == 3


def test_the_same_words_give_the_same_plan(model_file, run):
    words = ("plan", model_file(), "-s", "2", "-mb", "8", "-i", "2", "-t", "0.2", "-mem", "1500", "--json")
    first, second = (json.loads(run(*words).stdout) for _ in range(2))
    assert first["counts"] == second["counts"]


def test_only_the_types_that_are_allowed_are_used(model_file, run):
    words = ("plan", model_file(), *QUICK, "-mem", "1000", "--json")
    free, narrow = (json.loads(run(*words, *more).stdout) for more in ((), ("--recompute", "none,full")))
    # Five layers of 100 + 60 x 2 MB and the head's 150 are 1250 of 1000 MB: some are recomputed.
    assert "selective" in free["counts"]["Dec"]
    assert set(narrow["counts"]["Dec"]) == {"none", "full"}


def test_a_plan_that_can_not_be_printed_is_written_all_the_same(model_file, run, monkeypatch, tmp_path):
    def full(_):
        raise InputError("stdout", ["the result can not be written (No space left on device)"])

    monkeypatch.setattr("sapp_ppb.cli.plan.write_document", full)
    assert run("plan", model_file(), *QUICK, "-o", tmp_path, "--json").exit_code == 2
    assert (tmp_path / "plan.json").exists()


def test_a_plan_that_can_not_be_written_is_printed_all_the_same(model_file, run, monkeypatch, tmp_path):
    def full(*_):
        raise InputError("plan.json", ["can not be written (No space left on device)"])

    monkeypatch.setattr("sapp_ppb.writers.write_plan", full)
    result = run("plan", model_file(), *QUICK, "-o", tmp_path, "--json")
    assert (result.exit_code, json.loads(result.stdout)["version"]) == (2, 1)
    assert "No space left" in result.stderr
