"""``costs galvatron``, ``costs pipedream`` and ``costs csv``: from a profile to a model file and a plan."""

import json
from pathlib import Path

import pytest

from sapp_ppb.readers import read_model

DATA = Path(__file__).parents[2] / "data" / "profiles"
GALVATRON = (
    *("costs", "galvatron"),
    *("--computation", DATA / "galvatron" / "computation_profiling_bf16_llama2-7b_all.json"),
    *("--memory", DATA / "galvatron" / "memory_profiling_bf16_llama2-7b_all.json"),
)
SIZES = ("--layers", 32, "--tp", 2, "--micro-batch", 8)
VGG = ("costs", "pipedream", DATA / "pipedream" / "vgg16_graph.txt")
TABLE = "name,kind,count,forward_ms,activation_mb,activation_full_mb\nDec,BODY,8,10,60,4\nOut,TAIL,1,5,,\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "tiny.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def refused(result):
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    assert result.stderr.count("error: ") == 1
    return result.stderr


def test_galvatron_makes_a_model_that_can_be_planned(run, tmp_path):
    path = tmp_path / "model.json"
    result = run(*GALVATRON, *SIZES, "-o", path)
    assert result.exit_code == 0
    assert "divided by 2; what its tensor parallelism adds is not in the profile" in result.stderr
    assert result.stdout.startswith("bf16_llama2-7b_all: 32 BODY layers\n")
    model = read_model(path)
    # 3.93697 ms a sample x 8 / 2, and 4 x 778.2236328125 MB / 2.
    assert model.bodies[0].forward_ms == pytest.approx(15.7478919983, rel=1e-11)
    assert model.bodies[0].parameter_mb == 1556.447265625
    planned = run("plan", path, "-s", 4, "-mb", 8, "-mem", 60000, "-t", 0.2, "--json")
    assert json.loads(planned.stdout)["outcome"]["makespan_ms"] > 0


def test_json_is_the_model_file_alone(run, tmp_path):
    path = tmp_path / "model.json"
    result = run(*GALVATRON, *SIZES, "--dp", 8, "--zero", 3, "--name", "mine", "--json", "-o", path)
    assert result.exit_code == 0
    assert result.stdout == path.read_text(encoding="utf-8")
    document = json.loads(result.stdout)
    assert document["name"] == "mine"
    # 1556.447265625 MB over 8 devices.
    assert document["layers_description"][1]["memory_parameter"] == 194.555908203125


def test_pipedream_makes_a_chain(run, tmp_path):
    path = tmp_path / "vgg.json"
    result = run(*VGG, "--states-per-parameter", 3, "-o", path)
    assert result.exit_code == 0
    assert "operators   41, of which the cuts make 36 layers\n" in result.stdout
    model = read_model(path)
    assert model.name == "vgg16_graph"
    # 138,357,544 parameters of 4 bytes, three times.
    assert model.total_parameter_mb == pytest.approx(3 * 4 * 138_357_544 / 2**20)


def test_a_table_makes_a_model(run, table, tmp_path):
    path = tmp_path / "model.json"
    result = run("costs", "csv", table, "-o", path)
    assert result.exit_code == 0
    assert "Dec    BODY      8        10         20            0           60            4\n" in result.stdout
    model = read_model(path)
    assert (model.name, model.body_count, model.total_forward_ms) == ("tiny", 8, 85.0)  # 8 x 10 + 5
    again = refused(run("costs", "csv", table, "-o", path))
    assert "the file exists; give --force" in again
    assert run("costs", "csv", table, "-o", path, "--force", "--json").exit_code == 0


class TestRefusals:
    def test_sizes_that_are_not_given_are_listed(self, run):
        message = refused(run(*GALVATRON))
        assert "3 faults\n  --layers must say how many layers the model has" in message
        assert "--micro-batch must be given: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 were profiled" in message
        assert "--tp must be given: 1, 2, 4, 8 were profiled" in message

    @pytest.mark.parametrize("text", ["0", "x", "1,,2", "-3", "1.5", ""])
    def test_layers_that_are_no_numbers(self, text, run):
        assert "--layers: " in refused(run(*GALVATRON, f"--layers={text}"))

    def test_files_that_are_exchanged(self, run):
        words = list(GALVATRON)
        words[3], words[5] = words[5], words[3]
        assert "is it the memory profile, which --memory takes?" in refused(run(*words, *SIZES))

    @pytest.mark.parametrize(
        ("words", "at"), [((*GALVATRON, *SIZES), 3), ((*GALVATRON, *SIZES), 5), (VGG, 2)]
    )
    def test_broken_copies(self, words, at, run, tmp_path):
        copy = tmp_path / "copy"
        copy.write_text(Path(words[at]).read_text(encoding="utf-8")[:1500], encoding="utf-8")
        message = refused(run(*words[:at], copy, *words[at + 1 :]))
        assert message.startswith(f"error: {copy}: ")

    def test_files_that_are_not_there(self, run, tmp_path):
        for words in (VGG[:2], ("costs", "csv")):
            assert "there is no such file" in refused(run(*words, tmp_path / "none"))

    def test_a_table_with_a_fault(self, run, table):
        table.write_text(TABLE.replace("10", "nan"), encoding="utf-8")
        assert "line 2: forward_ms must be a number above 0 (got 'nan')" in refused(
            run("costs", "csv", table)
        )
