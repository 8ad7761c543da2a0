"""``sapp-ppb calibrate``: two numbers into a model file, and how far every run is off."""

import json

import pytest

from sapp_ppb.readers import read_model, read_plan
from sapp_ppb.simulator import Besides


@pytest.fixture
def table(model_file, run, tmp_path):
    """Write steps of three plans as they would be with 0.5 ms an op and 2 ms a hop, and some error."""

    def write(*errors, overhead_ms=0.5, hop_ms=2.0):
        model = read_model(model_file())
        lines = ["plan,step_ms"]
        sizes = (("2", "4"), ("3", "4"), ("3", "9"), ("2", "16"), ("4", "8"))
        for (stages, micro_batches), error in zip(sizes, errors, strict=False):
            folder = tmp_path / f"s{stages}m{micro_batches}"
            words = ("-s", stages, "-mb", micro_batches, "-t", "0.1", "--json")
            folder.with_suffix(".json").write_bytes(run("plan", model_file(), *words).stdout_bytes)
            plan = read_plan(folder.with_suffix(".json"), model).plan
            assert plan is not None
            step_ms = Besides(plan).step(overhead_ms, hop_ms).makespan_ms * (1 + error)
            lines.append(f"{folder.name}.json,{step_ms!r}")
        path = tmp_path / "steps.csv"
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    return write


def test_both_numbers_are_found_and_written_into_the_model(model_file, run, table, tmp_path):
    written = tmp_path / "calibrated.json"
    result = run("calibrate", model_file(), table(0, 0, 0), "-o", written)
    assert result.exit_code == 0
    model = read_model(written)
    assert [model.op_overhead_ms, model.hop_ms] == pytest.approx([0.5, 2.0], abs=1e-5)
    assert json.loads(written.read_text())["op_overhead_ms"] == model.op_overhead_ms
    assert model.layers == read_model(model_file()).layers
    assert f"wrote {written}" in result.stderr
    assert "warning" not in result.stderr
    for word in (
        "overhead of an op  0.5 ms",
        "time of a hop      2 ms",
        "s2m4.json",
        "+0.0%",
        "when left out",
    ):
        assert word in result.stdout


def test_a_plan_takes_its_measured_time_with_the_calibrated_model(model_file, run, table, tmp_path):
    steps = table(0, 0, 0)
    written = tmp_path / "calibrated.json"
    run("calibrate", model_file(), steps, "-o", written)
    name, step_ms = steps.read_text().splitlines()[2].split(",")
    result = run("simulate", written, tmp_path / name, "--json")
    assert "the model is another" in result.stderr  # the plan file says the time without the numbers
    assert json.loads(result.stdout)["outcome"]["makespan_ms"] == pytest.approx(float(step_ms), rel=1e-6)


def test_json_has_every_number(model_file, run, table):
    result = run("calibrate", model_file(), table(0.01, -0.01, 0.01), "--json")
    document = json.loads(result.stdout)
    assert set(document) == {"op_overhead_ms", "hop_ms", "undetermined", "median_error", "runs"}
    assert document["undetermined"] == []
    errors = [abs(row["error"]["after"]) for row in document["runs"]]
    assert document["median_error"]["after"] == pytest.approx(sorted(errors)[1])
    for row in document["runs"]:
        for when in ("before", "after", "left_out"):
            assert row["error"][when] == pytest.approx(row["simulated_ms"][when] / row["step_ms"] - 1)


def test_errors_above_5_percent_are_warned_of(model_file, run, table):
    result = run("calibrate", model_file(), table(0.0, 0.3, 0.0, 0.3, 0.0))
    assert result.exit_code == 0
    assert "runs are off by more than 5% even so" in result.stderr
    assert "a run that is left out of the fit is off by" in result.stderr


def test_a_single_run_says_that_it_does_not_tell_the_numbers_apart(model_file, run, table):
    result = run("calibrate", model_file(), table(0.0))
    assert result.exit_code == 0
    assert (
        "note: the runs do not tell op_overhead_ms and hop_ms apart; give runs of other sizes"
        in result.stderr
    )
    assert "left out" not in result.stdout.splitlines()[-1]


def test_a_model_that_has_numbers_is_judged_by_them_before(model_file, run, table, tmp_path):
    written = tmp_path / "calibrated.json"
    steps = table(0, 0, 0)
    run("calibrate", model_file(), steps, "-o", written)
    document = json.loads(run("calibrate", written, steps, "--json").stdout)
    assert document["median_error"]["before"] == pytest.approx(0.0, abs=1e-6)


def test_what_can_not_be_read_is_refused_with_one_message(model_file, run, table, tmp_path):
    steps = table(0)
    (tmp_path / "there.json").write_text("{}")
    for words, fault in (
        ((model_file(), tmp_path / "none.csv"), "there is no such file; check the path"),
        ((model_file(), steps, "-o", tmp_path / "there.json"), "the file exists; give --force to replace it"),
        ((steps, steps), "is no JSON; a model file is"),
    ):
        result = run("calibrate", *words)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert result.stderr.count("error: ") == 1
        assert fault in result.stderr
