"""Which layers Megatron-LM recomputes, and the rules of its flags."""

import pytest

from sapp_ppb.costs import Recompute
from sapp_ppb.targets.megatron.recompute import RecomputeFlags, recompute_notes, recompute_rules, types_of

CELLS = ("Ettt", "tt", "", "tmL")  # two stages of two chunks


def letters(**flags):
    """Types of each layer of each cell, one letter a layer."""
    types = types_of(CELLS, 2, RecomputeFlags(**flags))
    return None if types is None else [["".join(r.label[0] for r in cell) for cell in row] for row in types]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, [["nnn", "nn"], ["", "nn"]]),
        ({"granularity": "selective"}, [["sss", "ss"], ["", "ss"]]),
        ({"granularity": "full", "method": "uniform", "layers": 1}, [["fff", "ff"], ["", "ff"]]),
        # The first decoders of every chunk; the layer of multi-token prediction is left alone.
        ({"granularity": "full", "method": "block", "layers": 1}, [["fnn", "fn"], ["", "fn"]]),
        ({"granularity": "full", "method": "block", "layers": 9}, [["fff", "ff"], ["", "fn"]]),
        ({"granularity": "full", "method": "block", "layers": 0}, [["nnn", "nn"], ["", "nn"]]),
        ({"method": "block", "layers": 2}, [["nnn", "nn"], ["", "nn"]]),  # no granularity, no recompute
        ({"granularity": "full"}, None),
    ],
)
def test_types(flags, expected):
    assert letters(**flags) == expected


def test_cells_that_are_no_multiple_of_the_stages_have_no_place():
    assert types_of(CELLS, 3, RecomputeFlags()) is None


def test_the_letters_stand_for_types():
    assert types_of(("EtL",), 1, RecomputeFlags(granularity="selective")) == (((Recompute.SELECTIVE,),),)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"granularity": "some"}, ["--recompute-granularity: must be full or selective (got some)"]),
        (
            {"granularity": "full", "method": "every", "layers": 1},
            ["--recompute-method: must be block or uniform (got every)"],
        ),
        (
            {"granularity": "full"},
            [
                "--recompute-method: must be block or uniform with full recompute (got none)",
                "--recompute-num-layers: must be given with full recompute, and be at least 1 (got none)",
            ],
        ),
        (
            {"granularity": "selective", "layers": 2},
            ["--recompute-num-layers: must not be given with selective recompute (got 2)"],
        ),
        (
            {"granularity": "full", "method": "uniform", "layers": 0},
            ["--recompute-num-layers: must be at least 1 (got 0)"],
        ),
        ({"granularity": "full", "method": "uniform", "layers": 3}, []),
        ({"granularity": "full", "method": "block", "layers": 3}, []),
        ({"method": "block"}, []),
    ],
)
def test_rules(flags, words):
    assert [str(rule) for rule in recompute_rules(RecomputeFlags(**flags), mtp_layers=0)] == words


def test_uniform_groups_do_not_go_with_multi_token_prediction():
    flags = RecomputeFlags(granularity="full", method="uniform", layers=2)
    assert [str(rule) for rule in recompute_rules(flags, mtp_layers=1)] == [
        "--recompute-num-layers: must be 1 for MTP layers with uniform recompute (got 2)"
    ]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"granularity": "selective"}, "selective recompute of core_attn is taken"),
        ({"granularity": "full", "method": "uniform", "layers": 4}, "keeps one input for every 4 layers"),
        ({"granularity": "full", "method": "block", "layers": 0}, "recomputes nothing"),
        ({"layers": 2}, "without --recompute-granularity recompute nothing"),
    ],
)
def test_what_is_not_plain_is_noted(flags, words):
    (note,) = recompute_notes(RecomputeFlags(**flags))
    assert words in note


def test_plain_recompute_is_not_noted():
    assert recompute_notes(RecomputeFlags(granularity="full", method="uniform", layers=1)) == ()
