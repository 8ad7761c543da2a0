"""``--output`` and ``--emit-trace``: which files are written, and when none is."""

import json
import subprocess
import sys

import pytest

from sapp_ppb.errors import InputError
from tests.cli.conftest import environment

QUICK = ("-s", "2", "-mb", "4", "-t", "0.2", "-mem", "1200")
PICTURES = ["memory.png", "memory.svg", "stages.png", "stages.svg", "timeline.png", "timeline.svg"]
# The small model's plan recomputes otherwise on each stage, in part by ops.
CONFIGS = ["layers.csv", "mindformers.yaml", "hyperparallel.json", "pytorch.py", "schedule.csv"]
FILES = sorted(["plan.json", "trace.json", "report.html", *PICTURES, *CONFIGS])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def planned(model_file, run, tmp_path):
    """Folder of a plan."""
    assert run("plan", model_file(), *QUICK, "-o", tmp_path / "out").exit_code == 0
    return tmp_path / "out"


def test_a_plan_is_written_with_its_pictures_and_its_trace(model_file, run, tmp_path):
    result = run("plan", model_file(), *QUICK, "-o", tmp_path / "new" / "out")
    folder = tmp_path / "new" / "out"
    assert names(folder) == FILES
    assert result.stderr == (
        f"wrote {folder}: plan.json, timeline.png, timeline.svg, memory.png, memory.svg, stages.png, "
        "stages.svg, trace.json, layers.csv, mindformers.yaml, hyperparallel.json, pytorch.py, schedule.csv, "
        "report.html\n"
    )
    assert all((folder / name).read_bytes().startswith(b"\x89PNG") for name in PICTURES[::2])
    assert all(b"<svg" in (folder / name).read_bytes() for name in PICTURES[1::2])
    outcome = json.loads((folder / "plan.json").read_text(encoding="utf-8"))["outcome"]
    about = json.loads((folder / "trace.json").read_text(encoding="utf-8"))["otherData"]
    assert about["makespan_ms"] == outcome["makespan_ms"]
    assert about["peak_memory_mb"] == outcome["peak_memory_mb"]


def test_the_same_words_write_the_same_pictures(planned, model_file, run):
    before = {name: (planned / name).read_bytes() for name in [*PICTURES, "trace.json"]}
    assert run("plan", model_file(), *QUICK, "-o", planned, "--force").exit_code == 0
    assert before == {name: (planned / name).read_bytes() for name in before}


def test_all_files_that_exist_are_refused_at_once_before_any_planning(planned, model_file, run, monkeypatch):
    monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", lambda *_, **__: pytest.fail("planned"))
    (planned / "plan.json").unlink()
    (planned / "memory.svg").unlink()
    result = run("plan", model_file(), *QUICK, "-o", planned)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"error: {planned}: timeline.png, timeline.svg, memory.png, stages.png, stages.svg, "
        "trace.json, layers.csv, mindformers.yaml, hyperparallel.json, pytorch.py, schedule.csv, report.html "
        "exist; give --force to replace them\n"
    )


def test_one_file_that_exists_is_refused_by_its_path(model_file, run, tmp_path):
    (tmp_path / "trace.json").write_text("mine", encoding="utf-8")
    result = run("plan", model_file(), *QUICK, "-o", tmp_path)
    assert result.stderr == f"error: {tmp_path / 'trace.json'}: the file exists; give --force to replace it\n"


def test_force_replaces_files_one_by_one_and_leaves_others_alone(model_file, run, tmp_path):
    for name in ("plan.json", "memory.png", "mine.txt"):
        (tmp_path / name).write_text("mine", encoding="utf-8")
    assert run("plan", model_file(), *QUICK, "-o", tmp_path, "--force").exit_code == 0
    assert json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["version"] == 1
    assert (tmp_path / "memory.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "mine"


def test_a_folder_in_the_place_of_a_picture_is_refused_before_any_planning(
    model_file, run, tmp_path, monkeypatch
):
    monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", lambda *_, **__: pytest.fail("planned"))
    (tmp_path / "stages.svg").mkdir()
    result = run("plan", model_file(), *QUICK, "-o", tmp_path, "--force")
    assert result.exit_code == 2
    assert "is a folder where stages.svg should be" in result.stderr


def test_a_disk_that_fills_up_leaves_whole_files_and_the_plan_on_the_screen(
    model_file, run, tmp_path, monkeypatch
):
    def full(*_):
        raise InputError("memory.png", ["can not be written (No space left on device); choose another path"])

    monkeypatch.setattr("sapp_ppb.report.memory_picture.draw_memory", full)
    result = run("plan", model_file(), *QUICK, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "makespan" in result.stdout
    assert "No space left" in result.stderr
    assert f"wrote {tmp_path / 'out'}: plan.json, timeline.png, timeline.svg\n" in result.stderr
    assert names(tmp_path / "out") == ["plan.json", "timeline.png", "timeline.svg"]


def test_an_interrupt_while_drawing_keeps_the_plan(model_file, run, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("sapp_ppb.report.timeline_picture.draw_timeline", interrupt)
    result = run("plan", model_file(), *QUICK, "-o", tmp_path / "out")
    assert result.exit_code == 3
    assert "makespan" in result.stdout
    assert names(tmp_path / "out") == ["plan.json"]


def test_when_nothing_fits_there_is_nothing_to_draw(model_file, run, tmp_path):
    words = ("-s", "2", "-mb", "4", "-mem", "600", "-t", "5")
    assert run("plan", model_file(), *words, "-o", tmp_path / "out").exit_code == 1
    assert names(tmp_path / "out") == ["plan.json", "report.html"]


def test_a_plan_that_is_timed_is_written_with_its_pictures_too(planned, model_file, run, tmp_path):
    result = run("simulate", model_file(), planned / "plan.json", "-o", tmp_path / "again")
    assert result.exit_code == 0
    assert names(tmp_path / "again") == FILES
    for name in [*PICTURES, "trace.json"]:
        assert (tmp_path / "again" / name).read_bytes() == (planned / name).read_bytes()


def test_pictures_can_be_added_beside_the_plan_file_that_is_read(planned, model_file, run):
    # Its proof is worth keeping: a plan that is timed anew is only feasible.
    for name in (*PICTURES, *CONFIGS, "trace.json", "report.html"):
        (planned / name).unlink()
    before = (planned / "plan.json").read_bytes()
    result = run("simulate", model_file(), planned / "plan.json", "-o", planned)
    assert result.exit_code == 0
    assert names(planned) == FILES
    assert (planned / "plan.json").read_bytes() == before
    assert "plan.json," not in result.stderr


def test_the_trace_alone(planned, model_file, run, tmp_path):
    path = tmp_path / "a" / "one.json"
    result = run("simulate", model_file(), planned / "plan.json", "--emit-trace", path, "--json")
    assert (result.exit_code, result.stderr) == (0, f"wrote {path}\n")
    assert path.read_bytes() == (planned / "trace.json").read_bytes()
    again = run("simulate", model_file(), planned / "plan.json", "--emit-trace", path)
    assert (again.exit_code, again.stdout) == (2, "")
    assert again.stderr == f"error: {path}: the file exists; give --force to replace it\n"
    assert (
        run("simulate", model_file(), planned / "plan.json", "--emit-trace", path, "--force").exit_code == 0
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--emit-trace", ""), "--emit-trace: must name a file (got '')"),
        (("-o", " "), "--output: must name a folder (got ' ')"),
        (("--timeline", "--json"), "--timeline: adds to the table, and --json prints the plan file alone"),
    ],
)
def test_what_simulate_refuses(words, said, planned, model_file, run):
    result = run("simulate", model_file(), planned / "plan.json", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_nothing_draws_where_no_picture_is_wanted(planned, model_file):
    words = ["sapp-ppb", "simulate", str(model_file()), str(planned / "plan.json"), "--timeline"]
    program = (
        "import sys\n"
        "from sapp_ppb.cli.main import main\n"
        f"sys.argv = {words}\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "assert 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, check=True)


def test_a_framework_that_is_planned_for_gets_its_file_and_no_other_does(model_file, run, tmp_path):
    result = run("plan", model_file(), *QUICK, "--target", "megatron", "-o", tmp_path / "out")
    assert result.exit_code == 0
    configs = [name for name in names(tmp_path / "out") if name.endswith((".csv", ".yaml", ".sh", ".toml"))]
    assert configs == ["layers.csv", "megatron.sh"]
    # What was written is read back as the plan that was written beside it.
    again = run(
        "simulate", model_file(), tmp_path / "out" / "megatron.sh", "-mb", "4", "-mem", "1200", "--json"
    )
    written = json.loads((tmp_path / "out" / "plan.json").read_text(encoding="utf-8"))
    assert json.loads(again.stdout)["counts"] == written["counts"]
    assert json.loads(again.stdout)["outcome"]["makespan_ms"] == written["outcome"]["makespan_ms"]


def test_every_framework_that_can_say_a_plan_gets_a_file(model_file, run, tmp_path):
    words = ("-s", "2", "-mb", "4", "-t", "0.2", "--recompute", "full")
    assert run("plan", model_file(), *words, "-o", tmp_path / "out").exit_code == 0
    configs = {"layers.csv", "mindformers.yaml", "megatron.sh", "torchtitan.toml", "mindspeed.sh"}
    configs |= {"colossalai_plan.py", "deepspeed_plan.py", "pytorch.py", "schedule.csv", "hyperparallel.json"}
    assert configs < set(names(tmp_path / "out"))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for said in ("--pipeline-model-parallel-layout", "module_fqns_per_model_part", "recompute_config"):
        assert said in page


def test_a_file_of_an_earlier_plan_is_pointed_out(planned, model_file, run):
    (planned / "megatron.sh").write_text("--num-layers 4", encoding="utf-8")
    result = run("plan", model_file(), *QUICK, "-o", planned, "--force")
    assert f"note: {planned / 'megatron.sh'} is of an earlier plan; Megatron-LM can not" in result.stderr
    assert (planned / "megatron.sh").read_text(encoding="utf-8") == "--num-layers 4"


def test_a_result_for_hyperparallel_says_what_its_timeline_says(planned):
    outcome = json.loads((planned / "plan.json").read_text(encoding="utf-8"))["outcome"]
    result = json.loads((planned / "hyperparallel.json").read_text(encoding="utf-8"))
    assert result["simulator_end_time"] == outcome["makespan_ms"]
    assert result["simulator_peak_memory"] == outcome["peak_memory_mb"]
    assert result["pipeline_bubble"] == pytest.approx(outcome["bubble"]["total"])
