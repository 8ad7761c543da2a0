"""Real runs: read with the times of their cells, and refused with every fault."""

import json

import pytest

from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.readers.measurements.run_file import is_run_file, read_run_file
from sapp_ppb.schedules import Flavour, P2PMode, ScheduleName
from sapp_ppb.simulator import simulate

RUN = {
    "format": "sapp-ppb-run",
    "version": 1,
    "schedule": "1f1b",
    "stages": 2,
    "interleave": 1,
    "micro_batches": 4,
    "micro_batch_group": None,
    "p2p_mode": "async",
    "flavour": "torch",
    "layers_per_cell": [3, 3],
    "forward_ms": [10.0, 12.0],
    "backward_ms": [20.0, 24.0],
    "weight_ms": [10.0, 12.0],
    "steps_ms": [170.5, 169.5],
    "step_ms": 170.5,
    "ops": [{"stage": 0, "op": "0F0", "start_ms": 0.0, "end_ms": 10.2}],
}


def written(tmp_path, *runs, **changes):
    path = tmp_path / "run.json"
    documents = [run | changes for run in runs] or [RUN | changes]
    path.write_text(json.dumps(documents if len(documents) > 1 else documents[0]), encoding="utf-8")
    return path


def faults(path):
    with pytest.raises(InputError) as caught:
        read_run_file(path)
    return caught.value.faults


def test_a_run_is_a_plan_with_a_layer_of_its_own_in_every_cell(tmp_path):
    (step,) = read_run_file(written(tmp_path))
    problem = step.plan.problem
    assert (step.name, step.step_ms) == ("run.json", 170.5)
    assert (problem.schedule_name, problem.stages, problem.micro_batches) == (ScheduleName.ONE_F_ONE_B, 2, 4)
    assert (problem.flavour, problem.p2p_mode) == (Flavour.TORCH, P2PMode.ASYNC)
    assert step.plan.layers_per_cell.tolist() == [1, 1]
    # Stage 1 works 4 x 36 = 144, behind stage 0's 10 + 20.
    assert simulate(step.plan).makespan_ms == 174.0


def test_a_split_backward_has_the_weight_gradients_that_the_run_says(tmp_path):
    sizes = {"schedule": "interleaved-zero-bubble", "micro_batches": 2, "weight_ms": [5.0, 6.0]}
    (step,) = read_run_file(written(tmp_path, **sizes))
    assert [layer.weight_ms for layer in step.plan.problem.model.layers] == [5.0, 6.0]


def test_a_list_holds_several_runs_under_names(tmp_path):
    steps = read_run_file(written(tmp_path, RUN | {"name": "mine"}, RUN | {"micro_batches": 8}))
    assert [step.name for step in steps] == ["mine", "1f1b S=2 V=1 M=8"]
    assert steps[1].plan.problem.micro_batches == 8


def test_all_faults_of_a_run_come_at_once(tmp_path):
    path = written(
        tmp_path, stages=0, schedule="1f2b", forward_ms=[10, -1], step_ms=0, micro_batches="four", weight_ms=3
    )
    words = faults(path)
    for word in (
        "stages must be a whole number of at least 1 (got 0)",
        "micro_batches must be a whole number of at least 1 (got 'four')",
        "forward_ms[1] must be a number above 0 (got -1)",
        "step_ms must be a number above 0 (got 0)",
        "weight_ms must be a list of milliseconds, one a cell (got 3)",
    ):
        assert word in words
    assert any(word.startswith("schedule must be one of gpipe, 1f1b") for word in words)


def test_what_is_missing_is_named(tmp_path):
    path = tmp_path / "run.json"
    path.write_text('[{"format": "sapp-ppb-run", "version": 1}, 3]', encoding="utf-8")
    assert faults(path) == (
        *(f"[0].{key} is missing" for key in ("stages", "micro_batches", "schedule", "forward_ms")),
        *(f"[0].{key} is missing" for key in ("backward_ms", "step_ms")),
        "[1] must be a JSON object (got 3)",
    )


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"version": 2}, "the document must be 'sapp-ppb-run' version 1 (got 'sapp-ppb-run' version 2)"),
        ({"interleave": 2}, "forward_ms must list 4 cells, stages x interleave (got 2)"),
        ({"step_ms": float("nan")}, "step_ms must be a finite number (got nan)"),
        ({"forward_ms": []}, "forward_ms must be a list of milliseconds, one a cell (got [])"),
    ],
)
def test_what_can_not_be_is_refused(tmp_path, changes, fault):
    assert faults(written(tmp_path, **changes))[0] == fault


def test_a_schedule_that_does_not_take_the_sizes_is_refused(tmp_path):
    path = written(
        tmp_path, interleave=2, **{key: [1.0] * 4 for key in ("forward_ms", "backward_ms", "weight_ms")}
    )
    assert "1f1b" in faults(path)[0]


def test_a_key_that_is_not_known_is_noted(tmp_path):
    with pytest.warns(FileNote, match="'steps' is unknown and ignored; the nearest known key is step_ms"):
        read_run_file(written(tmp_path, steps=[1]))


def test_a_run_file_is_known_by_its_beginning(tmp_path):
    assert is_run_file(written(tmp_path))
    assert is_run_file(written(tmp_path, RUN, RUN))
    trace = tmp_path / "trace.json"
    trace.write_text("[]", encoding="utf-8")
    assert not is_run_file(trace)
    assert not is_run_file(tmp_path / "none.json")
