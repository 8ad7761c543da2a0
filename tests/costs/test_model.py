"""The chain of layers."""

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError


def layer(name, kind=LayerKind.BODY, **given):
    return layer_from_times(**({"name": name, "kind": kind, "forward_ms": 10} | given))


def test_totals_count_every_layer_as_often_as_it_is_there():
    emb = layer("emb", LayerKind.HEAD, count=2, forward_ms=5, parameter_mb=100)
    dec = layer("dec", count=4, forward_ms=10, backward_ms=30, parameter_mb=50)
    model = Model(name="m", layers=(emb, dec))
    assert model.total_forward_ms == 50  # 2 * 5 + 4 * 10
    assert model.total_backward_ms == 140  # 2 * 10 + 4 * 30
    assert model.total_parameter_mb == 400  # 2 * 100 + 4 * 50


def test_layers_stay_in_file_order_and_are_found_by_kind():
    tail, dense, head, moe = (
        layer("t", LayerKind.TAIL), layer("d", count=3), layer("h", LayerKind.HEAD), layer("m", count=58)
    )  # fmt: skip
    model = Model(name="m", layers=(tail, dense, head, moe))
    assert model.layers == (tail, dense, head, moe)
    assert (model.heads, model.bodies, model.tails) == ((head,), (dense, moe), (tail,))
    assert model.body_count == 61  # 3 + 58


def test_all_faults_of_a_model_come_at_once():
    with pytest.raises(InputError) as caught:
        Model(
            name="",
            layers=(layer("h", LayerKind.HEAD), layer("h", LayerKind.TAIL)),
            constant_memory_mb=-1,
            op_overhead_ms=float("inf"),
            hop_ms="fast",  # type: ignore[arg-type]  # the refusal is what is tested
        )
    assert caught.value.faults == (
        "name must be text that is not empty (got '')",
        "constant_memory_mb must be a number of at least 0 (got -1)",
        "op_overhead_ms must be a number of at least 0 (got inf)",
        "hop_ms must be a number of at least 0 (got 'fast')",
        "layer names must be unique (got 'h' 2 times)",
        "at least one layer must be of kind BODY (got HEAD, TAIL)",
    )


def test_a_model_without_layers_is_refused():
    with pytest.raises(InputError, match=r"at least one layer must be of kind BODY \(got none\)"):
        Model(name="m", layers=())


def test_what_is_no_layer_is_refused():
    with pytest.raises(InputError, match="layers must be a tuple of Layer"):
        Model(name="m", layers=("dec",))  # type: ignore[arg-type]  # the refusal is what is tested


def test_more_than_a_million_body_layers_are_refused():
    half = [layer(name, count=500_001) for name in "ab"]
    with pytest.raises(InputError, match=r"at most 1000000 together \(got 1000002\)"):  # 2 * 500,001
        Model(name="m", layers=tuple(half))


def test_the_description_follows_the_chain_and_lists_the_considered_types():
    tail = layer("out", LayerKind.TAIL, forward_ms=113, parameter_mb=5794, model_name="llama")
    dec = layer("dec", count=96, forward_ms=100, activation_mb={Recompute.NONE: 994, Recompute.FULL: 32})
    assert Model(name="m", layers=(tail, dec)).describe().splitlines() == [
        # 96 * 100 + 113, twice that
        "m: 96 BODY layers, forward 9,713 ms, backward 19,426 ms, parameters 5,794 MB, constant 0 MB a stage",
        "dec: BODY x 96, forward 100 ms, parameters 0 MB",
        "  none       backward 200 ms, activation 994 MB",
        "  full       backward 300 ms, activation 32 MB",
        "out of llama: TAIL x 1, forward 113 ms, parameters 5,794 MB",
        "  none       backward 226 ms, activation 0 MB",
    ]


def test_the_description_says_what_comes_besides_the_layers():
    model = Model(name="m", layers=(layer("dec"),), op_overhead_ms=0.25, hop_ms=2)
    first = model.describe().splitlines()[0]
    assert first.endswith("constant 0 MB a stage, besides 0.25 ms an op and 2 ms a hop")
