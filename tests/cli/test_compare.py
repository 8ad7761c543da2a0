"""``sapp-ppb compare``: one table of the planner's answer, the baselines and one's own plans."""

import json

import pytest

SIZES = ("-s", "2", "-mb", "4", "-t", "0.2")
BASELINES = (
    "even split, no recompute",
    "even split, full recompute",
    "bottleneck partition, no recompute",
)


@pytest.fixture
def manual_file(tmp_path):
    """Write a manual YAML."""

    def write(content):
        path = tmp_path / "manual.yaml"
        path.write_text(content, encoding="utf-8")
        return path

    return write


@pytest.fixture
def plan_file(model_file, run, tmp_path):
    """Plan the small model with these options."""

    def write(*words):
        folder = tmp_path / "planned"
        assert run("plan", model_file(), *words, "-o", folder, "--force").exit_code == 0
        return folder / "plan.json"

    return write


def test_the_table_has_a_row_for_the_planner_the_baselines_and_every_plan_given(
    model_file, manual_file, plan_file, run
):
    manual = manual_file("mine: {offset: 0, recompute: true}\nyours: {offset: [1, -1]}")
    path = plan_file(*SIZES)
    result = run("compare", model_file(), path, manual, *SIZES)
    assert (result.exit_code, result.stderr) == (0, "")
    rows = result.stdout.split("\n\n")[1].splitlines()  # a second table follows where paths are long
    for name in ("planner ", *BASELINES, "mine ", "yours ", str(path)):
        assert sum(line.startswith(name) for line in rows) == 1, name
    assert "runs as" not in result.stdout


def test_json_has_the_numbers_of_every_row(model_file, manual_file, run):
    # Cells of mine: Emb 5 + 5 x 10 = 55 ms and 5 x 10 + Out 8 = 58 ms forward.  Backward, full recompute:
    # 10 + 5 x 30 = 160 and 5 x 30 + 16 = 166 ms.  1F1B, two stages, M = 4, stage 1 the slower: its
    # work 4 x (58 + 166) stands behind one forward of stage 0 and before one backward of it:
    # 55 + 896 + 160 = 1111 ms.
    manual = manual_file("mine: {offset: 0, recompute: true}")
    result = run("compare", model_file(), manual, *SIZES, "-mem", "1200", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["problem"]["memory_limit_mb"] == 1200
    planner, mine = document["rows"][0], document["rows"][-1]
    assert [row["name"] for row in document["rows"]] == ["planner", *BASELINES, "mine"]
    assert mine["makespan_ms"] == 1111
    assert mine["ratio"] == pytest.approx(1111 / planner["makespan_ms"], rel=1e-12)
    assert (mine["fits"], mine["recomputed_layers"]) == (True, 10)
    # Stage 0: 150 + 5 x 100 + 2 live x 5 x 4 = 690 MB; stage 1: 120 + 500 + 1 x 20 = 640 MB.
    assert mine["peak_memory_mb"] == [690, 640]
    assert set(mine["bubble"]) == {"total", "fill_drain", "imbalance", "recompute", "communication"}
    assert (mine["interleave"], mine["schedule"]) == (1, "1f1b")
    assert planner["ratio"] == 1


def test_a_plan_over_its_limit_is_shown_and_marked(model_file, manual_file, run):
    # Without recompute stage 0 holds 150 + 5 x 100 + 2 x 5 x 60 = 1250 MB, stage 1 120 + 500 + 300 = 920.
    manual = manual_file("mine: {offset: 0}")
    words = ("compare", model_file(), manual, *SIZES, "-mem", "1200")
    (line,) = (line for line in run(*words).stdout.splitlines() if line.startswith("mine"))
    assert "1,250  over on 1 " in line
    assert json.loads(run(*words, "--json").stdout)["rows"][-1]["fits"] is False


def test_plans_of_other_chunks_run_as_they_are(model_file, manual_file, plan_file, run):
    manual = manual_file("mine: {offset: [[-1, 1], [1, 1]], interleave_num: 2}")
    path = plan_file("-s", "2", "-mb", "4", "-i", "2", "-t", "0.2", "--schedule", "interleaved-less-memory")
    result = run("compare", model_file(), manual, path, *SIZES)
    lines = {line.split("  ")[0]: line for line in result.stdout.splitlines()}
    assert lines["planner"].endswith("  1f1b")
    assert lines["mine"].endswith("  interleaved x 2")
    assert lines[str(path)].endswith("  interleaved-less-memory x 2")


def test_a_plan_file_is_timed_under_what_is_given_now(model_file, plan_file, run):
    path = plan_file(*SIZES, "-mem", "1200")
    result = run("compare", model_file(), path, "-s", "2", "-mb", "8", "-t", "0.2", "--json")
    assert result.stderr == (
        f"note: {path}: timed with micro_batches 8 (4 in the file), "
        "memory_limit_mb none (1,200 in the file)\n"
    )
    assert json.loads(result.stdout)["rows"][-1]["fits"] is True


def test_a_faster_plan_of_ones_own_is_named(model_file, manual_file, run):
    # Two chunks shorten the fill, and the planner was asked for one.
    manual = manual_file("mine: {offset: [[0, 1], [1, 0]], interleave_num: 2}")
    stdout = run("compare", model_file(), manual, *SIZES).stdout
    assert "faster than the planner's answer, and fits: mine" in stdout


def test_nothing_fits_is_exit_1_with_the_other_rows(model_file, run):
    words = ("compare", model_file(), "-s", "2", "-mb", "4", "-t", "5", "-mem", "600")
    result = run(*words)
    assert result.exit_code == 1
    assert "planner                             no plan fits\n" in result.stdout
    assert "no plan fits; 'sapp-ppb plan' with the same options says what would do" in result.stdout
    rows = json.loads(run(*words, "--json").stdout)["rows"]
    assert rows[0] == {
        "name": "planner",
        "makespan_ms": None,
        "ratio": None,
        "bubble": None,
        "peak_memory_mb": None,
        "fits": False,
        "recomputed_layers": None,
    }
    assert rows[1]["makespan_ms"] > 0
    assert rows[1]["ratio"] is None


def test_a_narrow_terminal_gets_two_tables(model_file, run, monkeypatch):
    monkeypatch.setattr("sapp_ppb.cli.text.comparison.terminal_columns", lambda: 80)
    stdout = run("compare", model_file(), *SIZES, "-mem", "1200").stdout
    assert sum(line.startswith("planner ") for line in stdout.splitlines()) == 2


class TestOutput:
    def test_the_document_goes_to_the_folder(self, model_file, run, tmp_path):
        result = run("compare", model_file(), *SIZES, "-o", tmp_path / "out", "--json")
        written = tmp_path / "out" / "compare.json"
        assert result.stdout_bytes == written.read_bytes()
        assert f"wrote {tmp_path / 'out'}: compare.json, compare.png, compare.svg" in result.stderr
        assert (tmp_path / "out" / "compare.png").read_bytes().startswith(b"\x89PNG")

    def test_a_file_that_exists_is_kept_without_force(self, model_file, run, tmp_path):
        (tmp_path / "compare.json").write_text("mine")
        result = run("compare", model_file(), *SIZES, "-o", tmp_path)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "compare.json: the file exists; give --force to replace it" in result.stderr
        assert (tmp_path / "compare.json").read_text() == "mine"
        assert run("compare", model_file(), *SIZES, "-o", tmp_path, "--force").exit_code == 0


class TestRefusals:
    def refused(self, result):
        assert (result.exit_code, result.stdout) == (2, "")
        assert "Traceback" not in result.stderr
        assert result.stderr.count("error: ") == 1
        return result.stderr

    def test_a_plan_of_other_stages(self, model_file, plan_file, run):
        path = plan_file("-s", "3", "-mb", "4", "-t", "0.2")
        message = self.refused(run("compare", model_file(), path, *SIZES))
        assert message == f"error: {path}: is a plan for 3 stages, not 2; give one for as many\n"

    def test_a_plan_of_another_model(self, model_file, plan_file, run):
        path = plan_file(*SIZES)
        message = self.refused(run("compare", model_file(nb_layer=11), path, *SIZES))
        assert f"{path}: Dec must have 11 layers in all (got 10)" in message

    def test_a_file_without_a_plan(self, model_file, run, tmp_path):
        run("plan", model_file(), "-s", "2", "-mb", "4", "-mem", "600", "-t", "5", "-o", tmp_path)
        message = self.refused(run("compare", model_file(), tmp_path / "plan.json", *SIZES))
        assert "holds no plan, because none fits" in message

    def test_a_plan_whose_group_the_micro_batches_do_not_take(self, model_file, plan_file, run):
        path = plan_file("-s", "2", "-mb", "4", "-i", "2", "--micro-batch-group", "4", "-t", "0.2")
        message = self.refused(run("compare", model_file(), path, "-s", "2", "-mb", "3", "-t", "0.2"))
        assert message.startswith(f"error: {path}: interleaved")

    def test_a_manual_file_that_is_none(self, model_file, manual_file, run):
        path = manual_file("mine: {offset: [0, 1]}")
        message = self.refused(run("compare", model_file(), path, *SIZES))
        assert message.startswith(f"error: {path}: mine.offset (line 1) must add up to 10 mod 2 = 0")

    def test_a_missing_file(self, model_file, run, tmp_path):
        assert "there is no such file" in self.refused(
            run("compare", model_file(), tmp_path / "none.yaml", *SIZES)
        )

    def test_a_model_file_in_the_place_of_a_plan(self, model_file, run):
        message = self.refused(run("compare", model_file(), model_file(), *SIZES))
        assert "is a model file, not a plan file" in message


class TestNamesAndPictures:
    def test_plans_of_one_name_stay_apart(self, model_file, manual_file, run, tmp_path):
        first = manual_file("mine: {offset: 0}\nplanner: {offset: 0}")
        second = tmp_path / "second.yaml"
        second.write_text("mine: {offset: [1, -1]}", encoding="utf-8")
        rows = json.loads(run("compare", model_file(), first, second, first, *SIZES, "--json").stdout)["rows"]
        assert [row["name"] for row in rows[4:]] == [
            "mine",
            f"planner ({first})",
            f"mine ({second})",
            f"mine ({first})",
            "planner (3)",
        ]

    def test_a_plan_with_a_file_name_gets_a_picture_of_its_own(self, model_file, manual_file, run, tmp_path):
        manual = manual_file("mine: {offset: 0, file_name: mine.svg}")
        folder = tmp_path / "out"
        result = run("compare", model_file(), manual, *SIZES, "-o", folder)
        assert result.exit_code == 0
        assert sorted(path.name for path in folder.iterdir()) == [
            "compare.json",
            "compare.png",
            "compare.svg",
            "mine.svg",
        ]
        again = run("compare", model_file(), manual, *SIZES, "-o", folder)
        assert again.exit_code == 2
        assert "mine.svg exist; give --force to replace them" in again.stderr

    def test_two_files_that_ask_for_one_picture_are_refused(self, model_file, manual_file, run, tmp_path):
        first = manual_file("mine: {offset: 0, file_name: x.svg}")
        second = tmp_path / "second.yaml"
        second.write_text("yours: {offset: 0, file_name: x.svg}", encoding="utf-8")
        result = run("compare", model_file(), first, second, *SIZES)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "yours.file_name is 'x.svg', as in a file before" in result.stderr


MEGATRON = """--pipeline-model-parallel-size 2 --num-layers 10 --pipeline-model-parallel-layout 'Et*7|t*3L'
--recompute-granularity full --recompute-method uniform --recompute-num-layers 1
"""


def test_a_frameworks_configuration_is_a_plan_of_ones_own(model_file, tmp_path, run):
    path = tmp_path / "run.sh"
    path.write_text(MEGATRON, encoding="utf-8")
    result = run("compare", model_file(), path, *SIZES, "--json")
    row = json.loads(result.stdout)["rows"][-1]
    assert (row["name"], row["recomputed_layers"], row["schedule"]) == (str(path), 10, "1f1b")
    # Emb 5 + 7 x 10 = 75 ms, and backward 10 + 7 x 30 = 220.  Stage 1, 3 x 10 + 8 = 38 and 3 x 30 + 16 = 106,
    # ends its first backward at 75 + 38 + 106 = 219, when stage 0 has done two forwards; after that stage 0
    # works without a pause: 219 + 4 x 220 + 2 x 75.
    assert row["makespan_ms"] == 1249.0
    assert (result.exit_code, result.stderr) == (0, "")


def test_rules_that_a_configuration_breaks_are_noted(model_file, tmp_path, run):
    path = tmp_path / "run.sh"
    path.write_text(MEGATRON.replace("uniform", "half"), encoding="utf-8")
    result = run("compare", model_file(), path, *SIZES)
    assert f"note: {path}: breaks a rule: --recompute-method: " in result.stderr
    assert result.exit_code == 0


def test_a_configuration_of_other_stages_is_refused(model_file, tmp_path, run):
    path = tmp_path / "run.sh"
    path.write_text(MEGATRON, encoding="utf-8")
    result = run("compare", model_file(), path, "-s", "3", "-mb", "6")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"error: {path}: has 2 stages, not 3; give --stages 2" in result.stderr


def test_a_configuration_can_be_timed(model_file, tmp_path, run):
    path = tmp_path / "run.sh"
    path.write_text(MEGATRON, encoding="utf-8")
    result = run("simulate", model_file(), path, "-mb", "4", "-mem", "5000", "--json")
    document = json.loads(result.stdout)
    assert document["outcome"]["makespan_ms"] == 1249.0
    assert document["problem"]["memory_limit_mb"] == 5000
    missing = run("simulate", model_file(), path)
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert "does not say the number of micro-batches; give --micro-batches" in missing.stderr
    named = run("simulate", model_file(), path, "-mb", "4", "--entry", "mine")
    assert (named.exit_code, named.stdout) == (2, "")
    assert "--entry: names a plan of a manual YAML" in named.stderr


def test_a_configuration_without_an_order_is_bad_input(model_file, tmp_path, run):
    path = tmp_path / "run.sh"
    path.write_text(MEGATRON.replace("Et*7|t*3L", "Et*4|t*2|t*2|t*2L"), encoding="utf-8")
    result = run("simulate", model_file(), path, "-mb", "3")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "3 micro-batches are not a multiple of 2 stages" in result.stderr
