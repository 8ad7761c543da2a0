"""Where nothing fits, or nothing was found, no numbers are printed that look like a plan."""

import json

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import NoPlanFoundError
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from tests.cli.conftest import SIZES, one_message

# Stage 0 holds 150 MB of the head, 100 of a layer's parameters and two live micro-batches of 4 MB at
# least, stage 1 as much less 30 and one of them; 10 layers are too many for 24 MB of them on each.
HOPELESS = {
    "a limit below the parameters": ("-mem", "200"),
    "a limit of nothing": ("-mem", "0"),
    "one stage of two": ("-mem", "100000,100"),
    "memory that is always held": ("-mem", "2000", "-mc", "1900"),
    "a margin": ("-mem", "1300", "--memory-margin", "90%"),
    "no recompute allowed": ("-mem", "800", "--recompute", "none"),
    "several chunks": ("-mem", "300", "-i", "2"),
    "sequence chunks": ("-mem", "300", "--schedule", "seq1f1b", "--sequence-chunks", "2"),
    "any schedule": ("-mem", "300", "--schedule", "auto"),
    "a target": ("-mem", "300", "--target", "mindformers"),
}


@pytest.mark.parametrize("words", HOPELESS.values(), ids=HOPELESS)
def test_nothing_that_could_be_pasted_is_printed_or_written_where_nothing_fits(
    words, model_file, run, tmp_path
):
    output = tmp_path / "out"
    result = run("plan", model_file(), *SIZES, "-t", "0.2", *words, "-o", output)
    assert result.exit_code == 1
    assert "offset" not in result.stdout
    assert "recompute:" not in result.stdout
    assert (
        not list(output.glob("mindformers*")) + list(output.glob("megatron*")) + list(output.glob("layers*"))
    )
    document = json.loads((output / "plan.json").read_text(encoding="utf-8"))
    assert document["outcome"]["status"] == "infeasible"
    assert document["outcome"]["makespan_ms"] is None
    assert "counts" not in document or document["counts"] is None
    # What is short: a stage, an op and MB.
    shortage = document["outcome"]["infeasible"]
    assert shortage["over_mb"] > 0
    assert f"stage {shortage['stage']}" in result.stdout


@pytest.mark.parametrize("limit", ["-5", "-0.001", "-1e300", "nan", "-inf", "100,-5", "x", "", "56_000"])
def test_a_limit_that_is_no_memory_is_refused(limit, model_file, run):
    assert "memory-limit" in one_message(run("plan", model_file(), *SIZES, f"--memory-limit={limit}"))


@pytest.mark.parametrize(
    ("stages", "chunks", "layers"), [(8, 3, 16), (2, 6, 7), (4, 2, 5), (16, 1, 10), (1, 12, 8), (64, 4, 100)]
)
def test_fewer_layers_than_cells_are_refused_before_planning(
    stages, chunks, layers, model_file, run, monkeypatch
):
    def never(*_, **__):
        raise AssertionError("planned")

    monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", never)
    sizes = ("-s", stages, "-i", chunks, "-mb", 2 * stages)
    message = one_message(run("plan", model_file(nb_layer=layers), *sizes))
    assert f"{layers} BODY layers are too few for {stages} stages" in message


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "1e99"])
def test_no_time_is_refused(seconds, model_file, run):
    assert "time-limit must be above 0" in one_message(run("plan", model_file(), *SIZES, "-t", seconds))


@pytest.mark.parametrize("seconds", [1e-9])
@pytest.mark.parametrize("chunks", [1, 3])
def test_the_shortest_time_gives_a_whole_plan_or_none(chunks, seconds):
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=97,
        forward_ms=1,
        parameter_mb=10,
        activation_mb={Recompute.NONE: 9, Recompute.FULL: 1},
    )
    problem = Problem(
        model=Model(name="wide", layers=(body,)),
        stages=16,
        interleave=chunks,
        micro_batches=32,
        memory_limit_mb=400,
    )
    try:
        outcome = plan_pipeline(problem, time_limit_s=seconds)
    except NoPlanFoundError:
        return
    assert outcome.plan is not None
    assert outcome.plan.counts.sum() == 97
    assert outcome.plan.counts.dtype.kind == "i"
    assert outcome.makespan_ms is not None
    assert outcome.lower_bound_ms is not None
    assert outcome.lower_bound_ms <= outcome.makespan_ms * (1 + 1e-9)
