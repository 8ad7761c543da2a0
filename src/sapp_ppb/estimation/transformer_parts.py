"""The parts of every layer of a transformer: the embedding, its blocks and the output."""

from dataclasses import replace

from sapp_ppb.costs.architecture import Architecture, Block
from sapp_ppb.estimation.attention_parts import attention_parts
from sapp_ppb.estimation.common_parts import (
    MASK_BYTES,
    gathered_bytes,
    matrix_part,
    norm_part,
    reduced_bytes,
)
from sapp_ppb.estimation.feed_forward_parts import feed_forward_parts
from sapp_ppb.estimation.part import BYTES, Part
from sapp_ppb.estimation.setup import TrainingSetup

_TOKEN_BYTES = 8  # of a token's number
_LOGIT_BYTES = 4  # the loss is computed in fp32


def input_bytes(architecture: Architecture, setup: TrainingSetup) -> float:
    """
    Bytes of the hidden state that a block begins with, on one device.

    Examples
    --------
    >>> tiny = Architecture(name="tiny", hidden_size=8, vocabulary=100, blocks=())
    >>> input_bytes(tiny, TrainingSetup(sequence_length=4, tensor=2))  # 2 * 8 * 4 / 2
    32.0
    """
    return BYTES * architecture.hidden_size * setup.tokens / setup.sequence_split


def embedding_parts(architecture: Architecture, setup: TrainingSetup) -> list[Part]:
    """Table of the tokens' vectors, split over the vocabulary; what is looked up is added up."""
    size = input_bytes(architecture, setup)
    mask = MASK_BYTES * size / BYTES if architecture.has_dropout else 0.0
    return [
        Part(
            name="embedding",
            parameters=architecture.vocabulary * architecture.hidden_size,
            share=1 / setup.tensor,
            moved_bytes=2 * size + mask,
            tensor_bytes=reduced_bytes(architecture.hidden_size, setup),
            kept_bytes=_TOKEN_BYTES * setup.tokens + mask,
        )
    ]


def block_parts(block: Block, architecture: Architecture, setup: TrainingSetup) -> list[Part]:
    """
    Parts of one layer of a block.

    A layer of multi-token prediction has the joining of its inputs before it, and a norm, the
    output matrix and a loss behind it; the embedding and the output matrix are the model's.

    References
    ----------
    .. [1] DeepSeek-V3, arXiv:2412.19437, section 2.2.
    """
    parts = attention_parts(block.attention, architecture, setup)
    parts += feed_forward_parts(block.feed_forward, architecture, setup)
    if not block.is_mtp:
        return parts
    behind = [replace(part, is_outside=True, again=None) for part in output_parts(architecture, setup)]
    return [*_joining_parts(architecture, setup), *parts, *(_borrowed(part) for part in behind)]


def output_parts(architecture: Architecture, setup: TrainingSetup) -> list[Part]:
    """
    Last norm, output matrix and loss; nothing of it is done again.

    A tied output matrix is no parameter of its own, but the last stage holds a copy.

    References
    ----------
    .. [1] Korthikanti et al., MLSys 2023, arXiv:2205.05198, section 4.3: 4sbh (1 + v/h) / t bytes.
    """
    hidden, vocabulary = architecture.hidden_size, architecture.vocabulary
    logits = setup.tokens * vocabulary / setup.tensor
    matrix = matrix_part(
        "output matrix",
        hidden,
        vocabulary / setup.tensor,
        tokens=setup.tokens,
        parameters=vocabulary * hidden,
        share=1 / setup.tensor,
    )
    return [
        replace(norm_part("last norm", architecture, setup, is_gathered=True), again=None),
        replace(matrix, is_copy=architecture.ties_embeddings),
        Part(name="loss", moved_bytes=2 * _LOGIT_BYTES * logits, kept_bytes=_LOGIT_BYTES * logits),
    ]


def _joining_parts(architecture: Architecture, setup: TrainingSetup) -> list[Part]:
    """Embedding of the next token, norms of both vectors, and the matrix that makes one of them."""
    hidden = architecture.hidden_size
    (embedding,) = embedding_parts(architecture, setup)
    norm = norm_part("norm", architecture, setup, is_gathered=False)
    both = gathered_bytes(2 * hidden, setup) if setup.sequence_parallel else 0.0
    return [
        replace(embedding, is_copy=True),
        replace(norm, name="norm of the hidden state"),
        replace(norm, name="norm of the embedding", tensor_bytes=both),
        matrix_part(
            "joining",
            2 * hidden,
            hidden / setup.tensor,
            tokens=setup.tokens,
            parameters=2 * hidden * hidden,
            share=1 / setup.tensor,
            tensor_bytes=gathered_bytes(hidden, setup),
        ),
    ]


def _borrowed(part: Part) -> Part:
    """Part that works with the output matrix of the last stage, which a copy would not make larger."""
    return replace(part, share=0.0, is_copy=True) if part.name == "output matrix" else part
