"""
Configuration of Megatron-LM: ``model_config.yaml``, a list of arguments or a launch script.

What the flags mean for a pipeline, by the rules of ``targets/megatron/split.py``,
``megatron_layout_rules.py`` and ``megatron_recompute.py``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike

from sapp_ppb.costs.checks import shown
from sapp_ppb.errors import InputError
from sapp_ppb.readers.frameworks.megatron_batch import group_of, micro_batches_of
from sapp_ppb.readers.frameworks.megatron_values import BATCH, Values, given_flags, read_values
from sapp_ppb.schedules import MOST_CELLS, ScheduleName
from sapp_ppb.targets.config import BrokenRule, CellTypes, PipelineConfig
from sapp_ppb.targets.megatron.flags import GROUP_SIZE, OTHER_RECOMPUTE, OTHER_SPLITS, RECOMPUTE, SPLIT
from sapp_ppb.targets.megatron.layout import Cells, cells_of_names, parse_layout
from sapp_ppb.targets.megatron.layout_rules import layout_notes, layout_rules
from sapp_ppb.targets.megatron.recompute import RecomputeFlags, recompute_notes, recompute_rules, types_of
from sapp_ppb.targets.megatron.split import (
    GROUP,
    Split,
    SplitFlags,
    interleave_rules,
    layout_exclusions,
    split_of,
)

NOT_MODELLED = {
    "no-overlap-p2p-communication": "messages hold work up; price that with --p2p-mode blocking",
    "overlap-p2p-communication-warmup-flush": "when messages overlap in warm-up and flush is not modelled",
    "overlap-moe-expert-parallel-comm": "forwards that overlap with backwards are not modelled",
    "delay-wgrad-compute": "weight gradients that are put off are not modelled",
    "defer-embedding-wgrad-compute": "the embedding's weight gradient that is put off is not modelled",
    "fine-grained-activation-offloading": "what is offloaded is not modelled",
    "cpu-offloading-num-layers": "what is offloaded is not modelled",
    "distribute-saved-activations": "how saved activations are spread is not modelled",
    "rampup-batch-size": "the number of micro-batches is that of the full batch",
}


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """
    What a framework that builds on Megatron-LM reads in another way.

    Attributes
    ----------
    target
        Its name.
    own_splits
        Flags that decide the split besides Megatron-LM's, and that are read.
    unread_splits, unread_recompute
        Flags that decide the split or recompute in a way that is not read.
    not_modelled
        What a flag does that is not modelled.
    split
        Split by what the file gives and the flags of Megatron-LM, where no layout says it,
        and notes.
    recompute
        Flags of recompute with what the framework adds to them.
    rules
        Rules of the framework's own that a file breaks, by stages and micro-batches.
    notes
        Notes of its own.
    """

    target: str
    own_splits: tuple[str, ...] = ()
    unread_splits: tuple[str, ...] = OTHER_SPLITS
    unread_recompute: tuple[str, ...] = OTHER_RECOMPUTE
    not_modelled: Mapping[str, str] = field(default_factory=lambda: NOT_MODELLED)
    split: Callable[[Values, SplitFlags], tuple[Split, list[str]]] = lambda _, flags: (split_of(flags), [])
    recompute: Callable[[Values, RecomputeFlags], RecomputeFlags] = lambda _, flags: flags
    rules: Callable[[Values, int | None, int | None], list[BrokenRule]] = lambda *_: []
    notes: Callable[[Values, Split], list[str]] = lambda *_: []


def read_megatron(path: str | PathLike[str], micro_batches: int | None = None) -> PipelineConfig:
    """
    Read what a configuration of Megatron-LM says of its pipeline.

    Parameters
    ----------
    path
        ``.yaml`` or ``.yml`` (flags under MODEL_ARGS, or a list), ``.json`` (the same), or
        any other name for a shell script or a list of arguments.
    micro_batches
        Micro-batches of a step where they are known from elsewhere; None takes them from
        the file, if it says them.

    Raises
    ------
    InputError
        If the file can not be read as what its name says, or gives no flag of a pipeline.
    """
    return read_flags(path, micro_batches, Dialect(target="megatron"))


def read_flags(path: str | PathLike[str], micro_batches: int | None, dialect: Dialect) -> PipelineConfig:
    """
    Read what a configuration says of its pipeline in flags of Megatron-LM and of a dialect.

    Raises
    ------
    InputError
        If the file can not be read as what its name says, or gives no flag of a pipeline.
    """
    values = read_values(path)
    unread = (*dialect.unread_splits, *dialect.unread_recompute)
    unknown = [
        f"--{name} {reason}; write its value"
        for name, reason in values.unknown.items()
        if name not in unread and (micro_batches is None or name not in BATCH)
    ]
    for name in given_flags(values, unread):
        unknown.append(f"--{name} decides what this reader takes from other flags, and is not read")
    stages = _stages(values)
    split, notes = _split(values, stages, unknown, dialect)
    recompute, found = _recompute(values)
    recompute = dialect.recompute(values, recompute)
    mtp_layers = max(values.numbers.get("mtp-num-layers", 0), 0)
    if "num-layers" not in values.present and split.cells is not None:
        mtp_layers = "".join(split.cells).count("m")
    rules = [*values.broken, *split.broken, *found, *recompute_rules(recompute, mtp_layers=mtp_layers)]
    if (number := values.numbers.get("mtp-num-layers", 0)) < 0:
        rules.append(BrokenRule(key="--mtp-num-layers", rule="must be at least 0", found=str(number)))
    batch_rules, missing = list[BrokenRule](), list[str]()
    if micro_batches is None:
        micro_batches, batch_rules, missing = micro_batches_of(values, stages)
    schedule = _schedule(split)
    in_groups = split.interleave if schedule is ScheduleName.INTERLEAVED else 1
    group, group_broken = group_of(values, stages, in_groups, micro_batches)
    own_broken = dialect.rules(values, stages, micro_batches)
    return PipelineConfig(
        target=dialect.target,
        where=str(path),
        stages=stages,
        interleave=split.interleave,
        micro_batches=micro_batches,
        schedule=schedule,
        micro_batch_group=group,
        layers=_layers(values, split, mtp_layers),
        mtp_layers=mtp_layers,
        types=_types(values, split, stages, recompute, dialect),
        broken=(
            *rules,
            *batch_rules,
            *group_broken,
            *own_broken,
            *_offload_rules(values, stages, recompute),
        ),
        unknown=(*unknown, *missing),
        notes=(
            *values.notes,
            *notes,
            *recompute_notes(recompute),
            *_other_notes(values, split, dialect),
        ),
    )


def _schedule(split: Split) -> ScheduleName:
    if split.on_a_v:
        return ScheduleName.DUALPIPEV
    return ScheduleName.ONE_F_ONE_B if split.interleave == 1 else ScheduleName.INTERLEAVED


def _stages(values: Values) -> int | None:
    if "pipeline-model-parallel-size" in values.unknown:
        return None
    stages = values.numbers.get("pipeline-model-parallel-size", 1)
    if stages > MOST_CELLS:
        rule = f"must be at most {MOST_CELLS}"
        values.broken.append(BrokenRule(key="--pipeline-model-parallel-size", rule=rule, found=str(stages)))
        return None
    return stages if stages > 0 else None


def _split(
    values: Values, stages: int | None, unknown: list[str], dialect: Dialect
) -> tuple[Split, list[str]]:
    """Layers of every cell, as the layout or the other flags say."""
    broken: list[BrokenRule] = []
    cells = None
    try:
        cells = _layout(values)
    except InputError as error:
        rule = "must be a layout such as Et*3|(tt|)*2tL, or a list of lists of names"
        broken.append(BrokenRule(key=error.where, rule=rule, found=error.faults[0]))
    nothing = Split(cells=None, interleave=1, broken=tuple(broken))
    not_known = [name for name in (*SPLIT, *dialect.own_splits) if name in values.unknown]
    decided_elsewhere = given_flags(values, (*dialect.unread_splits, *not_known))
    if stages is None and "pipeline-model-parallel-size" not in values.unknown:
        stages_given = values.numbers["pipeline-model-parallel-size"]
        key = "--pipeline-model-parallel-size"
        broken.append(BrokenRule(key=key, rule="must be larger than 0", found=str(stages_given)))
        return Split(cells=None, interleave=1, broken=tuple(broken)), []
    if broken or stages is None or decided_elsewhere:
        return nothing, []
    flags = _split_flags(values, stages)
    if cells is not None:
        return _split_of_layout(values, cells, flags)
    if "num-layers" not in values.numbers:
        unknown.append("--num-layers is not given; give it")
        return nothing, []
    try:
        return dialect.split(values, flags)
    except InputError as error:
        fault = BrokenRule(key=error.where, rule="is not what it must be", found=error.faults[0])
        return replace(nothing, broken=(fault,)), []


def _layout(values: Values) -> Cells | None:
    name = "pipeline-model-parallel-layout"
    if name in values.lists:
        return cells_of_names(values.lists[name])
    return parse_layout(values.texts[name]) if name in values.texts else None


def _split_flags(values: Values, stages: int) -> SplitFlags:
    numbers, present = values.numbers, values.present
    return SplitFlags(
        stages=stages,
        layers=numbers.get("num-layers", 0),
        mtp_layers=max(numbers.get("mtp-num-layers", 0), 0),
        first=numbers.get("decoder-first-pipeline-num-layers"),
        last=numbers.get("decoder-last-pipeline-num-layers"),
        with_embedding="account-for-embedding-in-pipeline-split" in present,
        with_loss="account-for-loss-in-pipeline-split" in present,
        per_chunk=numbers.get("num-layers-per-virtual-pipeline-stage"),
        chunks=numbers.get("num-virtual-stages-per-pipeline-rank"),
        overlap_p2p="no-overlap-p2p-communication" not in present,
    )


def _split_of_layout(values: Values, cells: Cells, flags: SplitFlags) -> tuple[Split, list[str]]:
    layers, notes = values.numbers.get("num-layers"), list(layout_notes(cells))
    if layers is None:
        notes.append("--num-layers is not given; the layers are those of the layout")
    chunks, rest = divmod(len(cells), flags.stages)
    broken = (
        *layout_exclusions(flags),
        *layout_rules(
            cells,
            stages=flags.stages,
            layers=layers,
            mtp_layers=None if layers is None else flags.mtp_layers,
        ),
        *(() if rest else interleave_rules(flags.stages, chunks, overlap_p2p=flags.overlap_p2p)),
    )
    return Split(cells=cells, interleave=1 if rest else chunks, broken=broken), notes


def _recompute(values: Values) -> tuple[RecomputeFlags, list[BrokenRule]]:
    """Take flags of recompute, older ones as what they stand for now."""
    granularity, broken = values.texts.get("recompute-granularity"), []
    modules = values.lists.get("recompute-modules") or values.texts.get("recompute-modules", "").split()
    if "checkpoint-activations" in values.present:
        key, rule = "--checkpoint-activations", "is no longer taken"
        broken.append(BrokenRule(key=key, rule=rule, found="it", mend="use --recompute-granularity"))
    if "moe-layer-recompute" in values.present:
        if granularity == "full":
            rule = "goes not with full recompute"
            broken.append(BrokenRule(key="--moe-layer-recompute", rule=rule, found="both"))
        granularity, modules = granularity or "selective", [*(modules or ["core_attn"]), "moe"]
    if "recompute-activations" in values.present:
        granularity = "selective"
    flags = RecomputeFlags(
        granularity=granularity,
        method=values.texts.get("recompute-method"),
        layers=values.numbers.get("recompute-num-layers"),
        modules=tuple(str(module) for module in modules),
    )
    return flags, broken


def _layers(values: Values, split: Split, mtp_layers: int) -> int | None:
    cells = split.cells
    if "num-layers" in values.numbers:
        layers = values.numbers["num-layers"] + mtp_layers - split.noops
        return None if "mtp-num-layers" in values.unknown else layers
    if "num-layers" in values.unknown or cells is None:
        return None
    chain = "".join(cells)
    return chain.count("t") + chain.count("m")


def _types(
    values: Values, split: Split, stages: int | None, recompute: RecomputeFlags, dialect: Dialect
) -> CellTypes | None:
    not_known = given_flags(values, dialect.unread_recompute) or [n for n in RECOMPUTE if n in values.unknown]
    if split.cells is None or stages is None or not_known:
        return None
    return types_of(split.cells, stages, recompute, on_a_v=split.on_a_v)


def _offload_rules(values: Values, stages: int | None, recompute: RecomputeFlags) -> list[BrokenRule]:
    """Offloading of whole layers goes with neither recompute nor a pipeline."""
    key = "cpu-offloading-num-layers"
    if values.numbers.get(key, 0) <= 0:
        return []
    others = [("recompute", recompute.granularity is not None), ("a pipeline", (stages or 1) > 1)]
    return [
        BrokenRule(key=f"--{key}", rule=f"goes not with {what}", found="both")
        for what, is_given in others
        if is_given
    ]


def _other_notes(values: Values, split: Split, dialect: Dialect) -> list[str]:
    notes = [f"--{name}: {dialect.not_modelled[name]}" for name in given_flags(values, dialect.not_modelled)]
    notes += dialect.notes(values, split)
    if split.interleave == 1 and GROUP_SIZE in values.numbers:
        notes.append(f"{GROUP} {shown(values.numbers[GROUP_SIZE])} means nothing with one chunk a stage")
    if "global-batch-size" not in values.present and "micro-batch-size" in values.numbers:
        notes.append("--global-batch-size is not given; Megatron-LM then runs one micro-batch a step")
    return notes
