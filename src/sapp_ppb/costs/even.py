"""What each cell costs when the layers are spread evenly: a first look, before any plan."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from sapp_ppb.costs.layer import Layer
from sapp_ppb.costs.model import Model
from sapp_ppb.costs.strategy import RecomputeType


@dataclass(frozen=True, kw_only=True)
class EvenCell:
    """
    One cell of an even split, HEAD or TAIL included.

    Attributes
    ----------
    forward_ms, backward_ms, weight_ms
        Times of one micro-batch, milliseconds; without recompute where that may be.
    parameter_mb
        MB held throughout.
    transient_mb
        MB besides while an op runs.
    most_mb, least_mb
        Activation memory of one micro-batch, MB, with the least recompute, and with the type
        of each layer that holds least.
    """

    forward_ms: float
    backward_ms: float
    weight_ms: float
    parameter_mb: float
    transient_mb: float = 0.0
    most_mb: float
    least_mb: float


def even_cells(
    model: Model,
    cells: int,
    considered: Callable[[Layer], Sequence[RecomputeType]],
    shares: Sequence[float] = (),
) -> list[EvenCell]:
    """
    Spread the BODY layers evenly along the chain, and price every cell.

    Parameters
    ----------
    model
        The chain of layers.
    cells
        Number of cells.
    considered
        Recompute types that a layer may have, least recompute first.
    shares
        Relative number of layers of each cell; none, or equal ones, for an even split.

    Examples
    --------
    >>> from sapp_ppb.costs.layer import LayerKind
    >>> from sapp_ppb.costs.layer_times import layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=5, forward_ms=1)
    >>> cells = even_cells(Model(name="tiny", layers=(body,)), 2, lambda layer: layer.considered)
    >>> [cell.forward_ms for cell in cells]  # 5 / 2 = 2.5 layers each: 2 and 3
    [2.0, 3.0]
    """
    chain = [layer for layer in model.bodies for _ in range(layer.count)]
    bounds = [len(chain) * cell // cells for cell in range(cells + 1)]
    if len(set(shares)) > 1:
        upto = accumulate(shares, initial=0.0)
        bounds = [int(len(chain) * before / sum(shares) + 0.5) for before in upto]
    held = [chain[low:high] for low, high in pairwise(bounds)]
    held[0] = [layer for head in model.heads for layer in [head] * head.count] + held[0]
    held[-1] = held[-1] + [layer for tail in model.tails for layer in [tail] * tail.count]
    return [_cell(layers, considered) for layers in held]


def _cell(layers: Sequence[Layer], considered: Callable[[Layer], Sequence[RecomputeType]]) -> EvenCell:
    least = [(layer, considered(layer)[0]) for layer in layers]
    most = [(layer, min(considered(layer), key=layer.activation)) for layer in layers]
    return EvenCell(
        forward_ms=sum(layer.forward_ms for layer in layers),
        backward_ms=sum(layer.backward_ms[r] for layer, r in least),
        weight_ms=sum(layer.weight_ms for layer in layers),
        parameter_mb=sum(layer.parameter_mb for layer in layers),
        transient_mb=max((layer.transient_mb for layer in layers), default=0.0),
        most_mb=sum(layer.activation(r) for layer, r in least),
        least_mb=sum(layer.activation(r) for layer, r in most),
    )


def most_live(cell: EvenCell, room_mb: float, stages: int) -> int:
    """
    Micro-batches that a stage may keep alive, at most 2S, from which no order gains more.

    As many as fit with the least recompute; where those are fewer than S, up to S of
    them with more recompute.

    Parameters
    ----------
    room_mb
        MB that the stage may use, parameters and what exists for a moment included.
    stages
        S.

    Examples
    --------
    >>> cell = EvenCell(forward_ms=1, backward_ms=2, weight_ms=1, parameter_mb=10, most_mb=30, least_mb=5)
    >>> most_live(cell, 100.0, 2), most_live(cell, 60.0, 2)  # 90 / 30; 50 / 30 < 2 <= 50 / 5
    (3, 2)
    """
    room = max(room_mb - cell.parameter_mb - cell.transient_mb, 0.0)
    plain, packed = (
        2 * stages if mb * 2 * stages <= room else int(room // mb) for mb in (cell.most_mb, cell.least_mb)
    )
    return max(plain, min(packed, stages), 1)
