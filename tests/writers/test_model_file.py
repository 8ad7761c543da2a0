"""What is written is read back as it was."""

import json
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import Cost, Layer, LayerKind, LayerStrategy, Model, Recompute, layer_from_times
from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.readers import read_model
from sapp_ppb.writers import model_to_json, write_model

EXAMPLES = Path(__file__).parents[2] / "examples"
numbers = st.floats(min_value=0, max_value=1e15) | st.integers(0, 10**15)
names = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1).filter(str.strip)


strategies = st.lists(
    st.builds(
        LayerStrategy,
        name=st.sampled_from(["swap", "s w a p", "Härte", "$x$"]),
        backward_ms=numbers,
        activation_mb=numbers,
    ),
    max_size=3,
    unique_by=lambda strategy: strategy.name,
)


@st.composite
def layers(draw, kind):
    times = st.tuples(*[numbers] * 5)
    common = {
        "name": draw(names),
        "kind": kind,
        "count": draw(st.integers(1, 1000)),
        "parameter_mb": draw(numbers),
        "model_name": draw(st.none() | names),
        "estimated": draw(st.frozensets(st.sampled_from(Cost))),
    }
    activations = draw(st.tuples(*[st.none() | numbers] * 5))
    if draw(st.booleans()):  # any times, or times that follow from the forward time
        forward = draw(numbers.filter(bool))
        layer = Layer(forward_ms=forward, backward_ms=draw(times), activation_mb=activations, **common)
        return layer.offering(draw(strategies)) if kind is LayerKind.BODY else layer
    some = st.floats(min_value=0.001, max_value=1e6)
    return layer_from_times(
        forward_ms=draw(some),
        backward_ms=draw(st.none() | some),
        coefficients=draw(st.dictionaries(st.sampled_from(Recompute), st.floats(0, 3))),
        activation_mb={r: mb for r, mb in zip(Recompute, activations, strict=True) if mb is not None},
        strategies=draw(strategies) if kind is LayerKind.BODY else [],
        **common,
    )


@st.composite
def models(draw):
    kinds = [LayerKind.BODY, *draw(st.lists(st.sampled_from(LayerKind), max_size=4))]
    drawn = [draw(layers(kind)) for kind in draw(st.permutations(kinds))]
    by_name = {layer.name: layer for layer in reversed(drawn) if layer.kind is not LayerKind.BODY}
    by_name |= {layer.name: layer for layer in drawn if layer.kind is LayerKind.BODY}
    layers_drawn = list(by_name.values())
    ends = [at for at, layer in enumerate(layers_drawn) if layer.kind is not LayerKind.BODY]
    for at in ends:
        layers_drawn[at] = replace(layers_drawn[at], transient_mb=draw(numbers))
    if len(ends) > 1 and draw(st.booleans()):
        first, second = ends[:2]
        layers_drawn[first] = replace(layers_drawn[first], count=1)
        layers_drawn[second] = replace(layers_drawn[second], count=1, tied_to=layers_drawn[first].name)
    return Model(
        name=draw(names),
        layers=tuple(layers_drawn),
        constant_memory_mb=draw(numbers),
        op_overhead_ms=draw(numbers),
        hop_ms=draw(numbers),
    )


@given(models())
def test_a_model_is_read_back_exactly_as_it_was(model):
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", FileNote)  # drawn times may be odd
        path = Path(folder) / "model.json"
        write_model(model, path)
        assert read_model(path) == model
        assert model_to_json(read_model(path)) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["llama2_70b", "demo"])
def test_an_example_is_written_as_it_stands(name):
    path = EXAMPLES / f"{name}.json"
    assert json.loads(model_to_json(read_model(path))) == json.loads(path.read_text())


def test_only_what_differs_from_the_defaults_is_written():
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        forward_ms=100,
        coefficients={Recompute.FULL: 0.25, Recompute.COMM: 0.125},
    )
    (entry,) = json.loads(model_to_json(Model(name="m", layers=(body,))))["layers_description"]
    split = replace(body, weight_grad_ms=80)
    (given,) = json.loads(model_to_json(Model(name="m", layers=(split,))))["layers_description"]
    assert given == entry | {"weight_grad_time": 80}
    # 1.25 * 200 is not the default 1.5 * 200; a coefficient of 0.125 is the default of COMM
    assert entry == {"name": "Dec", "type": "BODY", "time": 100, "nb_layer": 1, "recompute_time": 250}


def test_what_makes_a_layer_special_is_written_where_it_is():
    head = layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=1)
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=1)
    tail = layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=1, transient_mb=2.5, tied_to="Emb")
    model = Model(name="m", layers=(head, body, replace(body, name="Mtp", is_mtp=True), tail))
    entries = json.loads(model_to_json(model))["layers_description"]
    special = [
        {key: entry[key] for key in ("mtp", "transient_mb", "tied_to") if key in entry} for entry in entries
    ]
    assert special == [{}, {}, {"mtp": True}, {"transient_mb": 2.5, "tied_to": "Emb"}]


def test_what_is_estimated_is_marked_in_one_word_or_key_by_key():
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=100, parameter_mb=3)

    def entry(*costs):
        layer = replace(body, estimated=frozenset(costs))
        return json.loads(model_to_json(Model(name="m", layers=(layer,))))["layers_description"][0]

    assert "source" not in entry()
    assert entry(*Cost)["source"] == "estimate"
    assert entry(Cost.PARAMETER, Cost.FORWARD)["source"] == {
        "time": "estimate",
        "memory_parameter": "estimate",
    }


def test_heads_count_from_the_start_and_tails_from_the_end():
    chain = [("t1", "TAIL"), ("h1", "HEAD"), ("d", "BODY"), ("h2", "HEAD"), ("t2", "TAIL")]
    model = Model(
        name="m",
        layers=tuple(layer_from_times(name=n, kind=LayerKind(k), forward_ms=1, count=7) for n, k in chain),
    )
    document = json.loads(model_to_json(model))
    assert document["pre_defined_layer"] == {"h1": 0, "h2": 1, "t1": -2, "t2": -1}
    assert document["auto_partition_layer"] == {"d": 7}
    assert [entry["name"] for entry in document["layers_description"]] == [name for name, _ in chain]


def test_a_model_file_that_exists_is_kept_unless_forced(tmp_path):
    model = read_model(EXAMPLES / "demo.json")
    path = tmp_path / "model.json"
    write_model(model, path)
    with pytest.raises(InputError, match="the file exists"):
        write_model(model, path)
    write_model(model, path, force=True)
