"""``sapp-ppb costs hf``: a config in, a model file of estimates out, and every output says what it is."""

import json
from pathlib import Path

import pytest

from sapp_ppb.costs import Cost
from sapp_ppb.readers import read_model

CONFIGS = Path(__file__).parents[2] / "data" / "hf_configs"
LLAMA, DEEPSEEK = CONFIGS / "llama3.1_70b_config.json", CONFIGS / "deepseek_v3_config.json"
SETUPS = {
    LLAMA: ("--device", "a100", "--tp", "8", "--dp", "4", "--seq", "4096"),
    DEEPSEEK: ("--device", "h100", "--dp", "128", "--ep", "64", "--seq", "4096"),
}
PROBLEMS = {
    LLAMA: ("-s", "8", "-mb", "16", "-mem", "20000", "-t", "0.5"),
    DEEPSEEK: ("-s", "16", "-mb", "32", "-mem", "60000", "--min-layers", "0", "-t", "0.5"),
}
SAID = "times and memory are estimates"


@pytest.fixture(params=[LLAMA, DEEPSEEK], ids=["llama", "deepseek"])
def estimated(request, run, tmp_path):
    """Model file of a config, and a problem to plan with it."""
    path = tmp_path / "model.json"
    result = run("costs", "hf", request.param, *SETUPS[request.param], "-o", path)
    assert result.exit_code == 0
    return path, PROBLEMS[request.param]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # Published counts, see tests/estimation/test_transformer_model.py.
        ("llama3.1_8b", "8,030,261,248"),
        ("llama3.1_70b", "70,553,706,496"),
        ("qwen3_32b", "32,762,123,264"),
        ("qwen3_30b_a3b", "30,532,122,624, of which a token runs through 3,353,032,704"),
        ("deepseek_v3", "671,026,419,200, of which a token runs through 37,552,297,472"),
    ],
)
def test_every_config_is_priced_and_its_parameters_are_the_published_ones(run, name, parameters):
    result = run("costs", "hf", CONFIGS / f"{name}_config.json", "--device", "h100", "--seq", "4096")
    assert result.exit_code == 0
    assert f"parameters       {parameters}\n" in result.stdout
    assert "estimated from sizes and speeds, nothing was measured" in result.stdout
    assert SAID in result.stdout


def test_the_model_file_marks_what_it_holds_as_estimates(run, tmp_path):
    path = tmp_path / "model.json"
    result = run("costs", "hf", DEEPSEEK, *SETUPS[DEEPSEEK], "-o", path, "--name", "mine")
    assert f"wrote {path}" in result.stderr
    document = json.loads(path.read_text(encoding="utf-8"))
    assert [entry["source"] for entry in document["layers_description"]] == ["estimate"] * 5
    assert [entry.get("mtp") for entry in document["layers_description"]] == [None, None, None, True, None]
    model = read_model(path)
    assert (model.name, model.mtp_count, model.estimated) == ("mine", 1, frozenset(Cost))
    # The table of memory: 2,230.5 MB a layer of experts (test_transformer_parts.py adds it up).
    assert model.bodies[1].activation_mb[0] == 2230.5
    assert "2,230.5" in result.stdout


def test_json_is_the_model_file_and_nothing_else(run, tmp_path):
    result = run("costs", "hf", LLAMA, *SETUPS[LLAMA], "--json")
    (tmp_path / "model.json").write_bytes(result.stdout_bytes)
    assert read_model(tmp_path / "model.json").body_count == 80
    assert result.stderr == ""


def test_what_is_set_changes_what_it_should(run, tmp_path):
    def body(*words):
        result = run("costs", "hf", LLAMA, "--device", "a100", "--tp", "8", "--seq", "4096", *words, "--json")
        (tmp_path / "model.json").write_bytes(result.stdout_bytes)
        return read_model(tmp_path / "model.json").bodies[0]

    usual = body()
    # 2as^2b/t of scores for the fp32 number of each head and token: 256 - 0.125 MB more.
    assert body("--no-flash").activation_mb[0] == usual.activation_mb[0] + 255.875
    # Norms in and out, 8h bytes a token, are whole on each of 8 devices.
    whole = 8 * 8192 * 4096 * 7 / 8 / 2**20
    assert body("--no-sequence-parallel").activation_mb[0] == usual.activation_mb[0] + whole
    assert body("--micro-batch", "2").activation_mb[0] == 2 * usual.activation_mb[0]
    # 2 + 4 + 12 bytes against 2 + 2 + 16, and all of it over 4 devices.
    assert body("--dtype", "fp16").parameter_mb == pytest.approx(usual.parameter_mb * 20 / 18)
    assert body("--dp", "4", "--zero", "3").parameter_mb == pytest.approx(usual.parameter_mb / 4)


def test_a_device_of_ones_own_is_read(run, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: slow\npeak_tflop_per_s: 100\nachievable_fraction: 0.5\nmemory_mb: 32768\n"
        "memory_gb_per_s: 800\nlink_gb_per_s: 50\nnetwork_gb_per_s: 10\n",
        encoding="utf-8",
    )
    result = run("costs", "hf", LLAMA, "--device", path, "--seq", "4096")
    assert "llama3.1_70b_config on slow: estimated" in result.stdout
    path.write_text("name: slow\n", encoding="utf-8")
    result = run("costs", "hf", LLAMA, "--device", path, "--seq", "4096")
    assert result.exit_code == 2
    assert f"{path}: 6 faults" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--device", "a100", "--seq", "4095", "--tp", "6"),
            "--tp must divide --seq 4095 with --sequence-par",
        ),
        (("--device", "a100", "--seq", "4096", "--tp", "6"), "--tp must divide the 64 heads (got 6)"),
        (("--device", "a100", "--seq", "0"), "--seq must be an integer of at least 1 (got 0)"),
        (("--device", "a100", "--seq", "1", "--micro-batch", "0"), "--micro-batch must be an integer of at"),
        (("--device", "a100", "--seq", "1", "--dp", "4", "--ep", "3"), "--ep must divide --dp 4 (got 3)"),
        (("--device", "a100", "--seq", "1", "--zero", "4"), "--zero must be 0, 1, 2 or 3 (got 4)"),
        (
            ("--device", "a100", "--seq", "1", "--dtype", "fp8"),
            "--dtype: 'fp8' is unknown; one of bf16, fp16",
        ),
        (("--device", "v100", "--seq", "1"), "--device: 'v100' is no device known here and no file"),
    ],
)
def test_what_does_not_fit_is_said_in_the_options_that_give_it(run, words, said):
    result = run("costs", "hf", LLAMA, *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_a_broken_config_is_refused_with_all_its_faults(run, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama", "hidden_size": 0}', encoding="utf-8")
    result = run("costs", "hf", path, "--device", "a100", "--seq", "1")
    assert result.exit_code == 2
    assert f"{path}: 5 faults" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_existing_file_is_kept_unless_forced(run, tmp_path):
    path = tmp_path / "model.json"
    path.write_text("mine", encoding="utf-8")
    words = ("costs", "hf", LLAMA, *SETUPS[LLAMA], "-o", path)
    assert run(*words).exit_code == 2
    assert path.read_text(encoding="utf-8") == "mine"
    assert run(*words, "--force").exit_code == 0


def test_a_plan_of_estimates_says_so_wherever_it_is_shown(estimated, run, tmp_path):
    model, words = estimated
    out = tmp_path / "out"
    result = run("plan", model, *words, "-o", out)
    assert result.exit_code == 0, result.stderr
    first = result.stdout.splitlines()[0]
    assert first.endswith(f"; {SAID}")
    assert f"estimate      {SAID}, not measured; measure before the plan is relied upon" in result.stdout
    assert json.loads((out / "plan.json").read_text(encoding="utf-8"))["problem"]["estimate"] is True
    assert json.loads((out / "trace.json").read_text(encoding="utf-8"))["otherData"]["estimate"] is True
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count(SAID) == 2  # in the heading and among what is known
    assert SAID in run("simulate", model, out / "plan.json").stdout
    again = json.loads(run("simulate", model, out / "plan.json", "--json").stdout)
    assert again["problem"]["estimate"] is True


def test_a_comparison_of_estimates_says_so(estimated, run):
    model, words = estimated
    result = run("compare", model, *words)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].endswith(f"; {SAID}")
    assert f"estimate: {SAID}, not measured" in result.stdout
    assert json.loads(run("compare", model, *words, "--json").stdout)["problem"]["estimate"] is True


def test_no_plan_of_estimates_says_so_too(run, tmp_path):
    path = tmp_path / "model.json"
    run("costs", "hf", LLAMA, *SETUPS[LLAMA], "-o", path)
    words = ("-s", "4", "-mb", "8", "-mem", "9000", "-t", "0.5", "-o", tmp_path / "out")
    result = run("plan", path, *words)
    assert result.exit_code == 1
    assert f"estimate  {SAID}" in result.stdout
    assert SAID in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_model_that_was_measured_says_nothing_of_estimates(model_file, run, tmp_path):
    result = run("plan", model_file(), "-s", "2", "-mb", "4", "-t", "0.1", "-o", tmp_path / "out")
    assert "estimate" not in result.stdout
    assert "estimate" not in (tmp_path / "out" / "plan.json").read_text(encoding="utf-8")
    assert "estimate" not in (tmp_path / "out" / "trace.json").read_text(encoding="utf-8")
