"""One layer: its times, what it considers, and what it refuses."""

from dataclasses import FrozenInstanceError
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from sapp_ppb.costs import Layer, LayerKind, Recompute, layer_from_times
from sapp_ppb.errors import InputError

BODY, HEAD, TAIL = LayerKind.BODY, LayerKind.HEAD, LayerKind.TAIL
FIVE = (1.0,) * 5


def test_backward_is_twice_the_forward_where_nothing_is_given():
    layer = layer_from_times(name="Dec", kind=BODY, forward_ms=100)
    # 2 * 100 = 200, times 1, 1.04, 1.125, 1.165, 1.5
    assert layer.backward_ms == pytest.approx((200, 208, 225, 233, 300), rel=1e-12)


def test_a_given_forward_time_moves_every_backward_time():
    # the older tool kept backward at 2 * time when forward_time was given
    layer = layer_from_times(name="Dec", kind=BODY, forward_ms=50)
    assert layer.backward_ms[Recompute.NONE] == 100  # 2 * 50
    assert layer.backward_ms[Recompute.FULL] == 150  # 1.5 * 100


def test_a_given_backward_time_is_the_base_of_every_recompute_type():
    # the older tool left FULL at 450 beside a given backward of 80
    layer = layer_from_times(name="Dec", kind=BODY, forward_ms=150, backward_ms=80)
    assert layer.backward_ms[Recompute.NONE] == 80
    assert layer.backward_ms[Recompute.FULL] == 120  # 1.5 * 80


def test_an_explicit_time_wins_over_a_coefficient():
    layer = layer_from_times(
        name="Dec",
        kind=BODY,
        forward_ms=100,
        coefficients={Recompute.FULL: 0.7, Recompute.COMM: 0.25},
        explicit={Recompute.FULL: 777},
    )
    assert layer.backward_ms[Recompute.FULL] == 777
    assert layer.backward_ms[Recompute.COMM] == 250  # 1.25 * 200


def test_a_backward_coefficient_prices_none_and_leaves_the_base():
    layer = layer_from_times(name="Dec", kind=BODY, forward_ms=100, coefficients={Recompute.NONE: 0.5})
    assert layer.backward_ms[Recompute.NONE] == 300  # 1.5 * 200
    assert layer.backward_ms[Recompute.FULL] == 300  # 1.5 * 200, the base is still 2 * 100


def test_a_given_zero_is_a_value_and_no_absence():
    layer = layer_from_times(
        name="Dec", kind=BODY, forward_ms=100, backward_ms=0, coefficients={Recompute.FULL: 0}
    )
    assert layer.backward_ms == (0, 0, 0, 0, 0)  # (1 + anything) * 0
    free = layer_from_times(name="Dec", kind=BODY, forward_ms=100, coefficients={Recompute.FULL: 0})
    assert free.backward_ms[Recompute.FULL] == 200  # (1 + 0) * 200 and not the default 300


def test_two_layers_made_with_defaults_share_nothing():
    # in the older tool the second layer got the backward times of the first
    first = layer_from_times(name="a", kind=BODY, forward_ms=100)
    second = layer_from_times(name="b", kind=BODY, forward_ms=999)
    assert first.backward_ms[Recompute.NONE] == 200  # 2 * 100
    assert second.backward_ms[Recompute.NONE] == 1998  # 2 * 999


def test_making_a_layer_leaves_the_given_tables_alone():
    explicit, coefficients = {Recompute.FULL: 5.0}, {Recompute.COMM: 0.3}
    layer_from_times(
        name="a", kind=BODY, forward_ms=1, backward_ms=2, explicit=explicit, coefficients=coefficients
    )
    assert explicit == {Recompute.FULL: 5.0}
    assert coefficients == {Recompute.COMM: 0.3}


def test_considered_are_the_types_whose_activation_is_given_and_above_zero():
    layer = Layer(name="a", kind=BODY, forward_ms=1, backward_ms=FIVE, activation_mb=(994, 739, None, 0, 32))
    assert layer.considered == (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)
    assert layer.activation(Recompute.BOTH) == 0.0
    assert layer.activation(Recompute.COMM) == 0.0
    assert layer.activation(Recompute.SELECTIVE) == 739


def test_a_body_layer_without_activation_is_balanced_on_time_alone():
    layer = layer_from_times(name="a", kind=BODY, forward_ms=1, activation_mb={Recompute.FULL: 0})
    assert layer.considered == (Recompute.NONE,)
    assert layer.activation(Recompute.NONE) == 0.0


@pytest.mark.parametrize("kind", [HEAD, TAIL])
def test_a_head_or_tail_is_never_recomputed(kind):
    layer = Layer(
        name="a", kind=kind, count=3, forward_ms=0, backward_ms=(2, 3, 4, 5, 6), activation_mb=(7, 1, 1, 1, 1)
    )
    assert layer.considered == (Recompute.NONE,)
    assert layer.activation(Recompute.NONE) == 7
    assert layer.backward_ms == (2,) * 5


def test_a_layer_can_not_be_changed():
    layer = layer_from_times(name="a", kind=BODY, forward_ms=1)
    with pytest.raises(FrozenInstanceError):
        layer.forward_ms = 2  # type: ignore[misc]  # the refusal is what is tested


def test_numbers_of_numpy_are_numbers():
    # the older tool refused np.int64
    layer = Layer(
        name="a",
        kind=BODY,
        count=np.int64(3),  # type: ignore[arg-type]  # what users pass
        forward_ms=np.float32(1.5),  # type: ignore[arg-type]  # what users pass
        backward_ms=np.ones(5),  # type: ignore[arg-type]  # what users pass
    )
    assert (type(layer.count), type(layer.forward_ms), type(layer.backward_ms[0])) == (int, float, float)
    assert (layer.count, layer.forward_ms, layer.backward_ms) == (3, 1.5, FIVE)


BAD_NUMBERS = [
    -1,
    -1e-9,
    float("nan"),
    float("inf"),
    -float("inf"),
    True,
    "5",
    None,
    [1],
    Decimal(1),
    10**400,
]


@pytest.mark.parametrize("value", BAD_NUMBERS, ids=lambda value: str(value)[:12])
@pytest.mark.parametrize("field", ["forward_ms", "parameter_mb"])
def test_what_is_no_finite_number_of_at_least_zero_is_refused(field, value):
    with pytest.raises(InputError, match=rf"layer 'a': {field} must be a number .*\(got "):
        Layer(**{"name": "a", "kind": BODY, "forward_ms": 1.0, "backward_ms": FIVE, field: value})


@pytest.mark.parametrize(
    "value", [value for value in BAD_NUMBERS if value is not None], ids=lambda v: str(v)[:12]
)
def test_a_bad_entry_of_a_tuple_is_named_by_its_type(value):
    with pytest.raises(InputError, match="backward_ms of comm must be a number of at least 0"):
        Layer(name="a", kind=BODY, forward_ms=1, backward_ms=(1, 1, value, 1, 1))
    with pytest.raises(InputError, match="activation_mb of comm must be a number of at least 0"):
        Layer(name="a", kind=BODY, forward_ms=1, backward_ms=FIVE, activation_mb=(1, 1, value, 1, 1))


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, "5"])
def test_times_are_checked_before_anything_is_computed_from_them(value):
    cases: list[tuple[dict[str, Any], str]] = [
        ({"forward_ms": value}, "forward_ms must be"),
        ({"backward_ms": value}, "backward_ms of none must be"),
        ({"coefficients": {Recompute.BOTH: value}}, "coefficient of both must be"),
        ({"explicit": {Recompute.FULL: value}}, "backward_ms of full must be"),
    ]
    for given, words in cases:
        with pytest.raises(InputError, match=words):
            layer_from_times(**{"name": "a", "kind": BODY, "forward_ms": 1, **given})


def test_all_faults_of_a_layer_come_at_once():
    with pytest.raises(InputError) as caught:
        layer_from_times(
            name="",
            kind="BODY",  # type: ignore[arg-type]  # the refusal is what is tested
            count=0,
            forward_ms=-1,
            parameter_mb=-2,
        )
    assert caught.value.faults == (
        "forward_ms must be a number of at least 0 (got -1)",
        "name must be text that is not empty (got '')",
        "kind must be a LayerKind (got 'BODY')",
        "count must be an integer of at least 1 (got 0)",
        "parameter_mb must be a number of at least 0 (got -2)",
    )


def test_a_body_layer_takes_time_and_a_head_may_take_none():
    assert layer_from_times(name="a", kind=HEAD, forward_ms=0).backward_ms == (0,) * 5
    with pytest.raises(InputError, match=r"forward_ms must be a number above 0 \(got 0\)"):
        layer_from_times(name="a", kind=BODY, forward_ms=0)


@pytest.mark.parametrize("count", [0, -1, 1.0, True, "3", None, 10**6 + 1, 10**30])
def test_a_count_is_an_integer_from_one_to_a_million(count):
    with pytest.raises(InputError, match="count must be"):
        Layer(name="a", kind=BODY, count=count, forward_ms=1, backward_ms=FIVE)


@pytest.mark.parametrize("name", ["", "  ", None, 3, "a\nb", "a\x1b[31m", "a\ud800", "a\u2028b", "a\u202eb"])
def test_a_name_is_text_that_prints_on_one_line(name):
    with pytest.raises(InputError, match="name must be text"):
        Layer(name=name, kind=BODY, forward_ms=1, backward_ms=FIVE)


@pytest.mark.parametrize("times", [(1.0,) * 4, (1.0,) * 6, 5.0, None, "11111", {1: 1}])
def test_five_times_are_needed(times):
    with pytest.raises(InputError, match="backward_ms must be 5 numbers, one a recompute type"):
        Layer(name="a", kind=BODY, forward_ms=1, backward_ms=times)


def test_a_number_far_too_large_asks_for_its_unit():
    with pytest.raises(
        InputError, match=r"parameter_mb must be at most 1e\+15 \(got 1e\+16\); check the unit"
    ):
        layer_from_times(name="a", kind=BODY, forward_ms=1, parameter_mb=1e16)


@pytest.mark.parametrize("forward_ms", [5e-324, 1e-310, 9e-16])
def test_a_time_far_too_small_asks_for_its_unit(forward_ms):
    """With 5e-324 ms a share of the step is 0, and the search divided by it."""
    with pytest.raises(InputError, match=r"forward_ms must be at least 1e-15 \(got .*; check the unit"):
        layer_from_times(name="a", kind=BODY, forward_ms=forward_ms)


def test_a_backward_time_given_twice_must_agree():
    same = {Recompute.NONE: 3.0}
    assert (
        layer_from_times(name="a", kind=BODY, forward_ms=1, backward_ms=3, explicit=same).backward_ms[0] == 3
    )
    with pytest.raises(InputError, match=r"backward_ms of none is given twice \(4 and 3.0\)"):
        layer_from_times(name="a", kind=BODY, forward_ms=1, backward_ms=4, explicit=same)


def test_weight_gradients_take_the_forward_time_unless_another_is_given():
    plain = layer_from_times(name="a", kind=BODY, forward_ms=10)
    assert (plain.weight_grad_ms, plain.weight_ms) == (None, 10.0)
    given = layer_from_times(name="a", kind=BODY, forward_ms=10, weight_grad_ms=7)
    assert (given.weight_grad_ms, given.weight_ms) == (7.0, 7.0)


def test_weight_gradients_that_are_given_fit_into_every_backward_that_is_considered():
    memory = {Recompute.NONE: 9, Recompute.FULL: 1}
    # B is 2 x 10 = 20 with NONE.
    with pytest.raises(InputError, match=r"at most the backward time with none, 20 ms \(got 21 ms\)"):
        layer_from_times(name="a", kind=BODY, forward_ms=10, weight_grad_ms=21, activation_mb=memory)
    # With FULL alone it is 1.5 x 20 = 30, and what NONE would take does not matter.
    only = {Recompute.FULL: 1}
    assert (
        layer_from_times(name="a", kind=BODY, forward_ms=10, weight_grad_ms=21, activation_mb=only).weight_ms
        == 21
    )
    with pytest.raises(InputError, match=r"weight_grad_ms must be a number of at least 0 \(got -1\)"):
        layer_from_times(name="a", kind=BODY, forward_ms=10, weight_grad_ms=-1)


def test_a_forward_longer_than_the_backward_is_no_fault_until_a_schedule_splits_it():
    layer = layer_from_times(name="a", kind=BODY, forward_ms=10, backward_ms=8)
    assert "at most the backward time with none, 8 ms (got 10 ms, the forward time)" in str(
        layer.split_fault()
    )
    assert layer.split_fault([]) is None


def test_marks_of_estimates_are_costs():
    wrongs: tuple[Any, ...] = ({"time"}, frozenset({"time"}), "estimate", None)
    for wrong in wrongs:
        with pytest.raises(InputError, match="estimated must be a frozenset of Cost"):
            layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=1, estimated=wrong)
