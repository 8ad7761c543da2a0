"""How MindSpeed's own flags split a model, and what they refuse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.errors import InputError
from sapp_ppb.targets.megatron.recompute import RecomputeFlags, dealt, types_of
from sapp_ppb.targets.megatron.split import PER_CHUNK, SplitFlags
from sapp_ppb.targets.mindspeed.split import (
    parse_list,
    parse_rows,
    rows_text,
    split_of_list,
    split_of_rows,
    split_on_a_v,
    with_noops,
)


@given(st.lists(st.lists(st.integers(0, 12), min_size=2, max_size=2).map(tuple), min_size=1).map(tuple))
def test_rows_read_back(rows):
    assert parse_rows(rows_text(rows)) == rows


def test_the_matrix_of_the_documentation():
    rows = parse_rows("[[0,1],[1,1]*4,[1,0]]")
    assert rows == ((0, 1), (1, 1), (1, 1), (1, 1), (1, 1), (1, 0))
    assert parse_rows(" [ [1], [2] * 4, [1] ] ") == ((1,), (2,), (2,), (2,), (2,), (1,))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "[1,2]", "[[1,2]", "[[1,-1]]", "[[1.5]]", "[[a]]", "[[1],[2]]*3", "[[[1]]]", "[*3]", "[[1]x]"],
)
def test_what_is_no_matrix_is_refused(text):
    with pytest.raises(InputError, match="must be a list of lists of whole numbers"):
        parse_rows(text)


def test_an_absurd_repetition_is_refused():
    with pytest.raises(InputError, match="stands for more than 1000000 numbers"):
        parse_rows("[[1*9999999]*9999999]")


@pytest.mark.parametrize("text", ["", "1,", "1;2", "-1,2", "1.5", "1 2,x", "99999999"])
def test_what_is_no_list_is_refused(text):
    with pytest.raises(InputError, match="must be whole numbers with commas"):
        parse_list(text, "noop-layers")


def rules(split):
    return [str(rule) for rule in split.broken]


@pytest.mark.parametrize(
    ("numbers", "options", "said"),
    [
        ((2, 2), {}, ["--num-layer-list: the numbers must add up to --num-layers, 5 (got 4)"]),
        ((5,), {}, ["--num-layer-list: must have a number for each of the 2 stages (got 1)"]),
        (
            (2, 3),
            {"per_chunk": 1},
            [f"--num-layer-list: goes not with {PER_CHUNK} (got both); keep one"],
        ),
        ((5,), {"stages": 1}, ["--num-layer-list: needs a pipeline of at least 2 stages (got 1)"]),
        ((2, 3), {}, []),
    ],
)
def test_a_number_for_each_stage(numbers, options, said):
    assert rules(split_of_list(numbers, SplitFlags(**{"stages": 2, "layers": 5} | options))) == said


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        (((1, 1), (1, 1)), {"chunks": 2}, ""),
        (((2,), (2,)), {}, ""),
        (((1, 1), (1, 1)), {}, "a row must have 1 numbers, one a chunk (got 2)"),
        (((2, 2),), {"chunks": 2}, "must have a row for each of the 2 stages (got 1)"),
        (((1, 1), (1, 2)), {"chunks": 2}, "the numbers must add up to --num-layers, 4 (got 5)"),
        (((1, 1), (2,)), {"chunks": 2}, "a row must have 2 numbers, one a chunk (got 1, 2)"),
        # Megatron-LM asks for an even split before MindSpeed changes it.
        (((3,), (2,)), {"layers": 5}, "must be divisible by the 2 stages (got 5)"),
    ],
)
def test_a_row_for_each_stage(rows, options, said):
    found = rules(split_of_rows(rows, SplitFlags(**{"stages": 2, "layers": 4} | options)))
    assert [said in rule for rule in found] == [True] * bool(said)


def test_a_v_needs_layers_for_two_chunks_of_every_stage():
    # 12 is no multiple of 2 * 4
    assert rules(split_on_a_v(SplitFlags(stages=4, layers=12))) == [
        "--num-layers: must be a multiple of twice the 4 stages with dualpipev (got 12); "
        "add empty places with --noop-layers"
    ]
    assert (
        "goes not with --num-virtual-stages"
        in rules(split_on_a_v(SplitFlags(stages=2, layers=8, chunks=2)))[0]
    )
    assert "at least 2 stages" in rules(split_on_a_v(SplitFlags(stages=1, layers=8)))[0]


def test_empty_places_take_part_in_block_recompute():
    flags = SplitFlags(stages=2, layers=8)
    split = with_noops(split_on_a_v(flags), (0, 7), 8)
    assert split.cells == ("Ent", "tt", "tt", "tnL")
    assert split.noops == 2
    block = RecomputeFlags(granularity="full", method="block", layers=1)
    types = types_of(split.cells, 2, block, on_a_v=True)
    assert types is not None
    # The first place of stage 0 is empty, so its one layer is the second and stays; chunk 1 comes back,
    # so that cell 3 is on stage 0.
    assert [[[r.label for r in cell] for cell in row] for row in types] == [
        [["none"], ["full", "none"]],
        [["full"], ["full", "none"]],
    ]


def test_a_place_beyond_the_last_is_refused():
    assert (
        "must be below --num-layers, 4"
        in rules(with_noops(split_on_a_v(SplitFlags(stages=2, layers=4)), (4,), 4))[0]
    )


@given(st.integers(0, 40), st.integers(1, 6))
def test_all_that_is_dealt_is_dealt_once(layers, chunks):
    shares = [dealt(layers, chunk, chunks) for chunk in range(chunks)]
    assert sum(shares) == layers
    assert shares == sorted(shares, reverse=True)
    assert shares[0] - shares[-1] <= 1
