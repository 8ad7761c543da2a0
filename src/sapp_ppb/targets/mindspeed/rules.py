"""
Rules that MindSpeed asserts of its flags before it trains.

Source: ``validate_args`` in ``pipeline_model_parallel_layout_feature.py``,
``unaligned_pineline_feature.py`` and ``dualpipev_feature.py`` in
``mindspeed/features_manager/pipeline_parallel``, ``docs/en/features/dualpipev.md`` and
``pipeline-model-parallel-layout.md`` of MindSpeed, and ``num_layer_list.py`` of MindSpeed-LLM.
"""

from collections.abc import Collection

from sapp_ppb.targets.config import BrokenRule
from sapp_ppb.targets.mindspeed.flags import DUALPIPEV, LIST, METHOD, NOOPS, ROWS

_LAYOUT = "pipeline-model-parallel-layout"
# Flags of which both must not be given.  Two that both say the split are among them,
# though MindSpeed does not ask of each such pair.
_PAIRS = (
    (_LAYOUT, METHOD),
    (_LAYOUT, ROWS),
    (_LAYOUT, NOOPS),
    (_LAYOUT, LIST),
    (_LAYOUT, "recompute-in-bubble"),
    (_LAYOUT, "recompute-in-advance"),
    (ROWS, NOOPS),
    (ROWS, LIST),
    (ROWS, METHOD),
    (LIST, METHOD),
)
_NOT_ON_A_V = (
    "overlap-grad-reduce",
    "swap-attention",
    "tp-2d",
    "use-custom-fsdp",
    "use-megatron-fsdp",
)


def _broken(name: str, rule: str, found: object, mend: str = "") -> BrokenRule:
    return BrokenRule(key=f"--{name}", rule=rule, found=str(found), mend=mend)


def pair_rules(given: Collection[str]) -> list[BrokenRule]:
    """
    Name flags that go not together.

    Examples
    --------
    >>> print(*pair_rules({"noop-layers", "pipeline-num-transformer-layers"}))
    --pipeline-num-transformer-layers: goes not with --noop-layers (got both); keep one
    """
    return [
        _broken(one, f"goes not with --{other}", "both", "keep one")
        for one, other in _PAIRS
        if one in given and other in given
    ]


def flag_rules(given: Collection[str], method: str | None) -> list[BrokenRule]:
    """
    Rules of ``--schedules-method``: its one value, and what does not go with that.

    Examples
    --------
    >>> print(*flag_rules({"schedules-method", "swap-attention"}, "dualpipev"))
    --schedules-method: dualpipev goes not with --swap-attention (got both); leave that out
    """
    if method is None:
        return []
    if method != DUALPIPEV:
        return [_broken(METHOD, f"must be {DUALPIPEV}", method)]
    return [
        _broken(METHOD, f"{DUALPIPEV} goes not with --{name}", "both", "leave that out")
        for name in _NOT_ON_A_V
        if name in given
    ]


def batch_rules(stages: int | None, micro_batches: int | None, context_parallel: int) -> list[BrokenRule]:
    """
    Rules of DualPipeV about sizes; None for those that are not known.

    Examples
    --------
    >>> print(*batch_rules(4, 7, 1))
    --schedules-method: dualpipev needs micro-batches of at least twice the stages, 8 (got 7)
    """
    found = []
    if stages is not None and micro_batches is not None and micro_batches < 2 * stages:
        rule = f"{DUALPIPEV} needs micro-batches of at least twice the stages, {2 * stages}"
        found.append(_broken(METHOD, rule, micro_batches))
    if context_parallel > 1:
        found.append(
            _broken("context-parallel-size", f"must be 1 with --{METHOD} {DUALPIPEV}", context_parallel)
        )
    return found
