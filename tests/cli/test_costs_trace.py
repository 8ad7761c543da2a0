"""``sapp-ppb costs trace``: traces in, a model file out, and every doubt said."""

import json
from pathlib import Path

import pytest

from sapp_ppb.readers import read_model, read_plan
from sapp_ppb.schedules import OpKind
from sapp_ppb.simulator import simulate

DATA = Path(__file__).parents[1] / "data" / "traces"


def span(name, ts, dur, pid=3, tid=0, **more):
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": str(ts), "dur": dur, **more}


@pytest.fixture
def traces(tmp_path):
    """Traces of two stages: Emb 3 ms and layers 0, 1 of 10 and 12 ms; layer 2 of 14 ms and Out 5 ms."""
    folder = tmp_path / "traces"
    folder.mkdir()
    for stage, layers in enumerate(
        ([("Emb", 3), ("0-Dec", 10), ("1-Dec", 12)], [("2-Dec", 14), ("lm-Out", 5)])
    ):
        events = [{"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "Scope Layer"}}]
        at = 1_736_405_443_881_410
        for name, forward in layers:
            events.append(span(name, f"{at}.000", 3000 * forward, tid=4))
            events.append(span("Gradients", f"{at + 1000 * forward}.000", 2000 * forward, tid=1))
            at += 3000 * forward
        (folder / f"trace_view{stage}.json").write_text(json.dumps(events), encoding="utf-8")
    return folder


WORDS = ("--body", "Dec", "--head", "Emb", "--tail", "Out", "-mb", "2")


def test_a_model_file_is_made(traces, run, tmp_path):
    path = tmp_path / "model.json"
    result = run("costs", "trace", traces, *WORDS, "-o", path, "--name", "mine")
    assert result.exit_code == 0
    model = read_model(path)
    # Two micro-batches: half of each; (10 + 12 + 14) / 3 / 2 = 6 ms.
    assert [(layer.name, layer.count, layer.forward_ms) for layer in model.layers] == [
        ("Emb", 1, 1.5),
        ("Dec", 3, 6.0),
        ("Out", 1, 2.5),
    ]
    assert model.bodies[0].backward_ms[0] == 12.0
    assert f"wrote {path}" in result.stderr
    for word in (
        "mine: times of one micro-batch",
        "stage 0  ",
        "trace_view0.json",
        "stage 1  ",
        "traces   2",
    ):
        assert word in result.stdout


def test_json_is_the_model_file_and_nothing_else(traces, run, tmp_path):
    result = run("costs", "trace", traces, *WORDS, "--json", "--per-layer")
    path = tmp_path / "model.json"
    path.write_bytes(result.stdout_bytes)
    assert [layer.name for layer in read_model(path).bodies] == ["0-Dec", "1-Dec", "2-Dec"]
    assert result.stderr.count("note: ") == result.stderr.count("\n")


def test_what_was_taken_for_granted_is_noted(traces, run):
    stderr = run("costs", "trace", traces / "trace_view0.json", "--body", "Dec:80", "-mb", "1").stderr
    assert "no steps are marked; the whole trace counts as one" in stderr
    assert "no process of the device: spans count whole" in stderr
    assert "Dec: 2 of 80 layers seen; the others are taken for equal" in stderr


def test_a_simulated_timeline_gives_its_model_back(model_file, run, tmp_path):
    # The fifth stage is there so that every unknown is determined.
    words = ("-s", "5", "-mb", "6", "-t", "0.2", "-mem", "900", "-o", tmp_path)
    assert run("plan", model_file(), *words).exit_code == 0
    model = read_model(model_file())
    plan = read_plan(tmp_path / "plan.json", model).plan
    assert plan is not None
    timeline = simulate(plan)
    events = [
        span(
            f"{op.cell}{OpKind(op.kind).name}{op.micro_batch}",
            1000 * start,
            1000 * (end - start),
            pid=stage,
            cat=OpKind(op.kind).name,
            args={"start_ms": float(start), "end_ms": float(end)},
        )
        for stage, row in enumerate(plan.problem.order.rows)
        for op, start, end in zip(row, timeline.start_ms[stage], timeline.end_ms[stage], strict=True)
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    names = ("--body", "Dec", "--head", "Emb", "--tail", "Out")
    result = run("costs", "trace", path, *names, "--plan", tmp_path / "plan.json", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    (tmp_path / "back.json").write_bytes(result.stdout_bytes)
    back = read_model(tmp_path / "back.json")
    for found, had in zip(back.layers, model.layers, strict=True):
        assert (found.name, found.count) == (had.name, had.count)
        assert found.forward_ms == pytest.approx(had.forward_ms, rel=1e-6)
        assert found.backward_ms[0] == pytest.approx(had.backward_ms[0], rel=1e-6)
    page = run("costs", "trace", path, *names, "--plan", tmp_path / "plan.json").stdout
    assert "ops       60" in page  # 5 stages x 6 micro-batches, F and B
    assert "in each of 5 cells, condition number" in page


def test_a_split_says_the_layers_of_each_cell(run, tmp_path):
    path = tmp_path / "trace.json"
    events = [
        span(f"PP:{cell}{kind}0", 0, 1000 * lasts, cat="user_annotation")
        for cell, (forward, layers) in enumerate(((25, 2), (20, 2), (10, 1)))
        for kind, lasts in (("F", forward), ("B", 2 * forward))
        if layers
    ]
    path.write_text(json.dumps(events), encoding="utf-8")
    result = run("costs", "trace", path, "--body", "Dec", "--head", "Emb", "--split", "2,2,1", "--json")
    layers = json.loads(result.stdout)["layers_description"]
    assert [(layer["name"], round(layer["time"], 6)) for layer in layers] == [("Emb", 5), ("Dec", 10)]
    assert "no kernels: the spans of the ops count as they stand" in result.stderr


class TestRefusals:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--body", "Foo", "-mb", "1"), "none of Foo is there; names that look like layers: Dec"),
            (("--body", "Dec"), "--micro-batches: must be given"),
            (("--body", "Dec", "-mb", "0"), "micro-batches: must be a whole number of at least 1 (got 0)"),
            (("--body", "Dec", "--head", "Foo", "-mb", "1"), "Foo is in no trace on the first stage"),
            (("--body", "Dec:x", "-mb", "1"), "'Dec:x' is not NAME or NAME:COUNT"),
            (("--body", "", "-mb", "1"), "'' names no layer"),
            (("--body", "Dec", "--split", "1,2"), "hold no ops such as PP:0F0"),
            (("--body", "Dec", "--split", "a"), "'a' is no list of whole numbers"),
            (("--body", "Dec", "--body", "Moe", "--split", "1"), "give --plan for several"),
            (
                ("--body", "Dec", "--head", "a", "--head", "b", "--split", "1"),
                "ops tell no two of them apart",
            ),
            (("--body", "Dec", "--split", "1", "--plan", "x"), "says what --plan says too"),
            (("--body", "Dec", "--plan", "none.json"), "there is no such file"),
        ],
    )
    def test_of_words(self, words, said, traces, run):
        result = run("costs", "trace", traces, *words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert said in result.stderr
        assert "Traceback" not in result.stderr

    def test_of_ops_without_their_layers(self, run, tmp_path):
        path = tmp_path / "trace.json"
        path.write_text(json.dumps([span("PP:0F0", 0, 1, cat="user_annotation")]), encoding="utf-8")
        result = run("costs", "trace", path, "--body", "Dec", "-mb", "1")
        assert result.exit_code == 2
        assert "time whole ops and name no layers; give --split or --plan" in result.stderr

    def test_of_a_file_that_exists(self, traces, run, tmp_path):
        path = tmp_path / "model.json"
        path.write_text("mine")
        result = run("costs", "trace", traces, *WORDS, "-o", path)
        assert result.exit_code == 2
        assert "the file exists; give --force" in result.stderr
        assert path.read_text() == "mine"

    def test_of_a_real_trace_that_is_cut(self, run, tmp_path):
        path = tmp_path / "trace.json.gz"
        path.write_bytes((DATA / "trace_view.json.gz").read_bytes()[:20_000])
        result = run("costs", "trace", path, "--body", "Dec", "-mb", "1")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "the gzip file is broken" in result.stderr
