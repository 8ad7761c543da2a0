"""Each rule of Megatron-LM's layouts, broken alone."""

import pytest

from sapp_ppb.targets.megatron.layout import parse_layout
from sapp_ppb.targets.megatron.layout_rules import layout_notes, layout_rules


def rules(text, *, stages=2, layers=4, mtp_layers=0):
    return [
        rule.rule
        for rule in layout_rules(parse_layout(text), stages=stages, layers=layers, mtp_layers=mtp_layers)
    ]


@pytest.mark.parametrize(
    ("text", "stages", "mtp"),
    [("Ett|ttL", 2, 0), ("Et|t||ttL", 2, 0), ("Ett|tt|m|L", 2, 1), ("Ettt|t||mmL", 2, 2), ("EttttL", 1, 0)],
)
def test_layouts_that_keep_every_rule(text, stages, mtp):
    assert rules(text, stages=stages, mtp_layers=mtp) == []


@pytest.mark.parametrize(
    ("text", "mtp", "words"),
    [
        ("Et|t|ttL", 0, "the number of cells must be a multiple of the 2 stages"),
        ("tEt|ttL", 0, "the first layer must be the embedding, E"),
        ("Ett|tLt", 0, "the last layer must be the loss, L"),
        ("EtEt|ttL", 0, "the embedding, E, must be specified exactly once"),
        ("EttL|ttL", 0, "the loss, L, must be specified exactly once"),
        ("Ettt|ttL", 0, "the number of decoders, t, must be --num-layers, which is 4"),
        (
            "Ett|ttmL",
            0,
            "the number of layers of multi-token prediction, m, must be --mtp-num-layers, which is 0",
        ),
        ("Ett|tmtL", 1, "decoders, t, must be placed before MTP layers, m"),
        ("Ettt|tm|L|", 1, "MTP layers, m, must be in the last chunk of their stage"),
        ("Ett|tt|m|mL", 2, "all MTP layers, m, must be in one cell"),
    ],
)
def test_a_rule_that_is_broken_is_told_alone(text, mtp, words):
    assert rules(text, mtp_layers=mtp) == [words]


def test_an_empty_layout_breaks_both_ends_and_the_count():
    assert rules("|") == [
        "the first layer must be the embedding, E",
        "the last layer must be the loss, L",
        "the number of decoders, t, must be --num-layers, which is 4",
    ]


def test_counts_that_are_not_known_are_not_asked():
    assert rules("Ett|ttmL", layers=None, mtp_layers=None) == []


def test_empty_cells_outside_of_the_ends_are_noted():
    assert [note.split(";")[0] for note in layout_notes(("", "Et", "tL", ""))] == [
        "the layout begins with empty cells before E",
        "the layout ends with empty cells behind L",
    ]
    assert layout_notes(("Et", "", "tL")) == ()
