"""Where MindFormers puts layers, and the rules of its offset."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.targets.mindformers.split import Grid, split_of


def words(split):
    return [str(rule) for rule in split.broken]


@pytest.mark.parametrize(
    ("offset", "layers", "mtp", "grid", "rows"),
    [
        (0, 8, 0, Grid(stages=4), ((2, 2, 2, 2),)),
        ([0, 1, 1, 0], 10, 0, Grid(stages=4), ((2, 3, 3, 2),)),  # 10 div 4 = 2
        # The example of formats: 30 div 8 = 3, and the offsets add up to 30 mod 8 = 6.
        ([[0, 1, 1, 1], [1, 1, 1, 0]], 30, 0, Grid(stages=4, chunks=2), ((3, 4, 4, 4), (4, 4, 4, 3))),
        ([1, -1], 8, 0, Grid(stages=2, chunks=2), ((3, 1), (3, 1))),  # one list holds for each chunk
        ([[5]], 4, 0, Grid(stages=1), ((4,),)),  # one cell takes whatever stands there
        # With MTP 4 + 1 layers on two stages: 5 div 2 = 2.
        ([0, 1], 4, 1, Grid(stages=2), ((2, 3),)),
    ],
)
def test_an_offset_that_keeps_the_rules(offset, layers, mtp, grid, rows):
    split = split_of(offset, layers, mtp, grid)
    assert (split.rows, words(split), split.counts_mtp) == (rows, [], True)


def test_under_zero_bubble_v_a_row_is_by_stage_and_the_chain_runs_back():
    # 9 div 4 = 2: stage 0 has 2 and the last 3, which its row gives first.
    split = split_of([[0, 0], [1, 0]], 9, 0, Grid(stages=2, chunks=2, is_v=True))
    assert split.rows == ((2, 2), (3, 2))
    # One place too many, which the end of the chain lacks: chunk 1 of stage 0.
    short = split_of([[0, 0], [1, 1]], 9, 0, Grid(stages=2, chunks=2, is_v=True))
    assert short.rows == ((2, 2), (2, 3))


@pytest.mark.parametrize(
    ("offset", "rows", "rule"),
    [
        # 10 layers on 4 stages: 2 each and 2 over.
        ([0, 0, 0, 0], None, "must add up to 10 mod 4 = 2, so that each layer has a place (got 0)"),
        ([1, 1, 1, 0], ((3, 3, 3, 1),), "must add up to 10 mod 4 = 2"),
        (
            [1, 3, -2, 0],
            ((3, 5, 0, 2),),
            "stage 2 chunk 0 must hold a layer: 10 div 4 = 2 and -2 (got 0 layers)",
        ),
        (
            [-3, 3, 1, 1],
            None,
            "stage 0 chunk 0 may be empty but not less: 10 div 4 = 2 and -3 (got -1 layers)",
        ),
        (
            2,
            ((4, 4, 2, 0),),
            "holds for every cell (got places for 16 layers; there are 10, so the last cells go short)",
        ),
        ([1, 1, 0], None, "must be a whole number or a list of one for each of the 4 stages (got [1, 1, 0])"),
        ([[1, 1, 0, 0], [0, 0, 0, 0]], None, "one for each of the 4 stages (got [[1, 1,"),
        ([1, 1.0, 0, 0], None, "(got [1, 1.0, 0, 0])"),
        ([True, 1, 0, 0], None, "(got [True, 1, 0, 0])"),
        ("0", None, "(got '0')"),
        (True, None, "(got True)"),
        ([10**9, 2 - 10**9, 0, 0], None, "must be a whole number"),
    ],
)
def test_an_offset_that_breaks_a_rule_says_which_and_where_the_layers_go(offset, rows, rule):
    split = split_of(offset, 10, 0, Grid(stages=4))
    assert split.rows == rows
    assert any(rule in sentence for sentence in words(split)), words(split)


def test_the_first_and_the_last_cell_may_be_empty():
    assert words(split_of([-2, 2, 2, 0], 10, 0, Grid(stages=4))) == []
    assert words(split_of([2, 2, 0, -2], 10, 0, Grid(stages=4))) == []


def test_one_list_for_all_chunks_passes_the_sum_and_leaves_the_last_cells_short():
    # 9 mod 4 = 1, which [1, 0] adds up to; for both chunks it makes 2 + 8 = 10 places.
    split = split_of([1, 0], 9, 0, Grid(stages=2, chunks=2))
    assert split.rows == ((3, 2), (3, 1))
    assert words(split) == [
        "offset: what is written once holds for every chunk (got places for 10 layers; there are 9, so the "
        "last cells go short); write 2 lists, one a chunk"
    ]


class TestMultiTokenPrediction:
    def test_an_offset_that_leaves_it_out_puts_it_behind_the_last(self):
        # 5 layers and 1: 5 mod 2 = 1 and 6 mod 2 = 0.
        split = split_of([1, 0], 5, 1, Grid(stages=2))
        assert (split.rows, split.counts_mtp, words(split)) == (((3, 3),), False, [])

    def test_a_sum_that_is_neither_names_both(self):
        (rule,) = words(split_of([0, 0, 0], 7, 1, Grid(stages=3)))
        assert "must add up to 8 mod 3 = 2 or 7 mod 3 = 1 (with and without the 1 of MTP)" in rule

    def test_it_must_stand_in_the_last_cell(self):
        # 6 + 2: the last stage has 1 of the 2.
        (rule,) = words(split_of([1, 2, -1], 6, 2, Grid(stages=3)))
        assert rule == (
            "offset: the 2 MTP layers must stand in the last cell, stage 2 chunk 0, with the loss "
            "(got 1 of them before it); give that cell 1 more"
        )

    def test_under_zero_bubble_v_the_last_cell_is_on_stage_0(self):
        grid = Grid(stages=2, chunks=2, is_v=True)
        assert words(split_of([[0, 0], [0, 0]], 7, 1, grid)) == []
        (rule,) = words(split_of([[1, 1], [-1, -1]], 6, 2, grid))
        assert "stage 0 chunk 1" in rule


@given(st.data(), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_cells_of_at_least_a_layer_are_read_from_the_offset_that_makes_them(data, stages, chunks, is_v):
    grid = Grid(stages=stages, chunks=2 if is_v else chunks, is_v=is_v)
    rows = [[data.draw(st.integers(1, 4)) for _ in range(stages)] for _ in range(grid.chunks)]
    layers = sum(map(sum, rows))
    offset = [[number - layers // grid.cells for number in row] for row in rows]
    split = split_of(offset, layers, 0, grid)
    assert (split.rows, split.broken) == (tuple(map(tuple, rows)), ())
