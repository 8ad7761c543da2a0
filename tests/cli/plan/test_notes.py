"""``sapp-ppb plan``: what is odd but usable, said on stderr."""

import json

from tests.cli.conftest import QUICK


def test_notes_of_the_model_file_go_to_stderr(model_file, run):
    result = run("plan", model_file(nb_layers=3), *QUICK, "--json")
    assert result.exit_code == 0
    json.loads(result.stdout)
    assert result.stderr.startswith("note: ")
    assert "nearest known key is nb_layer" in result.stderr


def test_a_limit_that_is_not_given_is_noted(model_file, run):
    assert "note: no memory limit is given" in run("plan", model_file(), *QUICK).stderr
    assert run("plan", model_file(), *QUICK, "-mem", "1200").stderr == ""


def test_layers_without_memory_are_noted_beside_a_limit(model_file, run):
    layers = [{"name": "Dec", "type": "BODY", "nb_layer": 4, "time": 1}]
    said = run("plan", model_file(layers=layers), *QUICK, "-mem", "9").stderr
    assert "note: no BODY layer of tiny has memory in the model file" in said


def test_a_limit_in_gigabytes_is_noted(model_file, run):
    # The model needs some hundreds of MB; a limit that is merely too small says nothing of units.
    result = run("plan", model_file(), *QUICK, "-mem", "1")
    assert result.exit_code == 1
    assert "note: memory limits are in MB; 1 GB are 1024 (--memory-limit 1024)" in result.stderr
    assert "limits are in MB" not in run("plan", model_file(), *QUICK, "-mem", "300").stderr


def test_fewer_micro_batches_than_stages_are_noted(model_file, run):
    limit = ("-mem", "1200", "-t", "0.2")
    said = run("plan", model_file(nb_layer=8), "-s", "4", "-mb", "2", *limit).stderr
    assert "4 stages wait most of the time with no more than 2 micro-batches" in said
    assert run("plan", model_file(nb_layer=8), "-s", "4", "-mb", "4", *limit).stderr == ""
