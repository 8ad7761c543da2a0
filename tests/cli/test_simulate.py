"""``sapp-ppb simulate``: a plan file timed anew."""

import json

import pytest


@pytest.fixture
def plan_file(model_file, run, tmp_path):
    """Plan the small model, and change the plan file's document."""

    def write(change=lambda document: None):
        run(
            "plan",
            model_file(),
            "-s",
            "2",
            "-mb",
            "4",
            "-mem",
            "1200",
            "-t",
            "0.2",
            "-o",
            tmp_path,
            "--force",
        )
        path = tmp_path / "plan.json"
        document = json.loads(path.read_text(encoding="utf-8"))
        change(document)
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    return write


def test_what_was_planned_is_timed_the_same(model_file, plan_file, run):
    path = plan_file()
    result = run("simulate", model_file(), path, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    planned, timed = json.loads(path.read_text(encoding="utf-8")), json.loads(result.stdout)
    assert timed["outcome"].pop("status") == "feasible"
    planned["outcome"].pop("status")
    assert timed == planned


def test_the_table_is_the_planners(model_file, plan_file, run):
    stdout = run("simulate", model_file(), plan_file()).stdout
    for word in ("of 1,200 MB", "makespan", "lower bound", "bubble", "offset: [["):
        assert word in stdout


def test_a_plan_that_meets_its_bound_is_not_said_to_be_beatable(model_file, plan_file, run):
    # Planned it was proven optimal; timing it again proves nothing anew, and takes nothing back.
    stdout = run("simulate", model_file(), plan_file()).stdout
    assert "none can be faster than the lower bound, which this plan meets" in stdout


def test_a_plan_over_its_limit_is_exit_1_and_names_the_stages(model_file, plan_file, run):
    path = plan_file(lambda document: document["problem"].update(memory_limit_mb=[100, 5000]))
    result = run("simulate", model_file(), path)
    assert result.exit_code == 1
    assert "over limit    stage 0 by " in result.stdout
    assert "exceeds the memory limit" in result.stdout
    assert "stage 1 by" not in result.stdout


def test_a_bound_of_other_costs_is_left_out(model_file, plan_file, run):
    path = plan_file()
    result = run("simulate", model_file(time=11), path, "--json")
    assert json.loads(result.stdout)["outcome"]["lower_bound_ms"] is None
    assert result.stderr.startswith(f"note: {path}: says ")


def test_a_bound_of_another_memory_is_left_out(model_file, plan_file, run):
    # With layers that hold less, plans fit that are faster than the old bound: the time alone does not tell.
    path = plan_file()
    result = run("simulate", model_file(memory_parameter=90), path, "--json")
    assert json.loads(result.stdout)["outcome"]["lower_bound_ms"] is None
    assert "MB on stage 0, the simulator" in result.stderr


def test_a_bound_above_its_own_plan_is_left_out(model_file, plan_file, run):
    path = plan_file(lambda document: document["outcome"].update(lower_bound_ms=9e9))
    result = run("simulate", model_file(), path)
    assert "lower bound" not in result.stdout
    assert "which its plan beats" in result.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["problem"].update(target="fairscale"), "problem.target must be one of mindformers"),
        (lambda d: d.update(version=2), "update sapp-ppb"),
        (lambda d: d["counts"]["Dec"].update(none=[[100, 1]]), "Dec must have 10 layers in all"),
    ],
)
def test_a_file_that_is_no_plan_of_the_model_is_refused(change, said, model_file, plan_file, run):
    result = run("simulate", model_file(), plan_file(change))
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_file_without_a_plan_is_refused(model_file, run, tmp_path):
    words = ("-s", "2", "-mb", "4", "-mem", "600", "-t", "5", "-o", tmp_path)
    assert run("plan", model_file(), *words).exit_code == 1
    result = run("simulate", model_file(), tmp_path / "plan.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "holds no plan to time" in result.stderr


class TestManualFiles:
    CONTENT = "mine: {offset: 0, recompute: true}\nyours: {offset: [1, -1], interleave_num: 1}"
    SIZES = ("-s", "2", "-mb", "4")

    @pytest.fixture
    def manual_file(self, tmp_path):
        path = tmp_path / "manual.yml"
        path.write_text(self.CONTENT, encoding="utf-8")
        return path

    def test_one_entry_is_timed(self, model_file, manual_file, run):
        words = ("simulate", model_file(), manual_file, *self.SIZES, "--entry", "mine")
        document = json.loads(run(*words, "--json").stdout)
        # 55 + 4 x (58 + 166) + 160 ms, derived in test_compare.py
        assert document["outcome"]["makespan_ms"] == 1111
        assert document["counts"] == {"Dec": {"full": [[5, 5]]}}
        result = run(*words, "-mem", "600")
        assert result.exit_code == 1
        assert "exceeds the memory limit" in result.stdout
        assert "recompute: [[5, 5]]" in result.stdout

    def test_its_json_is_a_plan_file(self, model_file, manual_file, run, tmp_path):
        words = ("simulate", model_file(), manual_file, *self.SIZES, "--entry", "yours", "--json")
        path = tmp_path / "plan.json"
        path.write_bytes(run(*words).stdout_bytes)
        again = run("simulate", model_file(), path, "--json")
        assert (again.exit_code, again.stderr) == (0, "")
        assert again.stdout_bytes == path.read_bytes()

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ((), "does not say how many; give --stages and --micro-batches"),
            (("-s", "2"), "does not say how many; give --micro-batches"),
            (SIZES, "holds 2 plans; give --entry, one of mine, yours"),
            ((*SIZES, "--entry", "ours"), "--entry: 'ours' is not in "),
            (("-s", "3", "-mb", "4", "--entry", "mine"), "mine.offset (line 1) must add up to 10 mod 3 = 1"),
        ],
    )
    def test_refusals(self, words, said, model_file, manual_file, run):
        result = run("simulate", model_file(), manual_file, *words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert said in result.stderr

    def test_a_plan_file_takes_no_other_problem(self, model_file, plan_file, run):
        result = run("simulate", model_file(), plan_file(), "-mb", "8", "--entry", "a")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "which says its problem itself; leave out --micro-batches, --entry" in result.stderr
