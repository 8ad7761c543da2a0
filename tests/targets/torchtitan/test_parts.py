"""The split that torchtitan makes without lists, against its loop written out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.targets.torchtitan.parts import default_layers, default_parts, layers_of, modules_of


def dealt(layers, parts, first, last):
    """Deal shares out one by one, which is what equal shares with an early rest come to."""
    shares = [0] * parts
    for number in range(layers + first + last):
        shares[number % parts] += 1
    shares[0] -= first
    shares[-1] -= last
    return tuple(shares)


@given(st.integers(1, 60), st.integers(2, 12), st.integers(0, 3), st.integers(0, 3))
def test_shares_are_dealt_evenly_and_every_layer_has_a_place(layers, parts, first, last):
    expected = dealt(layers, parts, first, last)
    if (layers + first + last) // parts < max(1, first, last):
        with pytest.raises(ValueError, match="must"):
            default_layers(layers=layers, parts=parts, first_less=first, last_less=last)
        return
    found = default_layers(layers=layers, parts=parts, first_less=first, last_less=last)
    assert found == expected
    assert sum(found) == layers
    # The names are those of the layers in order, each once.
    assert [index for part in modules_of(found) for index in layers_of(part)] == list(range(layers))


def test_llama3_8b_on_four_ranks_with_two_parts_each():
    # 32 + 1 + 1 = 34 = 5 + 5 + 4 x 6; the embedding takes one of the first, the head one of the last.
    assert default_layers(layers=32, parts=8, first_less=1, last_less=1) == (4, 5, 4, 4, 4, 4, 4, 3)


def test_one_part_holds_everything_whatever_embedding_and_head_count_as():
    assert default_layers(layers=2, parts=1, first_less=9, last_less=9) == (2,)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        # ceil(34 / 5) = 7 parts do not divide by 4 ranks
        (
            {"stages": 4, "single": False, "per_part": 5},
            r"divide by the ranks \(got 32 \+ 2 layers by 5 make 7",
        ),
        # ceil(34 / 9) = 4 parts are one a rank, and two for each of 2 ranks
        ({"stages": 4, "single": False, "per_part": 9}, "at least two parts a rank"),
        ({"stages": 2, "single": True, "per_part": 9}, "wants one part a rank"),
    ],
)
def test_layers_a_part_that_do_not_suit_the_schedule_are_refused(sizes, words):
    with pytest.raises(ValueError, match=words):
        default_parts(layers=32, less=2, **sizes)


def test_layers_a_part_decide_how_many_parts_there_are():
    # ceil(34 / 9) = 4
    assert default_parts(layers=32, stages=4, single=True, per_part=9, less=2) == 4
    assert default_parts(layers=32, stages=4, single=True, per_part=None, less=2) == 4
    assert default_parts(layers=32, stages=4, single=False, per_part=None, less=2) == 8
