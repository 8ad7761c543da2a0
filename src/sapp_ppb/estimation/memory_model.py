"""A model of times and memory, put together from what was measured of each."""

from dataclasses import replace

from sapp_ppb.costs import Cost, Layer, LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.estimation.memory_fit import MemoryEstimate


def model_of_times(name: str, count: int, *, head_ms: float, body_ms: float, tail_ms: float) -> Model:
    """
    Model of one HEAD, some equal BODY layers and one TAIL, from their forward times.

    Examples
    --------
    >>> model = model_of_times("tiny", 4, head_ms=1.0, body_ms=10.0, tail_ms=2.0)
    >>> model.total_forward_ms  # 1 + 4 x 10 + 2
    43.0
    """
    layers = (
        layer_from_times(name="HEAD", kind=LayerKind.HEAD, forward_ms=head_ms),
        layer_from_times(name="BODY", kind=LayerKind.BODY, count=count, forward_ms=body_ms),
        layer_from_times(name="TAIL", kind=LayerKind.TAIL, forward_ms=tail_ms),
    )
    return Model(name=name, layers=layers)


def with_memory(model: Model, estimate: MemoryEstimate) -> Model:
    """
    Give the layers of a model the memory that was fitted.

    What the first stage holds besides is given to the first HEAD, what the last holds to
    the last TAIL.  Memory of one kind of layer goes to every BODY layer of the model,
    that of several to those of the same names.

    Raises
    ------
    InputError
        If the model has no layer for some of the memory, or a BODY layer has none.
    """
    faults = []
    for mb, layers, where in (
        (estimate.head_mb, model.heads, "HEAD"),
        (estimate.tail_mb, model.tails, "TAIL"),
    ):
        if mb > 0 and not layers:
            faults.append(f"has no {where} to give {mb:,.1f} MB to; name one when its times are measured")
    kinds = list(estimate.parameter_mb)
    missing = [body.name for body in model.bodies if len(kinds) > 1 and body.name not in kinds]
    if missing:
        names, known = ", ".join(missing[:8]), ", ".join(kinds)
        faults.append(f"has {names}, of which no memory was measured, only of {known}")
    if faults:
        raise InputError(f"model {model.name!r}", faults)
    return replace(
        model,
        layers=tuple(_layer(layer, model, estimate) for layer in model.layers),
        constant_memory_mb=estimate.constant_mb,
    )


def _layer(layer: Layer, model: Model, estimate: MemoryEstimate) -> Layer:
    # Its times may be estimates; its memory no longer is.
    layer = replace(layer, estimated=layer.estimated - {Cost.PARAMETER, Cost.ACTIVATION})
    if layer.kind is LayerKind.BODY:
        name = layer.name if len(estimate.parameter_mb) > 1 else next(iter(estimate.parameter_mb))
        activation = estimate.activation_mb.get(name, {})
        return replace(
            layer,
            parameter_mb=estimate.parameter_mb[name],
            # Runs tell nothing of strategies, of which what is given stays.
            activation_mb=(
                *(activation.get(r) for r in Recompute),
                *layer.activation_mb[len(Recompute) :],
            ),
        )
    if layer.kind is LayerKind.HEAD:
        holders, mb = model.heads[:1], estimate.head_mb
    else:
        holders, mb = model.tails[-1:], estimate.tail_mb
    return replace(layer, parameter_mb=mb / layer.count if layer in holders else 0.0)
