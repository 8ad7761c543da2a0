"""Parts that every layer has: norms, matrix products and sums, and what they send."""

from sapp_ppb.costs import Recompute
from sapp_ppb.costs.architecture import Architecture
from sapp_ppb.estimation.part import BYTES, Part
from sapp_ppb.estimation.setup import TrainingSetup

MASK_BYTES = 1  # of a dropout, for each element


def gathered_bytes(width: float, setup: TrainingSetup) -> float:
    """
    Bytes that a device sends when vectors of every token are gathered from, or scattered to, t devices.

    Examples
    --------
    >>> gathered_bytes(8, TrainingSetup(sequence_length=4, tensor=4))  # 2 * 8 * 4 * 3 / 4
    48.0
    """
    return BYTES * width * setup.tokens * (setup.tensor - 1) / setup.tensor


def reduced_bytes(hidden: int, setup: TrainingSetup) -> float:
    """
    Bytes that a device sends to add up what t devices made of every token.

    The sum is scattered over the sequence; without sequence parallelism everyone gets
    all of it, which takes as much again.
    """
    once = gathered_bytes(hidden, setup)
    return once if setup.sequence_parallel else 2 * once


def norm_part(name: str, architecture: Architecture, setup: TrainingSetup, *, is_gathered: bool) -> Part:
    """
    Norm of the hidden state, whose output sequence parallelism gathers from all devices.

    Its input is kept; its output, which is the input of what follows, is done again by COMM.
    Each device keeps its part of the sequence and gathers the others' again in the backward,
    at the same time as it computes.
    """
    hidden = architecture.hidden_size
    size = BYTES * hidden * setup.tokens / setup.sequence_split
    return Part(
        name=name,
        parameters=hidden * (2 if architecture.has_norm_bias else 1),
        moved_bytes=2 * size,
        tensor_bytes=gathered_bytes(hidden, setup) if is_gathered and setup.sequence_parallel else 0.0,
        kept_bytes=size,
        output_bytes=size,
        again=Recompute.COMM,
    )


def sum_part(architecture: Architecture, setup: TrainingSetup) -> Part:
    """Sum with what came before, behind a dropout whose mask is kept, if there is one."""
    elements = architecture.hidden_size * setup.tokens / setup.sequence_split
    mask = MASK_BYTES * elements if architecture.has_dropout else 0.0
    return Part(name="sum", moved_bytes=3 * BYTES * elements + mask, kept_bytes=mask)


def matrix_part(
    name: str,
    inputs: float,
    outputs: float,
    *,
    tokens: float,
    parameters: int,
    share: float,
    kept_bytes: float = 0.0,
    tensor_bytes: float = 0.0,
) -> Part:
    """
    Product of every token's vector with a matrix.

    Parameters
    ----------
    inputs, outputs
        Lengths of the vectors on one device.
    tokens
        How many vectors there are.

    Examples
    --------
    >>> matrix_part("up", 8, 32, tokens=4, parameters=256, share=1.0).flops  # 2 * 4 * 8 * 32
    2048
    """
    return Part(
        name=name,
        parameters=parameters,
        share=share,
        flops=2 * tokens * inputs * outputs,
        moved_bytes=BYTES * (tokens * (inputs + outputs) + inputs * outputs),
        tensor_bytes=tensor_bytes,
        kept_bytes=kept_bytes,
    )
