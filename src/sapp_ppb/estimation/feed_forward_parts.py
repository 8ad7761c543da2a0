"""The feed-forward network of a layer, or its experts, part by part."""

from dataclasses import replace

from sapp_ppb.costs import Recompute
from sapp_ppb.costs.architecture import Architecture, Experts, Mlp
from sapp_ppb.estimation.common_parts import (
    gathered_bytes,
    matrix_part,
    norm_part,
    reduced_bytes,
    sum_part,
)
from sapp_ppb.estimation.part import BYTES, Part
from sapp_ppb.estimation.setup import TrainingSetup

_PROBABILITY_BYTES = 4  # routers compute in fp32


def feed_forward_parts(
    network: Mlp | Experts, architecture: Architecture, setup: TrainingSetup
) -> list[Part]:
    """
    Parts of a feed-forward network, from the norm before it to the sum behind it.

    References
    ----------
    .. [1] Korthikanti et al., MLSys 2023, arXiv:2205.05198, section 4.
    .. [2] Shazeer, arXiv:2002.05202, section 2 (SwiGLU).
    .. [3] Lepikhin et al., arXiv:2006.16668, section 3 (experts on other devices).
    """
    inner = (
        _expert_parts(network, architecture, setup)
        if isinstance(network, Experts)
        else _mlp_parts(network, architecture.hidden_size, setup)
    )
    return [norm_part("norm", architecture, setup, is_gathered=True), *inner, sum_part(architecture, setup)]


def _mlp_parts(network: Mlp, hidden: int, setup: TrainingSetup) -> list[Part]:
    """Up, in two matrices where it is gated, an activation function, and down."""
    matrices, bias = (2 if network.is_gated else 1), (1 if network.has_bias else 0)
    width, tokens = network.width / setup.tensor, setup.tokens
    return [
        matrix_part(
            "up",
            hidden,
            matrices * width,
            tokens=tokens,
            parameters=matrices * (hidden + bias) * network.width,
            share=1 / setup.tensor,
            kept_bytes=BYTES * tokens * matrices * width,
        ),
        _activation(tokens * width, is_gated=network.is_gated),
        matrix_part(
            "down",
            width,
            hidden,
            tokens=tokens,
            parameters=network.width * hidden,
            share=1 / setup.tensor,
            tensor_bytes=reduced_bytes(hidden, setup),
        ),
        *([Part(name="down bias", parameters=hidden)] if bias else []),
    ]


def _activation(elements: float, *, is_gated: bool) -> Part:
    """
    Activation function, and the product of a gated network, as one kernel.

    Its output is what ``down`` needs.  SELECTIVE makes the product again from its two factors.
    """
    size = BYTES * elements
    if is_gated:
        return Part(name="product", moved_bytes=3 * size, output_bytes=size, again=Recompute.SELECTIVE)
    return Part(name="activation", moved_bytes=2 * size, kept_bytes=size)


def _expert_parts(network: Experts, architecture: Architecture, setup: TrainingSetup) -> list[Part]:
    """
    Router, way to the experts, experts, way back, and the network that every token runs through.

    Every expert gets as many tokens as every other, so a device's experts get as many copies of
    tokens as its tokens have: ``per_token`` of each.
    """
    hidden, width = architecture.hidden_size, network.width / setup.tensor
    own = setup.tokens / setup.sequence_split  # tokens that this device sends away
    copies, sent = setup.tokens * network.per_token, own * network.per_token
    away = BYTES * hidden * sent * (setup.expert - 1) / setup.expert
    # Neighbours of tensor parallelism share an expert: they gather what arrives and add up what they make.
    among = hidden * network.per_token
    biases = network.count if network.has_router_bias else 0
    shared = _mlp_parts(Mlp(width=network.shared_width), hidden, setup) if network.shared_width else []
    return [
        matrix_part(
            "router",
            hidden,
            network.count,
            tokens=own,
            parameters=hidden * network.count + biases,
            share=1.0,
            kept_bytes=_PROBABILITY_BYTES * own * network.count,
        ),
        Part(
            name="to the experts",
            moved_bytes=2 * BYTES * hidden * copies,
            tensor_bytes=gathered_bytes(among, setup) if setup.sequence_parallel else 0.0,
            expert_bytes=away,
            output_bytes=BYTES * hidden * copies,
            again=Recompute.COMM,
        ),
        _expert_matrix("up", hidden, 2 * width, network, setup, kept_bytes=BYTES * copies * 2 * width),
        _activation(copies * width, is_gated=True),
        _expert_matrix("down", width, hidden, network, setup),
        Part(
            name="from the experts",
            moved_bytes=2 * BYTES * hidden * copies,
            tensor_bytes=reduced_bytes(among, setup),
            expert_bytes=away,
            kept_bytes=BYTES * hidden * sent,  # for the gradient of the router's weights
        ),
        *(replace(part, name=f"shared {part.name}") for part in shared),
    ]


def _expert_matrix(
    name: str,
    inputs: float,
    outputs: float,
    network: Experts,
    setup: TrainingSetup,
    *,
    kept_bytes: float = 0.0,
) -> Part:
    """Product of every copy of a token with a matrix of its expert; lengths are those on one device."""
    copies, size = setup.tokens * network.per_token, inputs * outputs
    return Part(
        name=name,
        parameters=round(network.count * size * setup.tensor),
        share=1 / (setup.tensor * setup.expert),
        is_expert=True,
        flops=2 * copies * size,
        moved_bytes=BYTES * (copies * (inputs + outputs) + network.count / setup.expert * size),
        kept_bytes=kept_bytes,
    )
