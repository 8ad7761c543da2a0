"""How many layers the cells need."""

import pytest

from sapp_ppb.errors import InputError
from tests.problem.problems import model, problem


def test_too_few_layers_for_the_cells_are_refused_with_the_way_out() -> None:
    words = "7 BODY layers are too few for 4 stages x 2 chunks, which need 8; .* --min-layers 0"
    with pytest.raises(InputError, match=words):
        problem(model=model(7), interleave=2)
    assert problem(model=model(8), interleave=2).model.body_count == 8
    assert problem(model=model(1), interleave=2, min_layers_per_cell=0).cells == 8


def test_cells_with_a_head_or_a_tail_may_hold_no_layer() -> None:
    # Needs 1 for each of 4 cells, less 1 for the HEAD's and 1 for the TAIL's.
    for head, tail, needed in ((False, False, 4), (True, False, 3), (False, True, 3), (True, True, 2)):
        fits = problem(model=model(needed, head=head, tail=tail))
        assert sum(fits.least_layers(cell) for cell in range(4)) == needed
        with pytest.raises(InputError, match=f"{needed - 1} BODY layers are too few .* which need {needed};"):
            problem(model=model(needed - 1, head=head, tail=tail))


def test_the_least_layers_of_a_cell_are_those_asked_for_except_at_the_ends() -> None:
    ends = problem(model=model(12, head=True, tail=True), min_layers_per_cell=3)
    assert [ends.least_layers(cell) for cell in range(4)] == [0, 3, 3, 0]
    plain = problem(model=model(12), min_layers_per_cell=3)
    assert [plain.least_layers(cell) for cell in range(4)] == [3, 3, 3, 3]
    # A single cell holds both.
    one = problem(model=model(1, head=True, tail=True), stages=1, min_layers_per_cell=5)
    assert one.least_layers(0) == 0
