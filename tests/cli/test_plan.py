"""``sapp-ppb plan``: exit codes, where what is printed, and one clear message for every fault."""

import hashlib
import json
import os

import pytest

from sapp_ppb.cli.options import numbers, share
from sapp_ppb.errors import InputError, NoPlanFoundError
from tests.cli.conftest import BODY, HEAD

SIZES = ("-s", "2", "-mb", "4")
QUICK = (*SIZES, "-t", "0.2")


def one_message(result, code=2):
    """Message of a refusal: a single one, on stderr, without a traceback."""
    assert result.exit_code == code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.count("error: ") == 1
    return result.stderr


def test_a_plan_is_printed_with_all_that_is_known_of_it(model_file, run):
    result = run("plan", model_file(), *QUICK, "-mem", "1200")
    assert result.exit_code == 0
    for word in (
        "tiny: 10 layers on 2 stages, 4 micro-batches, 1f1b",
        "head + ",
        " + tail",
        "of 1,200 MB",
        "makespan",
        "lower bound",
        "gap",
        "status",
        "stopped by",
        "bubble",
        "highest peak",
        "planned in",
        "even split, full recompute",
        "offset: [[",
        "recompute: [[",
        "select_recompute: [[",
        "select_comm_recompute: [[",
    ):
        assert word in result.stdout


def test_what_is_piped_is_plain(model_file, run):
    stdout = run("plan", model_file(), *QUICK).stdout
    assert "\x1b" not in stdout
    assert not any(line.endswith(" ") for line in stdout.splitlines())


def test_json_is_the_plan_file_and_nothing_else(model_file, run, tmp_path):
    result = run("plan", model_file(), *QUICK, "-mem", "1200", "-o", tmp_path / "out", "--json")
    assert result.exit_code == 0
    written = (tmp_path / "out" / "plan.json").read_bytes()
    assert result.stdout_bytes == written
    document = json.loads(written)
    assert document["problem"] == {
        "stages": 2,
        "interleave": 1,
        "micro_batches": 4,
        "schedule": "1f1b",
        "memory_limit_mb": 1200,
        "constant_memory_mb": 0,
        "p2p_ms": 0.0,
        "min_layers_per_cell": 1,
    }
    assert max(document["outcome"]["peak_memory_mb"]) <= 1200


def test_every_flag_reaches_the_problem(model_file, run):
    result = run(
        *("plan", model_file(), *SIZES, "-i", "2", "-t", "0.2", "--schedule", "interleaved", "--seed", "3"),
        *("--micro-batch-group", "remainder-first", "-mem", "3000,3100", "-mc", "5.5", "--p2p", "0.5,0.25"),
        *("--min-layers", "0", "--target", "mindformers", "--gap", "90%", "--json"),
        *("--recompute", "full,none", "--memory-margin", "2.50%"),
    )
    document = json.loads(result.stdout)
    assert document["problem"] == {
        "stages": 2,
        "interleave": 2,
        "micro_batches": 4,
        "schedule": "interleaved",
        "memory_limit_mb": [3000, 3100],
        "constant_memory_mb": 5.5,
        "p2p_ms": [0.5, 0.25],
        "min_layers_per_cell": 0,
        "micro_batch_group": "remainder-first",
        "target": "mindformers",
        "recompute": ["none", "full"],
        "memory_margin": "2.5%",
    }
    assert document["outcome"]["seed"] == 3


def test_the_same_words_give_the_same_plan(model_file, run):
    words = ("plan", model_file(), "-s", "2", "-mb", "8", "-i", "2", "-t", "0.2", "-mem", "1500", "--json")
    first, second = (json.loads(run(*words).stdout) for _ in range(2))
    assert first["counts"] == second["counts"]


class TestAPlanThatExists:
    """``--warm-start`` and ``--fix``."""

    @pytest.fixture
    def plan_path(self, model_file, run, tmp_path):
        run("plan", model_file(), *QUICK, "-mem", "1200", "-o", tmp_path)
        return tmp_path / "plan.json"

    def test_keeps_its_split_while_recompute_is_chosen_anew(self, model_file, plan_path, run):
        before = json.loads(plan_path.read_text())["counts"]["Dec"]
        stdout = run("plan", model_file(), *QUICK, "-mem", "1300", "--fix", plan_path, "--json").stdout
        document = json.loads(stdout)
        counts = document["counts"]["Dec"]
        split = [sum(matrix[0][stage] for matrix in before.values()) for stage in (0, 1)]
        assert document["problem"]["fix"] == {"layers": [split]}
        assert [sum(matrix[0][stage] for matrix in counts.values()) for stage in (0, 1)] == split

    def test_keeps_its_recompute_while_the_split_is_chosen_anew(self, model_file, plan_path, run):
        result = run("plan", model_file(), *QUICK, "--fix", plan_path, "--keep", "recompute")
        assert "no plan within the limits and with this recompute is faster" in result.stdout

    def test_is_where_a_run_begins(self, model_file, plan_path, run):
        makespan = json.loads(plan_path.read_text())["outcome"]["makespan_ms"]
        warm = ("--warm-start", plan_path, "-mem", "1200", "--json")
        again = json.loads(run("plan", model_file(), *SIZES, "-t", "1e-6", *warm).stdout)
        assert again["outcome"]["makespan_ms"] <= makespan

    def test_for_other_stages_is_refused(self, model_file, plan_path, run):
        said = one_message(run("plan", model_file(), "-s", "1", "-mb", "4", "--warm-start", plan_path))
        assert "the plan is for 2 stages x 1 chunks, the problem has 1 stages x 1 chunks" in said

    def test_that_says_nothing_fits_is_refused(self, model_file, run, tmp_path):
        run("plan", model_file(), *QUICK, "-mem", "10", "-o", tmp_path)
        said = one_message(run("plan", model_file(), *QUICK, "--fix", tmp_path / "plan.json"))
        assert "holds no plan" in said

    @pytest.mark.parametrize(
        ("words", "said"),
        [(("--keep", "split"), "there is no --fix"), (("--fix", "p", "--keep", "all"), "'all' is unknown")],
    )
    def test_is_kept_in_part_only_as_the_words_allow(self, words, said, model_file, run):
        assert said in one_message(run("plan", model_file(), *QUICK, *words))


class TestEverySchedule:
    """``--schedule auto``."""

    def test_prints_a_row_a_schedule_below_the_best_plan(self, model_file, run):
        stdout = run("plan", model_file(), *SIZES, "-t", "1", "--schedule", "auto").stdout
        rows = stdout[stdout.index("schedule  ") :].splitlines()[1:]
        found = [row.split()[0] for row in rows if row.strip()]
        assert {"1f1b", "gpipe", "zbv", "dualpipev", "interleaved"} <= set(found)
        assert f", {found[0]}\n" in stdout.splitlines(keepends=True)[0]

    def test_gives_the_plan_file_of_the_best(self, model_file, run):
        text = run("plan", model_file(), *SIZES, "-t", "1", "--schedule", "auto", "--json").stdout
        best = json.loads(text)
        one = json.loads(run("plan", model_file(), *SIZES, "-t", "1", "--json").stdout)
        assert best["problem"]["schedule"] != "auto"
        assert best["outcome"]["makespan_ms"] <= one["outcome"]["makespan_ms"]

    def test_exits_with_1_when_nothing_fits_under_any(self, model_file, run):
        result = run("plan", model_file(), *SIZES, "-t", "1", "--schedule", "auto", "-mem", "10")
        assert result.exit_code == 1
        assert "no plan fits" in result.stdout

    @pytest.mark.parametrize("option", ["--fix", "--warm-start"])
    def test_takes_no_plan_of_one_schedule(self, option, model_file, run):
        said = one_message(run("plan", model_file(), *SIZES, "--schedule", "auto", option, "plan.json"))
        assert "goes with one schedule" in said

    def test_is_for_plan_alone(self, model_file, run):
        said = one_message(run("compare", model_file(), *SIZES, "--schedule", "auto"))
        assert "auto goes with sapp-ppb plan" in said


class TestNothingFits:
    WORDS = (*SIZES, "-mem", "600", "-t", "5")  # the parameters alone take (150 + 1000 + 120) / 2 = 635

    def test_exit_1_and_what_would_do(self, model_file, run):
        result = run("plan", model_file(), *self.WORDS)
        assert (result.exit_code, result.stderr) == (1, "")
        assert "no plan fits" in result.stdout
        assert "--memory-limit" in result.stdout

    def test_the_limit_that_would_do_does(self, model_file, run):
        stdout = run("plan", model_file(), *self.WORDS).stdout
        limit = stdout.split("--memory-limit ")[1].split(")")[0]
        assert run("plan", model_file(), *SIZES, "-mem", limit, "-t", "5").exit_code == 0

    def test_a_type_that_is_forbidden_would_do(self, model_file, run):
        # 6 layers on stage 1: 120 + 6 x (100 + 60) = 1080 MB; on stage 0 with two live 150 + 4 x 220 = 1030.
        # SELECTIVE takes 6 x 15 = 90 MB off stage 1 and 4 x 2 x 15 = 120 off stage 0: 990 and 910 MB.
        words = ("plan", model_file(), *SIZES, "-mem", "1000", "--recompute", "none", "-t", "5")
        result = run(*words)
        assert result.exit_code == 1
        assert "recompute selective too (--recompute none,selective)" in result.stdout
        remedies = json.loads(run(*words, "--json").stdout)["outcome"]["infeasible"]["remedies"]
        assert {"change": "recompute", "value": "selective"} in remedies

    def test_a_limit_includes_the_margin(self, model_file, run):
        words = ("plan", model_file(), *SIZES, "-t", "5", "--memory-margin", "10%", "-mem")
        limit = run(*words, "600").stdout.split("--memory-limit ")[1].split(")")[0]
        assert run(*words, limit).exit_code == 0

    def test_json_says_it_too(self, model_file, run, tmp_path):
        result = run("plan", model_file(), *self.WORDS, "--json", "-o", tmp_path / "out")
        assert result.exit_code == 1
        document = json.loads(result.stdout)
        assert "counts" not in document
        assert document["outcome"]["status"] == "infeasible"
        assert document["outcome"]["infeasible"]["over_mb"] > 0
        assert (tmp_path / "out" / "plan.json").read_text(encoding="utf-8") == result.stdout


class TestRefusals:
    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("", "the file is empty"),
            ("{", "the JSON is broken at line 1"),
            ('{"name": "m", "layers_description": []}', "layers_description must be a list of at least one"),
            ("[]", "must hold a JSON object"),
        ],
    )
    def test_of_a_file(self, content, said, run, tmp_path):
        path = tmp_path / "model.json"
        path.write_text(content, encoding="utf-8")
        message = one_message(run("plan", path, *SIZES))
        assert message.startswith(f"error: {path}: ")
        assert said in message

    def test_of_a_missing_file(self, run, tmp_path):
        assert "there is no such file" in one_message(run("plan", tmp_path / "no.json", *SIZES))

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"time": float("nan")}, "time must be a finite number (got nan)"),
            ({"memory_activation": -60}, "memory_activation must be a number of at least 0 (got -60)"),
            ({"memory_parameter": -1}, "memory_parameter must be a number of at least 0 (got -1)"),
            ({"nb_layer": 0}, "nb_layer must be an integer of at least 1 (got 0)"),
        ],
    )
    def test_of_a_layer(self, changes, said, model_file, run):
        assert said in one_message(run("plan", model_file(**changes), *SIZES))

    def test_of_two_layers_of_one_name(self, model_file, run):
        message = one_message(run("plan", model_file(layers=[BODY, BODY]), *SIZES))
        assert "layer names must be unique (got 'Dec' 2 times)" in message

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("-s", "2", "-mb", "0"), "micro-batches must be a whole number of at least 1 (got 0)"),
            (("-s", "0", "-mb", "4"), "stages must be a whole number of at least 1 (got 0)"),
            (("-s", "-4", "-mb", "4"), "stages must be a whole number of at least 1 (got -4)"),
            ((*SIZES, "-i", "0"), "interleave must be a whole number of at least 1 (got 0)"),
            (("-s", "8", "-mb", "8", "-i", "2"), "10 BODY layers are too few"),
            ((*SIZES, "-mem", "-5"), "memory-limit must be a number of at least 0 MB (got -5.0)"),
            ((*SIZES, "-mem", "nan"), "memory-limit must be a number of at least 0 MB (got nan)"),
            ((*SIZES, "-mem", "1,2,3"), "memory-limit must be one number or 2 of them (got 3)"),
            ((*SIZES, "-mem", "56GB"), "--memory-limit: '56GB' is not a number of MB; write 57344 for 56 GB"),
            ((*SIZES, "-mem", "56,000"), "write 56000"),
            ((*SIZES, "-mem", ""), "--memory-limit: '' is not a number of MB"),
            ((*SIZES, "--p2p", "x"), "--p2p: 'x' is not a number of ms"),
            ((*SIZES, "--recompute", "ful"), "--recompute: 'ful' is unknown; one or more of none, selective"),
            ((*SIZES, "--recompute", ""), "--recompute: '' is unknown"),
            (
                (*SIZES, "--recompute", "comm"),
                "layer 'Dec' can be none, selective, full, and recompute allows",
            ),
            ((*SIZES, "--memory-margin", "5%"), "there is none; give --memory-limit"),
            ((*SIZES, "-mem", "900", "--memory-margin", "100%"), "from 0% to below 100% (got '100%')"),
            (
                (*SIZES, "-mem", "900", "--memory-margin", "-1"),
                "memory-margin must be a number of at least 0",
            ),
            ((*SIZES, "-mem", "900", "--memory-margin", "900"), "must be below the memory limit of 900 MB"),
            ((*SIZES, "--memory-margin", "5MB"), "--memory-margin: '5MB' is neither a number of MB nor"),
            (
                (*SIZES, "--tokens-per-micro-batch", "0"),
                "--tokens-per-micro-batch: must be at least 1 (got 0)",
            ),
            ((*SIZES, "--explain", "--json"), "--explain: adds to the table"),
            ((*SIZES, "-o", ""), "--output: must name a folder (got '')"),
            ((*SIZES, "--gap", "much"), "--gap: 'much' is not a share such as 0.01 or 1%"),
            ((*SIZES, "--gap", "200%"), "gap must be"),
            ((*SIZES, "-t", "-1"), "time-limit must be"),
            ((*SIZES, "--seed", "-1"), "seed must be"),
            ((*SIZES, "--schedule", "2f2b"), "--schedule: '2f2b' is unknown; one of gpipe, 1f1b"),
            ((*SIZES, "--schedule", "gpipe", "-i", "2"), "gpipe: chunks must be 1 (got 2)"),
            ((*SIZES, "--micro-batch-group", "x"), "--micro-batch-group: 'x' is neither a whole number nor"),
            ((*SIZES, "--target", "fairscale"), "target: 'fairscale' is unknown; one of mindformers"),
        ],
    )
    def test_of_an_option(self, words, said, model_file, run):
        assert said in one_message(run("plan", model_file(), *words))

    def test_of_a_plan_file_that_exists_comes_before_any_planning(
        self, model_file, run, tmp_path, monkeypatch
    ):
        (tmp_path / "plan.json").write_text("mine", encoding="utf-8")
        monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", lambda *_, **__: pytest.fail("planned"))
        assert "the file exists; give --force" in one_message(
            run("plan", model_file(), *SIZES, "-o", tmp_path)
        )

    @pytest.mark.parametrize(
        ("place", "said"),
        [("file/out", "is no folder"), ("taken", "is a folder where plan.json should be")],
    )
    def test_of_an_output_that_can_not_be_written_comes_before_any_planning(
        self, place, said, model_file, run, tmp_path, monkeypatch
    ):
        (tmp_path / "file").write_text("mine", encoding="utf-8")
        (tmp_path / "taken" / "plan.json").mkdir(parents=True)
        monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", lambda *_, **__: pytest.fail("planned"))
        assert said in one_message(run("plan", model_file(), *SIZES, "-o", tmp_path / place, "--force"))

    def test_of_a_folder_without_permission_comes_before_any_planning(
        self, model_file, run, tmp_path, monkeypatch
    ):
        # The tests may run as root, who may write everywhere.
        monkeypatch.setattr("os.access", lambda _, mode, **__: not mode & os.W_OK)
        monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", lambda *_, **__: pytest.fail("planned"))
        message = one_message(run("plan", model_file(), *SIZES, "-o", tmp_path / "new" / "out"))
        assert message == f"error: {tmp_path}: the folder may not be written to; give another --output\n"

    def test_of_a_path_never_steers_the_terminal(self, run):
        assert one_message(run("plan", "a\x1b[31m.json", *SIZES)).startswith(r"error: a\x1b[31m.json: ")

    def test_of_a_plan_file_in_the_place_of_the_model(self, model_file, run, tmp_path):
        run("plan", model_file(), *QUICK, "-o", tmp_path)
        message = one_message(run("plan", tmp_path / "plan.json", *SIZES))
        assert "is a plan file, not a model file" in message
        assert "note: " not in message

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (
                "name,kind,forward_ms\nDec,BODY,1\n",
                "is no JSON; a model file is, and sapp-ppb costs makes one",
            ),
            ('{"model_type": "llama", "num_hidden_layers": 32}', "sapp-ppb costs hf makes one of it"),
        ],
    )
    def test_of_what_a_model_file_is_made_of(self, text, said, run, tmp_path):
        (tmp_path / "layers").write_text(text, encoding="utf-8")
        message = one_message(run("plan", tmp_path / "layers", *SIZES))
        assert said in message
        assert "note: " not in message

    def test_of_a_file_where_the_folder_should_be(self, model_file, run, tmp_path):
        (tmp_path / "out").write_text("mine", encoding="utf-8")
        message = one_message(run("plan", model_file(), *SIZES, "-o", tmp_path / "out"))
        assert "is no folder" in message


def test_a_plan_that_can_not_be_printed_is_written_all_the_same(model_file, run, monkeypatch, tmp_path):
    def full(_):
        raise InputError("stdout", ["the result can not be written (No space left on device)"])

    monkeypatch.setattr("sapp_ppb.cli.plan.write_document", full)
    assert run("plan", model_file(), *QUICK, "-o", tmp_path, "--json").exit_code == 2
    assert (tmp_path / "plan.json").exists()


def test_a_plan_that_can_not_be_written_is_printed_all_the_same(model_file, run, monkeypatch, tmp_path):
    def full(*_):
        raise InputError("plan.json", ["can not be written (No space left on device)"])

    monkeypatch.setattr("sapp_ppb.writers.write_plan", full)
    result = run("plan", model_file(), *QUICK, "-o", tmp_path, "--json")
    assert (result.exit_code, json.loads(result.stdout)["version"]) == (2, 1)
    assert "No space left" in result.stderr


def test_notes_of_the_model_file_go_to_stderr(model_file, run):
    result = run("plan", model_file(nb_layers=3), *QUICK, "--json")
    assert result.exit_code == 0
    json.loads(result.stdout)
    assert result.stderr.startswith("note: ")
    assert "nearest known key is nb_layer" in result.stderr


def test_a_limit_that_is_not_given_is_noted(model_file, run):
    assert "note: no memory limit is given" in run("plan", model_file(), *QUICK).stderr
    assert run("plan", model_file(), *QUICK, "-mem", "1200").stderr == ""


def test_layers_without_memory_are_noted_beside_a_limit(model_file, run):
    layers = [{"name": "Dec", "type": "BODY", "nb_layer": 4, "time": 1}]
    said = run("plan", model_file(layers=layers), *QUICK, "-mem", "9").stderr
    assert "note: no BODY layer of tiny has memory in the model file" in said


def test_a_limit_in_gigabytes_is_noted(model_file, run):
    # The model needs some hundreds of MB; a limit that is merely too small says nothing of units.
    result = run("plan", model_file(), *QUICK, "-mem", "1")
    assert result.exit_code == 1
    assert "note: memory limits are in MB; 1 GB are 1024 (--memory-limit 1024)" in result.stderr
    assert "limits are in MB" not in run("plan", model_file(), *QUICK, "-mem", "300").stderr


def test_no_plan_in_time_is_exit_3(model_file, run, monkeypatch):
    def none_found(*_, **__):
        raise NoPlanFoundError("no plan was found in 0.1 s")

    monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", none_found)
    assert one_message(run("plan", model_file(), *SIZES), code=3) == "error: no plan was found in 0.1 s\n"


def test_an_interrupt_before_any_plan_is_exit_3(model_file, run, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", interrupted)
    assert "interrupted before any plan" in one_message(run("plan", model_file(), *SIZES), code=3)


def test_an_interrupted_plan_is_printed_and_written_and_exit_3(model_file, run, monkeypatch, tmp_path):
    from dataclasses import replace

    from sapp_ppb.plan import StoppedBy
    from sapp_ppb.planner import plan_pipeline

    def interrupted(*arguments, **options):
        return replace(plan_pipeline(*arguments, **options), stopped_by=StoppedBy.INTERRUPT)

    monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", interrupted)
    result = run("plan", model_file(), *QUICK, "-o", tmp_path)
    assert result.exit_code == 3
    assert "interrupted; this is the best plan until then" in result.stdout
    assert (tmp_path / "plan.json").exists()


def test_selective_beside_comm_is_never_printed_as_lists(model_file, run, tmp_path):
    model = model_file(memory_select_comm=44)
    run("plan", model, *QUICK, "-o", tmp_path)
    document = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    # Stage 0 holds both types, which MindFormers would count as two layers of BOTH.
    document["counts"] = {"Dec": {"none": [[3, 5]], "selective": [[1, 0]], "comm": [[1, 0]]}}
    (tmp_path / "mixed.json").write_text(json.dumps(document), encoding="utf-8")
    result = run("simulate", model, tmp_path / "mixed.json")
    stdout = result.stdout
    assert "the model is another" in result.stderr  # the peaks are not those that were planned
    assert "# SELECTIVE beside COMM in stage 0 chunk 0" in stdout
    assert "# plan with --target mindformers" in stdout
    assert "recompute: [[" not in stdout
    assert "offset: [[0, 0]]" in stdout  # 3 + 1 + 1 and 5, of 10 div 2


def test_the_target_keeps_selective_and_comm_apart(model_file, run):
    model = model_file(memory_select_comm=44)
    stdout = run("plan", model, *QUICK, "-mem", "1000", "--target", "mindformers").stdout
    assert "select_recompute: [[" in stdout


def test_a_plan_for_a_target_is_printed_in_its_words_with_what_that_costs(model_file, run):
    stdout = run("plan", model_file(), *QUICK, "-mem", "1300", "--target", "megatron").stdout
    assert "for Megatron-LM\n--pipeline-model-parallel-size 2" in stdout
    assert "MindFormers lists" not in stdout
    assert "Megatron-LM's limits" in stdout or "what Megatron-LM can not say costs nothing" in stdout
    assert "no plan that Megatron-LM can say within the limits is faster" in stdout


def test_what_a_target_costs_is_in_the_plan_file(model_file, run):
    document = json.loads(
        run("plan", model_file(), *QUICK, "-mem", "1300", "--target", "megatron", "--json").stdout
    )
    outcome = document["outcome"]
    assert outcome["without_target"]["makespan_ms"] <= outcome["makespan_ms"]
    assert outcome["without_target"]["lower_bound_ms"] <= outcome["lower_bound_ms"]


def test_only_the_types_that_are_allowed_are_used(model_file, run):
    words = ("plan", model_file(), *QUICK, "-mem", "1000", "--json")
    free, narrow = (json.loads(run(*words, *more).stdout) for more in ((), ("--recompute", "none,full")))
    # Five layers of 100 + 60 x 2 MB and the head's 150 are 1250 of 1000 MB: some are recomputed.
    assert "selective" in free["counts"]["Dec"]
    assert set(narrow["counts"]["Dec"]) == {"none", "full"}


def test_a_margin_is_kept_free_and_shown(model_file, run):
    words = ("plan", model_file(), *QUICK, "-mem", "1200", "--memory-margin")
    document = json.loads(run(*words, "200", "--json").stdout)
    assert max(document["outcome"]["peak_memory_mb"]) <= 1000
    stdout = run(*words, "10%").stdout
    assert "of 1,080 MB" in stdout  # 1200 - 10 % of it
    assert "1,200 MB, of which a margin of 10% is kept free" in stdout


def test_tokens_per_second(model_file, run):
    stdout = run(
        "plan", model_file(), "-s", "1", "-mb", "4", "-t", "0.2", "--tokens-per-micro-batch", "1000"
    ).stdout
    # One stage: 4 x 3 x (5 + 100 + 8) = 1356 ms, 339 a micro-batch; 4000 / 1.356 = 2949.9.
    assert "step time     339.0 ms per micro-batch" in stdout
    assert "2,950 per second, 1,000 in each of 4 micro-batches" in stdout


def test_an_explanation_says_what_to_buy(model_file, run):
    stdout = run("plan", model_file(), *QUICK, "-mem", "1000", "--explain").stdout
    rows = stdout.split("what limits this plan\n")[1].splitlines()
    names = ("memory", "recompute", "size of layers", "busiest stage", "fill and drain", "most to gain")
    assert [row.split("  ")[0] for row in rows] == list(names)
    # 1000 MB force recompute, which nothing else in this model asks for.
    assert "more memory on every stage" in rows[-1]


def test_several_kinds_are_named_in_the_table(model_file, run):
    dense, moe = BODY | {"name": "Dense", "nb_layer": 4}, BODY | {"name": "Moe", "nb_layer": 6}
    stdout = run("plan", model_file(layers=[HEAD, dense, moe]), *QUICK).stdout
    assert "head + Dense 4" in stdout
    assert "Moe " in stdout


@pytest.mark.parametrize(("text", "value"), [("1%", 0.01), ("0.01", 0.01), (" 2.5 % ".strip(), 0.025)])
def test_shares(text, value):
    assert share("--gap", text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("text", ["", "1,", "1_000", "a,b", "1;2"])
def test_what_is_no_number(text):
    with pytest.raises(InputError, match="is not a number of MB"):
        numbers("--memory-limit", text, "MB")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--schedule", "zbv"), {"schedule": "zbv", "interleave": 2}),
        (
            ("--schedule", "dualpipev", "--overlap-factor", "0.5"),
            {"schedule": "dualpipev", "interleave": 2, "overlap_factor": 0.5},
        ),
        (("--schedule", "seq1f1b", "--sequence-chunks", "2"), {"schedule": "seq1f1b", "sequence_chunks": 2}),
        (("-i", "2", "--p2p-mode", "blocking"), {"schedule": "interleaved", "p2p_mode": "blocking"}),
        (("--schedule", "zb-auto", "--flavour", "torch"), {"schedule": "zb-auto", "flavour": "torch"}),
    ],
)
def test_every_way_of_running_reaches_the_plan_file_and_is_timed_again(
    model_file, run, tmp_path, words, said
):
    model, path = model_file(), tmp_path / "plan.json"
    result = run("plan", model, "-s", "2", "-mb", "4", "-t", "0.3", "--json", *words)
    assert result.exit_code == 0, result.stderr
    problem = json.loads(result.stdout)["problem"]
    assert {key: problem[key] for key in said} == said
    path.write_text(result.stdout, encoding="utf-8")
    again = run("simulate", model, path, "--json")
    assert (again.exit_code, again.stderr) == (0, "")
    makespans = [json.loads(text)["outcome"]["makespan_ms"] for text in (result.stdout, again.stdout)]
    assert makespans[0] == makespans[1]


def test_a_plan_for_an_order_of_ones_own_says_which_file_it_was(model_file, run, tmp_path):
    file = tmp_path / "order.csv"
    file.write_text("0F0,0F1,,0B0,0B1\n,1F0,1B0,1F1,1B1\n", encoding="utf-8")
    result = run("plan", model_file(), "-s", "2", "-mb", "2", "-t", "0.3", "--json", "--order", file)
    problem = json.loads(result.stdout)["problem"]
    assert (problem["schedule"], problem["order"]["path"]) == ("custom", str(file))
    assert problem["order"]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()


def test_an_order_that_waits_for_itself_is_refused_before_anything_is_planned(model_file, run, tmp_path):
    file = tmp_path / "order.csv"
    file.write_text("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", encoding="utf-8")
    result = run("plan", model_file(), "-s", "2", "-mb", "2", "--order", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: {file}: these ops wait for each other: 0B0, 1F1\n"


def test_a_layer_that_can_not_be_split_is_named(model_file, run):
    # forward 10, backward 8: nothing is left for the input gradients.
    result = run("plan", model_file(backward_time=8), "-s", "2", "-mb", "4", "--schedule", "zbv")
    assert result.exit_code == 2
    assert "zbv splits the backward, and layer 'Dec' does not let it: weight_grad_ms must be" in result.stderr


def test_noise_says_how_the_plan_and_others_hold(model_file, run):
    result = run("plan", model_file(), *QUICK, "-mem", "1200", "--noise", "5%")
    assert result.exit_code == 0
    page = result.stdout[result.stdout.index("when the times of layers vary") :]
    assert page.startswith("when the times of layers vary, with a standard deviation of 5 % (200 draws)")
    for word in ("the plan ", "runner-up 1", "95th per-", "median", "95th percentile"):
        assert word in page
    assert run("plan", model_file(), *QUICK, "-mem", "1200", "--noise", "0.05").stdout.endswith(page)


def test_noise_writes_the_plan_that_holds_best_where_it_is_another(run, model_file, tmp_path):
    # The plan of tests/planner/test_robust.py: 3 + 3 layers are faster, 2 + 4 hold better.
    big = {"name": "big", "type": "BODY", "time": 20, "nb_layer": 4}
    small = {"name": "small", "type": "BODY", "time": 10, "nb_layer": 2}
    words = ("-s", "2", "-mb", "16", "-t", "0.2", "--noise", "20%", "-o", tmp_path / "out")
    path = model_file([big, small])
    result = run("plan", path, *words)
    assert "wrote " in result.stderr
    assert "plan-p95.json" in result.stderr
    first, second = (
        json.loads((tmp_path / "out" / name).read_text()) for name in ("plan.json", "plan-p95.json")
    )
    assert first["counts"]["big"]["none"] == [[3, 1]]
    assert second["counts"]["big"]["none"] == [[2, 2]]
    assert second["outcome"]["makespan_ms"] == 3000
    assert second["outcome"]["lower_bound_ms"] == first["outcome"]["lower_bound_ms"]
    assert "its offsets: -1 1" in result.stdout
    again = one_message(run("plan", path, *words))
    assert "plan-p95.json" in again


def test_a_noise_that_can_not_be_is_refused(model_file, run):
    for noise in ("lots", "-1%", "200%", "nan"):
        assert "--noise: " in one_message(run("plan", model_file(), *QUICK, "--noise", noise))
    assert "--noise: adds to the table" in one_message(
        run("plan", model_file(), *QUICK, "--noise", "5%", "--json")
    )


def test_noise_without_a_plan_adds_nothing(model_file, run):
    result = run("plan", model_file(), *QUICK, "-mem", "300", "--noise", "5%")
    assert result.exit_code == 1
    assert "when the times of layers vary" not in result.stdout
