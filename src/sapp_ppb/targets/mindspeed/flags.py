"""
Names of MindSpeed's flags that decide a pipeline, without dashes in front.

Those that it has besides Megatron-LM's.  Source: ``mindspeed/features_manager`` of
MindSpeed and ``mindspeed_llm/features_manager`` of MindSpeed-LLM.
"""

from sapp_ppb.targets.megatron.flags import OTHER_RECOMPUTE, OTHER_SPLITS

LIST, ROWS, NOOPS = "num-layer-list", "pipeline-num-transformer-layers", "noop-layers"
METHOD, DUALPIPEV = "schedules-method", "dualpipev"
PER_RANK = "enable-recompute-layers-per-pp-rank"
OWN_SPLITS = (LIST, ROWS, NOOPS, METHOD)
# What decides a split or recompute in a way that is not read.
UNREAD_SPLITS = (*(name for name in OTHER_SPLITS if name not in OWN_SPLITS), "automated-pipeline")
UNREAD_RECOMPUTE = (
    *(name for name in OTHER_RECOMPUTE if name != PER_RANK),
    "reduce-recompute-for-last-chunk",
    "recompute-module-list",
    "recompute-type",
    "adaptive-recompute-device-size",
    "automated-pipeline-perf",
)
