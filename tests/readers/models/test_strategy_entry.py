"""Strategies in model files: what is read, what is noted, what is refused."""

import json
import warnings

import pytest

from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.readers import read_model

WHOLE = {"name": "swap", "memory_activation": 40, "backward_time": 230}
# 45 MB of 2^20 bytes in 10 ms: 45 x 1.048576 / 10 = 4.718592 x 10^9 bytes a second.
LINK = {
    "name": "host",
    "memory_activation": 15,
    "host_mb": 45,
    "host_gb_per_s": 4.718592,
    "hidden_share": 0.8,
}


@pytest.fixture
def model_file(tmp_path):
    """Write a model of one layer with these strategies, other keys changed."""

    def write(strategies, **changes):
        layer = {"name": "Dec", "type": "BODY", "time": 100, "nb_layer": 4, "memory_activation": 60}
        path = tmp_path / "model.json"
        layer |= {"strategies": strategies} | changes
        path.write_text(json.dumps({"name": "tiny", "layers_description": [layer]}))
        return path

    return write


def faults(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FileNote)
        with pytest.raises(InputError) as caught:
            read_model(path)
    return [fault.removeprefix("layers_description[0]").removeprefix(".") for fault in caught.value.faults]


def without(entry, *keys):
    return {key: value for key, value in entry.items() if key not in keys}


def test_a_backward_time_is_the_whole_one(model_file):
    (layer,) = read_model(model_file([WHOLE])).bodies
    assert [r.label for r in layer.considered] == ["none", "swap"]
    assert (layer.backward_ms[5], layer.activation_mb[5]) == (230.0, 40.0)


def test_a_link_adds_what_is_not_hidden(model_file):
    # 10 ms each way; 0.8 of the forward's 10 hides 8 of the way out, 0.8 of the backward's 20 the way back.
    (layer,) = read_model(model_file([LINK], time=10)).bodies
    assert layer.backward_ms[5] == pytest.approx(22.0, rel=1e-12)
    # The backward that hides, and to which it is added, is that of the file: 0.8 x 5 hides 4 of 10.
    (layer,) = read_model(model_file([LINK], time=10, backward_time=5, weight_grad_time=1)).bodies
    assert layer.backward_ms[5] == pytest.approx(5 + 2 + 6, rel=1e-12)


def test_several_stand_in_their_order_and_null_is_not_given(model_file):
    entries = [LINK | {"backward_time": None}, WHOLE | {"host_mb": None}]
    model = read_model(model_file(entries))
    assert [r.label for r in model.types[5:]] == ["host", "swap"]
    assert read_model(model_file(None)).types == read_model(model_file([])).types == model.types[:5]


def test_a_layer_of_which_nothing_else_is_known_has_only_its_strategies(model_file):
    path = model_file([WHOLE], memory_activation=None)
    with pytest.warns(FileNote, match="no plan can leave this layer without recompute"):
        (layer,) = read_model(path).bodies
    assert [r.label for r in layer.considered] == ["swap"]


def test_an_unknown_key_and_a_backward_that_is_too_short_are_noted(model_file):
    with pytest.warns(FileNote) as caught:
        read_model(model_file([WHOLE | {"backward_time": 30, "host_gb": 1}]))
    said = [str(note.message).split("layers_description[0].")[1] for note in caught]
    assert said == [
        "strategies[0].'host_gb' is unknown and ignored; the nearest known key is host_mb",
        "backward with swap takes 30 ms, less than the 200 ms without recompute; its backward_time is the "
        "whole backward time",
    ]


@pytest.mark.parametrize(
    ("strategies", "expected"),
    [
        ({}, ["strategies must be a list of objects, one a strategy (got {})"]),
        ("swap", ["strategies must be a list of objects, one a strategy (got 'swap')"]),
        (["swap"], ["strategies[0] must be an object (got 'swap')"]),
        ([without(WHOLE, "name")], ["strategies[0].name is missing"]),
        ([without(WHOLE, "memory_activation")], ["strategies[0].memory_activation is missing"]),
        (
            [without(WHOLE, "backward_time")],
            ["strategies[0] must give backward_time, or host_mb, host_gb_per_s and hidden_share"],
        ),
        (
            [WHOLE | LINK],
            ["strategies[0] gives backward_time and host_mb, host_gb_per_s, hidden_share; keep one"],
        ),
        ([without(LINK, "hidden_share")], ["strategies[0].hidden_share is missing beside host_mb"]),
        (
            [without(LINK, "host_mb", "host_gb_per_s")],
            [
                "strategies[0].host_mb is missing beside hidden_share",
                "strategies[0].host_gb_per_s is missing beside hidden_share",
            ],
        ),
        (
            [LINK | {"host_gb_per_s": 0}],
            ["strategies[0].host_gb_per_s must be a number above 0 (got 0)"],
        ),
        ([LINK | {"hidden_share": 1.5}], ["strategies[0].hidden_share must be from 0 to 1 (got 1.5)"]),
        ([LINK | {"host_mb": "9"}], ["strategies[0].host_mb must be a number of at least 0 (got '9')"]),
        ([WHOLE, WHOLE], ["strategies: strategies must have unique names (got 'swap' 2 times)"]),
        (
            [{**WHOLE, "name": str(n)} for n in range(9)],
            ["strategies: strategies must be at most 8 (got 9)"],
        ),
        (
            [WHOLE | {"name": "both", "memory_activation": -1}, 5],
            [
                "strategies[0].name is that of a recompute type; choose another (got 'both')",
                "strategies[0].memory_activation must be a number of at least 0 (got -1)",
                "strategies[1] must be an object (got 5)",
            ],
        ),
    ],
)
def test_every_fault_is_told_at_once(model_file, strategies, expected):
    assert faults(model_file(strategies)) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("key", ["memory_activation", "host_mb", "host_gb_per_s", "hidden_share"])
def test_a_number_that_is_not_finite_is_named_once(model_file, key, value):
    assert faults(model_file([LINK | {key: value}])) == [
        f"strategies[0].{key} must be a finite number (got {value!r})"
    ]


def test_faults_of_the_layer_and_of_its_strategies_are_told_together(model_file):
    assert faults(model_file([WHOLE | {"name": ""}], memory_activation=-1)) == [
        "strategies[0].name must be text that is not empty (got '')",
        "memory_activation must be a number of at least 0 (got -1)",
    ]


def test_times_that_are_too_large_only_when_computed_are_refused(model_file):
    (fault,) = faults(model_file([LINK | {"host_mb": 1e15, "host_gb_per_s": 1e-9}]))
    assert fault.startswith(": backward_ms must be at most 1e+15")


def test_a_head_has_none(tmp_path):
    head = {"name": "Emb", "type": "HEAD", "time": 1, "nb_layer": 1, "strategies": [WHOLE]}
    body = {"name": "Dec", "type": "BODY", "time": 1, "nb_layer": 1}
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"name": "tiny", "layers_description": [head, body]}))
    with pytest.raises(InputError, match=r"layers_description\[0\]: strategies are for BODY layers"):
        read_model(path)


def test_many_names_over_all_layers_are_refused(tmp_path):
    layers = [
        {
            "name": f"Dec{k}",
            "type": "BODY",
            "time": 1,
            "nb_layer": 1,
            "memory_activation": 60,
            "strategies": [{**WHOLE, "name": f"{k}.{n}"} for n in range(5)],
        }
        for k in range(2)
    ]
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"name": "tiny", "layers_description": layers}))
    with pytest.raises(InputError, match=r"strategies must be at most 8 \(got 10\)"):
        read_model(path)
