"""How Megatron-LM splits layers without a layout, and each rule of it broken alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.targets.megatron.split import (
    SplitFlags,
    group_rules,
    interleave_rules,
    layout_exclusions,
    split_of,
)


def counts(**flags):
    """Count the decoders of each cell."""
    cells = split_of(SplitFlags(**flags)).cells
    return None if cells is None else [cell.count("t") for cell in cells]


def broken(**flags):
    return [f"{rule.key} {rule.rule} ({rule.found})" for rule in split_of(SplitFlags(**flags)).broken]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"stages": 4, "layers": 12}, [3, 3, 3, 3]),
        ({"stages": 2, "layers": 8, "chunks": 2}, [2, 2, 2, 2]),
        ({"stages": 2, "layers": 8, "per_chunk": 1}, [1] * 8),  # 8 / 2 stages / 1 = 4 chunks
        ({"stages": 2, "layers": 8, "per_chunk": 4}, [4, 4]),
        ({"stages": 4, "layers": 12, "first": 2, "last": 2}, [2, 4, 4, 2]),  # (12 - 2 - 2) / 2
        ({"stages": 4, "layers": 13, "last": 1}, [4, 4, 4, 1]),  # (13 - 1) / 3
        ({"stages": 2, "layers": 40, "first": 30}, [30, 10]),
        ({"stages": 3, "layers": 4, "first": 2, "last": 2}, [2, 0, 2]),
        # chunks of 2: first 4 / 2, middle (16 - 4) / 3 / 2
        ({"stages": 4, "layers": 16, "first": 4, "chunks": 2}, [2, 2, 2, 2, 2, 2, 2, 2]),
        ({"stages": 3, "layers": 8, "last": 4, "chunks": 2}, [1, 1, 2, 1, 1, 2]),
        ({"stages": 4, "layers": 14, "with_embedding": True, "with_loss": True}, [3, 4, 4, 3]),  # 16 / 4
        ({"stages": 4, "layers": 15, "with_loss": True}, [4, 4, 4, 3]),
        # 8 / 2 stages / 2 chunks = 2; only the first and the last cell of the chain lose one
        ({"stages": 2, "layers": 6, "with_embedding": True, "with_loss": True, "chunks": 2}, [1, 2, 2, 1]),
        # --num-layers-per-virtual-pipeline-stage counts embedding and loss too: 8 / 2 / 2 = 2 chunks
        ({"stages": 2, "layers": 6, "with_embedding": True, "with_loss": True, "per_chunk": 2}, [1, 2, 2, 1]),
        ({"stages": 4, "layers": 3, "with_embedding": True}, [0, 1, 1, 1]),
        ({"stages": 1, "layers": 5}, [5]),
    ],
)
def test_splits(flags, expected):
    assert counts(**flags) == expected
    assert broken(**flags) == []


def test_layers_of_multi_token_prediction_stand_in_the_last_cell_and_are_not_split():
    assert split_of(SplitFlags(stages=2, layers=4, mtp_layers=2, chunks=2)).cells == ("Et", "t", "t", "tmmL")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            {"stages": 4, "layers": 13},
            "--num-layers the layers of the model must be divisible by the 4 stages (13)",
        ),
        (
            {"stages": 4, "layers": 13, "with_loss": True},
            "--num-layers the layers of the model, embedding and loss counted, must be divisible by "
            "the 4 stages (14)",
        ),
        (
            {"stages": 4, "layers": 12, "chunks": 2},
            "--num-layers the layers of a stage must be divisible by the 2 chunks (3)",
        ),
        (
            {"stages": 4, "layers": 12, "per_chunk": 2},
            "--num-layers-per-virtual-pipeline-stage must divide the 3 layers of a stage (2)",
        ),
        (
            {"stages": 4, "layers": 12, "first": 2},
            "--num-layers the layers of the 3 middle stages must be at least 0 and divisible by 3 (10)",
        ),
        (
            {
                "stages": 4,
                "layers": 10,
                "first": 8,
                "last": 8,
            },  # -6 is divisible by 2, and no number of layers
            "--num-layers the layers of the 2 middle stages must be at least 0 and divisible by 2 (-6)",
        ),
        (
            {"stages": 4, "layers": 15, "first": 3, "chunks": 2},
            "--decoder-first-pipeline-num-layers must be divisible by the 2 chunks (3)",
        ),
        (
            {"stages": 3, "layers": 10, "first": 4, "chunks": 2},
            "--num-layers the layers of a middle stage must be divisible by the 2 chunks (3)",
        ),
        (
            {"stages": 4, "layers": 12, "first": 0},
            "--decoder-first-pipeline-num-layers must be larger than 0 (0)",
        ),
        (
            {"stages": 4, "layers": 12, "per_chunk": 1, "chunks": 3},
            "--num-layers-per-virtual-pipeline-stage goes not with "
            "--num-virtual-stages-per-pipeline-rank (both)",
        ),
        (
            {"stages": 4, "layers": 12, "last": 3, "with_loss": True},
            "--decoder-last-pipeline-num-layers goes not with --account-for-embedding-in-pipeline-split "
            "or --account-for-loss-in-pipeline-split (both)",
        ),
        (
            {"stages": 4, "layers": 12, "last": 3, "per_chunk": 1},
            "--num-layers-per-virtual-pipeline-stage goes not with --decoder-first-pipeline-num-layers "
            "or --decoder-last-pipeline-num-layers (both)",
        ),
        (
            {"stages": 1, "layers": 4, "chunks": 2},
            "--pipeline-model-parallel-size must be greater than 1 for several chunks a stage (1)",
        ),
        (
            {"stages": 2, "layers": 4, "chunks": 2, "overlap_p2p": False},
            "--pipeline-model-parallel-size must be greater than 2 for several chunks a stage "
            "without overlap of messages (2)",
        ),
    ],
)
def test_a_rule_that_is_broken_is_told_alone_and_there_is_no_split(flags, words):
    assert broken(**flags) == [words]
    assert counts(**flags) is None


def test_layers_that_are_dropped_in_silence_are_told_with_the_split_that_runs():
    # No middle stage asks for the rest: 10 + 10 of 24 layers are built.
    flags = {"stages": 2, "layers": 24, "first": 10, "last": 10}
    assert counts(**flags) == [10, 10]
    assert broken(**flags) == [
        "--decoder-first-pipeline-num-layers the stages must hold all 24 layers of --num-layers, and "
        "Megatron-LM does not ask (20)"
    ]


def test_absurd_sizes_are_refused_and_not_built():
    assert broken(stages=10**6, layers=10**6, first=10**6, chunks=10**6) == [
        "--pipeline-model-parallel-size cells must be at most 1000000 (1000000000000)"
    ]


def test_everything_that_a_layout_replaces_is_told():
    flags = SplitFlags(
        stages=2, layers=4, first=1, last=1, with_embedding=True, with_loss=True, per_chunk=1, chunks=2
    )
    assert len(layout_exclusions(flags)) == 6
    assert layout_exclusions(SplitFlags(stages=2, layers=4)) == ()


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 30), st.booleans(), st.booleans())
def test_a_split_that_breaks_no_rule_holds_every_layer(stages, chunks, layers, with_embedding, with_loss):
    flags = SplitFlags(
        stages=stages, layers=layers, chunks=chunks, with_embedding=with_embedding, with_loss=with_loss
    )
    split = split_of(flags)
    if split.broken:
        assert split.cells is None
        return
    assert split.cells is not None
    assert (len(split.cells), "".join(split.cells).count("t")) == (stages * chunks, layers)


def test_groups_of_micro_batches_are_from_the_stages_to_the_micro_batches():
    assert [bool(group_rules(4, 8, group)) for group in range(3, 10)] == [
        True,  # 3 < 4 stages
        False,  # 8 mod 4 = 0
        True,  # 8 mod 5 = 3 < 4
        True,  # 8 mod 6 = 2
        True,  # 8 mod 7 = 1
        False,
        True,  # 9 > 8 micro-batches
    ]


def test_one_chunk_a_stage_asks_for_no_stages():
    assert interleave_rules(1, 1, overlap_p2p=False) == []
