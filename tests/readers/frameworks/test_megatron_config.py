"""Configurations of Megatron-LM: both real ones, every form of file, and rules as they reach the user."""

import json
from pathlib import Path

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.readers.frameworks.megatron_config import read_megatron
from sapp_ppb.schedules import ScheduleName

CONFIGS = Path(__file__).parents[2] / "data" / "configs" / "megatron"
DEEPSEEK = CONFIGS / "deepseekv3_proxy_pp4_model_config.yaml"
UNEVEN = CONFIGS / "uneven_pipeline_model_config.yaml"
BASE = "--pipeline-model-parallel-size 2 --num-layers 4 --micro-batch-size 1 --global-batch-size 8 "
DEVICES = "--nproc_per_node 8 "


def read(tmp_path, text, name="run.sh"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_megatron(path)


def letters(config):
    """Types of each layer of each cell, one letter a layer."""
    return config.types and [["".join(r.label[0] for r in cell) for cell in row] for row in config.types]


def test_the_real_configuration_with_a_layout():
    config = read_megatron(DEEPSEEK)
    assert (config.target, config.stages, config.interleave) == ("megatron", 4, 2)
    # Et*2|(tt|)*5t|tmL: 8 cells on 4 stages; 2 + 5 x 2 + 1 + 1 decoders and one MTP layer in the last cell
    assert letters(config) == [["nn", "nn", "nn", "nn"], ["nn", "nn", "n", "nn"]]
    assert (config.layers, config.mtp_layers) == (15, 1)
    assert config.schedule is ScheduleName.INTERLEAVED
    assert (config.broken, config.notes) == ((), ())


def test_the_number_of_micro_batches_that_a_file_does_not_say_is_asked_for():
    config = read_megatron(DEEPSEEK)
    assert config.micro_batches is None
    assert config.unknown == (
        "the number of micro-batches is the global batch of 512 by the micro-batch size of 1 and the "
        "data-parallel size, which the file does not say; give --micro-batches",
    )


def test_micro_batches_from_elsewhere_count_and_their_rules_are_asked(tmp_path):
    assert read_megatron(DEEPSEEK, micro_batches=32).unknown == ()
    # 4 stages of two chunks take groups of 4, and 30 mod 4 = 2
    (rule,) = read_megatron(DEEPSEEK, micro_batches=30).broken
    assert rule.found == "30 mod 4 = 2"
    path = tmp_path / "args.txt"
    path.write_text("--num-layers 4 --micro-batch-size 1 --global-batch-size $GBS")
    assert read_megatron(path, micro_batches=8).unknown == ()
    assert len(read_megatron(path).unknown) == 2


def test_the_real_configuration_with_other_numbers_on_the_first_and_last_stage():
    config = read_megatron(UNEVEN)
    assert letters(config) == [["nn", "nnnn", "nnnn", "nn"]]  # 2, (12 - 2 - 2) / 2 twice, 2
    assert (config.layers, config.mtp_layers, config.interleave) == (12, 0, 1)
    assert config.schedule is ScheduleName.ONE_F_ONE_B
    assert config.broken == ()


SCRIPT = """#!/bin/bash
GPUS_PER_NODE=8
NUM_NODES=${NUM_NODES:-2}
PP=4  # stages
LAYOUT="Et*3|(tt|)*6tL"
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
)
MODEL_ARGS=(
    --num-layers 16   # 3 + 6 x 2 + 1
    --seq-length 4096
)
OPTIONS=" \\
    --pipeline-model-parallel-size ${PP} \\
    --pipeline-model-parallel-layout ${LAYOUT} \\
    --tensor-model-parallel-size=2"
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \\
    ${MODEL_ARGS[@]} $OPTIONS \\
    --micro-batch-size 1 --global-batch-size 32 \\
    --recompute-granularity 'full' \\
    --recompute-method block --recompute-num-layers 1
"""


def test_a_launch_script_with_variables_arrays_and_strings(tmp_path):
    config = read(tmp_path, SCRIPT)
    assert (config.stages, config.interleave, config.layers) == (4, 2, 16)
    assert letters(config) == [["fnn", "fn", "fn", "fn"], ["fn", "fn", "fn", "f"]]
    # 16 devices by 2 x 4 are 2 data-parallel ones, and 32 / (1 x 2) = 16
    assert config.micro_batches == 16
    assert (config.unknown, config.broken, config.notes) == ((), (), ())


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("args.txt", lambda pairs: "\n".join(f"--{key} {value}" for key, value in pairs.items())),
        ("args.txt", lambda pairs: "\n".join(f"--{key}={value}" for key, value in pairs.items())),
        (
            "args.txt",
            lambda pairs: "\n".join(f"--{key.replace('-', '_')}\n{value}" for key, value in pairs.items()),
        ),
        (
            "c.yaml",
            lambda pairs: json.dumps({"MODEL_ARGS": {f"--{key}": value for key, value in pairs.items()}}),
        ),
        (
            "c.yaml",
            lambda pairs: "\n".join(f"{key.replace('-', '_')}: {value}" for key, value in pairs.items()),
        ),
        ("c.yaml", lambda pairs: json.dumps([word for key, v in pairs.items() for word in (f"--{key}", v)])),
        (
            "c.json",
            lambda pairs: json.dumps({"MODEL_ARGS": {f"--{key}": value for key, value in pairs.items()}}),
        ),
        ("c.json", lambda pairs: json.dumps([word for key, v in pairs.items() for word in (f"--{key}", v)])),
    ],
)
def test_every_form_of_file_says_the_same(tmp_path, name, make):
    pairs = {
        "pipeline-model-parallel-size": 2,
        "num-layers": 4,
        "pipeline-model-parallel-layout": "Et|t|t|tL",
        "microbatch-group-size-per-virtual-pipeline-stage": 3,
        "recompute-granularity": "selective",
    }
    config = read(tmp_path, make(pairs), name)
    assert letters(config) == [["s", "s"], ["s", "s"]]
    assert (config.stages, config.interleave, config.layers, config.micro_batch_group) == (2, 2, 4, 3)
    assert config.broken == ()


@pytest.mark.parametrize("layout", [r"Et\\*2\\|t\\*2L", r"Et\*2\|t\*2L", "Et*2,|t*2,L"])
def test_layouts_with_the_backslashes_of_configurations(tmp_path, layout):
    text = "MODEL_ARGS:\n  --pipeline-model-parallel-size: 2\n  --num-layers: 4\n"
    config = read(tmp_path, f"{text}  --pipeline-model-parallel-layout: {layout}\n", "model_config.yaml")
    assert letters(config) == [["nn", "nn"]]
    assert config.broken == ()


def test_a_layout_that_is_a_list_of_lists_of_names(tmp_path):
    text = (
        "pipeline_model_parallel_size: 2\nnum_layers: 3\n"
        "pipeline_model_parallel_layout: [[embedding, decoder], [decoder, decoder, loss]]\n"
    )
    assert letters(read(tmp_path, text, "model.yaml")) == [["n", "nn"]]


def test_a_fragment_with_a_layout_takes_its_layers_from_it(tmp_path):
    config = read(
        tmp_path, '--pipeline-model-parallel-size 2 \\\n--pipeline-model-parallel-layout "Ett|tmL"\n'
    )
    assert (config.layers, config.mtp_layers, config.broken) == (4, 1, ())
    assert config.notes == ("--num-layers is not given; the layers are those of the layout",)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", [["nn", "nn"]]),
        ("--num-virtual-stages-per-pipeline-rank 2", [["n", "n"], ["n", "n"]]),
        ("--num-layers-per-virtual-pipeline-stage 1", [["n", "n"], ["n", "n"]]),
        ("--mtp-num-layers 1", [["nn", "nnn"]]),
        ("--decoder-first-pipeline-num-layers 1", [["n", "nnn"]]),
        ("--recompute-activations", [["ss", "ss"]]),
        ("--moe-layer-recompute", [["ss", "ss"]]),
        ("--recompute-granularity selective --recompute-modules core_attn moe_act", [["ss", "ss"]]),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", [["ff", "ff"]]),
    ],
)
def test_splits_and_recompute(tmp_path, flags, expected):
    config = read(tmp_path, BASE + DEVICES + flags)
    assert letters(config) == expected
    assert (config.broken, config.unknown) == ((), ())
    assert config.micro_batches == 2  # 8 devices by 2 stages are 4, and 8 / (1 x 4)


def test_modules_of_selective_recompute_are_noted(tmp_path):
    config = read(
        tmp_path, BASE + "--recompute-granularity selective --recompute-modules core_attn moe_act\necho"
    )
    assert config.notes == (
        "selective recompute of core_attn, moe_act is taken for what the model file gives as 'selective'",
    )


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            "--pipeline-model-parallel-layout 'Et x|tL'",
            "must be a layout such as Et*3|(tt|)*2tL, or a list of lists of names",
        ),
        ("--pipeline-model-parallel-layout 'Et|tL'", "t, must be --num-layers, which is 4"),
        ("--pipeline-model-parallel-layout 'Ett|ttL' --decoder-last-pipeline-num-layers 2", "leave it out"),
        ("--decoder-first-pipeline-num-layers 1 --decoder-last-pipeline-num-layers 1", "does not ask"),
        ("--mtp-num-layers -1", "--mtp-num-layers: must be at least 0 (got -1)"),
        ("--decoder-first-pipeline-num-layers two", "must be a whole number (got 'two')"),
        ("--decoder-first-pipeline-num-layers 1.5", "must be a whole number (got '1.5')"),
        ("--decoder-first-pipeline-num-layers 99999999999999", "(got '99999999999999')"),
        ("--num-virtual-stages-per-pipeline-rank 3", "must be divisible by the 3 chunks (got 2)"),
        ("--recompute-granularity full", "--recompute-method: must be block or uniform"),
        ("--moe-layer-recompute --recompute-granularity full", "goes not with full recompute"),
        ("--checkpoint-activations", "--checkpoint-activations: is no longer taken (got it)"),
        ("--cpu-offloading-num-layers 2", "--cpu-offloading-num-layers: goes not with a pipeline (got both)"),
        (
            "--num-virtual-stages-per-pipeline-rank 2 --no-overlap-p2p-communication",
            "must be greater than 2 for several chunks a stage without overlap of messages (got 2)",
        ),
        ("--tensor-model-parallel-size 3", "pipeline and context-parallel size, 6"),
        ("--context-parallel-size 0", "--context-parallel-size: must be larger than 0 (got 0)"),
        ("--num-virtual-stages-per-pipeline-rank 2 --microbatch-group-size-per-virtual-pipeline-stage 4",
         "must be from the 2 stages to the 2 micro-batches (got 4)"),
    ],
)  # fmt: skip
def test_rules_that_are_broken_reach_the_user(tmp_path, flags, words):
    broken = [str(rule) for rule in read(tmp_path, BASE + DEVICES + flags).broken]
    assert any(words in rule for rule in broken), broken


@pytest.mark.parametrize("stages", ["0", "-4"])
def test_no_stages_are_a_broken_rule_and_no_crash(tmp_path, stages):
    config = read(tmp_path, f"--pipeline-model-parallel-size {stages} --num-layers 4")
    assert [str(rule) for rule in config.broken] == [
        f"--pipeline-model-parallel-size: must be larger than 0 (got {stages})"
    ]
    assert (config.stages, config.types) == (None, None)


def test_a_global_batch_that_does_not_divide_is_a_broken_rule(tmp_path):
    config = read(tmp_path, BASE.replace("8 ", "9 ") + "--nproc-per-node 8")
    assert [str(rule) for rule in config.broken] == [
        "--global-batch-size: must be a multiple of micro-batch size by data-parallel size, 1 x 4 (got 9)"
    ]


def test_a_layout_that_breaks_a_rule_still_has_its_cells(tmp_path):
    config = read(tmp_path, BASE + "--pipeline-model-parallel-layout 'Et|tL'")
    assert letters(config) == [["n", "n"]]
    assert config.layers == 4  # as the model has, two more than the layout


@pytest.mark.parametrize(
    ("flags", "words", "missing"),
    [
        ("--num-layers $N --pipeline-model-parallel-size 2", "--num-layers is $N, which the file", "layers"),
        ("--num-layers 4 --pipeline-model-parallel-size ${PP}", "is ${PP}, which the file", "stages"),
        ("--num-layers 4 --pipeline-model-parallel-layout $L", "is $L, which the file does not set", "types"),
        ("--num-layers 4 --recompute-granularity $R", "is $R, which the file does not set", "types"),
        ("--num-layers 4 --hybrid-layer-pattern M*M*", "--hybrid-layer-pattern decides what", "types"),
        ("--num-layers 4 --recompute-layer-ids 0,1", "--recompute-layer-ids decides what", "types"),
        ("--num-layers 4 --num-layers 6", "is given more than once (4 on line 1, 6 on line 1)", "layers"),
        ("--pipeline-model-parallel-size 2", "--num-layers is not given; give it", "layers"),
        ("--num-layers --pipeline-model-parallel-size 2", "--num-layers has no value", "layers"),
        ("if x; then\n--num-layers 4\nfi", "--num-layers stands in a branch", "layers"),
    ],
)  # fmt: skip
def test_what_is_needed_and_not_known_is_said(tmp_path, flags, words, missing):
    config = read(tmp_path, flags)
    assert any(words in sentence for sentence in config.unknown), config.unknown
    assert getattr(config, missing) is None
    assert config.broken == ()


def test_a_default_in_yaml_counts_and_a_bare_variable_does_not(tmp_path):
    text = "MODEL_ARGS:\n  --num-layers: ${N:-4}\n  --pipeline-model-parallel-size: ${PP}\n"
    config = read(tmp_path, text, "model_config.yaml")
    assert config.layers == 4
    assert config.unknown[0] == (
        "--pipeline-model-parallel-size is ${PP}, which the file does not set; write its value"
    )


def test_switches_that_are_false_are_not_given(tmp_path):
    text = "num_layers: 4\npipeline_model_parallel_size: 2\nrecompute_activations: false\n"
    assert letters(read(tmp_path, text, "model_config.yaml")) == [["nn", "nn"]]


def test_what_is_not_modelled_is_noted(tmp_path):
    flags = "--fine-grained-activation-offloading --delay-wgrad-compute --no-overlap-p2p-communication"
    notes = read(tmp_path, BASE + DEVICES + flags + " $EXTRA_ARGS").notes
    assert [note.split(":")[0] for note in notes] == [
        "arguments that EXTRA_ARGS may hold are set elsewhere and not read",
        "--no-overlap-p2p-communication",
        "--delay-wgrad-compute",
        "--fine-grained-activation-offloading",
    ]


def test_a_group_with_one_chunk_a_stage_means_nothing(tmp_path):
    config = read(tmp_path, BASE + DEVICES + "--microbatch-group-size-per-virtual-pipeline-stage 3")
    assert config.micro_batch_group is None
    assert config.notes[0].endswith("means nothing with one chunk a stage")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("run.sh", "echo hello\n", "gives none of Megatron-LM's flags"),
        ("c.yaml", "a: 1\n", "gives none of Megatron-LM's flags"),
        ("c.yaml", "MODEL_ARGS: 3\n", "must hold a mapping MODEL_ARGS of flags"),
        ("c.yaml", "MODEL_ARGS:\n  --num-layers: 4\n  --num-layers: 5\n", "gives a key more than once"),
        ("c.yaml", "--num-layers: [\n", "the YAML is broken"),
        ("c.json", "{", "the JSON is broken"),
        ("c.json", '{"--num-layers": NaN}', "must be a finite number"),
        ("run.sh", "", "the file is empty"),
        ("run.sh", "--num-layers ${X", "is not closed"),
    ],
)
def test_files_that_are_no_configuration_are_refused(tmp_path, name, text, words):
    with pytest.raises(InputError, match=words):
        read(tmp_path, text, name)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "run.sh"
    path.write_bytes(b"--num-layers \xff")
    with pytest.raises(InputError, match="not UTF-8"):
        read_megatron(path)


@pytest.mark.parametrize("value", ["true", "[1, 2]", "{a: 1}", "4.5", "null", "'x'"])
def test_values_of_a_wrong_kind_are_no_crash(tmp_path, value):
    text = f"MODEL_ARGS:\n  --num-layers: {value}\n  --pipeline-model-parallel-size: 2\n"
    config = read(tmp_path, text, "model_config.yaml")
    assert config.layers is None
    assert config.broken or config.unknown
