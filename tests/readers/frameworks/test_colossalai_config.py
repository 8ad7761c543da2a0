"""Scripts of Colossal-AI: what is read, every rule, and what only running them would show."""

import json

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.readers.frameworks.colossalai_config import read_colossalai
from sapp_ppb.schedules import ScheduleName


def read(tmp_path, text, layers=None, name="train.py"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_colossalai(path, layers)


def plugin(**values):
    return "HybridParallelPlugin(" + ", ".join(f"{name}={value}" for name, value in values.items()) + ")"


def labels(config):
    assert config.types is not None
    return [["".join(r.label[0] for r in cell) for cell in row] for row in config.types]


def test_a_script_is_read_with_what_its_list_says_of_the_stages(tmp_path):
    text = """
args = parse()
hybrid_kwargs = {
    "gradient_checkpoint_config": PipelineGradientCheckpointConfig(num_ckpt_layers_per_stage=[2, 0]),
    "num_layers_per_stage": [3, 2],
    "pp_style": "1f1b",
}
plugin = HybridParallelPlugin(tp_size=args.tp, pp_size=args.pp, num_microbatches=8, **hybrid_kwargs)
"""
    config = read(tmp_path, text)
    assert (config.stages, config.micro_batches, config.layers) == (2, 8, 5)
    assert (config.schedule, config.broken, config.unknown) == (ScheduleName.ONE_F_ONE_B, (), ())
    assert labels(config) == [["ffn", "nn"]]


def test_without_a_list_the_split_is_its_own(tmp_path):
    # 10 layers on 4: 2 each, the rest of 2 from stage 2 - 1 on.
    config = read(tmp_path, plugin(pp_size=4, num_microbatches=8), layers=10)
    assert labels(config) == [["nn", "nnn", "nnn", "nn"]]


def test_chunks_stand_round_by_round_or_on_a_v(tmp_path):
    # 9 layers in 4 cells are 2, 2, 3, 2 along the chain; numbers of checkpointed layers go chunk after chunk.
    sizes = {
        "pp_size": 2,
        "num_model_chunks": 2,
        "num_microbatches": 4,
        "num_ckpt_layers_per_stage": [1, 2, 0, 2],
    }
    loop = read(tmp_path, plugin(pp_style="'interleaved'", **sizes), layers=9)
    assert labels(loop) == [["fn", "ff"], ["nnn", "ff"]]
    # On a V chunk 1 of stage 0 is the last cell, and the 0 is its own.
    on_a_v = read(tmp_path, plugin(pp_style="'zbv'", scheduler_nodes="nodes", **sizes), layers=9)
    assert labels(on_a_v) == [["fn", "ff"], ["nn", "ffn"]]
    assert on_a_v.broken == ()
    assert "priced in the order of zbv" in on_a_v.notes[0]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", ["nnnn", "nnn"]),
        ("model.gradient_checkpointing_enable()", ["ffff", "fff"]),
        ("c = PipelineGradientCheckpointConfig()", ["nnnn", "nnn"]),
        # int(0.7 * 4) = 2 and int(0.7 * 3) = 2
        ("c = PipelineGradientCheckpointConfig(gradient_checkpointing_ratio=0.7)", ["ffnn", "ffn"]),
    ],
)
def test_what_is_recomputed_without_numbers(tmp_path, more, expected):
    text = plugin(pp_size=2, num_microbatches=4, num_layers_per_stage=[4, 3]) + "\n" + more
    assert labels(read(tmp_path, text)) == [expected]


def test_json_has_the_same_names(tmp_path):
    values = {"plugin": {"pp_size": 2, "num_layers_per_stage": [1, 2], "num_microbatches": 4}}
    assert labels(read(tmp_path, json.dumps(values), name="plugin.json")) == [["n", "nn"]]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"pp_style": "'gpipe'"}, "pp_style: must be one of 1f1b, interleaved, zbv (got 'gpipe')"),
        ({"num_model_chunks": 2}, "num_model_chunks: must be 1 for 1f1b (got 2)"),
        ({"pp_style": "'interleaved'"}, "num_model_chunks: must be above 1 for interleaved (got 1)"),
        ({"pp_style": "'zbv'", "num_model_chunks": 3}, "num_model_chunks: must be 2 for zbv (got 3)"),
        ({"pp_style": "'zbv'", "num_model_chunks": 2}, "scheduler_nodes: must be given for zbv"),
        (
            {"pp_style": "'interleaved'", "num_model_chunks": 2, "num_microbatches": 5},
            "num_microbatches: must be a multiple of pp_size, 2, for interleaved (got 5)",
        ),
        (
            {"pp_style": "'interleaved'", "num_model_chunks": 2, "num_layers_per_stage": [1, 1, 1, 1]},
            "num_layers_per_stage: can not be given with several model chunks",
        ),
        (
            {"num_layers_per_stage": [1, 1, 2]},
            "num_layers_per_stage: must have pp_size numbers (got 3 numbers",
        ),
        (
            {"num_layers_per_stage": [2, 1]},
            "num_layers_per_stage: must sum to the layers of the model (got 3 of 4)",
        ),
        ({"num_layers_per_stage": [2, -1]}, "num_layers_per_stage: must be a list of whole numbers"),
        ({"num_layers_per_stage": "'2,2'"}, "num_layers_per_stage: must be a list of whole numbers"),
        (
            {"num_ckpt_layers_per_stage": [1]},
            "must have a number for every chunk of every stage (got 1 numbers for 2)",
        ),
        (
            {"num_ckpt_layers_per_stage": [0, 3]},
            "must be no more than the layers of the chunk (got 3 of 2 at place 1)",
        ),
        (
            {"gradient_checkpointing_ratio": 1.5},
            "gradient_checkpointing_ratio: must be from 0 to 1 (got 1.5)",
        ),
        ({"pp_size": 0}, "pp_size: must be a whole number from 1"),
        ({"pp_size": True}, "pp_size: must be a whole number from 1"),
        ({"num_microbatches": "'8'"}, "num_microbatches: must be a whole number from 1"),
    ],
)
def test_rules_that_are_broken_are_named(tmp_path, values, words):
    config = read(tmp_path, plugin(**({"pp_size": 2, "num_microbatches": 4} | values)), layers=4)
    assert words in "\n".join(map(str, config.broken))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (plugin(pp_size="args.pp", num_microbatches=4), "pp_size is not known: line 1 gives 'args.pp'"),
        (plugin(pp_size=2, microbatch_size=1), "num_microbatches is not given, and only microbatch_size is"),
        (plugin(num_microbatches=4), "pp_size is not given"),
        (plugin(pp_size=2, num_microbatches=4), "the layers of the model are not known"),
        ("if big:\n    pp_size = 4\nelse:\n    pp_size = 2", "gives another value than a line before"),
        (plugin(pp_size=2, num_layers_per_stage="split(model)"), "num_layers_per_stage is not known: line 1"),
        (
            plugin(
                pp_size=2,
                num_microbatches=2,
                num_layers_per_stage=[1, 1],
                gradient_checkpoint_config="config",
            ),
            "gradient_checkpoint_config is not known",
        ),
    ],
)
def test_what_is_needed_and_not_known_is_named(tmp_path, text, words):
    assert words in "\n".join(read(tmp_path, text).unknown)


def test_one_stage_is_no_pipeline(tmp_path):
    config = read(tmp_path, plugin(pp_size=1, num_layers_per_stage=[1, 2]), layers=3)
    assert (config.stages, config.micro_batches, labels(config)) == (1, 1, [["nnn"]])
    assert "there is no pipeline yet" in config.notes[0]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.py", "x = (", "the Python is broken at line 1"),
        ("a.py", "x = " + "(" * 500 + ")" * 500, "."),
        ("a.json", "[1]", "must hold an object"),
        ("a.json", '{"pp_size": NaN}', "."),
    ],
)
def test_what_can_not_be_read_is_refused(tmp_path, name, text, words):
    with pytest.raises(InputError, match=words):
        read(tmp_path, text, name=name)
