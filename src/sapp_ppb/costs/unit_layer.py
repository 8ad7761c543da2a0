"""A layer that stands in for one whose costs are not known yet, where only its name and count matter."""

from sapp_ppb.costs.layer import Layer, LayerKind
from sapp_ppb.costs.layer_times import layer_from_times
from sapp_ppb.costs.recompute import Recompute


def unit_layer(name: str, count: int) -> Layer:
    """
    BODY layer of 1 ms and 1 MB under every recompute type.

    Examples
    --------
    >>> layer = unit_layer("Dec", 3)
    >>> layer.count, layer.forward_ms, layer.activation(Recompute.FULL)
    (3, 1.0, 1.0)
    """
    return layer_from_times(
        name=name,
        kind=LayerKind.BODY,
        count=count,
        forward_ms=1.0,
        activation_mb=dict.fromkeys(Recompute, 1.0),
    )
