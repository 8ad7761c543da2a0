"""New layers made from others, and the others left as they were."""

import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import (
    Cost,
    LayerKind,
    LayerStrategy,
    Recompute,
    aggregate,
    at_micro_batch_size,
    layer_from_times,
    layers_of_kind,
    split_over_sequence_chunks,
    with_backward_ratio,
)
from sapp_ppb.errors import InputError

BODY, HEAD = LayerKind.BODY, LayerKind.HEAD
costs = st.floats(min_value=0.001, max_value=1e6)


@st.composite
def bodies(draw):
    types = draw(st.sets(st.sampled_from(Recompute))) | {Recompute.NONE}
    return layer_from_times(
        name=draw(st.sampled_from("abc")),
        kind=BODY,
        count=draw(st.integers(1, 60)),
        forward_ms=draw(costs),
        backward_ms=draw(st.none() | costs),
        parameter_mb=draw(costs),
        activation_mb={r: draw(costs) for r in types},
    )


def test_an_aggregate_needs_for_a_moment_what_the_neediest_of_its_layers_does():
    # Layers run one after the other, so 7 MB and 5 MB are never there at once.
    layers = [layer_from_times(name=str(mb), kind=HEAD, forward_ms=1, transient_mb=mb) for mb in (7, 5)]
    assert aggregate(layers, "both").transient_mb == 7


def test_a_layer_that_shares_its_parameters_is_aggregated_only_alone():
    tied = layer_from_times(name="out", kind=HEAD, forward_ms=1, tied_to="emb")
    assert aggregate([tied], "output").tied_to == "emb"
    with pytest.raises(InputError, match=r"layers must not be tied to others \(got 'out'\)"):
        aggregate([tied, layer_from_times(name="norm", kind=HEAD, forward_ms=1)], "output")


def test_a_sequence_chunk_needs_its_share_for_a_moment():
    head = layer_from_times(name="emb", kind=HEAD, forward_ms=1, transient_mb=12)
    assert split_over_sequence_chunks(head, 4).transient_mb == 3  # 12 / 4


def test_layers_of_a_kind_keep_their_order():
    a, b, c = (
        layer_from_times(name=n, kind=k, forward_ms=1) for n, k in [("a", BODY), ("b", HEAD), ("c", BODY)]
    )
    assert layers_of_kind([a, b, c], BODY) == (a, c)
    assert layers_of_kind([a], HEAD) == ()


@given(st.lists(bodies(), min_size=1, max_size=5))
def test_an_aggregate_has_the_total_time_and_memory_of_its_layers(layers):
    before = copy.deepcopy(layers)
    one = aggregate(layers, "all")

    def total(cost):
        return pytest.approx(sum(layer.count * cost(layer) for layer in layers), rel=1e-9)

    assert one.count * one.forward_ms == total(lambda layer: layer.forward_ms)
    assert one.count * one.parameter_mb == total(lambda layer: layer.parameter_mb)
    for r in Recompute:
        assert one.count * one.backward_ms[r] == total(lambda layer, r=r: layer.backward_ms[r])
    for kept in one.considered:
        assert one.count * one.activation(kept) == total(lambda layer, r=kept: layer.activation(r))
        assert all(kept in layer.considered for layer in layers)
    assert layers == before  # the older tool changed its argument, half-way even when it failed


def test_the_count_of_an_aggregate_is_the_greatest_that_divides_all_counts():
    dense = layer_from_times(name="dense", kind=BODY, count=6, forward_ms=10, parameter_mb=100)
    moe = layer_from_times(name="moe", kind=BODY, count=9, forward_ms=20, parameter_mb=200)
    both = aggregate([dense, moe], "both")
    assert both.count == 3  # gcd(6, 9)
    assert both.forward_ms == 80  # (6 * 10 + 9 * 20) / 3
    assert both.parameter_mb == 800  # (6 * 100 + 9 * 200) / 3


def test_an_aggregate_considers_what_all_of_its_layers_consider():
    a = layer_from_times(
        name="a", kind=BODY, forward_ms=1, activation_mb={Recompute.NONE: 5, Recompute.FULL: 1}
    )
    b = layer_from_times(
        name="b", kind=BODY, forward_ms=1, activation_mb={Recompute.FULL: 2, Recompute.COMM: 3}
    )
    both = aggregate([a, b], "both")
    assert both.considered == (Recompute.FULL,)
    assert both.activation(Recompute.FULL) == 3  # 1 + 2


def test_an_aggregate_keeps_the_activation_of_heads():
    a, b = (
        layer_from_times(name=n, kind=HEAD, forward_ms=1, activation_mb={Recompute.NONE: mb})
        for n, mb in [("a", 5), ("b", 7)]
    )
    assert aggregate([a, b], "both").activation(Recompute.NONE) == 12  # 5 + 7


def test_an_aggregate_keeps_a_model_name_only_where_all_agree():
    a = layer_from_times(name="a", kind=BODY, forward_ms=1, model_name="m")
    b = layer_from_times(name="b", kind=BODY, forward_ms=1, model_name="n")
    assert aggregate([a, a], "x").model_name == "m"
    assert aggregate([a, b], "x").model_name is None


def test_kinds_do_not_mix_and_nothing_is_no_layer():
    body, head = (layer_from_times(name=k.value, kind=k, forward_ms=1) for k in (BODY, HEAD))
    with pytest.raises(InputError, match=r"aggregate 'x': layers must be of one kind \(got BODY, HEAD\)"):
        aggregate([body, head], "x")
    with pytest.raises(InputError, match=r"layers must be of one kind \(got no layer\)"):
        aggregate([], "x")


def test_layers_with_no_recompute_type_in_common_are_refused():
    a = layer_from_times(name="a", kind=BODY, forward_ms=1, activation_mb={Recompute.FULL: 1})
    b = layer_from_times(name="b", kind=BODY, forward_ms=1, activation_mb={Recompute.COMM: 1})
    with pytest.raises(InputError, match=r"recompute type in common \(got a: full; b: comm\)"):
        aggregate([a, b], "x")


def test_another_backward_ratio_keeps_the_coefficients():
    layer = layer_from_times(name="a", kind=BODY, forward_ms=10, coefficients={Recompute.FULL: 0.3})
    changed = with_backward_ratio(layer, 1.5)
    assert changed.backward_ms[Recompute.NONE] == 15  # 1.5 * 10
    assert changed.backward_ms[Recompute.FULL] == pytest.approx(19.5, rel=1e-12)  # 1.3 * 15
    assert layer.backward_ms[Recompute.NONE] == 20  # 2 * 10, as it was


def test_a_backward_of_zero_gets_the_default_coefficients():
    layer = layer_from_times(name="a", kind=BODY, forward_ms=10, backward_ms=0)
    assert with_backward_ratio(layer, 2).backward_ms[Recompute.FULL] == 30  # 1.5 * 20


def test_a_ratio_that_means_nothing_is_refused():
    layer = layer_from_times(name="a", kind=BODY, forward_ms=10)
    with pytest.raises(InputError, match=r"ratio must be a number of at least 0 \(got -1\)"):
        with_backward_ratio(layer, -1)
    odd = layer_from_times(name="a", kind=BODY, forward_ms=10, backward_ms=0, explicit={Recompute.FULL: 5})
    with pytest.raises(InputError, match="the backward time without recompute must be above 0"):
        with_backward_ratio(odd, 2)


def test_sequence_chunks_share_parameters_and_part_the_rest():
    layer = layer_from_times(
        name="a",
        kind=BODY,
        forward_ms=90,
        explicit={Recompute.FULL: 300},
        parameter_mb=880,
        activation_mb={Recompute.NONE: 512},
    )
    for _ in range(2):  # the older tool halved again each time the problem was made
        chunk = split_over_sequence_chunks(layer, 2)
        assert (chunk.forward_ms, chunk.backward_ms[Recompute.NONE]) == (45, 90)  # 90 / 2, 2 * 90 / 2
        assert chunk.backward_ms[Recompute.FULL] == 150  # 300 / 2: explicit times are scaled, not replaced
        assert (chunk.parameter_mb, chunk.activation(Recompute.NONE)) == (880, 256)  # as it was, 512 / 2


@pytest.mark.parametrize("k", [0, -2, 1.5, True])
def test_sequence_chunks_are_counted(k):
    layer = layer_from_times(name="a", kind=BODY, forward_ms=1)
    with pytest.raises(InputError, match="k must be an integer of at least 1"):
        split_over_sequence_chunks(layer, k)


def test_weight_gradients_are_combined_like_other_times():
    first = layer_from_times(name="a", kind=BODY, count=2, forward_ms=10, weight_grad_ms=6)
    second = layer_from_times(name="b", kind=BODY, count=4, forward_ms=25)
    # gcd(2, 4) = 2: one of the first and two of the second, whose weight gradients take its forward time.
    assert aggregate([first, second], "both").weight_grad_ms == 6 + 2 * 25
    assert aggregate([second], "one").weight_grad_ms is None
    # B from 20 to 3 x 10 = 30, so W from 6 to 9.
    assert with_backward_ratio(first, 3).weight_grad_ms == pytest.approx(9, rel=1e-12)
    assert split_over_sequence_chunks(first, 4).weight_grad_ms == 1.5
    assert split_over_sequence_chunks(second, 4).weight_grad_ms is None


def test_a_micro_batch_size_scales_times_and_activations_and_nothing_else():
    layer = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=3,
        forward_ms=10,
        parameter_mb=100,
        activation_mb={Recompute.NONE: 60},
        weight_grad_ms=6,
    )
    # Half as many samples: half of 10, of 2 x 10, of 60 and of 6.
    half = at_micro_batch_size(layer, 0.5)
    assert (half.forward_ms, half.backward_ms[Recompute.NONE], half.weight_grad_ms) == (5, 10, 3)
    assert half.activation_mb == (30, None, None, None, None)
    assert (half.parameter_mb, half.count, half.name) == (100, 3, "Dec")
    assert replace(at_micro_batch_size(half, 2), estimated=frozenset()) == layer
    assert half.estimated == set(Cost) - {Cost.PARAMETER}
    assert at_micro_batch_size(layer, 1) == layer


def test_a_micro_batch_size_scales_strategies_and_what_is_held_for_a_moment():
    # Twice the samples: twice the 21 ms and 15 MB of the swap, and twice the 30 MB of logits.
    swap = LayerStrategy(name="swap", backward_ms=21, activation_mb=15)
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=10, strategies=[swap])
    double = at_micro_batch_size(body, 2)
    assert (double.strategies, double.backward_ms[5], double.activation_mb[5]) == (("swap",), 42, 30)
    output = layer_from_times(
        name="Out", kind=LayerKind.TAIL, forward_ms=1, parameter_mb=100, transient_mb=30, tied_to="Emb"
    )
    double = at_micro_batch_size(output, 2)
    assert (double.transient_mb, double.parameter_mb, double.tied_to) == (60, 100, "Emb")


@pytest.mark.parametrize("ratio", [0, -1, float("nan"), float("inf"), True, "2"])
def test_a_micro_batch_size_that_can_not_be_is_refused(ratio):
    layer = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=10)
    with pytest.raises(InputError, match="ratio must be"):
        at_micro_batch_size(layer, ratio)


def test_what_is_made_of_an_estimate_is_one():
    guessed = layer_from_times(
        name="a", kind=BODY, count=2, forward_ms=1, estimated=frozenset({Cost.FORWARD})
    )
    known = layer_from_times(name="b", kind=BODY, count=2, forward_ms=1)
    weighed = layer_from_times(
        name="c", kind=BODY, count=2, forward_ms=1, estimated=frozenset({Cost.PARAMETER})
    )
    assert aggregate([known, guessed, weighed], "all").estimated == {Cost.FORWARD, Cost.PARAMETER}
    assert aggregate([known, known], "both").estimated == set()
    assert with_backward_ratio(guessed, 3).estimated == {Cost.FORWARD}
    assert split_over_sequence_chunks(guessed, 2).estimated == {Cost.FORWARD}
