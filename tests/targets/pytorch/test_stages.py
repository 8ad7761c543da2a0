"""Stages for PyTorch: how they lie on ranks, and where a model is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.schedules import Placement
from sapp_ppb.targets.pytorch.stages import cuts_of, layers_of_cuts, placement_of, stage_rules, stages_of


@given(st.integers(2, 6), st.integers(1, 4))
def test_ranks_tell_how_stages_lie(ranks, chunks):
    sizes = [1] * (ranks * chunks)
    assert placement_of([rank for rank, _, _ in stages_of(sizes, ranks, Placement.LOOP)]) == (
        ranks,
        Placement.LOOP,
    )
    if chunks == 2:
        on_a_v = [rank for rank, _, _ in stages_of(sizes, ranks, Placement.V)]
        assert on_a_v == [*range(ranks), *reversed(range(ranks))]
        assert placement_of(on_a_v) == (ranks, Placement.V)


def test_ranks_that_lie_otherwise_are_told():
    assert placement_of([0, 1, 2, 1]) is None
    assert placement_of([1, 0]) is None
    assert placement_of([0, 1, 1, 0, 0, 1]) is None


@given(st.lists(st.integers(1, 4), min_size=2, max_size=8), st.booleans(), st.booleans())
def test_cuts_say_the_layers_again(sizes, empty_first, empty_last):
    sizes = [0] * empty_first + sizes + [0] * empty_last
    stages = stages_of(sizes, len(sizes), Placement.LOOP)
    cuts = [(name, "BEGINNING") for name in cuts_of(stages)]
    assert layers_of_cuts(cuts, sum(sizes)) == sizes
    assert layers_of_cuts(cuts, None) is None
    assert stage_rules(stages, sum(sizes)) == []


@pytest.mark.parametrize(
    ("cuts", "words"),
    [
        ([("layers.3", "BEGINNING"), ("layers.2", "BEGINNING")], "cuts must rise"),
        ([("layers.9", "BEGINNING")], "cuts must rise, up to 6 layers"),
        ([("encoder.3", "BEGINNING")], "a cut must be at a layer"),
        ([("norm", "END")], "a cut must be at a layer"),
    ],
)
def test_cuts_that_can_not_be(cuts, words):
    with pytest.raises(ValueError, match=words):
        layers_of_cuts(cuts, 6)


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ([(0, 1, 2)], "every layer must stand in one stage, in order"),
        ([(0, 0, 2), (1, 1, 4)], "in order"),
        ([(0, 0, 2), (1, 2, 1)], "in order"),
        ([(0, 0, 2), (1, 2, 2), (2, 2, 4)], "a stage must hold a module (got none in stage 1)"),
        ([(0, 0, 2), (1, 2, 4)], "must hold all layers (got 4 of 5 layers)"),
    ],
)
def test_stages_that_can_not_be(stages, words):
    assert words in "\n".join(map(str, stage_rules(stages, 5)))
