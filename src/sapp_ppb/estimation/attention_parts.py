"""The attention of a layer, part by part."""

from dataclasses import dataclass

from sapp_ppb.costs import Recompute
from sapp_ppb.costs.architecture import Architecture, Attention
from sapp_ppb.estimation.common_parts import (
    MASK_BYTES,
    gathered_bytes,
    matrix_part,
    norm_part,
    reduced_bytes,
    sum_part,
)
from sapp_ppb.estimation.part import BYTES, Part
from sapp_ppb.estimation.setup import TrainingSetup

_LOG_SUM_BYTES = 4  # FlashAttention keeps one fp32 number for each head and token
_SCORE_PASSES = 4  # without it scores are written, read, written as probabilities and read


@dataclass(frozen=True, kw_only=True)
class _Widths:
    """Lengths of a token's queries, keys, values and attention output on one device."""

    query: float
    key: float
    value: float
    output: float


def attention_parts(attention: Attention, architecture: Architecture, setup: TrainingSetup) -> list[Part]:
    """
    Parts of the attention, from the norm before it to the sum behind it.

    References
    ----------
    .. [1] Korthikanti et al., MLSys 2023, arXiv:2205.05198, section 4.
    .. [2] Dao et al., NeurIPS 2022, arXiv:2205.14135, section 3.1.
    .. [3] DeepSeek-V2, arXiv:2405.04434, section 2.1.
    """
    widths = _widths(attention, setup)
    if attention.latent_rank is None:
        projections = _grouped_projections(attention, architecture, setup, widths)
    else:
        projections = _latent_projections(attention, attention.latent_rank, architecture, setup, widths)
    hidden, tensor = architecture.hidden_size, setup.tensor
    output = attention.heads * attention.value_dim
    bias = hidden if attention.has_output_bias else 0
    return [
        *projections,
        *_head_parts(attention, setup, widths),
        _core(attention, setup, widths, has_dropout=architecture.has_dropout),
        matrix_part(
            "output",
            widths.output,
            hidden,
            tokens=setup.tokens,
            parameters=output * hidden,
            share=1 / tensor,
            kept_bytes=BYTES * setup.tokens * widths.output,
            tensor_bytes=reduced_bytes(hidden, setup),
        ),
        *([Part(name="output bias", parameters=bias)] if bias else []),
        sum_part(architecture, setup),
    ]


def _widths(attention: Attention, setup: TrainingSetup) -> _Widths:
    heads = attention.heads / setup.tensor
    # With more devices than heads of keys, several devices have the same one.
    kv_heads = max(attention.kv_heads / setup.tensor, 1.0)
    return _Widths(
        query=heads * attention.head_dim,
        key=kv_heads * attention.head_dim,
        value=kv_heads * attention.value_dim,
        output=heads * attention.value_dim,
    )


def _grouped_projections(
    attention: Attention, architecture: Architecture, setup: TrainingSetup, widths: _Widths
) -> list[Part]:
    """Make queries, keys and values of the layer's input."""
    hidden, tokens, inner = architecture.hidden_size, setup.tokens, widths.key + widths.value
    inputs = hidden + (1 if attention.has_bias else 0)
    return [
        norm_part("norm", architecture, setup, is_gathered=True),
        matrix_part(
            "queries",
            hidden,
            widths.query,
            tokens=tokens,
            parameters=inputs * attention.heads * attention.head_dim,
            share=1 / setup.tensor,
            kept_bytes=BYTES * tokens * widths.query,
        ),
        matrix_part(
            "keys and values",
            hidden,
            inner,
            tokens=tokens,
            parameters=inputs * attention.kv_heads * (attention.head_dim + attention.value_dim),
            share=1 / min(setup.tensor, attention.kv_heads),
            kept_bytes=BYTES * tokens * inner,
        ),
    ]


def _latent_projections(
    attention: Attention, rank: int, architecture: Architecture, setup: TrainingSetup, widths: _Widths
) -> list[Part]:
    """
    Make latent vectors of the layer's input, then queries, keys and values of them.

    The matrices that lead to the latent vectors are whole on every tensor-parallel device, which
    uses them for its part of the sequence; the vectors are gathered before the heads.
    """
    hidden, tokens, part = architecture.hidden_size, setup.tokens, setup.tokens / setup.sequence_split
    query_rank = attention.query_rank or 0
    normed = query_rank + rank
    latent = normed + attention.rotary_dim  # the rotated part of the keys, which all heads share
    inputs = hidden + (1 if attention.has_bias else 0)
    unrotated = attention.head_dim - attention.rotary_dim
    made = attention.heads * (unrotated + attention.value_dim)
    return [
        norm_part("norm", architecture, setup, is_gathered=attention.query_rank is None),
        matrix_part(
            "latent vectors",
            hidden,
            latent,
            tokens=part,
            parameters=inputs * latent,
            share=1.0,
            kept_bytes=BYTES * part * latent,
        ),
        Part(
            name="norms of latent vectors",
            parameters=normed,
            moved_bytes=2 * BYTES * part * normed,
            tensor_bytes=gathered_bytes(latent, setup) if setup.sequence_parallel else 0.0,
            output_bytes=BYTES * part * normed,
            again=Recompute.COMM,
        ),
        matrix_part(
            "queries",
            query_rank or hidden,
            widths.query,
            tokens=tokens,
            parameters=(query_rank or hidden) * attention.heads * attention.head_dim,
            share=1 / setup.tensor,
            kept_bytes=BYTES * tokens * widths.query,
        ),
        matrix_part(
            "keys and values",
            rank,
            made / setup.tensor,
            tokens=tokens,
            parameters=rank * made,
            share=1 / setup.tensor,
            kept_bytes=BYTES * tokens * (widths.key + widths.value),
        ),
    ]


def _head_parts(attention: Attention, setup: TrainingSetup, widths: _Widths) -> list[Part]:
    """Norms of heads, whose inputs are kept, and the rotation, which needs nothing."""
    size = BYTES * setup.tokens * (widths.query + widths.key)
    norms = Part(
        name="norms of heads", parameters=2 * attention.head_dim, moved_bytes=2 * size, kept_bytes=size
    )
    rotation = Part(name="rotation", moved_bytes=2 * size * attention.rotary_dim / attention.head_dim)
    return [*([norms] if attention.has_head_norms else []), *([rotation] if attention.rotary_dim else [])]


def _core(attention: Attention, setup: TrainingSetup, widths: _Widths, *, has_dropout: bool) -> Part:
    """
    Scores, softmax and the weighted sum of values.

    FlashAttention computes the causal half alone, keeps a number for each head and token, and does
    its scores again in its own backward.  Without it the probabilities are kept, with dropout
    its mask and what it lets through too, and SELECTIVE does them again.
    """
    scores = setup.tokens * setup.sequence_length * attention.heads / setup.tensor
    flops = 2 * scores * (attention.head_dim + attention.value_dim)
    moved = BYTES * setup.tokens * (widths.query + widths.key + widths.value + widths.output)
    if setup.flash:
        kept = _LOG_SUM_BYTES * setup.tokens * attention.heads / setup.tensor
        return Part(name="attention", flops=flops / 2, moved_bytes=moved, kept_bytes=kept)
    dropped = (MASK_BYTES + BYTES) * scores if has_dropout else 0.0
    return Part(
        name="attention",
        flops=flops,
        moved_bytes=moved + _SCORE_PASSES * BYTES * scores + dropped,
        output_bytes=BYTES * scores + dropped,
        again=Recompute.SELECTIVE,
    )
