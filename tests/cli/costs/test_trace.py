"""``sapp-ppb costs trace``: traces in, a model file out, and every doubt said."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sapp_ppb.readers import read_model, read_plan
from sapp_ppb.schedules import OpKind
from sapp_ppb.simulator import simulate
from tests.cli.conftest import environment

DATA = Path(__file__).parents[2] / "data" / "traces"


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


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see the memory taken")
def test_a_long_trace_takes_little_memory(tmp_path):
    # 100 MB of events; a span that counts takes 16 bytes, and here there are some 600,000.
    path = tmp_path / "trace.json"
    with path.open("w", encoding="utf-8") as file:
        file.write('[{"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "Scope Layer"}}')
        file.write(',{"ph": "M", "name": "process_name", "pid": 5, "args": {"name": "Ascend Hardware"}}')
        for number in range(300_000):
            at = f"{1_736_405_443_881_410 + 100 * number}.120"
            task = f'"Task Id": {number}, "Batch Id": 0, "Subtask Id": 4294967295, "connection_id": {number}'
            file.write(
                f',\n{{"ph": "X", "name": "{number % 40}-Dec", "pid": 3, "tid": 6, "ts": "{at}", "dur": 90}}'
                f',\n{{"ph": "X", "name": "MatMul-op{number % 6000}", "pid": 5, "tid": 2, "ts": "{at}", '
                f'"dur": 80, "args": {{"Task Type": "AI_CORE", "Physic Stream Id": 2, {task}}}}}'
            )
        file.write("]")
    program = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from sapp_ppb.cli.main import main\n"
        f"sys.argv = ['sapp-ppb', 'costs', 'trace', {str(path)!r}, '--body', 'Dec', '-mb', '10', '--json']\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        # What getrusage() says begins at the size of the process that started this one.
        "status = Path('/proc/self/status').read_text()\n"
        "print(re.search('VmHWM:[^0-9]*([0-9]+)', status)[1], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True
    )
    # A step of 6000 ops runs each of 40 layers 150 times: 150 x 80 us in 10 micro-batches.
    (layer,) = json.loads(done.stdout)["layers_description"]
    assert (layer["nb_layer"], layer["time"]) == (40, pytest.approx(1.2))
    assert path.stat().st_size > 80e6
    assert int(done.stderr.split()[-1]) < 160 * 1024
