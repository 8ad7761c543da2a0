"""Runs by whatever names them: tables, real runs, folders of timelines, and timelines alone."""

import json

import pytest

from sapp_ppb.costs import LayerKind, Model, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.estimation import measured_step
from sapp_ppb.plan import Plan, plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.readers.measurements.measured_steps import read_measured_steps
from sapp_ppb.report import write_trace
from sapp_ppb.simulator import MeasuredStep, TracedRun, simulate, timed
from sapp_ppb.writers import write_plan
from tests.readers.measurements.test_run_file import RUN

MODEL = Model(
    name="tiny", layers=(layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=10),)
)


def plan_on(stages: int) -> Plan:
    problem = Problem(model=MODEL, stages=stages, micro_batches=4)
    return plan_from_matrices(problem, {"Dec": {"none": [[4 // stages] * stages]}})


def annotated(rank, plan, factor=1.0):
    """Events as PyTorch's profiler gives them for one rank: spans on the CPU, microseconds."""
    timeline, clock = simulate(plan), 1_736_405_443_881_410
    return [
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": f"PP:{op.cell}{op.kind.name}{op.micro_batch}",
            "pid": 1,
            "tid": 1,
            "ts": clock + 1000 * factor * start,
            "dur": 1000 * factor * (end - start),
        }
        for op, start, end in zip(
            plan.problem.order.rows[rank], timeline.start_ms[rank], timeline.end_ms[rank], strict=True
        )
    ]


@pytest.fixture
def run_folder(tmp_path):
    """Folder with the traces of two ranks, 10 % slower than simulated, and the plan that ran."""
    folder, plan = tmp_path / "run1", plan_on(2)
    folder.mkdir()
    write_plan(timed(simulate(plan)), folder / "plan.json")
    for rank in (0, 1):
        events = annotated(rank, plan, factor=1.1)
        (folder / f"rank{rank}.json").write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return folder


def only_run(paths) -> TracedRun:
    (run,) = read_measured_steps(paths, MODEL)
    assert isinstance(run, TracedRun)
    return run


def test_a_folder_is_one_run_of_all_its_traces(run_folder):
    run = only_run([run_folder])
    assert len(run.traces) == 2
    assert run.name == str(run_folder)
    # (4 + 2 - 1) x 2 x 30 = 300, and 10 % more.
    assert measured_step(run).step_ms == pytest.approx(330, rel=1e-6)


def test_traces_of_one_folder_are_one_run(run_folder):
    assert len(only_run([run_folder / "rank0.json", run_folder / "rank1.json"]).traces) == 2
    one = only_run([run_folder / "rank0.json"])
    assert measured_step(one).step_ms == pytest.approx(330, rel=1e-6)


def test_our_own_trace_gives_its_makespan_back(tmp_path):
    plan = plan_on(2)
    write_plan(timed(simulate(plan)), tmp_path / "plan.json")
    write_trace(simulate(plan), tmp_path / "trace.json")
    assert measured_step(only_run([tmp_path / "trace.json"])).step_ms == 300.0


def test_kernels_and_not_the_spans_that_launch_them_say_when_ops_run(tmp_path):
    # F0 launches at 0 a kernel that runs from 5 to 15 ms, B0 at 1 one from 16 to 36 ms.
    model = Model(name="tiny", layers=(layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=10),))
    problem = Problem(model=model, stages=1, micro_batches=1)
    plan = plan_from_matrices(problem, {"Dec": {"none": [[1]]}})
    write_plan(timed(simulate(plan)), tmp_path / "plan.json")
    events = []
    for number, (name, at, start, lasts) in enumerate((("PP:0F0", 0, 5, 10), ("PP:0B0", 1, 16, 20))):
        common = {"ph": "X", "pid": 1}
        events += [
            {**common, "cat": "user_annotation", "name": name, "tid": 1, "ts": 1000 * at, "dur": 500},
            {**common, "cat": "cuda_runtime", "name": "launch", "tid": 1, "ts": 1000 * at + 100, "dur": 5}
            | {"args": {"correlation": number}},
            {**common, "cat": "kernel", "name": "gemm", "tid": 7, "ts": 1000 * start, "dur": 1000 * lasts}
            | {"args": {"correlation": number}},
        ]
    (tmp_path / "rank0.json").write_text(json.dumps(events), encoding="utf-8")
    (run,) = read_measured_steps([tmp_path], model)
    assert isinstance(run, TracedRun)
    assert measured_step(run).step_ms == pytest.approx(31)  # 5 to 36


def test_tables_runs_and_folders_keep_their_order(run_folder, tmp_path):
    (run_folder / "steps.csv").write_text("plan,step_ms\nplan.json,330\n", encoding="utf-8")
    real = tmp_path / "real.json"
    real.write_text(json.dumps(RUN), encoding="utf-8")
    found = read_measured_steps([real, run_folder, run_folder / "steps.csv"], MODEL)
    assert [type(run) for run in found] == [MeasuredStep, TracedRun, MeasuredStep]
    assert [run.name for run in found] == ["real.json", str(run_folder), "plan.json"]


def test_a_folder_without_a_plan_and_one_without_ops_are_refused(run_folder):
    (run_folder / "plan.json").rename(run_folder / "other.json")
    with pytest.raises(
        InputError, match=r"holds no plan.json; put the plan file of the run beside its traces"
    ):
        read_measured_steps([run_folder], MODEL)
    (run_folder / "other.json").rename(run_folder / "plan.json")
    for rank in (0, 1):
        (run_folder / f"rank{rank}.json").write_text('[{"ph": "X", "name": "gemm"}]', encoding="utf-8")
    with pytest.raises(InputError, match="holds no trace that names ops such as PP:0F0"):
        read_measured_steps([run_folder], MODEL)


def test_a_file_that_is_not_there_is_refused(run_folder):
    with pytest.raises(InputError, match="there is no such file; check the path"):
        read_measured_steps([run_folder / "rank7.json"], MODEL)
