"""``--stage-speed``, ``--step-extra`` and ``--reorder-stages``: unequal devices on the command line."""

import json

import pytest

from tests.cli.check.conftest import ALONE, EVEN
from tests.cli.conftest import QUICK, SIZES, one_message

SPEEDS = ("--stage-speed", "0.5,1")


def test_speeds_have_a_column_and_are_said_in_the_title(model_file, run):
    stdout = run("plan", model_file(), *QUICK, *SPEEDS).stdout
    assert stdout.startswith("tiny: 10 layers on 2 stages, 4 micro-batches, 1f1b, speeds 0.5 to 1\n")
    rows = [line.split() for line in stdout.splitlines()[2:5]]
    assert rows[0] == ["stage", "layers", "speed", "busy", "peak,", "MB"]
    assert ["0.5" in rows[1], "1" in rows[2]] == [True, True]
    assert "speed" not in run("plan", model_file(), *QUICK).stdout


def test_a_plan_on_unequal_devices_is_read_back_and_timed_the_same(model_file, run, tmp_path):
    words = (*QUICK, *SPEEDS, "--step-extra", "3,500", "-mem", "1200")
    assert run("plan", model_file(), *words, "-o", tmp_path / "out").exit_code == 0
    path = tmp_path / "out" / "plan.json"
    planned = json.loads(path.read_text())
    assert planned["problem"]["stage_speed"] == [0.5, 1.0]
    assert planned["problem"]["step_extra_ms"] == [3.0, 500.0]
    assert planned["outcome"]["step_ms"] >= planned["outcome"]["makespan_ms"] + 3
    result = run("simulate", model_file(), path, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    timed = json.loads(result.stdout)
    assert timed["outcome"] | {"status": None} == planned["outcome"] | {"status": None}
    trace = json.loads((tmp_path / "out" / "trace.json").read_text())
    assert trace["otherData"]["step_ms"] == planned["outcome"]["step_ms"]


def test_the_step_is_printed_apart_from_the_makespan(model_file, run):
    stdout = run("plan", model_file(), *QUICK, "--step-extra", "7").stdout
    rows = dict(
        line.split(maxsplit=1) for line in stdout.splitlines() if line[:9] in ("makespan ", "step     ")
    )
    makespan, step = (float(rows[name].split()[0].replace(",", "")) for name in ("makespan", "step"))
    # 1F1B ends on stage 0, which has 7 ms to do then.
    assert step == pytest.approx(makespan + 7)
    assert "with time outside the pipeline; stage 0 ends it, 7 ms after its last op" in rows["step"]
    assert "step, ms" in stdout


def test_the_order_of_the_stages_is_chosen_where_that_is_allowed(model_file, run, tmp_path):
    # HEAD is lighter than TAIL, so the slower device is better first than last, or the same.
    words = (*QUICK, "--stage-speed", "1,0.5")
    given = json.loads(run("plan", model_file(), *words, "--json").stdout)
    result = run("plan", model_file(), *words, "--reorder-stages", "-o", tmp_path / "out")
    chosen = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert (
        chosen["outcome"]["step_ms" if "step_ms" in chosen["outcome"] else "makespan_ms"]
        <= (given["outcome"]["makespan_ms"])
    )
    order = chosen["outcome"]["stage_order"]
    assert chosen["problem"]["stage_speed"] == [(1.0, 0.5)[device] for device in order]
    assert f"{order[0]} {order[1]}: for each stage its device" in result.stdout
    again = run("simulate", model_file(), tmp_path / "out" / "plan.json", "--json")
    assert json.loads(again.stdout)["outcome"]["stage_order"] == order


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--stage-speed", "1,x"), "--stage-speed: 'x' is not a number of times the measured speed"),
        (("--stage-speed", "1,0"), "stage-speed must be a number from 0.001 to 1,000"),
        (("--stage-speed", "1,nan"), "stage-speed must be a number from 0.001 to 1,000"),
        (("--stage-speed", "1,1,1"), "stage-speed must be one number or 2 of them (got 3)"),
        (("--step-extra", "-1"), "step-extra must be a number of at least 0 ms"),
        (("--step-extra", "1,2,3"), "step-extra must be one number or 2 of them (got 3)"),
        (("--reorder-stages",), "needs stages that differ, and all are alike"),
        (("--reorder-stages", *SPEEDS, "--schedule", "auto"), "--reorder-stages: goes with one schedule"),
    ],
)
def test_what_can_not_be_is_refused(words, said, model_file, run):
    assert said in one_message(run("plan", model_file(), *QUICK, *words))


def test_simulate_takes_them_for_a_manual_plan_alone(model_file, run, tmp_path):
    manual = tmp_path / "manual.yaml"
    manual.write_text("mine: {offset: 0, recompute: false}", encoding="utf-8")
    options = (*SIZES, "--stage-speed", "0.5", "--step-extra", "10")
    usual = json.loads(run("simulate", model_file(), manual, *SIZES, "--json").stdout)["outcome"]
    slow = json.loads(run("simulate", model_file(), manual, *options, "--json").stdout)["outcome"]
    # Both stages at half the speed take twice the time, and 10 ms come behind stage 0.
    assert slow["makespan_ms"] == pytest.approx(2 * usual["makespan_ms"])
    assert slow["step_ms"] == pytest.approx(slow["makespan_ms"] + 10)
    run("plan", model_file(), *QUICK, "-o", tmp_path / "out")
    said = one_message(run("simulate", model_file(), tmp_path / "out" / "plan.json", *options[4:]))
    assert "leave out --stage-speed, --step-extra" in said


def test_compare_and_noise_and_explain_know_them(model_file, run):
    options = (*SPEEDS, "--step-extra", "9")
    document = json.loads(run("compare", model_file(), *QUICK, *options, "--json").stdout)
    assert document["problem"]["stage_speed"] == [0.5, 1.0]
    first = document["rows"][0]
    assert first["step_ms"] == pytest.approx(first["makespan_ms"] + 9)
    for row in document["rows"]:
        assert row["ratio"] == pytest.approx(row["step_ms"] / first["step_ms"])
    stdout = run("plan", model_file(), *QUICK, *options, "--noise", "5%", "--explain").stdout
    assert "what limits this plan" in stdout
    assert "when the times of layers vary" in stdout


def test_check_and_simulate_price_a_configuration_on_unequal_devices(model_file, run, tmp_path):
    # 5 + 5 layers of 10 + 20 ms, stage 1 at 0.5: its 4 x 300 ms stand behind a forward of 50 and before a
    # backward of 100: 1350, and 10 ms come behind stage 0.
    script = tmp_path / "run.sh"
    script.write_text(EVEN, encoding="utf-8")
    words = ("--stage-speed", "1,0.5", "--step-extra", "10,0", "--json")
    document = json.loads(run("check", script, "--model", model_file(ALONE), "-t", "1", *words).stdout)
    assert (document["price"]["makespan_ms"], document["price"]["step_ms"]) == (1350, 1360)
    # 7 + 3 layers take 210 and 180 ms: the planner's answer is shorter, whatever it is.
    assert document["planner"]["shorter"] > 0
    timed = json.loads(run("simulate", model_file(ALONE), script, *words).stdout)
    assert timed["outcome"]["step_ms"] == 1360
    assert timed["problem"]["stage_speed"] == [1.0, 0.5]
