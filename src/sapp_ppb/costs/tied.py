"""Parameters that layers share: a stage holds them once, however many of its layers use them."""

from collections.abc import Iterable, Sequence

from sapp_ppb.costs.checks import shown
from sapp_ppb.costs.layer import Layer, LayerKind


def tied_faults(layers: Sequence[Layer]) -> list[str]:
    """
    Faults of ties that only the whole chain shows: to what is no layer, a BODY, several, or tied itself.

    Examples
    --------
    >>> from sapp_ppb.costs.layer_times import layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=10)
    >>> output = layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=5, tied_to="Dec")
    >>> tied_faults([body, output])
    ["layer 'Out' is tied to 'Dec', which must be a HEAD or TAIL (got BODY)"]
    """
    by_name = {layer.name: layer for layer in layers}
    faults = [(layer, _fault(by_name.get(layer.tied_to))) for layer in layers if layer.tied_to is not None]
    return [
        f"layer {shown(layer.name)} is tied to {shown(layer.tied_to)}, {fault}"
        for layer, fault in faults
        if fault is not None
    ]


def _fault(other: Layer | None) -> str | None:
    """Say why nothing can be tied to a layer."""
    if other is None:
        return "which is no layer of this model"
    if other.kind is LayerKind.BODY:
        return "which must be a HEAD or TAIL (got BODY)"
    if other.tied_to is not None:
        return f"which is tied to {shown(other.tied_to)} itself; name that one"
    return f"whose count must be 1 (got {other.count})" if other.count != 1 else None


def counted_twice_mb(layers: Iterable[Layer], held: Iterable[Layer]) -> float:
    """
    Parameter memory that a stage's layers have in common, beyond the once that it is held.

    A layer shares what it has with the one that it is tied to, up to what that one has.

    Parameters
    ----------
    layers
        All layers of the model.
    held
        HEADs and TAILs of one stage.

    Returns
    -------
    float
        MB.

    Examples
    --------
    >>> from sapp_ppb.costs.layer_times import layer_from_times
    >>> table = layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=1, parameter_mb=100)
    >>> output = layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=5, parameter_mb=101,
    ...                           tied_to="Emb")
    >>> counted_twice_mb([table, output], [table, output])  # 201 MB, of which 100 are there once
    100.0
    >>> counted_twice_mb([table, output], [output])
    0.0
    """
    by_name = {layer.name: layer for layer in layers}
    shared: dict[str, list[float]] = {}
    for layer in held:
        first = by_name[layer.tied_to or layer.name]
        shared.setdefault(first.name, []).append(min(layer.parameter_mb, first.parameter_mb))
    return sum(sum(parts) - max(parts) for parts in shared.values())
