"""From an init YAML to a model file and back: the peaks that went in come out, and nothing is negative."""

from pathlib import Path
from random import Random

import pytest

from sapp_ppb.costs import LayerKind, Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.readers import read_model
from sapp_ppb.readers.older.init_yaml import read_init
from sapp_ppb.simulator import simulate
from tests.cli.conftest import BODY, HEAD, TAIL

SAPP = Path(__file__).parents[1] / "data" / "sapp"
TIMES = "\ntime_config: {head: 90, body: 90, tail: 180}\n"
RESIDUAL_MB = {"mem.yaml": 224.9, "mem_pp4.yaml": 1e-6, "init_readme.yaml": 1279.2}


def with_times(folder, name):
    path = folder / name
    path.write_text((SAPP / name).read_text(encoding="utf-8") + TIMES, encoding="utf-8")
    return path


def ran(run, model):
    """Peaks of the plan that ran, over a model of known memory."""
    problem = Problem(
        model=model, stages=run.plan.problem.stages, micro_batches=run.plan.problem.micro_batches
    )
    return simulate(Plan(problem=problem, counts=run.plan.counts)).peak_memory_mb


@pytest.mark.parametrize("name", RESIDUAL_MB)
def test_a_model_holds_on_every_stage_what_was_measured_there(name, run, tmp_path):
    # The first and the last stage above all: the older tool added its constant to them once more.
    init, path = with_times(tmp_path, name), tmp_path / "model.json"
    assert run("costs", "init", init, "-o", path).exit_code == 0
    model = read_model(path)
    assert model.constant_memory_mb >= 0
    for layer in model.layers:
        assert layer.parameter_mb >= 0
        assert all(layer.activation(r) >= 0 for r in layer.considered)
    for observed in read_init(init).runs:
        rebuilt = ran(observed, model)
        for stage, measured in observed.peak_mb.items():
            off = 1e-6 if stage in (0, observed.plan.problem.stages - 1) else RESIDUAL_MB[name]
            assert rebuilt[stage] == pytest.approx(measured, abs=off)
    # And it is planned with at once.
    sizes = ("-s", 4, "-mb", 8, "-t", "0.2")
    assert run("plan", path, *sizes).exit_code == 0


@pytest.mark.parametrize(
    ("stages", "layers", "types", "rounds"),
    [
        (3, 10, "selective,full", 3),
        (4, 10, "full", 2),
        (4, 23, "selective,full", 2),
        (5, 17, "selective,full", 2),
        (8, 20, "full", 1),
    ],
)
def test_a_guide_that_is_filled_in_gives_the_model_back(
    stages, layers, types, rounds, run, model_file, tmp_path
):
    # In the file the peaks of the first and the last stage are those of the first round.
    source = model_file([HEAD, BODY | {"nb_layer": layers}, TAIL])
    model, guide = read_model(source), tmp_path / "guide.yaml"
    assert run("dryrun-guide", "-s", stages, "-l", layers, "--recompute", types, "-o", guide).exit_code == 0
    runs = read_init(guide).runs
    assert len(runs) == rounds
    text = guide.read_text(encoding="utf-8")
    peaks = [ran(observed, model) for observed in runs]
    filled = [list(peaks[0][1:-1]), *[list(row) for row in peaks[1:]]]
    text = text.replace("head_memory:", f"head_memory: {peaks[0][0]!r}")
    text = text.replace("tail_memory:", f"tail_memory: {peaks[0][-1]!r}")
    before, _ = text.split("    memories: ")
    guide.write_text(f"{before}    memories: {filled if rounds > 1 else filled[0]}\n", encoding="utf-8")
    path = tmp_path / "back.json"
    assert run("costs", "init", guide, "--times", source, "-o", path).exit_code == 0
    for found, had in zip(read_model(path).layers, model.layers, strict=True):
        assert found.parameter_mb == pytest.approx(had.parameter_mb, rel=1e-6)
        for recompute in found.considered if had.kind is LayerKind.BODY else ():
            assert found.activation(recompute) == pytest.approx(had.activation(recompute), rel=1e-6)


@pytest.mark.parametrize("stages", [2, 3, 4, 5])
@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize(
    ("key", "types"),
    [
        ("recompute", {Recompute.FULL}),
        ("select_recompute", {Recompute.SELECTIVE}),
        ("select_comm_recompute", {Recompute.COMM}),
    ],
)
def test_every_list_may_be_a_bool_or_left_out_in_every_round(key, types, rounds, stages, tmp_path):
    rng = Random(f"{key} {rounds} {stages}")
    forms = [rng.choice([True, False, [2] * stages, [0] * stages]) for _ in range(rounds)]
    wanted = [True if form == [2] * stages else False if form == [0] * stages else form for form in forms]
    path, offset = tmp_path / "init.yaml", 0 if rounds == 1 else [[0] * stages] * rounds
    path.write_text(
        f"pipeline_config: {{pipeline_num: {stages}, num_layer: {2 * stages}, offset: {offset}}}\n"
        f"recompute_config: {{{key}: {words(forms[0] if rounds == 1 else forms)}}}\n"
        f"memory_usage: {{{bodies(rounds) if rounds > 1 else 'head_memory: 9'}}}\n",
        encoding="utf-8",
    )
    runs = read_init(path).runs
    assert len(runs) == rounds
    for observed, all_of_them in zip(runs, wanted, strict=True):
        counted = {Recompute(r) for r in observed.plan.counts[0].sum(axis=1).nonzero()[0].tolist()}
        assert counted == (types if all_of_them else {Recompute.NONE})


def words(value):
    return str(value).replace("True", "true").replace("False", "false")


def bodies(rounds):
    return f"body_memories: {{stage_id: {[[0]] * rounds}, memories: {[[7]] * rounds}}}"
