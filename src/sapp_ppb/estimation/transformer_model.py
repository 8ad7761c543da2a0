"""A model file without any run: a transformer's layers, priced from its sizes and a device's speeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sapp_ppb.costs import Layer, LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.costs.architecture import Architecture, Experts
from sapp_ppb.costs.cost import EVERYTHING
from sapp_ppb.costs.device import Device
from sapp_ppb.estimation.part import (
    Part,
    activation_mb,
    layer_times,
    parameter_count,
    parameter_mb,
)
from sapp_ppb.estimation.setup import TrainingSetup, check_fit
from sapp_ppb.estimation.transformer_parts import block_parts, embedding_parts, input_bytes, output_parts


@dataclass(frozen=True, kw_only=True)
class LayerEstimate:
    """
    One entry of the model, and what it was made from.

    Attributes
    ----------
    layer
        Its costs, all marked as estimated.
    parameters
        Parameters of one such layer in the whole model, on however many devices.
    flops
        Operations of one forward of one micro-batch on one device.
    parts
        What the costs are sums of.
    """

    layer: Layer
    parameters: int
    flops: float
    parts: tuple[Part, ...]


@dataclass(frozen=True, kw_only=True)
class TransformerEstimate:
    """
    A model of estimated costs.

    Attributes
    ----------
    model
        What a model file can hold.
    layers
        Its entries, in the order of the chain.
    parameters, mtp_parameters
        Parameters of the whole model without those of multi-token prediction, and of these.
    active_parameters
        Of the former, those that one token runs through.
    message_mb
        What a stage sends to the next for one micro-batch, MB.
    """

    model: Model
    layers: tuple[LayerEstimate, ...]
    parameters: int
    mtp_parameters: int
    active_parameters: int
    message_mb: float


def estimate_transformer(
    architecture: Architecture, setup: TrainingSetup, device: Device
) -> TransformerEstimate:
    """
    Price every layer of a transformer.

    docs/estimation.md derives every number and says how far off it can be.

    Parameters
    ----------
    architecture
        What the layers are made of.
    setup
        How they are spread and trained.
    device
        What they run on.

    Returns
    -------
    TransformerEstimate
        A HEAD for the embedding, a BODY for each block, a TAIL for the output.

    Raises
    ------
    InputError
        If the setup does not divide what it has to divide.

    Examples
    --------
    >>> from sapp_ppb.costs.architecture import Attention, Block, Mlp
    >>> attention = Attention(heads=4, kv_heads=4, head_dim=16, value_dim=16, rotary_dim=16)
    >>> block = Block(name="dense", count=2, attention=attention, feed_forward=Mlp(width=128))
    >>> tiny = Architecture(name="tiny", hidden_size=64, vocabulary=100, blocks=(block,))
    >>> device = Device(name="d", peak_tflop_per_s=1, achievable_fraction=1, memory_mb=1000,
    ...                 memory_gb_per_s=100, link_gb_per_s=10, network_gb_per_s=1)
    >>> estimate = estimate_transformer(tiny, TrainingSetup(sequence_length=32), device)
    >>> estimate.parameters  # 2 * (4 * 64^2 + 3 * 64 * 128 + 2 * 64) + 2 * 100 * 64 + 64
    95040
    >>> [layer.name for layer in estimate.model.layers]
    ['embedding', 'dense', 'output']
    """
    check_fit(architecture, setup)
    first = input_bytes(architecture, setup)

    def entry(name: str, kind: LayerKind, parts: Sequence[Part], **given: Any) -> LayerEstimate:
        return _estimate(name, kind, parts, setup, device, first=first, **given)

    layers = [entry("embedding", LayerKind.HEAD, embedding_parts(architecture, setup))]
    layers += [
        entry(
            block.name,
            LayerKind.BODY,
            block_parts(block, architecture, setup),
            count=block.count,
            is_mtp=block.is_mtp,
        )
        for block in architecture.blocks
    ]
    tied_to = "embedding" if architecture.ties_embeddings else None
    layers.append(entry("output", LayerKind.TAIL, output_parts(architecture, setup), tied_to=tied_to))
    main = [found for found in layers if not found.layer.is_mtp]
    idle = sum(
        block.count * _idle_parameters(block.feed_forward, architecture.hidden_size)
        for block in architecture.blocks
        if not block.is_mtp
    )
    parameters = sum(found.layer.count * found.parameters for found in main)
    return TransformerEstimate(
        model=Model(name=architecture.name, layers=tuple(found.layer for found in layers)),
        layers=tuple(layers),
        parameters=parameters,
        mtp_parameters=sum(found.layer.count * found.parameters for found in layers) - parameters,
        active_parameters=parameters - idle,
        message_mb=first / 2**20,
    )


def _idle_parameters(network: object, hidden: int) -> int:
    """Parameters of the experts of one layer that a token does not meet."""
    if not isinstance(network, Experts):
        return 0
    return (network.count - network.per_token) * 3 * hidden * network.width


def _estimate(
    name: str,
    kind: LayerKind,
    parts: Sequence[Part],
    setup: TrainingSetup,
    device: Device,
    *,
    first: float,
    **given: Any,
) -> LayerEstimate:
    """Sum the parts up to a layer; a recompute type that saves no memory is not one to choose."""
    times = layer_times(parts, setup, device)
    held = {r: activation_mb(parts, r, first) for r in Recompute}
    if kind is not LayerKind.BODY:
        held = {Recompute.NONE: held[Recompute.NONE]}
    layer = layer_from_times(
        name=name,
        kind=kind,
        forward_ms=_told(times.forward_ms),
        backward_ms=_told(times.backward_ms[Recompute.NONE]),
        explicit={r: _told(times.backward_ms[r]) for r in Recompute},
        parameter_mb=parameter_mb(parts, setup),
        activation_mb={r: mb for r, mb in held.items() if r is Recompute.NONE or mb < held[Recompute.NONE]},
        weight_grad_ms=_told(times.weight_grad_ms),
        estimated=EVERYTHING,
        **given,
    )
    return LayerEstimate(
        layer=layer,
        parameters=parameter_count(parts),
        flops=sum(part.flops for part in parts),
        parts=tuple(parts),
    )


def _told(time_ms: float) -> float:
    """
    Round a time to six digits, which are more than it is worth.

    Examples
    --------
    >>> _told(9.613867234)
    9.61387
    """
    return float(f"{time_ms:.6g}")
