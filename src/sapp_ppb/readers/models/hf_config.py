"""
The ``config.json`` of a model on Hugging Face, as far as it says what the layers are.

Every kind of model has its own names for the same things, so each has a function that reads
them; what is missing there has the default of the transformers library.  All faults of a
file are raised at once.
"""

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path

from sapp_ppb.costs.architecture import Architecture, Attention, Block, Experts, Mlp
from sapp_ppb.costs.checks import shown
from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.json_file import read_document
from sapp_ppb.readers.formats.notes import warn_of
from sapp_ppb.readers.models.hf_values import Values

MOST_LAYERS = 10_000
FeedForwards = Callable[[int], Mlp | Experts]


def read_hf_config(path: str | PathLike[str], name: str | None = None) -> Architecture:
    """
    Architecture of a configuration of Hugging Face.

    Parameters
    ----------
    path
        JSON file; a configuration that has its language model in ``text_config`` is read there.
    name
        Name of the model; None: that of the file.

    Warns
    -----
    FileNote
        For what the configuration says and the estimate does not know of.

    Raises
    ------
    InputError
        If the file can not be read, is of a kind of model that is not known, or a value is
        missing or not allowed, with all faults at once.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> text = '''{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
    ...            "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128}'''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "tiny.json")
    ...     _ = path.write_text(text)
    ...     architecture = read_hf_config(path)
    >>> architecture.name, architecture.blocks[0].attention.head_dim  # 64 / 4
    ('tiny', 16)
    """
    document = read_document(path)
    if not isinstance(document.value, dict):
        fault = f"must hold a JSON object (got {shown(document.value)})"
        raise InputError(str(path), [fault, *document.faults])
    kind, values = _language_model(str(path), document.value)
    values.faults += document.faults
    architecture = _architecture(kind, values, name or Path(path).stem)
    warn_of(path, values.notes)
    if values.faults or architecture is None:
        raise InputError(str(path), list(dict.fromkeys(values.faults)))
    return architecture


def _language_model(where: str, raw: Mapping[str, object]) -> tuple[str, Values]:
    """Kind of model, and the object that describes its layers."""
    inner = raw.get("text_config")
    if isinstance(inner, dict) and "hidden_size" not in raw:
        values = Values(inner, prefix="text_config.")
        values.notes.append("only the language model of text_config is estimated, and nothing beside it")
        kind = inner.get("model_type", raw.get("model_type"))
        values.outer = raw
    else:
        values, kind = Values(raw), raw.get("model_type")
    if not isinstance(kind, str) or kind not in _KINDS:
        found = "is missing" if kind is None else f"{shown(kind)} is unknown"
        known = ", ".join(_KINDS)
        raise InputError(where, [f"{values.prefix}model_type {found}; known are {known}"])
    return kind, values


def _architecture(kind: str, values: Values, name: str) -> Architecture | None:
    """Architecture, or None when there are faults."""
    hidden = values.count("hidden_size")
    vocabulary = values.count("vocab_size")
    layers = values.count("num_hidden_layers", most=MOST_LAYERS)
    ties = values.flag("tie_word_embeddings")
    _note_what_is_ignored(values)
    blocks = _KINDS[kind](values, hidden, layers)
    if values.faults:
        return None
    return Architecture(
        name=name, hidden_size=hidden, vocabulary=vocabulary, blocks=blocks, ties_embeddings=ties
    )


def _note_what_is_ignored(values: Values) -> None:
    """Say what makes layers cheaper than they are estimated."""
    if values.get("quantization_config") is not None:
        values.notes.append("quantization_config is ignored: weights are taken for bf16 or fp16")
    if values.get("sliding_window") is not None and values.get("use_sliding_window") is not False:
        values.notes.append("sliding_window is ignored: attention is priced over the whole sequence")


def _llama(values: Values, hidden: int, layers: int) -> tuple[Block, ...]:
    """Llama: one bias for all projections of the attention, one for the feed-forward network."""
    bias = values.flag("attention_bias")
    attention = _grouped(values, hidden, has_bias=bias, has_output_bias=bias)
    mlp = Mlp(width=values.count("intermediate_size"), has_bias=values.flag("mlp_bias"))
    return _runs(attention, lambda _: mlp, layers)


def _qwen2(values: Values, hidden: int, layers: int) -> tuple[Block, ...]:
    """Qwen2: queries, keys and values have a bias, whatever the file says."""
    mlp = Mlp(width=values.count("intermediate_size"))
    return _runs(_grouped(values, hidden, has_bias=True), lambda _: mlp, layers)


def _qwen3_attention(values: Values, hidden: int) -> Attention:
    """Heads of a length of their own, normalised."""
    bias = values.flag("attention_bias")
    values.count("head_dim")
    return _grouped(values, hidden, has_bias=bias, has_output_bias=bias, has_head_norms=True)


def _qwen3(values: Values, hidden: int, layers: int) -> tuple[Block, ...]:
    mlp = Mlp(width=values.count("intermediate_size"))
    return _runs(_qwen3_attention(values, hidden), lambda _: mlp, layers)


def _qwen3_moe(values: Values, hidden: int, layers: int) -> tuple[Block, ...]:
    """Qwen3 with experts in every n-th layer, except where a list says otherwise."""
    step = values.count("decoder_sparse_step", default=1)
    dense_layers = frozenset(values.indices("mlp_only_layers", layers))
    experts = _experts(values, "num_experts", "moe_intermediate_size")
    dense = Mlp(width=values.count("intermediate_size"))

    def feed_forward(index: int) -> Mlp | Experts:
        return dense if index in dense_layers or (index + 1) % step else experts

    return _runs(_qwen3_attention(values, hidden), feed_forward, layers)


def _mixtral(values: Values, hidden: int, layers: int) -> tuple[Block, ...]:
    """Mixtral: experts in every layer, as wide as ``intermediate_size``."""
    experts = _experts(values, "num_local_experts", "intermediate_size")
    return _runs(_grouped(values, hidden), lambda _: experts, layers)


def _deepseek_v3(values: Values, hidden: int, layers: int) -> tuple[Block, ...]:
    """DeepSeek-V3: latent attention, first layers dense, then experts, then multi-token prediction."""
    attention = _latent(values)
    first = values.whole("first_k_dense_replace", default=0, most=layers)
    step = values.count("moe_layer_freq", default=1)
    width = values.count("moe_intermediate_size")
    shared = values.whole("n_shared_experts", default=0)
    experts = _experts(
        values,
        "n_routed_experts",
        "moe_intermediate_size",
        shared_width=shared * width,
        # Configurations that transformers wrote itself leave the method out and have the bias.
        has_router_bias=values.get("topk_method") in (None, "noaux_tc"),
    )
    dense = Mlp(width=values.count("intermediate_size"))

    def feed_forward(index: int) -> Mlp | Experts:
        return experts if index >= first and index % step == 0 else dense

    blocks = _runs(attention, feed_forward, layers)
    further = values.whole("num_nextn_predict_layers", default=0, most=MOST_LAYERS)
    if further:
        mtp = Block(
            name="mtp", count=further, attention=attention, feed_forward=feed_forward(layers), is_mtp=True
        )
        blocks = (*blocks, mtp)
    return blocks


def _grouped(
    values: Values,
    hidden: int,
    *,
    has_bias: bool = False,
    has_output_bias: bool = False,
    has_head_norms: bool = False,
) -> Attention:
    """Attention of heads that share keys and values in groups."""
    heads = values.count("num_attention_heads")
    kv_heads = values.count("num_key_value_heads", default=heads)
    given = values.get("head_dim") is not None
    if not given and hidden % heads:
        values.fault(
            "head_dim", f"is missing, and hidden_size {hidden} is no multiple of num_attention_heads {heads}"
        )
    head_dim = values.count("head_dim", default=max(1, hidden // heads))
    if heads % kv_heads:
        values.fault("num_key_value_heads", f"must divide num_attention_heads {heads} (got {kv_heads})")
    return Attention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        value_dim=head_dim,
        rotary_dim=head_dim,
        has_bias=has_bias,
        has_output_bias=has_output_bias,
        has_head_norms=has_head_norms,
    )


def _latent(values: Values) -> Attention:
    """Attention of heads that are made from latent vectors (MLA)."""
    heads, bias = values.count("num_attention_heads"), values.flag("attention_bias")
    rotary = values.count("qk_rope_head_dim")
    return Attention(
        heads=heads,
        kv_heads=heads,
        head_dim=values.count("qk_nope_head_dim") + rotary,
        value_dim=values.count("v_head_dim"),
        rotary_dim=rotary,
        query_rank=None if values.get("q_lora_rank") is None else values.count("q_lora_rank"),
        latent_rank=values.count("kv_lora_rank"),
        has_bias=bias,
        has_output_bias=bias,
    )


def _experts(
    values: Values, count_key: str, width_key: str, *, shared_width: int = 0, has_router_bias: bool = False
) -> Experts:
    count, per_token = values.count(count_key), values.count("num_experts_per_tok")
    if per_token > count:
        values.fault("num_experts_per_tok", f"must be at most {count_key} {count} (got {per_token})")
    return Experts(
        count=count,
        per_token=per_token,
        width=values.count(width_key),
        shared_width=shared_width,
        has_router_bias=has_router_bias,
    )


def _runs(attention: Attention, feed_forward: FeedForwards, layers: int) -> tuple[Block, ...]:
    """Equal layers in a row become one block; a second block of a kind is numbered."""
    runs: list[tuple[Mlp | Experts, int]] = []
    for network in map(feed_forward, range(layers)):
        if runs and runs[-1][0] == network:
            runs[-1] = (network, runs[-1][1] + 1)
        else:
            runs.append((network, 1))
    seen = {"dense": 0, "moe": 0}
    blocks = []
    for network, count in runs:
        kind = "moe" if isinstance(network, Experts) else "dense"
        seen[kind] += 1
        name = kind if seen[kind] == 1 else f"{kind}_{seen[kind]}"
        blocks.append(Block(name=name, count=count, attention=attention, feed_forward=network))
    return tuple(blocks)


_KINDS: Mapping[str, Callable[[Values, int, int], tuple[Block, ...]]] = {
    "llama": _llama,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "mixtral": _mixtral,
    "deepseek_v3": _deepseek_v3,
}
