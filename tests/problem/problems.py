"""A small problem, of which tests change what they are about."""

from typing import Any

from sapp_ppb.costs import LayerKind, Model, layer_from_times
from sapp_ppb.problem import Problem


def model(count: int = 8, *, head: bool = False, tail: bool = False, constant_mb: float = 0.0) -> Model:
    """Build a model of ``count`` BODY layers."""
    layers = [layer_from_times(name="Dec", kind=LayerKind.BODY, count=count, forward_ms=1)]
    if head:
        layers.append(layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=1))
    if tail:
        layers.append(layer_from_times(name="Norm", kind=LayerKind.TAIL, forward_ms=1))
    return Model(name="small", layers=tuple(layers), constant_memory_mb=constant_mb)


def problem(**changes: Any) -> Problem:
    """Four stages, eight micro-batches and eight layers, except for what is changed."""
    given: dict[str, Any] = {"model": model(), "stages": 4, "micro_batches": 8}
    return Problem(**given | changes)
