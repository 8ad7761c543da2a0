"""Launch scripts of MindSpeed: what they run, what they break, what is not known."""

import pytest

from sapp_ppb.readers.frameworks.framework import Framework, framework_of, read_config
from sapp_ppb.readers.frameworks.mindspeed_config import read_mindspeed
from sapp_ppb.schedules import ScheduleName


def read(tmp_path, text, name="run.sh", **options):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_mindspeed(path, **options)


def counts(config):
    return [[len(cell) for cell in row] for row in config.types]


def full(config):
    return [["".join(r.label[0] for r in cell) for cell in row] for row in config.types]


# The shape of the training scripts of MindSpeed-LLM: variables, strings of arguments, lines that go on.
SCRIPT = """
NPUS_PER_NODE=8
NNODES=4
TP=2
PP=4
DISTRIBUTED_ARGS="
    --nproc_per_node $NPUS_PER_NODE \\
    --nnodes $NNODES
"
GPT_ARGS="
    --num-layer-list 16,16,16,13 \\
    --num-layers 61 \\
    --mtp-num-layers 1 \\
    --tensor-model-parallel-size ${TP} \\
    --pipeline-model-parallel-size ${PP} \\
    --micro-batch-size 1 \\
    --global-batch-size 128 \\
    --recompute-granularity full \\
    --recompute-method block \\
    --recompute-num-layers 2 \\
    --swap-attention \\
    --bf16
"
torchrun $DISTRIBUTED_ARGS pretrain_gpt.py $GPT_ARGS
"""


def test_a_script_with_a_number_for_each_stage(tmp_path):
    config = read(tmp_path, SCRIPT)
    assert counts(config) == [[16, 16, 16, 14]]  # the last one is of multi-token prediction
    assert [cell[:3] for cell in full(config)[0]] == ["ffn"] * 4
    assert (config.layers, config.mtp_layers, config.stages) == (62, 1, 4)
    assert config.micro_batches == 128 // (32 // (2 * 4))  # 32 devices, 2 x 4 of them for one copy
    assert (config.broken, config.unknown) == ((), ())
    assert any("swap-attention: what is swapped is not modelled" in note for note in config.notes)
    assert framework_of(tmp_path / "run.sh") is Framework.MINDSPEED
    assert read_config(tmp_path / "run.sh") == config


ARGS = "--pipeline-model-parallel-size 2 "


def test_the_matrix_has_a_row_for_each_stage(tmp_path):
    # 8 layers, 2 stages, 2 a chunk: 2 chunks
    text = ARGS + "--num-layers 8 --num-layers-per-virtual-pipeline-stage 2 "
    config = read(tmp_path, text + '--pipeline-num-transformer-layers "[[0,3],[4,1]]"')
    assert counts(config) == [[0, 4], [3, 1]]
    assert config.schedule is ScheduleName.INTERLEAVED
    assert config.broken == ()
    bare = read(tmp_path, text + "--pipeline-num-transformer-layers [[0,3],[4,1]]")
    assert bare.types == config.types


@pytest.mark.parametrize("rows", ["[[1, 2], [2, 3]]", "'[[1,2],[2,3]]'"])
def test_a_matrix_in_yaml(tmp_path, rows):
    text = (
        "MODEL_ARGS:\n  --num-layers: 8\n  --pipeline-model-parallel-size: 2\n"
        "  --num-layers-per-virtual-pipeline-stage: 2\n  --pipeline-num-transformer-layers: "
    )
    assert counts(read(tmp_path, text + rows, "args.yaml")) == [[1, 2], [2, 3]]
    assert framework_of(tmp_path / "args.yaml") is Framework.MINDSPEED


def test_empty_places_of_an_even_split(tmp_path):
    # The documentation's: 126 layers as 128 with the first and the last one empty
    text = "--num-layers 128 --noop-layers 0,127 --pipeline-model-parallel-size 8 "
    config = read(tmp_path, text)
    assert counts(config) == [[15, 16, 16, 16, 16, 16, 16, 15]]
    assert (config.layers, config.broken) == (126, ())
    block = read(
        tmp_path, text + "--recompute-granularity full --recompute-method block --recompute-num-layers 1"
    )
    # The first place of stage 0 is the empty one.
    assert [cell.count("f") for cell in full(block)[0]] == [0, 1, 1, 1, 1, 1, 1, 1]


def test_empty_places_are_no_layers_where_the_split_is_broken_too(tmp_path):
    config = read(tmp_path, "--num-layers 98 --noop-layers 0,97 --pipeline-model-parallel-size 16")
    assert (config.layers, config.types) == (96, None)
    assert "must be divisible by the 16 stages (got 98)" in str(config.broken[0])


def test_recompute_counted_by_stage(tmp_path):
    text = ARGS + (
        "--num-layers 12 --num-virtual-stages-per-pipeline-rank 2 --recompute-granularity full "
        "--recompute-method block --recompute-num-layers 3 "
    )
    every_chunk = read(tmp_path, text)
    dealt = read(tmp_path, text + "--enable-recompute-layers-per-pp-rank")
    assert full(every_chunk) == [["fff", "fff"], ["fff", "fff"]]
    assert full(dealt) == [["ffn", "ffn"], ["fnn", "fnn"]]  # 0 x 2 + 0, 0 x 2 + 1, 1 x 2 + 0 are below 3


def test_the_v_of_dualpipev(tmp_path):
    text = "--pipeline-model-parallel-size 2 --num-layers 8 --schedules-method dualpipev --noop-layers 7 "
    config = read(tmp_path, text + "--untie-embeddings-and-output-weights", micro_batches=4)
    assert counts(config) == [[2, 2], [1, 2]]  # chunk 1 comes back: the last cell is on stage 0
    assert (config.interleave, config.schedule, config.layers) == (2, ScheduleName.DUALPIPEV, 7)
    assert config.broken == ()
    assert not any("untie" in note for note in config.notes)
    assert any("untie" in note for note in read(tmp_path, text, micro_batches=4).notes)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--num-layers 8 --num-layer-list 4,5", "add up to --num-layers, 8 (got 9)"),
        ("--num-layers 8 --num-layer-list 4", "must have a number for each of the 2 stages (got 1)"),
        ("--num-layers 8 --num-layer-list 4:4", "--num-layer-list: is not what it must be"),
        ("--num-layers 8 --noop-layers 8", "must be below --num-layers, 8"),
        ("--num-layers 8 --noop-layers a", "--noop-layers: is not what it must be"),
        ("--num-layers 8 --pipeline-num-transformer-layers [[4],[4]", "must be a list of lists"),
        ("--num-layers 8 --pipeline-num-transformer-layers [[4],[5]]", "add up to --num-layers, 8 (got 9)"),
        (
            "--num-layers 8 --pipeline-num-transformer-layers [[4],[4]] --noop-layers 1",
            "goes not with --noop",
        ),
        ("--num-layers 8 --schedules-method zbv", "--schedules-method: must be dualpipev (got zbv)"),
        ("--num-layers 6 --schedules-method dualpipev", "must be a multiple of twice the 2 stages"),
        ("--num-layers 8 --schedules-method dualpipev --swap-attention", "goes not with --swap-attention"),
        (
            "--num-layers 8 --schedules-method dualpipev --context-parallel-size 2",
            "--context-parallel-size: must be 1 with --schedules-method dualpipev (got 2)",
        ),
        (
            "--num-layers 2 --pipeline-model-parallel-layout Et|tL --noop-layers 1",
            "goes not with --noop-layers",
        ),
        (
            "--num-layers 2 --pipeline-model-parallel-layout Et|tL --schedules-method dualpipev",
            "goes not with --schedules-method",
        ),
    ],
)
def test_broken_variants_name_the_rule(tmp_path, flags, said):
    config = read(tmp_path, "run --pipeline-model-parallel-size 2 " + flags, micro_batches=4)
    assert [said in str(rule) for rule in config.broken].count(True) == 1, config.broken


def test_a_v_wants_two_micro_batches_a_stage(tmp_path):
    text = "--pipeline-model-parallel-size 2 --num-layers 8 --schedules-method dualpipev"
    (rule,) = read(tmp_path, text, micro_batches=3).broken
    assert "micro-batches of at least twice the stages, 4 (got 3)" in str(rule)
    assert read(tmp_path, text, micro_batches=4).broken == ()


def test_a_list_is_left_out_of_account_beside_empty_places(tmp_path):
    config = read(tmp_path, ARGS + "--num-layers 8 --noop-layers 7 --num-layer-list 1,7")
    assert counts(config) == [[4, 3]]
    assert any("leaves --num-layer-list out of account" in note for note in config.notes)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--num-layer-list $LIST", "--num-layer-list is $LIST, which the file does not set; write its value"),
        ("--automated-pipeline", "--automated-pipeline decides what this reader takes from other flags"),
        ("--recompute-in-bubble --noop-layers 0", "--recompute-in-bubble decides what this reader takes"),
        ("--adaptive-recompute-device-size 30000", "--adaptive-recompute-device-size decides"),
        ("--reduce-recompute-for-last-chunk", "--reduce-recompute-for-last-chunk decides"),
    ],
)
def test_what_is_not_known_is_said_and_nothing_is_made_up(tmp_path, flags, said):
    config = read(tmp_path, ARGS + "--num-layers 8 " + flags)
    assert any(sentence.startswith(said) for sentence in config.unknown)
    assert config.types is None


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--enable-recompute-layers-per-pp-rank", "changes nothing with one chunk a stage"),
        (
            "--enable-recompute-layers-per-pp-rank --pipeline-model-parallel-layout Et|tt|tt|tttL",
            "with a layout is for MindSpeed itself",
        ),
        ("--recompute-in-advance", "when recompute runs before its backward"),
    ],
)
def test_what_is_odd_is_noted(tmp_path, flags, said):
    config = read(tmp_path, ARGS + "--num-layers 8 " + flags)
    assert any(said in note for note in config.notes)
