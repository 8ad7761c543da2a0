"""Files by hand: read from wherever one stands, whatever they are called, and never left out in silence."""

import json
from copy import deepcopy
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from sapp_ppb.errors import InputError
from sapp_ppb.readers.frameworks.mindformers_config import read_mindformers
from tests.cli.conftest import SIZES, one_message

CONFIGS = sorted((Path(__file__).parents[1] / "data" / "configs" / "mindformers").glob("*.yaml"))
MODEL_KEYS = ("num_layers", "offset", "pp_interleave_num", "mtp_depth", "num_nextn_predict_layers")
QUICK = (*SIZES, "-t", "0.1")
MANUAL = "mine: {offset: 0, recompute: [1, 1]}\n"


@pytest.mark.parametrize("name", ["m.yaml", "m.yml", "m.YAML", "m.txt", "m", "m.json", "m.csv", "m.yaml.bak"])
@pytest.mark.parametrize("verb", ["compare", "simulate"])
def test_a_plan_by_hand_is_read_or_refused_by_its_name(verb, name, model_file, run, tmp_path):
    path = tmp_path / name
    path.write_text(MANUAL, encoding="utf-8")
    words = QUICK if verb == "compare" else (*SIZES, "--entry", "mine")
    result = run(verb, model_file(), path, *words)
    if result.exit_code == 0:
        assert "mine" in result.stdout or "10 layers on 2 stages" in result.stdout
        assert name.lower().endswith((".yaml", ".yml"))
    else:
        assert str(path) in one_message(result)
        assert not name.lower().endswith((".yaml", ".yml"))


def test_every_path_is_meant_from_where_one_stands(model_file, run, tmp_path, monkeypatch):
    source = model_file().read_bytes()
    here, there = tmp_path / "here", tmp_path / "there" / "deep"
    for folder in (here, there):
        folder.mkdir(parents=True)
        (folder / "model.json").write_bytes(source)
        (folder / "mine.yaml").write_text(MANUAL, encoding="utf-8")
    answers = []
    for folder in (here, there):
        monkeypatch.chdir(folder)
        assert run("plan", "model.json", *QUICK, "-mem", "1200", "-o", "out").exit_code == 0
        assert (folder / "out" / "plan.json").exists()
        assert run("compare", "model.json", "mine.yaml", "out/plan.json", *QUICK).exit_code == 0
        timed = json.loads(run("simulate", "model.json", "out/plan.json", "--json").stdout)
        answers.append((timed["counts"], timed["outcome"]["makespan_ms"]))
        assert run("export", "out/plan.json", "--to", "csv", "-o", "out/more.csv").exit_code == 0
        assert (folder / "out" / "more.csv").exists()
    assert answers[0] == answers[1]
    # Nothing was written beside what was asked for.
    assert sorted(path.name for path in here.iterdir()) == ["mine.yaml", "model.json", "out"]


def _without_each_key(document, path=()):
    """Every document that lacks one key, with the path to it."""
    inner = document
    for key in path:
        inner = inner[key]
    for key, value in inner.items():
        copy = deepcopy(document)
        at = copy
        for step in path:
            at = at[step]
        del at[key]
        yield ".".join((*path, str(key))), copy
        if isinstance(value, dict):
            yield from _without_each_key(document, (*path, key))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_configuration_without_any_one_of_its_keys_is_read_or_refused(path, tmp_path):
    # Of the sections that say how the pipeline runs; keys that nobody reads are all alike.
    document = YAML(typ="safe").load(path)
    model = {key: value for key, value in document["model"]["model_config"].items() if key in MODEL_KEYS}
    whole = {
        "parallel_config": document["parallel_config"],
        "parallel": {"pipeline_config": document["parallel"].get("pipeline_config", {})},
        "model": {"model_config": model},
        "recompute_config": document["recompute_config"],
    }
    copy, refused = tmp_path / "copy.yaml", 0
    for key, less in _without_each_key(whole):
        copy.write_text(json.dumps(less), encoding="utf-8")  # JSON is YAML, and quick to write
        try:
            config = read_mindformers(copy)
        except InputError as error:
            said, where = list(error.faults), error.where
        else:
            # What is not known is said to be, by the key that says it.
            said, where = [*config.unknown, *map(str, config.broken)], config.where
        assert where == str(copy), key
        assert all(said), key
        refused += bool(said)
    assert refused


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("-s", "stages"),
        ("-mb", "micro-batches"),
        ("-i", "interleave"),
        ("--min-layers", "min-layers"),
        ("--sequence-chunks", "sequence-chunks"),
        ("--micro-batch-group", "micro-batch-group"),
        ("--p2p", "p2p"),
        ("-mem", "memory-limit"),
        ("-mc", "constant-memory"),
        ("--memory-margin", "memory-margin"),
        ("--max-recompute-types", "max-recompute-types"),
        ("--overlap-factor", "overlap"),
        ("--stage-speed", "stage-speed"),
        ("--step-extra", "step-extra"),
        ("-t", "time-limit"),
        ("--gap", "gap"),
        ("--seed", "seed"),
        ("--threads", "threads"),
    ],
)
@pytest.mark.parametrize("value", ["-4", "nan", "x", "inf", "-0.5", "1e999", ""])
def test_a_number_that_can_not_be_is_refused_by_name_before_planning(
    option, named, value, model_file, run, monkeypatch
):
    def never(*_, **__):
        raise AssertionError("planned")

    monkeypatch.setattr("sapp_ppb.planner.run.Run._search", never)
    usual = {"-s": "2", "-mb": "4"}
    words = [word for pair in (usual | {option: value}).items() for word in pair]
    result = run("plan", model_file(), *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert named in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "option", ["-s", "-mb", "-i", "--sequence-chunks", "--micro-batch-group", "--threads"]
)
def test_a_count_of_nothing_is_refused(option, model_file, run):
    usual = {"-s": "2", "-mb": "4"}
    words = [word for pair in (usual | {option: "0"}).items() for word in pair]
    message = one_message(run("plan", model_file(), *words))
    assert "0" in message
