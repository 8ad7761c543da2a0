"""Scripts of DeepSpeed: boundaries, what they break, and what is not known."""

import json

import pytest

from sapp_ppb.readers.frameworks.deepspeed_config import read_deepspeed, uniform_parts


def read(tmp_path, text, layers=None, name="model.py"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_deepspeed(path, layers)


def labels(config):
    assert config.types is not None
    return ["".join(r.label[0] for r in cell) for cell in config.types[0]]


def test_a_script_of_ones_own_is_read(tmp_path):
    text = "parts = [0, 4, 7, 10]\nMICRO_BATCHES = 8\n"
    text += "net = Planned(layers, activation_checkpoint_interval=1, num_stages=3)"
    config = read(tmp_path, text)
    # 10 entries less one before and one behind: 3, 3 and 2 layers.
    assert (labels(config), config.layers, config.micro_batches) == (["fff", "fff", "ff"], 8, 8)
    assert (config.stages, config.broken, config.unknown) == (3, (), ())
    assert "without checkpointable_layers embedding and head are recomputed too" in config.notes[0]


def test_entries_beside_the_layers_are_those_of_the_file(tmp_path):
    text = "PARTS = [0, 4, 10]\nENTRIES_BEFORE = 2\nENTRIES_BEHIND = 3\n"
    assert labels(read(tmp_path, text)) == ["nn", "nnn"]


def test_layers_that_are_named_leave_nothing_to_say(tmp_path):
    text = "PARTS = [0, 3, 6]\nM(activation_checkpoint_interval=1, checkpointable_layers=['Block'])"
    assert read(tmp_path, text).notes == ()


def test_groups_of_layers_are_noted(tmp_path):
    config = read(tmp_path, "PARTS = [0, 3, 6]\nACTIVATION_CHECKPOINT_INTERVAL = 4")
    assert labels(config) == ["ff", "ff"]
    assert "activation_checkpoint_interval 4 keeps one input for 4 layers" in config.notes[0]


def test_json_has_the_same_names_and_deepspeeds_own(tmp_path):
    values = {
        "parts": [0, 3, 6],
        "gradient_accumulation_steps": 5,
        "pipeline": {"activation_checkpoint_interval": 1},
    }
    config = read(tmp_path, json.dumps(values), name="ds.json")
    assert (labels(config), config.micro_batches) == (["ff", "ff"], 5)


def test_uniform_boundaries_are_deepspeeds(tmp_path):
    text = "PipelineModule(layers, num_stages=4, partition_method='Uniform')"
    # 11 layers and 2 entries beside them: 4, 3, 3, 3, of which the ends hold one other entry each.
    assert labels(read(tmp_path, text, layers=11)) == ["nnn", "nnn", "nnn", "nn"]
    assert uniform_parts(13, 4) == (0, 4, 7, 10, 13)


@pytest.mark.parametrize(
    ("text", "layers", "words"),
    [
        (
            "PARTS = [1, 3, 6]",
            None,
            "parts: must be boundaries from 0 on, one more than stages (got [1, 3, 6])",
        ),
        ("PARTS = [0]", None, "parts: must be boundaries from 0 on"),
        ("PARTS = [0, 5, 3, 9]", None, "parts: must rise (got stage 1 ends before it begins)"),
        ("PARTS = [0, 3, 3, 9]", None, "parts: every stage must hold a layer"),
        ("PARTS = [0, 1, 2]", None, "parts: must leave layers beside 1 entries before and 1 behind"),
        ("PARTS = [0, 3, 6]", 5, "the last boundary must be the number of entries (got 6 for 5 layers"),
        (
            "PARTS = [0, 3, 6]\nM(num_stages=3)",
            None,
            "parts: must have num_stages + 1 boundaries (got 3 for 3 stages)",
        ),
        ("PARTS = [0, 3.5, 6]", None, "parts: must be a list of whole numbers"),
        (
            "PARTS = [0, 3, 6]\nM(activation_checkpoint_interval=-1)",
            None,
            "interval: must be a whole number from 0",
        ),
        ("PARTS = [0, 3, 6]\nMICRO_BATCHES = 0", None, "micro_batches: must be a whole number from 1"),
    ],
)
def test_rules_that_are_broken_are_named(tmp_path, text, layers, words):
    assert words in "\n".join(map(str, read(tmp_path, text, layers).broken))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "PipelineModule(layers, num_stages=4)",
            "partition_method 'parameters' cuts by what the model holds",
        ),
        ("PARTS = [0, *range(3)]", "parts is not known: line 1 gives '[0, *range(3)]'"),
        ("PARTS = [0, 3, 6]", "micro-batches are not known: gradient_accumulation_steps"),
        ("PARTS = [0, 3, 6]\nM(activation_checkpoint_interval=args.ckpt)", "interval is not known: line 2"),
    ],
)
def test_what_is_needed_and_not_known_is_named(tmp_path, text, words):
    assert words in "\n".join(read(tmp_path, text).unknown)


def test_an_embedding_behind_the_first_boundary_is_noted(tmp_path):
    config = read(tmp_path, "PARTS = [0, 1, 6]\nENTRIES_BEFORE = 2")
    assert labels(config) == ["", "nnn"]
    assert "stand on several stages" in config.notes[0]
