"""Rules of places: which layers of a cell they pick, and what of a plan they settle."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.fix import Fix, PlaceRule
from sapp_ppb.problem import Problem

FIRST = PlaceRule(recompute=Recompute.FULL, first=2)
SECOND = PlaceRule(recompute=Recompute.FULL, every=2)


def model(*counts: int) -> Model:
    memory = {Recompute.NONE: 9, Recompute.FULL: 1}
    bodies = tuple(
        layer_from_times(
            name=f"kind{k}", kind=LayerKind.BODY, count=count, forward_ms=1, activation_mb=memory
        )
        for k, count in enumerate(counts)
    )
    return Model(name="m", layers=bodies)


def test_the_first_layers_of_each_cell_are_picked_whatever_their_kind():
    # Cell 0: 1 of kind 0 and 2 of kind 1: the first of each; cell 1: 1 of kind 1, which is all.
    counts = FIRST.counts(np.array([[1, 0], [2, 1]]))
    assert counts[:, Recompute.FULL].tolist() == [[1, 0], [1, 1]]
    assert counts[:, Recompute.NONE].tolist() == [[0, 0], [1, 0]]


def test_every_second_layer_is_counted_from_the_start_of_a_cell():
    # Cell 0 holds three layers: its second, of kind 1; cell 1 holds one: none.
    counts = SECOND.counts(np.array([[1, 0], [2, 1]]))
    assert counts[:, Recompute.FULL].tolist() == [[0, 0], [1, 0]]


def test_entries_at_the_end_are_left_alone():
    rule = PlaceRule(recompute=Recompute.FULL, first=3, entries_left=1)
    counts = rule.counts(np.array([[1], [2]]))
    assert counts[:, Recompute.FULL].tolist() == [[1], [0]]


def test_dealt_layers_go_to_one_chunk_after_the_other():
    # Two stages of three chunks, N = 4: two in chunk 0, one in chunks 1 and 2; what a cell is short of goes
    # nowhere else.
    rule = PlaceRule(recompute=Recompute.FULL, first=4, chunks=3)
    assert rule.counts(np.array([[3, 1, 2, 2, 2, 0]]))[0, Recompute.FULL].tolist() == [2, 1, 1, 1, 1, 0]


@given(
    layers=st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=2), min_size=1, max_size=3),
    number=st.integers(1, 5),
    takes_first=st.booleans(),
)
def test_a_rule_picks_what_walking_along_the_chain_picks(layers, number, takes_first):
    rule = PlaceRule(recompute=Recompute.FULL, **{"first" if takes_first else "every": number})
    by_entry = np.array(layers)
    starts = np.concatenate([[0], np.cumsum(by_entry.sum(axis=0))])
    kind = np.repeat(range(len(layers)), by_entry.sum(axis=1))
    expected = np.zeros((len(layers), 2), dtype=int)
    for cell, (start, stop) in enumerate(pairwise(starts.tolist())):
        for place, layer in enumerate(range(start, stop), start=1):
            if place <= number if takes_first else place % number == 0:
                expected[kind[layer], cell] += 1
    # The chain cuts its layers by number: what a cell then has of each kind may differ from what was drawn.
    cut = np.array([[sum(kind[a:b] == k) for a, b in pairwise(starts.tolist())] for k in range(len(layers))])
    if np.array_equal(cut, by_entry):
        assert rule.counts(by_entry)[:, Recompute.FULL].tolist() == expected.tolist()


def test_a_fix_allows_what_its_rule_makes_of_the_split_and_nothing_else():
    fix = Fix(places=FIRST)
    counts = FIRST.counts(np.array([[3, 1]]))
    assert fix.allows(counts)
    counts[0, [Recompute.NONE, Recompute.FULL], 0] += (1, -1)
    assert not fix.allows(counts)


def test_a_rule_goes_with_a_split():
    fix = Fix(layers=(3, 1), places=FIRST)
    assert fix.allows(FIRST.counts(np.array([[3, 1]])))
    assert not fix.allows(FIRST.counts(np.array([[2, 2]])))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (PlaceRule(recompute=Recompute.FULL), "picks the first layers or every n-th"),
        (PlaceRule(recompute=Recompute.FULL, first=0), "picks the first layers or every n-th"),
        (PlaceRule(recompute=Recompute.FULL, first=1, every=2), "picks the first layers or every n-th"),
        (PlaceRule(recompute=Recompute.NONE, first=1), "picks the first layers or every n-th"),
        (PlaceRule(recompute=Recompute.FULL, first=1, chunks=2), "over the 1 chunks of a stage, or none"),
        (PlaceRule(recompute=Recompute.FULL, every=1, chunks=2), "over the 1 chunks of a stage, or none"),
        (PlaceRule(recompute=Recompute.COMM, first=1), "as comm, which no layer that it is for can be"),
        (PlaceRule(recompute=Recompute.FULL, first=1, entries_left=2), "as full, which no layer"),
        # Counted from the end of a list of two, 3 would have left the second one to be picked from.
        (PlaceRule(recompute=Recompute.FULL, first=1, entries_left=3), r"leaves 0 to 2 entries .* \(got 3\)"),
        (PlaceRule(recompute=Recompute.FULL, first=1, entries_left=-1), r"0 to 2 entries .* \(got -1\)"),
    ],
)
def test_a_rule_that_picks_nothing_is_refused(rule, said):
    with pytest.raises(InputError, match=said):
        Problem(model=model(2, 2), stages=2, micro_batches=4, fix=Fix(places=rule))


def test_a_rule_mixes_a_type():
    with pytest.raises(InputError, match="max-recompute-types is 0"):
        Problem(model=model(4), stages=2, micro_batches=4, fix=Fix(places=FIRST), max_recompute_types=0)


def test_recompute_is_given_once():
    kept = (((0, 0),) * 5,)
    with pytest.raises(InputError, match="one of the two"):
        Problem(model=model(4), stages=2, micro_batches=4, fix=Fix(recompute=kept, places=FIRST))
