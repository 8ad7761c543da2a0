"""MindFormers' recompute lists count what the published rules say, however they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import Recompute
from sapp_ppb.targets.mindformers.counts import LISTS, counted, types_counted
from sapp_ppb.targets.mindformers.split import Grid

LAYERS = ((1, 2), (4, 2))
GRID = Grid(stages=2, chunks=2)


def rows_of(value, key="select_recompute", layers=LAYERS, grid=GRID):
    found = counted(key, value, layers, grid)
    assert not found.broken, found.broken
    return found.rows


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        (None, ((0, 0), (0, 0))),
        (False, ((0, 0), (0, 0))),
        (True, LAYERS),
        ([2, 1], ((1, 1), (1, 0))),  # dealt in turn
        ([4, 3], ((1, 2), (3, 1))),  # chunk 0 of stage 0 is full after one
        ([True, False], ((1, 0), (4, 0))),
        ([[1, 0], [3, 2]], ((1, 0), (3, 2))),
        ([False, [4, True]], ((0, 0), (4, 2))),
        ([r"mlp\.mul", r"mlp\.silu"], LAYERS),  # patterns alone are for all layers
        ([], ((0, 0), (0, 0))),
        ({}, ((0, 0), (0, 0))),
        ({r"mlp\.mul": [2, 1]}, ((1, 1), (1, 0))),
        ({r"mlp\.mul": True, "b": False}, LAYERS),
        ({"a": [[1, 0], [2, 0]], "b": [[0, 2], [1, 0]]}, ((1, 2), (2, 0))),  # the most of each cell
    ],
)
def test_forms(value, rows):
    assert rows_of(value) == rows


@pytest.mark.parametrize(
    ("value", "note"),
    [
        ([6, 0], "select_recompute counts 6 layers on stage 0, which has 5"),
        ([[1, 3], [0, 0]], "select_recompute counts 3 layers on stage 1 chunk 0, which has 2"),
        ([6, 5], "on stage 0, which has 5; too many on stage 1 as well"),  # stage 1 has 2 + 2
        ({"a": [6, 0]}, "select_recompute.a counts 6 layers on stage 0, which has 5"),
        ({"a": [1, 0], "b": [0, 0]}, "select_recompute counts other layers for other ops"),
    ],
)
def test_what_a_list_says_too_much_is_noted_and_capped(value, note):
    found = counted("select_recompute", value, LAYERS, GRID)
    assert found.rows is not None
    assert not found.broken
    assert any(note in words for words in found.notes)
    assert all(
        n <= most
        for row, mosts in zip(found.rows, LAYERS, strict=True)
        for n, most in zip(row, mosts, strict=True)
    )


@pytest.mark.parametrize(
    "value",
    [
        1,
        0,
        "all",
        [1, 2, 3],
        [-1, 0],
        [[1, 2]],
        [[1, 2], 1],
        [[1, 2], [1]],
        [1.5, 0],
        [["a"], [1, 1]],
        [[1, 2], [1, -1]],
    ],
)
def test_what_mindformers_can_not_read_is_a_broken_rule(value):
    found = counted("recompute", value, LAYERS, GRID)
    assert found.rows is None
    (rule,) = found.broken
    assert str(rule).startswith(
        "recompute: must be true, false or a list of counts, one for each of the 2 stages, or 2 lists"
    )


def test_a_mapping_is_for_select_lists_only():
    assert counted("recompute", {"a": [1, 1]}, LAYERS, GRID).rows is None
    (rule,) = counted("select_recompute", {"a": 1}, LAYERS, GRID).broken
    assert rule.key == "select_recompute.a"


def test_a_list_that_ends_early_breaks_the_rule_and_counts_none_on_the_others():
    found = counted("recompute", [1], LAYERS, GRID)
    assert found.rows == ((1, 0), (0, 0))
    assert "one for each of the 2 stages" in str(found.broken[0])


def test_under_zero_bubble_v_each_chunk_has_its_own_list():
    grid = Grid(stages=2, chunks=2, is_v=True)
    assert rows_of([[1, 0], [3, 2]], grid=grid) == ((1, 0), (3, 2))
    assert rows_of([True, [3, 2]], grid=grid) == ((1, 2), (3, 2))
    for value in ([1, 1], [[1, 0], True]):
        (rule,) = counted("recompute", value, LAYERS, grid).broken
        assert "must be true, false or 2 lists of counts" in str(rule)


def test_a_layer_that_recompute_counts_is_full_whatever_else_counts_it():
    none, selective, comm, both, full = Recompute
    rows = [((n,),) for n in (5, 1, 3, 4)]
    assert types_counted(*rows) == (((full, both, both, comm, none),),)
    assert types_counted(*(((n,),) for n in (2, 0, 1, 0))) == (((selective, none),),)


def is_counted(value, layers, chunk, stage, position):
    """Say slowly whether a list counts a layer: formats of MindFormers, written out case by case."""
    if isinstance(value, bool):
        return value
    if isinstance(value[0], list) or isinstance(value[-1], list):
        entry = value[chunk]
        entry = entry if isinstance(entry, bool) else entry[stage]
    else:
        sizes = [row[stage] for row in layers]
        # Turn after turn, every chunk that has one left gets one more.
        turns = [(turn, c) for turn in range(max(sizes)) for c, size in enumerate(sizes) if turn < size]
        number = len(turns) if value[stage] is True else int(value[stage])
        entry = sum(c == chunk for _, c in turns[:number])
    return entry if isinstance(entry, bool) else position < entry


@given(st.data(), st.integers(1, 3), st.integers(1, 3))
def test_types_are_those_of_the_rule_layer_by_layer(data, stages, chunks):
    layers = tuple(tuple(data.draw(st.integers(0, 5)) for _ in range(stages)) for _ in range(chunks))
    entry = st.one_of(st.integers(0, 6), st.booleans())
    row = st.lists(entry, min_size=stages, max_size=stages)
    rows = st.lists(row, min_size=chunks, max_size=chunks)
    some_bools = st.lists(st.one_of(row, st.booleans()), min_size=chunks, max_size=chunks).filter(
        lambda value: any(isinstance(part, list) for part in value) and isinstance(value[0], list)
    )
    lists = {name: data.draw(st.one_of(st.booleans(), row, rows, some_bools)) for name in LISTS}
    found = [
        counted(name, value, layers, Grid(stages=stages, chunks=chunks)).rows for name, value in lists.items()
    ]
    types = types_counted(layers, *(rows for rows in found if rows is not None))
    for v in range(chunks):
        for s in range(stages):
            for position in range(layers[v][s]):
                full, select, comm = (is_counted(value, layers, v, s, position) for value in lists.values())
                by_both = {(1, 1): "both", (1, 0): "selective", (0, 1): "comm", (0, 0): "none"}[select, comm]
                assert types[v][s][position].label == ("full" if full else by_both)
            assert len(types[v][s]) == layers[v][s]
