"""Settings are found wherever Python configurations give them, and nothing is guessed."""

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.python_settings import Unread, read_python_settings

KEYS = ("pipeline_parallel_degree", "local_batch_size", "selective_ac_option", "module_fqns_per_model_part")


def read(tmp_path, text, function=None):
    path = tmp_path / "registry.py"
    path.write_text(text)
    return read_python_settings(path, KEYS, function)


def parallelism(tmp_path, text, function=None):
    return read(tmp_path, text, function)["parallelism"]


@pytest.mark.parametrize(
    "text",
    [
        "c = Trainer.Config(parallelism=ParallelismConfig(pipeline_parallel_degree=4))",
        "config.parallelism.pipeline_parallel_degree = 4",
        "pipeline_parallel_degree: int = 4",
        "job = {'parallelism': {'pipeline_parallel_degree': 4}}",
        "config.parallelism = replace(config.parallelism, pipeline_parallel_degree=4)",
        "class Job:\n    pipeline_parallel_degree: int = 4",
        "DEGREE = 4\nx = ParallelismConfig(pipeline_parallel_degree=DEGREE)",
        "config.parallelism.pipeline_parallel_degree = 2\nconfig.parallelism.pipeline_parallel_degree = 4",
    ],
)
def test_each_way_to_give_a_setting(tmp_path, text):
    assert parallelism(tmp_path, text) == {"pipeline_parallel_degree": 4}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = C(activation_checkpoint=ActivationCheckpointConfig(mode='full'))", {"mode": "full"}),
        ("x = C(activation_checkpoint=ActivationCheckpointConfig())", {"mode": "selective"}),
        ("x = C(activation_checkpoint=FullAC.Config())", {"mode": "full"}),
        ("x = SelectiveAC.Config()", {"mode": "selective", "selective_ac_option": "op"}),
        ("c.activation_checkpoint = None", {"mode": "none"}),
        ("c.activation_checkpoint.mode = 'none'", {"mode": "none"}),
        ("c = {'activation_checkpoint': {'mode': 'full'}, 'comm': {'mode': 'x'}}", {"mode": "full"}),
        ("c = CommConfig(mode='fake_backend')", {}),
        ("c.activation_checkpoint = FullAC.Config()\nc.activation_checkpoint = None", {"mode": "none"}),
    ],
)
def test_each_way_to_give_checkpointing(tmp_path, text, expected):
    assert read(tmp_path, text)["activation_checkpoint"] == expected


def test_a_new_object_forgets_what_the_old_one_said(tmp_path):
    text = "p = ParallelismConfig(pipeline_parallel_degree=4)\np = ParallelismConfig()\n"
    assert parallelism(tmp_path, text) == {}


TWO = """
def _base():
    return Config(training=TrainingConfig(local_batch_size=2))

def small():
    config = _base()
    config.parallelism.pipeline_parallel_degree = 2
    return config

def large():
    config = small()
    config.parallelism.pipeline_parallel_degree = 8
    return config

def helper(path):
    return path
"""


def test_one_of_several_configurations_must_be_named(tmp_path):
    with pytest.raises(InputError, match=r"holds 2 configurations \(small, large\); name one as FILE::small"):
        read(tmp_path, TWO)
    with pytest.raises(InputError, match="has no function 'huge'; it has _base, small, large, helper"):
        read(tmp_path, TWO, "huge")


def test_a_function_starts_from_what_another_returns(tmp_path):
    found = read(tmp_path, TWO, "large")
    assert found["training"] == {"local_batch_size": 2}
    assert found["parallelism"] == {"pipeline_parallel_degree": 8}


def test_the_only_configuration_needs_no_name(tmp_path):
    text = (
        "def job():\n    return ParallelismConfig(pipeline_parallel_degree=4)\ndef other():\n    return 1\n"
    )
    assert parallelism(tmp_path, text) == {"pipeline_parallel_degree": 4}


def test_what_only_running_shows_is_unread_with_its_line(tmp_path):
    found = parallelism(tmp_path, "import os\nx.pipeline_parallel_degree = int(os.environ['PP'])")
    value = found["pipeline_parallel_degree"]
    assert isinstance(value, Unread)
    assert value.why.startswith("line 2 gives \"int(os.environ['PP'])\"")


@pytest.mark.parametrize(
    "text",
    [
        "if big:\n    c.pipeline_parallel_degree = 8\nelse:\n    c.pipeline_parallel_degree = 2",
        "for d in (2, 4):\n    c.pipeline_parallel_degree = 8",
        "x = f(pipeline_parallel_degree=8) if big else None",
        "c.pipeline_parallel_degree = 2\nc.pipeline_parallel_degree *= 2",
    ],
)
def test_what_is_given_under_a_condition_is_unread(tmp_path, text):
    assert isinstance(parallelism(tmp_path, text)["pipeline_parallel_degree"], Unread)


def test_nothing_in_the_file_is_run(tmp_path):
    trap = tmp_path / "trap"
    read(tmp_path, f"open({str(trap)!r}, 'w').write('x')\nc.pipeline_parallel_degree = 1")
    assert not trap.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def (", "the Python is broken at line 1: "),
        ("x = 1\n\tif", "the Python is broken at line 2: "),
        ("a\0b", "the Python (can not be read|is broken)"),
        ("x = " + "(" * 5000 + ")" * 5000, "the Python is (nested too deep|broken)"),
        ("x = " + "-" * 50_000 + "1", "the Python is (nested too deep|broken)"),
    ],
)
def test_what_is_no_python_is_refused(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        read(tmp_path, text)


def test_a_configuration_that_calls_itself_ends(tmp_path):
    text = "def f():\n    f()\n    c.pipeline_parallel_degree = 2\n"
    assert parallelism(tmp_path, text) == {"pipeline_parallel_degree": 2}


def test_functions_that_call_one_another_twice_and_twice_again_are_not_followed_for_ever(tmp_path):
    # Each calls the next one twice, so the last would be read 2^30 times.
    calls = "".join(f"def f{i}():\n    f{i + 1}()\n    f{i + 1}()\n" for i in range(30))
    with pytest.raises(InputError, match="the Python is nested too deep"):
        read(tmp_path, calls + "def f30():\n    c.pipeline_parallel_degree = 2\n", "f0")
