"""New layers made from others: chosen, aggregated, with another backward, split over the sequence."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from sapp_ppb.costs.checks import count_fault, number_fault, shown
from sapp_ppb.costs.cost import EVERYTHING, Cost
from sapp_ppb.costs.layer import Layer, LayerKind, strategies_of
from sapp_ppb.costs.layer_times import layer_from_times
from sapp_ppb.costs.recompute import Recompute
from sapp_ppb.errors import InputError


def layers_of_kind(layers: Iterable[Layer], kind: LayerKind) -> tuple[Layer, ...]:
    """Layers of one kind, in their order; empty when there is none."""
    return tuple(layer for layer in layers if layer.kind is kind)


def aggregate(layers: Sequence[Layer], name: str) -> Layer:
    """
    One layer that stands for several, with the same total time and memory.

    The count is the greatest common divisor of the counts, and each cost is the
    sum of count x cost over the layers, divided by that count; of memory that exists only
    while a layer runs it is the greatest.  Considered are the recompute types and strategies
    that all of the layers consider.

    Parameters
    ----------
    layers
        Layers of one kind, at least one.
    name
        Name of the new layer.

    Raises
    ------
    InputError
        If there is no layer, if the kinds differ, if no recompute type is
        considered by all, or if one of several is tied to another layer.

    Examples
    --------
    >>> dense = layer_from_times(name="dense", kind=LayerKind.BODY, count=2, forward_ms=10)
    >>> moe = layer_from_times(name="moe", kind=LayerKind.BODY, count=4, forward_ms=25)
    >>> pair = aggregate([dense, moe], "dense+moe+moe")
    >>> pair.count, pair.forward_ms  # gcd(2, 4), (2 * 10 + 4 * 25) / 2
    (2, 60.0)
    """
    where = f"aggregate {shown(name)}"
    kinds = sorted({layer.kind.value for layer in layers})
    if len(kinds) != 1:
        raise InputError(where, [f"layers must be of one kind (got {', '.join(kinds) or 'no layer'})"])
    names = strategies_of(layers)
    if layers[0].kind is LayerKind.BODY:
        layers = [layer.renumbered(names) for layer in layers]
    types = layers[0].types
    shared = [r for r in types if all(r in layer.considered for layer in layers)]
    if not shared:
        found = "; ".join(f"{layer.name}: {', '.join(r.label for r in layer.considered)}" for layer in layers)
        raise InputError(where, [f"layers must have a recompute type in common (got {found})"])
    tied = [layer.name for layer in layers if layer.tied_to is not None]
    if tied and len(layers) > 1:
        raise InputError(where, [f"layers must not be tied to others (got {', '.join(map(shown, tied))})"])
    count = math.gcd(*(layer.count for layer in layers))

    def cost(values: Iterable[float]) -> float:
        shares = (layer.count // count for layer in layers)
        return sum(share * value for share, value in zip(shares, values, strict=True))

    model_names = {layer.model_name for layer in layers}
    return Layer(
        name=name,
        kind=layers[0].kind,
        count=count,
        forward_ms=cost(layer.forward_ms for layer in layers),
        backward_ms=tuple(cost(layer.backward_ms[r] for layer in layers) for r in types),
        parameter_mb=cost(layer.parameter_mb for layer in layers),
        activation_mb=tuple(
            cost(layer.activation(r) for layer in layers) if r in shared else None for r in types
        ),
        model_name=model_names.pop() if len(model_names) == 1 else None,
        weight_grad_ms=None
        if all(layer.weight_grad_ms is None for layer in layers)
        else cost(layer.weight_ms for layer in layers),
        is_mtp=all(layer.is_mtp for layer in layers),
        transient_mb=max(layer.transient_mb for layer in layers),
        tied_to=layers[0].tied_to,
        estimated=frozenset().union(*(layer.estimated for layer in layers)),
        strategies=layers[0].strategies,
    )


def with_backward_ratio(layer: Layer, ratio: float) -> Layer:
    """
    Layer whose backward without recompute takes ``ratio`` times its forward.

    The coefficients stay: every recompute type's backward changes in proportion, and
    so do the weight gradients where their time is given.
    A layer whose backward times are all 0 gets the default coefficients.

    Raises
    ------
    InputError
        If the ratio is not a number of at least 0, or if the layer has a backward
        of 0 without recompute and more with it, which is in no proportion.

    Examples
    --------
    >>> layer = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=10)
    >>> with_backward_ratio(layer, 3).backward_ms[Recompute.FULL]  # (1 + 0.5) * (3 * 10)
    45.0
    """
    where = f"backward ratio of layer {shown(layer.name)}"
    fault = number_fault("ratio", ratio)
    if fault:
        raise InputError(where, [fault])
    base = layer.backward_ms[Recompute.NONE]
    wanted = float(ratio) * layer.forward_ms
    if base > 0:
        weights = layer.weight_grad_ms
        return replace(
            layer,
            backward_ms=tuple(value / base * wanted for value in layer.backward_ms),
            weight_grad_ms=None if weights is None else weights / base * wanted,
        )
    if any(layer.backward_ms):
        raise InputError(
            where, ["the backward time without recompute must be above 0 (got 0); give the times"]
        )
    fresh = layer_from_times(
        name=layer.name, kind=layer.kind, forward_ms=layer.forward_ms, backward_ms=wanted
    )
    # Nothing is known of what a strategy adds, so it adds nothing, as before.
    added = (wanted,) * len(layer.strategies)
    return replace(layer, backward_ms=fresh.backward_ms + added)


def split_over_sequence_chunks(layer: Layer, k: int) -> Layer:
    """
    Layer as one of ``k`` sequence chunks of a micro-batch meets it.

    A chunk carries 1/k of the micro-batch's tokens: forward, every backward, the weight
    gradients, the activations and what is held for a moment are divided by k.  The
    parameters are not, since all chunks run through the same ones.  The micro-batches
    become k x M, for the whole work stays the same.  A causal attention works longer on
    later chunks; this is the mean.

    Raises
    ------
    InputError
        If k is not an integer of at least 1.

    Examples
    --------
    >>> layer = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=10, parameter_mb=880)
    >>> chunk = split_over_sequence_chunks(layer, 4)
    >>> chunk.forward_ms, chunk.backward_ms[Recompute.NONE], chunk.parameter_mb
    (2.5, 5.0, 880.0)
    """
    fault = count_fault("k", k)
    if fault:
        raise InputError(f"sequence chunks of layer {shown(layer.name)}", [fault])
    return replace(
        layer,
        forward_ms=layer.forward_ms / k,
        backward_ms=tuple(value / k for value in layer.backward_ms),
        activation_mb=tuple(value / k if value is not None else None for value in layer.activation_mb),
        weight_grad_ms=None if layer.weight_grad_ms is None else layer.weight_grad_ms / k,
        transient_mb=layer.transient_mb / k,
    )


def at_micro_batch_size(layer: Layer, ratio: float) -> Layer:
    """
    Layer as a micro-batch of ``ratio`` times the samples meets it, an estimate.

    Forward, every backward, the weight gradients, the activations and what is held for a moment grow
    with the samples; the parameters stay.  What was scaled is marked as an estimate.  Devices are often
    better used by more samples at once, so that the true times are then somewhat shorter.

    Raises
    ------
    InputError
        If the ratio is not a number above 0.

    Examples
    --------
    >>> layer = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=10, parameter_mb=880,
    ...                          activation_mb={Recompute.NONE: 60})
    >>> double = at_micro_batch_size(layer, 2)
    >>> double.forward_ms, double.backward_ms[Recompute.NONE], double.activation(Recompute.NONE)
    (20.0, 40.0, 120.0)
    >>> double.parameter_mb
    880.0
    """
    fault = number_fault("ratio", ratio, above_zero=True)
    if fault:
        raise InputError(f"micro-batch size of layer {shown(layer.name)}", [fault])
    return replace(
        layer,
        forward_ms=layer.forward_ms * ratio,
        backward_ms=tuple(value * ratio for value in layer.backward_ms),
        activation_mb=tuple(value * ratio if value is not None else None for value in layer.activation_mb),
        weight_grad_ms=None if layer.weight_grad_ms is None else layer.weight_grad_ms * ratio,
        transient_mb=layer.transient_mb * ratio,
        estimated=layer.estimated if ratio == 1 else layer.estimated | (EVERYTHING - {Cost.PARAMETER}),
    )
