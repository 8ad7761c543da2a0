"""
Configuration of MindSpeed: flags of Megatron-LM and its own, in a launch script or a file of flags.

What its own flags mean for a pipeline, by the rules of ``targets/mindspeed/split.py`` and
``targets/mindspeed/rules.py``; all others as ``megatron_config.py`` reads them.
"""

from dataclasses import replace
from os import PathLike

from sapp_ppb.readers.frameworks.megatron_config import NOT_MODELLED, Dialect, read_flags
from sapp_ppb.readers.frameworks.megatron_values import Values
from sapp_ppb.targets.config import BrokenRule, PipelineConfig
from sapp_ppb.targets.megatron.recompute import RecomputeFlags
from sapp_ppb.targets.megatron.split import Split, SplitFlags, split_of
from sapp_ppb.targets.mindspeed.flags import (
    DUALPIPEV,
    LIST,
    METHOD,
    NOOPS,
    OWN_SPLITS,
    PER_RANK,
    ROWS,
    UNREAD_RECOMPUTE,
    UNREAD_SPLITS,
)
from sapp_ppb.targets.mindspeed.rules import batch_rules, flag_rules, pair_rules
from sapp_ppb.targets.mindspeed.split import (
    parse_list,
    parse_rows,
    split_of_list,
    split_of_rows,
    split_on_a_v,
    with_noops,
)

_LAYOUT = "pipeline-model-parallel-layout"
_NOT_MODELLED = {
    "recompute-in-advance": "when recompute runs before its backward is not modelled",
    "recompute-activation-function": "recompute of activation functions is not modelled",
    "recompute-norm": "recompute of norms is not modelled",
    "swap-attention": "what is swapped is not modelled, nor how recompute goes along with that",
    "smart-swap": "what is swapped is not modelled",
    "adaptive-memory-optimization": "what is swapped or recomputed for it is not modelled",
    "moe-fb-overlap": "how much of a forward that overlaps with a backward is hidden is set with "
    "--overlap-factor",
    "optimize-send-recv-comm": "which messages share a link is not modelled",
}


def read_mindspeed(path: str | PathLike[str], micro_batches: int | None = None) -> PipelineConfig:
    """
    Read what a configuration of MindSpeed says of its pipeline.

    Parameters
    ----------
    path
        A launch script, a list of arguments, or YAML or JSON of flags.
    micro_batches
        Micro-batches of a step where they are known from elsewhere; None takes them from
        the file, if it says them.

    Raises
    ------
    InputError
        If the file can not be read as what its name says, or gives no flag of a pipeline.
    """
    dialect = Dialect(
        target="mindspeed",
        own_splits=OWN_SPLITS,
        unread_splits=UNREAD_SPLITS,
        unread_recompute=UNREAD_RECOMPUTE,
        not_modelled=NOT_MODELLED | _NOT_MODELLED,
        split=_split,
        recompute=_recompute,
        rules=_rules,
        notes=_notes,
    )
    return read_flags(path, micro_batches, dialect)


def _text(values: Values, name: str) -> str | None:
    """Text of a flag; a list that a YAML or JSON holds as such, as the text that it stands for."""
    if name in values.lists:
        return str(values.lists[name]) if name == ROWS else ",".join(map(str, values.lists[name]))
    return values.texts.get(name)


def _split(values: Values, flags: SplitFlags) -> tuple[Split, list[str]]:
    """Layers of every cell where no layout says them."""
    numbers, rows, noops = (_text(values, name) for name in (LIST, ROWS, NOOPS))
    places = None if noops is None else parse_list(noops, NOOPS)
    notes = []
    if numbers is not None and places is not None:
        notes.append(f"--{NOOPS} is given, and MindSpeed-LLM then leaves --{LIST} out of account")
        numbers = None
    if _text(values, METHOD) == DUALPIPEV:
        split = split_on_a_v(flags)
    elif rows is not None:
        split = split_of_rows(parse_rows(rows), flags)
    elif numbers is not None:
        split = split_of_list(parse_list(numbers, LIST), flags)
    else:
        split = split_of(flags)
    return (split if places is None else with_noops(split, places, flags.layers)), notes


def _recompute(values: Values, flags: RecomputeFlags) -> RecomputeFlags:
    return replace(flags, per_rank=PER_RANK in values.present)


def _rules(values: Values, stages: int | None, micro_batches: int | None) -> list[BrokenRule]:
    method = _text(values, METHOD)
    found = [*pair_rules(values.present), *flag_rules(values.present, method)]
    if method == DUALPIPEV:
        found += batch_rules(stages, micro_batches, values.numbers.get("context-parallel-size", 1))
    return found


def _notes(values: Values, split: Split) -> list[str]:
    """Say what is odd about the flags that are MindSpeed's own."""
    notes = []
    if PER_RANK in values.present and (split.interleave == 1 or split.on_a_v):
        notes.append(
            f"--{PER_RANK} changes nothing with one chunk a stage that Megatron-LM knows of; "
            "MindSpeed-LLM has refused it then"
        )
    elif PER_RANK in values.present and _LAYOUT in values.present:
        notes.append(
            f"--{PER_RANK} with a layout is for MindSpeed itself; MindSpeed-LLM has asked for "
            "--num-layers-per-virtual-pipeline-stage"
        )
    if split.on_a_v:
        notes.append(
            "the order of dualpipev is DeepSeek's, which splits weight gradients off in the cool-down; "
            "MindSpeed does so with --dualpipev-dw-detach, and hides "
            "forwards behind backwards with --moe-fb-overlap"
        )
        if "untie-embeddings-and-output-weights" not in values.present:
            notes.append("dualpipev needs --untie-embeddings-and-output-weights, which is not given here")
    return notes
