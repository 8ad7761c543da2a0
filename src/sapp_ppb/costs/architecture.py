"""
What a transformer is made of, before anything is known of the machine that trains it.

Readers fill these and the estimation prices them, so both know the same words and
neither knows the other.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Attention:
    """
    The attention of a layer: grouped heads, or heads from a latent vector (MLA).

    Attributes
    ----------
    heads, kv_heads
        Heads of the queries, and of the keys and values that groups of them share.
    head_dim, value_dim
        Length of a query's or key's head, and of a value's.
    rotary_dim
        Part of ``head_dim`` that is rotated by position; 0 for none.
    query_rank, latent_rank
        Lengths of the vectors that queries, and keys with values, are made from; None: made from
        the layer's input.  With a ``latent_rank`` keys share their rotated part.
    has_bias, has_output_bias
        Whether the projections to and from the heads add a bias; with a ``latent_rank`` the
        former are those to the latent vectors.
    has_head_norms
        Whether queries and keys are normalised head by head.
    """

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    rotary_dim: int = 0
    query_rank: int | None = None
    latent_rank: int | None = None
    has_bias: bool = False
    has_output_bias: bool = False
    has_head_norms: bool = False


@dataclass(frozen=True, kw_only=True)
class Mlp:
    """
    A feed-forward network, which every token runs through.

    Attributes
    ----------
    width
        Length of its inner vectors.
    is_gated
        Whether two inner vectors are multiplied (SwiGLU), which takes three matrices and not two.
    has_bias
        Whether every matrix comes with a bias.
    """

    width: int
    is_gated: bool = True
    has_bias: bool = False


@dataclass(frozen=True, kw_only=True)
class Experts:
    """
    Gated feed-forward networks of which a router gives every token a few.

    Attributes
    ----------
    count, per_token
        How many there are, and how many a token runs through.
    width
        Length of the inner vectors of one.
    shared_width
        That of the experts that every token runs through besides, together; 0 for none.
    has_router_bias
        Whether the router adds a learned number for each expert, to balance them.
    """

    count: int
    per_token: int
    width: int
    shared_width: int = 0
    has_router_bias: bool = False


@dataclass(frozen=True, kw_only=True)
class Block:
    """
    Equal layers in a row.

    Attributes
    ----------
    name
        Unique in its architecture.
    count
        How many there are.
    attention, feed_forward
        What one consists of, each behind a norm and added to its own input.
    is_mtp
        Whether they predict a token further on (multi-token prediction): such a layer joins
        the hidden state with an embedding in front, and has a norm and the output matrix behind.
    """

    name: str
    count: int
    attention: Attention
    feed_forward: Mlp | Experts
    is_mtp: bool = False


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """
    A decoder: an embedding, blocks, a last norm and the output matrix.

    Attributes
    ----------
    name
        Name of the model.
    hidden_size, vocabulary
        Length of a token's vector, and how many tokens there are.
    blocks
        In the order of the chain, those of multi-token prediction last.
    ties_embeddings
        Whether the output matrix is the embedding again.
    has_dropout
        Whether the embedding, the attention and both sums drop values out, as GPT-2 does.
    has_norm_bias
        Whether norms have a bias beside their scale (LayerNorm) or not (RMSNorm).
    """

    name: str
    hidden_size: int
    vocabulary: int
    blocks: tuple[Block, ...]
    ties_embeddings: bool = False
    has_dropout: bool = False
    has_norm_bias: bool = False
