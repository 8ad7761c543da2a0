"""Parameters that layers share."""

import pytest

from sapp_ppb.costs import LayerKind, Model, layer_from_times
from sapp_ppb.costs.tied import counted_twice_mb
from sapp_ppb.errors import InputError

HEAD, BODY, TAIL = LayerKind.HEAD, LayerKind.BODY, LayerKind.TAIL


def layer(name, kind=TAIL, **given):
    return layer_from_times(**({"name": name, "kind": kind, "forward_ms": 10} | given))


def test_the_layer_that_has_less_says_how_much_is_shared():
    table = layer("Emb", HEAD, parameter_mb=100)
    more, less = (layer("Out", parameter_mb=mb, tied_to="Emb") for mb in (130, 70))
    assert counted_twice_mb([table, more], [table, more]) == 100
    assert counted_twice_mb([table, less], [table, less]) == 70


def test_of_three_on_one_stage_the_greatest_part_is_held_once():
    table = layer("Emb", HEAD, parameter_mb=100)
    output = layer("Out", parameter_mb=100, tied_to="Emb")
    mtp = layer("MtpEmb", parameter_mb=80, tied_to="Emb")
    everything = [table, output, mtp]
    # 280 MB, of which 100 are there: 180 too much; on another stage than Emb 180, of which 100: 80.
    assert counted_twice_mb(everything, everything) == 180
    assert counted_twice_mb(everything, [output, mtp]) == 80


def test_layers_that_share_nothing_are_counted_in_full():
    table, other = layer("Emb", HEAD, parameter_mb=100), layer("Vision", HEAD, count=3, parameter_mb=100)
    output = layer("Out", parameter_mb=100)
    assert counted_twice_mb([table, other, output], [table, other, output]) == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tied_to": "Emp"}, r"layer 'Out' is tied to 'Emp', which is no layer of this model"),
        ({"tied_to": "Dec"}, r"layer 'Out' is tied to 'Dec', which must be a HEAD or TAIL \(got BODY\)"),
        ({"tied_to": "Two"}, r"layer 'Out' is tied to 'Two', whose count must be 1 \(got 2\)"),
        ({"tied_to": "Tie"}, r"layer 'Out' is tied to 'Tie', which is tied to 'Emb' itself; name that one"),
        ({"tied_to": "Out"}, r"tied_to must name another layer \(got 'Out', its own name\)"),
        ({"tied_to": ""}, r"tied_to must be text that is not empty \(got ''\)"),
        ({"tied_to": 3}, r"tied_to must be text that is not empty \(got 3\)"),
        ({"tied_to": "Emb", "count": 2}, r"tied_to is for a layer with a count of 1 \(got 2\)"),
        ({"tied_to": "Emb", "kind": BODY}, r"tied_to is for HEAD and TAIL layers \(got 'Emb' for a BODY\)"),
    ],
)
def test_a_tie_that_can_not_be_is_refused(given, words):
    layers = [layer("Emb", HEAD), layer("Dec", BODY), layer("Two", count=2), layer("Tie", tied_to="Emb")]
    with pytest.raises(InputError, match=words):
        Model(name="m", layers=(*layers, layer("Out", **given)))
