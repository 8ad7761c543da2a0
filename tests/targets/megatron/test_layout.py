"""Megatron's layout strings: read in every form, written short, and parsed by a strict parser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.errors import InputError
from sapp_ppb.targets.megatron.layout import (
    cells_of_names,
    compressed,
    layout_of,
    names,
    parse_layout,
)
from tests.targets.megatron_cases import megatron_plans, plan_of_layout
from tests.targets.strict_layout import LayoutError, strict_cells

any_cells = st.lists(st.text("EtmL", max_size=6), min_size=1, max_size=12).map(tuple)
# 61 decoders and one MTP layer on 16 stages of two chunks, as NVIDIA's page on layouts publishes it.
DEEPSEEK = "Et*3|(tt|)*29,m|L"


def test_deepseek_v3_has_32_cells_of_61_decoders_and_one_mtp_layer():
    # Et*3, 29 cells of tt, m, L: 1 + 29 + 1 + 1 = 32 = 16 x 2 cells, 3 + 29 x 2 = 61 decoders.
    cells = parse_layout(DEEPSEEK)
    assert cells == ("Ettt", *["tt"] * 29, "m", "L")
    assert (len(cells), "".join(cells).count("t")) == (32, 61)


def test_deepseek_v3_is_written_from_its_plan_as_published_but_for_the_comma():
    plan = plan_of_layout(DEEPSEEK, 16)
    assert plan.problem.model.body_count == 62
    assert layout_of(plan) == parse_layout(DEEPSEEK)
    assert compressed(layout_of(plan)) == "Et*3|(tt|)*29m|L"
    strict = strict_cells(compressed(layout_of(plan)), stages=16, decoders=61, mtp=1)
    # The published table: stage 0 has 3 and 2 decoders, 1 to 13 have 2 and 2, 14 has 2 and the MTP
    # layer, 15 has 2 and the loss.
    assert strict[0] == [(3, 0), *[(2, 0)] * 15]
    assert strict[1] == [*[(2, 0)] * 14, (0, 1), (0, 0)]


@pytest.mark.parametrize(
    ("text", "stages", "layers", "mtp"),
    [
        ("Et*7|(t*8|)*6t*6mL", 8, 61, 1),  # 7 + 6 x 8 + 6
        ("Ett|(ttt|)*2tt|ttt|(t*3|)*2tttL", 8, 22, 0),  # 2 + 2 x 3 + 2 + 3 + 2 x 3 + 3
        ("Et*4|(tttt|)*14tmL", 16, 61, 1),  # 4 + 14 x 4 + 1
        ("Et*2|(tt|)*5t|tmL", 8, 14, 1),  # 2 + 5 x 2 + 1 + 1
    ],
)
def test_examples_have_the_cells_and_layers_that_they_are_said_to_have(text, stages, layers, mtp):
    cells = parse_layout(text)
    chain = "".join(cells)
    assert (len(cells), chain.count("t"), chain.count("m")) == (stages, layers, mtp)


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("E||t|L", ("E", "", "t", "L")),  # the page's example of an empty cell
        ("E|*3tL", ("E", "", "", "tL")),  # a bar is repeated like any other character
        ("Et*0L", ("EL",)),
        ("(Et)*1L", ("EtL",)),
        ("(t*2|)*2L", ("tt", "tt", "L")),  # groups first, then what is in them
        ("Et*012L", ("E" + "t" * 12 + "L",)),
        ("xy(ab|)*2".translate(str.maketrans("xyab", "Ettm")), ("Ettm", "tm", "")),
        (r"Et\*5\|(tt\|)*2L", ("Ettttt", "tt", "tt", "L")),
        (r"Et\\*5\\|tL", ("Ettttt", "tL")),
        ("E,t|,t,L", ("Et", "tL")),
        ("", ("",)),
    ],
)
def test_forms_of_the_grammar(text, cells):
    assert parse_layout(text) == cells


@pytest.mark.parametrize(
    "text",
    [
        "Et x",
        "Ett|tl",
        "E t|L",
        "(t(t|)*2)*2",
        "(tt|)",
        "(tt|*3",
        "t*",
        "*3",
        "t*2*3",
        "()*2",
        "E٣L",
        "Et*-1L",
    ],
)
def test_what_is_no_layout_is_refused_with_the_first_character_that_is_wrong(text):
    with pytest.raises(InputError, match=r"where E, t, m, L or \| must stand"):
        parse_layout(text)


@pytest.mark.parametrize(
    "text", ["Et*1000001L", "Et*99999999999999999999L", "(t*1000|)*1000" * 2, "(tt|)*900000"]
)
def test_absurd_numbers_are_refused_before_they_are_written_out(text):
    with pytest.raises(InputError, match="more than 1000000 layers and cells"):
        parse_layout(text)


@given(any_cells)
def test_every_form_reads_back_the_same(cells):
    assert (
        parse_layout("|".join(cells))
        == parse_layout(compressed(cells))
        == cells_of_names(names(cells))
        == cells
    )


@given(any_cells)
def test_the_short_form_is_never_longer(cells):
    assert len(compressed(cells)) <= len("|".join(cells))


def test_the_short_form_folds_only_what_gets_shorter():
    # tt|tt| has 6 characters and (tt|)*2 has 7; (t*3|)*3 has 8 and t*3| three times has 12.
    assert compressed(("Et", "tt", "tt", "ttt", "ttt", "ttt", "L")) == "Et|tt|tt|(t*3|)*3L"


@given(megatron_plans())
def test_the_strict_parser_sees_the_layers_of_every_plan(plan):
    model, problem = plan.problem.model, plan.problem
    mtp = model.mtp_count
    strict = strict_cells(
        compressed(layout_of(plan)), stages=problem.stages, decoders=model.body_count - mtp, mtp=mtp
    )
    totals = [[sum(cell) for cell in row] for row in strict]
    assert totals == plan.per_chunk_and_stage(plan.layers_per_cell).tolist()


@pytest.mark.parametrize("text", ["Ett|L|", "tE|L", "Et|tmt|L", "Em|tL", "E(t", "Et)L", "E()*2L", "Et|t|L"])
def test_the_strict_parser_refuses_what_breaks_a_rule(text):
    with pytest.raises(LayoutError):
        strict_cells(text, stages=2, decoders=2, mtp=text.count("m"))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("Et|L", "must be a list of lists"),
        ([["embedding"], "decoder"], "must be a list of lists"),
        ([["embedding", "encoder"]], "'encoder', which is none of embedding, decoder, mtp, loss"),
        ([[1]], "1, which is none of"),
    ],
)
def test_a_list_that_is_no_layout_is_refused(rows, words):
    with pytest.raises(InputError, match=words):
        cells_of_names(rows)
