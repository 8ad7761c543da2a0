"""The model file: only what differs from the defaults, so that it reads like one written by hand."""

import json
from os import PathLike

from sapp_ppb.costs.cost import ESTIMATE, EVERYTHING, Cost
from sapp_ppb.costs.layer import Layer, LayerKind
from sapp_ppb.costs.layer_times import backward_times
from sapp_ppb.costs.model import Model
from sapp_ppb.costs.recompute import Recompute
from sapp_ppb.files import write_text_atomic


def write_model(model: Model, path: str | PathLike[str], force: bool = False) -> None:
    """
    Write a model file; reading it back gives an equal model.

    Parameters
    ----------
    model
        Model to write.
    path
        File to write; missing folders are made.
    force
        Replace a file that exists.

    Raises
    ------
    InputError
        If the file exists and ``force`` is not set, or if it can not be written.
    """
    write_text_atomic(path, model_to_json(model), force)


def model_to_json(model: Model) -> str:
    r"""
    Text of a model file.

    Examples
    --------
    >>> from sapp_ppb.costs import layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=10, backward_ms=25)
    >>> text = model_to_json(Model(name="tiny", layers=(body,)))
    >>> json.loads(text)["layers_description"]  # 25 is not 2 * 10, the other times follow from 25
    [{'name': 'Dec', 'type': 'BODY', 'time': 10, 'nb_layer': 4, 'backward_time': 25}]
    """
    tails = len(model.tails)
    fixed = {layer.name: index for index, layer in enumerate(model.heads)}
    fixed |= {layer.name: index - tails for index, layer in enumerate(model.tails)}
    document: dict[str, object] = {
        "name": model.name,
        "pre_defined_layer": fixed,  # place along the chain, from its start or from its end
        "auto_partition_layer": {layer.name: layer.count for layer in model.bodies},
    }
    if model.constant_memory_mb:
        document["stage_const_mem"] = _number(model.constant_memory_mb)
    if model.op_overhead_ms:
        document["op_overhead_ms"] = _number(model.op_overhead_ms)
    if model.hop_ms:
        document["hop_ms"] = _number(model.hop_ms)
    document["layers_description"] = [_entry(layer) for layer in model.layers]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _entry(layer: Layer) -> dict[str, object]:
    """Object of one layer; a reader's default stands for every key that is left out."""
    entry: dict[str, object] = {"name": layer.name}
    if layer.model_name is not None:
        entry["model_name"] = layer.model_name
    entry |= {"type": layer.kind.value, "time": _number(layer.forward_ms), "nb_layer": layer.count}
    if layer.parameter_mb:
        entry["memory_parameter"] = _number(layer.parameter_mb)
    entry |= {r.memory_key: _number(mb) for r in Recompute if (mb := layer.activation_mb[r]) is not None}
    entry |= {r.time_key: _number(ms) for r, ms in _times_to_say(layer).items()}
    if layer.offered:
        entry["strategies"] = _strategies(layer)
    if layer.weight_grad_ms is not None:
        entry["weight_grad_time"] = _number(layer.weight_grad_ms)
    if layer.is_mtp:
        entry["mtp"] = True
    if layer.transient_mb:
        entry["transient_mb"] = _number(layer.transient_mb)
    if layer.tied_to is not None:
        entry["tied_to"] = layer.tied_to
    if layer.estimated:
        entry["source"] = _source(layer.estimated)
    return entry


def _strategies(layer: Layer) -> list[dict[str, object]]:
    """Name and costs of each strategy that the layer has."""
    return [
        {
            "name": r.label,
            "backward_time": _number(layer.backward_ms[r]),
            "memory_activation": _number(layer.activation(r)),
        }
        for r in layer.types
        if r.label in layer.offered
    ]


def _source(estimated: frozenset[Cost]) -> object:
    """One word where every cost is estimated, else one for each that is."""
    if estimated == EVERYTHING:
        return ESTIMATE
    return {cost.value: ESTIMATE for cost in Cost if cost in estimated}


def _times_to_say(layer: Layer) -> dict[Recompute, float]:
    """Backward times that a reader would not find by itself."""
    base = layer.backward_ms[Recompute.NONE]
    say = {} if base == 2 * layer.forward_ms else {Recompute.NONE: base}
    if layer.kind is not LayerKind.BODY:
        return say
    usual = backward_times(layer.forward_ms, {r: r.default_coefficient for r in Recompute}, say)
    return say | {r: layer.backward_ms[r] for r in Recompute if layer.backward_ms[r] != usual[r]}


def _number(value: float) -> float:
    """Integer where the value is one: 100 and not 100.0, which is the same number when read."""
    return int(value) if value.is_integer() else value
