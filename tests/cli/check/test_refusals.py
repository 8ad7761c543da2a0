"""``sapp-ppb check``: what can not be read, or does not go with the model."""

import pytest

from tests.cli.check.conftest import ALONE, EVEN


def test_a_model_of_another_size_is_bad_input(config, model_file, run):
    result = run("check", config(EVEN), "--model", model_file(nb_layer=12))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "has 10 layers, and the model 'tiny' has 12 BODY layers" in result.stderr


def test_a_type_that_is_not_measured_is_bad_input_and_names_the_key(config, model_file, run):
    text = EVEN + "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
    result = run("check", config(text), "--model", model_file(memory_recompute=0))
    assert result.exit_code == 2
    assert "add memory_recompute in MB to this layer" in result.stderr


@pytest.mark.parametrize(
    ("name", "text", "words", "said"),
    [
        ("a.yaml", "parallel_config: [1\n", (), "the YAML is broken at line"),
        ("job.toml", "[parallelism\n", (), "the TOML is broken at line 1"),
        ("a.txt", "nothing of interest", (), "is no configuration that is known"),
        ("a.txt", "", (), "is no configuration that is known"),
        ("plan.json", '{"format": "sapp-ppb-plan"}', (), "is a plan file and no configuration"),
        ("model.json", '{"layers_description": []}', (), "is a model file and no configuration"),
        (
            "run.sh",
            EVEN,
            ("--from", "jax"),
            "--from: 'jax' is unknown; one of mindformers, megatron, torchtitan",
        ),
        ("run.sh", EVEN, ("--schedule", "auto"), "--schedule: auto goes with sapp-ppb plan"),
        ("run.sh", EVEN, ("-mem", "many"), "--memory-limit: 'many' is not a number of MB"),
    ],
)
def test_what_can_not_be_read_is_exit_2(name, text, words, said, config, run):
    result = run("check", config(text, name), *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_stages_of_another_split_are_refused(config, model_file, run):
    result = run("check", config(EVEN), "--model", model_file(ALONE), "-s", "4")
    assert result.exit_code == 2
    assert "has 2 stages, not 4; give --stages 2" in result.stderr
