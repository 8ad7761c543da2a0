"""Names of Megatron-LM's flags that decide a pipeline, without dashes in front."""

# What splits the model into cells; the layout goes with none of the last six.
SPLIT = (
    "pipeline-model-parallel-size",
    "pipeline-model-parallel-layout",
    "num-layers",
    "mtp-num-layers",
    "decoder-first-pipeline-num-layers",
    "decoder-last-pipeline-num-layers",
    "account-for-embedding-in-pipeline-split",
    "account-for-loss-in-pipeline-split",
    "num-layers-per-virtual-pipeline-stage",
    "num-virtual-stages-per-pipeline-rank",
)
RECOMPUTE = (
    "recompute-granularity",
    "recompute-method",
    "recompute-num-layers",
    "recompute-modules",
    "recompute-activations",
    "moe-layer-recompute",
    "checkpoint-activations",
)
GROUP_SIZE = "microbatch-group-size-per-virtual-pipeline-stage"
# Flags without a value.
SWITCHES = frozenset(
    {
        "account-for-embedding-in-pipeline-split",
        "account-for-loss-in-pipeline-split",
        "recompute-activations",
        "moe-layer-recompute",
        "checkpoint-activations",
        "no-overlap-p2p-communication",
        "enable-recompute-layers-per-pp-rank",
        "recompute-in-bubble",
        "recompute-in-advance",
    }
)
# Flags of Megatron-LM, and of those who build on it, that decide a split or recompute in another way.
OTHER_SPLITS = (
    "hybrid-layer-pattern",
    "hybrid-override-pattern",
    "standalone-embedding-stage",
    "pipeline-model-parallel-split-rank",
    "virtual-pipeline-model-parallel-size",
    "pipeline-num-transformer-layers",
    "num-layer-list",
    "noop-layers",
    "custom-pipeline-layers",
    "schedules-method",
)
OTHER_RECOMPUTE = ("recompute-layer-ids", "enable-recompute-layers-per-pp-rank", "recompute-in-bubble")
_MODULES = (
    "core_attn",
    "layernorm",
    "mla_up_proj",
    "mlp",
    "mlp_act",
    "moe",
    "moe_act",
    "shared_experts",
    "gdn_norm_out",
    "gdp_in_proj",
    "gdp_qkv",
    "mhc",
)


def flag_name(text: str) -> str:
    """
    Name of a flag or key, however it is written.

    Examples
    --------
    >>> flag_name("--num_layers")
    'num-layers'
    """
    return text.lstrip("-").replace("_", "-")


def is_module(word: str) -> bool:
    """
    Whether a word names a module that selective recompute may take.

    Examples
    --------
    >>> is_module("core_attn"), is_module("echo")
    (True, False)
    """
    return word in _MODULES
