"""Tables of measured steps: plans beside them, and every fault with its line."""

import pytest

from sapp_ppb.costs import LayerKind, Model, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.readers.measurements.step_table import read_step_table
from sapp_ppb.simulator import simulate, timed
from sapp_ppb.writers import write_plan

BODY = layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=10)
MODEL = Model(name="tiny", layers=(BODY,))


@pytest.fixture
def table(tmp_path):
    """Write a table beside two plans: 2 + 2 layers and 3 + 1."""
    for name, counts in (("even.json", [2, 2]), ("uneven.json", [3, 1])):
        plan = plan_from_matrices(
            Problem(model=MODEL, stages=2, micro_batches=4), {"Dec": {"none": [counts]}}
        )
        write_plan(timed(simulate(plan)), tmp_path / name)

    def write(*lines, header="plan,step_ms"):
        path = tmp_path / "steps.csv"
        path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
        return path

    return write


def faults(path):
    with pytest.raises(InputError) as caught:
        read_step_table(path, MODEL)
    return caught.value.faults


def test_a_line_is_a_plan_and_its_step_and_a_plan_may_come_twice(table):
    steps = read_step_table(table("even.json,310.5", " uneven.json , 4e2", "", "even.json,311"), MODEL)
    assert [(step.name, step.step_ms) for step in steps] == [
        ("even.json", 310.5),
        ("uneven.json", 400.0),
        ("even.json", 311.0),
    ]
    assert steps[1].plan.layers_per_cell.tolist() == [3, 1]
    assert steps[1].plan.problem.model is MODEL


def test_names_may_be_quoted_and_the_file_may_begin_with_a_mark(table, tmp_path):
    (tmp_path / "a, b.json").write_bytes((tmp_path / "even.json").read_bytes())
    path = table('"a, b.json",310', header="\ufeffplan,step_ms")
    assert [step.name for step in read_step_table(path, MODEL)] == ["a, b.json"]


def test_all_faults_come_at_once_with_their_lines(table):
    path = table(
        "even.json,-3",
        "even.json,nan",
        "even.json",
        "none.json,5",
        "even.json,1_0",
        ",5",
        "even.json,inf",
        "even.json,x",
    )
    assert faults(path) == (
        "line 2: step_ms must be a number above 0 (got '-3')",
        "line 3: step_ms must be a number above 0 (got 'nan')",
        "line 4 must have 2 entries, plan and step_ms (got 1)",
        f"line 5: {path.parent / 'none.json'}: there is no such file; check the path",
        "line 6: step_ms must be a number above 0 (got '1_0')",
        "line 7: plan must name a plan file (got '')",
        "line 8: step_ms must be a number above 0 (got 'inf')",
        "line 9: step_ms must be a number above 0 (got 'x')",
    )


@pytest.mark.parametrize("name", ["../even.json", "inside/../../even.json", "/etc/passwd", "link.json"])
def test_a_plan_outside_of_the_tables_folder_is_refused(table, tmp_path, name):
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "inside").mkdir()
    (folder / "link.json").symlink_to(tmp_path / "even.json")
    path = folder / "steps.csv"
    path.write_text(f"plan,step_ms\n{name},5\n", encoding="utf-8")
    assert table("even.json,5").exists()
    assert faults(path) == (
        f"line 2: {name}: is outside of the table's folder; copy the plan beside the table",
    )


@pytest.mark.parametrize(
    ("header", "lines", "fault"),
    [
        ("step_ms,plan", ["even.json,5"], "must begin with the header plan,step_ms (got 'step_ms,plan')"),
        (",", [",", ","], "must begin with the header plan,step_ms (got '')"),
        ("plan,step_ms", [], "holds no step below its header; add a line such as plan.json,1234.5"),
        ("plan,step_ms", ['even.json,"5'], "line 2 is no CSV: unexpected end of data"),
    ],
)
def test_what_is_no_table_is_refused(table, header, lines, fault):
    assert faults(table(*lines, header=header)) == (fault,)


def test_a_plan_of_another_model_is_refused_with_its_line(table):
    other = Model(
        name="tiny", layers=(layer_from_times(name="Dec", kind=LayerKind.BODY, count=5, forward_ms=10),)
    )
    with pytest.raises(InputError, match=r"line 2: .*even.json: Dec must have 5 layers in all \(got 4\)"):
        read_step_table(table("even.json,5"), other)
