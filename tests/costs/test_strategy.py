"""Strategies beside recomputation: names, numbers, and models that agree on both."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import (
    Layer,
    LayerKind,
    LayerStrategy,
    Model,
    Recompute,
    Strategy,
    aggregate,
    layer_from_times,
    split_over_sequence_chunks,
    with_backward_ratio,
)
from sapp_ppb.costs.strategy import numbered, type_named
from sapp_ppb.errors import InputError

SWAP = LayerStrategy(name="swap", backward_ms=22, activation_mb=15)
MEMORY = {Recompute.NONE: 60, Recompute.FULL: 5}


def body(name="Dec", strategies=(SWAP,), **changes):
    given = {"name": name, "kind": LayerKind.BODY, "count": 2, "forward_ms": 10, "activation_mb": MEMORY}
    return layer_from_times(**given | {"strategies": strategies} | changes)


def test_a_strategy_stands_behind_the_five_types():
    layer = body()
    assert [r.label for r in layer.considered] == ["none", "full", "swap"]
    swap = layer.types[5]
    assert (layer.backward_ms[swap], layer.activation(swap), swap.mindformers_lists) == (22.0, 15.0, ())


def test_a_layer_without_strategies_is_as_it_was():
    layer = body(strategies=())
    assert layer.types == tuple(Recompute)
    assert (len(layer.backward_ms), len(layer.activation_mb), layer.strategies) == (5, 5, ())
    assert Model(name="m", layers=(layer,)).types == tuple(Recompute)


def test_nothing_on_the_device_is_a_value_for_a_strategy_and_none_for_a_recompute_type():
    layer = body(
        strategies=[LayerStrategy(name="all", backward_ms=22, activation_mb=0)],
        activation_mb={Recompute.NONE: 60, Recompute.FULL: 0},
    )
    assert layer.activation_mb == (60.0, None, None, None, None, 0.0)
    assert [r.label for r in layer.considered] == ["none", "all"]


def test_the_layers_of_a_model_have_the_same_numbers_for_the_same_names():
    other = LayerStrategy(name="other", backward_ms=21, activation_mb=40)
    model = Model(
        name="m",
        layers=(
            body("a", ()),
            body("b", (other, SWAP)),
            body("c"),
            layer_from_times(name="h", kind=LayerKind.HEAD, forward_ms=1),
        ),
    )
    assert [r.label for r in model.types[5:]] == ["other", "swap"]  # in the order of their first appearance
    assert [[r.label for r in layer.considered[2:]] for layer in model.bodies] == [
        [],
        ["other", "swap"],
        ["swap"],
    ]
    swap = model.type_named("swap")
    assert [layer.activation_mb[swap] for layer in model.bodies] == [None, 15.0, 15.0]
    assert [layer.backward_ms[swap] for layer in model.bodies] == [20.0, 22.0, 22.0]  # a has that of NONE
    assert len(model.heads[0].backward_ms) == 5


def test_a_model_of_some_of_the_layers_knows_their_strategies_only():
    whole = Model(name="m", layers=(body("a"), body("b", ())))
    assert Model(name="m", layers=whole.bodies[1:]).types == tuple(Recompute)
    assert Model(name="m", layers=whole.layers) == whole


@given(st.permutations(["x", "y", "z"]), st.permutations(["x", "y", "z"]))
def test_other_numbers_change_no_cost(names, order):
    costs = {name: LayerStrategy(name=name, backward_ms=ord(name), activation_mb=1) for name in names}
    layer = body(strategies=[costs[name] for name in names])
    turned = layer.renumbered(tuple(order))
    assert {r.label: turned.backward_ms[r] for r in turned.types} == {
        r.label: layer.backward_ms[r] for r in layer.types
    }
    assert turned.renumbered(tuple(names)) == layer


def test_a_number_is_the_same_strategy_only_under_its_name():
    swap = Strategy(5, "swap")
    assert swap == Strategy(5, "swap") == 5
    assert swap != Strategy(5, "offload")
    assert swap not in numbered(("offload",))
    assert {swap: "x"}[Strategy(5, "swap")] == "x"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_keeps_its_name(copied):
    assert copied(Strategy(6, "swap")).label == "swap"


def test_types_are_ordered_by_the_time_that_they_add_where_a_strategy_is_among_them():
    layer = body(strategies=[LayerStrategy(name="swap", backward_ms=25, activation_mb=1)])
    none, full, swap = layer.considered  # 20, 30 and 25 ms
    assert layer.least_work_first((swap, full, none)) == (none, swap, full)
    assert layer.least_work_first((full, none)) == (none, full)


def test_an_aggregate_offers_what_all_of_its_layers_offer():
    other = LayerStrategy(name="other", backward_ms=21, activation_mb=40)
    pair = aggregate([body("a", (other, SWAP)), body("b", count=4)], "pair")
    assert pair.offered == ("swap",)
    # One of a and two of b: 22 + 2 x 22 ms, 15 + 2 x 15 MB.
    swap = type_named("swap", pair.types)
    assert (pair.backward_ms[swap], pair.activation(swap)) == (66.0, 45.0)


def test_other_backwards_and_sequence_chunks_change_strategies_in_proportion():
    longer = with_backward_ratio(body(), 3)
    assert longer.backward_ms[5] == 33.0  # 22 / 20 x 30
    assert (
        with_backward_ratio(
            body(backward_ms=0, strategies=[LayerStrategy(name="swap", backward_ms=0, activation_mb=1)]), 2
        ).backward_ms[5]
        == 20.0
    )
    piece = split_over_sequence_chunks(body(), 2)
    assert (piece.backward_ms[5], piece.activation_mb[5]) == (11.0, 7.5)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("full", "name is that of a recompute type; choose another (got 'full')"),
        ("None", "name is that of a recompute type; choose another (got 'None')"),
        ("", "name must be text that is not empty (got '')"),
        ("a,b", "name must be text without commas and blanks at its ends (got 'a,b')"),
        (" a", "name must be text without commas and blanks at its ends (got ' a')"),
        ("a\n", "name must be text without control characters"),
        ("x" * 41, "name must be at most 40 characters long (got 41)"),
        (5, "name must be text that is not empty (got 5)"),
    ],
)
def test_a_name_that_can_not_stand_in_lists_is_refused(name, fault):
    with pytest.raises(InputError) as refused:
        LayerStrategy(name=name, backward_ms=1, activation_mb=1)
    assert len(refused.value.faults) == 1
    assert refused.value.faults[0].startswith(fault)


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, "1", None, 1e16])
def test_costs_must_be_numbers_and_all_faults_are_told_at_once(value):
    with pytest.raises(InputError) as refused:
        LayerStrategy(name="both", backward_ms=value, activation_mb=value)
    assert [fault.split()[0] for fault in refused.value.faults] == ["name", "backward_ms", "activation_mb"]


def test_names_must_differ_and_not_be_many():
    with pytest.raises(InputError, match=r"strategies must have unique names \(got 'swap' 2 times\)"):
        body(strategies=(SWAP, SWAP))
    with pytest.raises(InputError, match=r"strategies must be at most 8 \(got 9\)"):
        body(strategies=[LayerStrategy(name=str(n), backward_ms=1, activation_mb=1) for n in range(9)])
    halves = [
        body(part, [LayerStrategy(name=f"{part}{n}", backward_ms=1, activation_mb=1) for n in range(5)])
        for part in "ab"
    ]
    with pytest.raises(InputError, match=r"strategies must be at most 8 \(got 10\)"):
        Model(name="m", layers=tuple(halves))


def test_only_a_body_layer_has_strategies():
    with pytest.raises(InputError, match="strategies are for BODY layers"):
        body(kind=LayerKind.TAIL)


@pytest.mark.parametrize("names", ["swap", None, 5, ("swap", 5)])
def test_what_is_no_tuple_of_names_is_refused(names):
    with pytest.raises(InputError, match="strategies must be"):
        Layer(name="x", kind=LayerKind.BODY, forward_ms=1, backward_ms=(2,) * 6, strategies=names)


def test_a_layer_needs_a_cost_for_every_strategy():
    with pytest.raises(InputError, match="backward_ms must be 6 numbers, one a recompute type and strategy"):
        Layer(name="x", kind=LayerKind.BODY, forward_ms=1, backward_ms=(2,) * 5, strategies=("swap",))


def test_a_split_backward_must_leave_time_under_a_strategy_too():
    with pytest.raises(InputError, match="at most the backward time with swap, 5 ms"):
        body(strategies=[LayerStrategy(name="swap", backward_ms=5, activation_mb=1)], weight_grad_ms=8)


def test_an_unknown_label_is_refused_with_those_that_exist():
    model = Model(name="m", layers=(body(),))
    with pytest.raises(InputError, match="'swp' is unknown; one of none, selective, comm, both, full, swap"):
        model.type_named("swp")
