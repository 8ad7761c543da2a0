"""
How Megatron-LM splits decoders over cells where no layout says it.

Evenly, with other numbers on the first and last stage, or counting embedding and loss
as a layer each.  Source: ``validate_args`` in ``megatron/training/arguments.py``,
``__post_init__`` in ``megatron/core/transformer/transformer_config.py``,
``get_num_layers_to_build`` in ``transformer_block.py`` and
``get_mtp_num_layers_to_build`` in ``multi_token_prediction.py``.
"""

from dataclasses import dataclass

from sapp_ppb.costs.checks import LARGEST_COUNT
from sapp_ppb.targets.config import BrokenRule
from sapp_ppb.targets.megatron.flags import GROUP_SIZE
from sapp_ppb.targets.megatron.layout import LAYOUT_KEY, Cells

PER_CHUNK = "--num-layers-per-virtual-pipeline-stage"
CHUNKS = "--num-virtual-stages-per-pipeline-rank"
FIRST, LAST = "--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers"
EMBEDDING, LOSS = "--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split"
STAGES = "--pipeline-model-parallel-size"
GROUP = f"--{GROUP_SIZE}"


@dataclass(frozen=True, kw_only=True)
class SplitFlags:
    """
    Flags that split the model; None or False for those that are not given.

    Attributes
    ----------
    stages
        Pipeline-parallel size.
    layers, mtp_layers
        Decoders, and layers of multi-token prediction.
    first, last
        Decoders of the first and of the last stage.
    with_embedding, with_loss
        Whether embedding and loss count as a layer each.
    per_chunk, chunks
        Layers of a chunk, or chunks of a stage.
    overlap_p2p
        Whether messages between stages overlap with work.
    """

    stages: int
    layers: int
    mtp_layers: int = 0
    first: int | None = None
    last: int | None = None
    with_embedding: bool = False
    with_loss: bool = False
    per_chunk: int | None = None
    chunks: int | None = None
    overlap_p2p: bool = True

    @property
    def counted(self) -> int:
        """Layers that are split evenly, embedding and loss among them where they count."""
        return self.layers + self.with_embedding + self.with_loss

    @property
    def is_uneven(self) -> bool:
        """Whether the first or the last stage has a number of its own."""
        return self.first is not None or self.last is not None


@dataclass(frozen=True, kw_only=True)
class Split:
    """
    Layers of every cell.

    Attributes
    ----------
    cells
        Letters of each cell, as in a layout; None where Megatron-LM would not start.
    interleave
        Chunks of a stage.
    broken
        Rules that the flags break.
    on_a_v
        Whether the second chunk of a stage comes back from the last stage (MindSpeed).
    noops
        Places that hold no layer (MindSpeed).
    """

    cells: Cells | None
    interleave: int
    broken: tuple[BrokenRule, ...]
    on_a_v: bool = False
    noops: int = 0


def split_of(flags: SplitFlags) -> Split:
    """
    Split the model as Megatron-LM does.

    Examples
    --------
    >>> split_of(SplitFlags(stages=4, layers=12, first=2, last=2)).cells  # (12 - 2 - 2) / 2 in the middle
    ('Ett', 'tttt', 'tttt', 'ttL')
    >>> split_of(SplitFlags(stages=2, layers=6, with_embedding=True, with_loss=True, chunks=2)).cells
    ('Et', 'tt', 'tt', 'tL')
    """
    broken = [*_size_rules(flags), *_exclusions(flags)]
    if broken:
        return Split(cells=None, interleave=1, broken=tuple(broken))
    chunks, broken = _chunks(flags)
    per_stage, found = _per_stage(flags, chunks)
    broken += [*found, *interleave_rules(flags.stages, chunks, overlap_p2p=flags.overlap_p2p)]
    if flags.stages * chunks > LARGEST_COUNT:
        broken.append(_broken(STAGES, f"cells must be at most {LARGEST_COUNT}", flags.stages * chunks))
    cells = None if broken else _cells(flags, per_stage, chunks)
    if cells is None and not broken:
        broken = [
            _broken(EMBEDDING, "the first and last cell must hold the layers that count", flags.counted)
        ]
    if cells is not None and (total := "".join(cells).count("t")) != flags.layers:
        rule = f"the stages must hold all {flags.layers} layers of --num-layers, and Megatron-LM does not ask"
        broken = [_broken(FIRST, rule, total, "correct the layers of the first and last stage")]
    return Split(cells=cells, interleave=chunks, broken=tuple(broken))


def _broken(key: str, rule: str, found: object, mend: str = "") -> BrokenRule:
    return BrokenRule(key=key, rule=rule, found=str(found), mend=mend)


def _size_rules(flags: SplitFlags) -> list[BrokenRule]:
    sizes = (
        (STAGES, flags.stages),
        ("--num-layers", flags.layers),
        (FIRST, flags.first),
        (LAST, flags.last),
        (PER_CHUNK, flags.per_chunk),
        (CHUNKS, flags.chunks),
    )
    return [
        _broken(key, "must be larger than 0", number)
        for key, number in sizes
        if number is not None and number <= 0
    ]


def _exclusions(flags: SplitFlags) -> list[BrokenRule]:
    broken = []
    if flags.per_chunk is not None and flags.chunks is not None:
        broken.append(_broken(PER_CHUNK, f"goes not with {CHUNKS}", "both", "keep one"))
    if flags.is_uneven and (flags.with_embedding or flags.with_loss):
        key = FIRST if flags.first is not None else LAST
        broken.append(_broken(key, f"goes not with {EMBEDDING} or {LOSS}", "both", "keep one"))
    if flags.is_uneven and flags.per_chunk is not None:
        broken.append(
            _broken(PER_CHUNK, f"goes not with {FIRST} or {LAST}", "both", f"give {CHUNKS} in its place")
        )
    return broken


def layout_exclusions(flags: SplitFlags) -> tuple[BrokenRule, ...]:
    """
    Name the flags that may not be given beside a layout, each a rule that is broken.

    Examples
    --------
    >>> [rule.key for rule in layout_exclusions(SplitFlags(stages=2, layers=4, first=1))]
    ['--decoder-first-pipeline-num-layers']
    """
    given = (
        (FIRST, flags.first),
        (LAST, flags.last),
        (EMBEDDING, flags.with_embedding or None),
        (LOSS, flags.with_loss or None),
        (PER_CHUNK, flags.per_chunk),
        (CHUNKS, flags.chunks),
    )
    return tuple(
        _broken(key, f"goes not with {LAYOUT_KEY}", "both", "leave it out")
        for key, value in given
        if value is not None
    )


def interleave_rules(stages: int, chunks: int, *, overlap_p2p: bool) -> list[BrokenRule]:
    """
    Ask for the stages that the interleaved schedule needs: 2, or 3 where messages do not overlap.

    Examples
    --------
    >>> print(*interleave_rules(1, 2, overlap_p2p=True))
    --pipeline-model-parallel-size: must be greater than 1 for several chunks a stage (got 1)
    """
    least = 1 if overlap_p2p else 2
    if chunks == 1 or stages > least:
        return []
    without = "" if overlap_p2p else " without overlap of messages"
    return [_broken(STAGES, f"must be greater than {least} for several chunks a stage{without}", stages)]


def group_rules(stages: int, micro_batches: int, group: int) -> list[BrokenRule]:
    """
    Ask of a group of micro-batches what the interleaved schedule asks.

    Source: ``forward_backward_pipelining_with_interleaving`` in
    ``megatron/core/pipeline_parallel/schedules.py``.

    Examples
    --------
    >>> [rule.found for rule in group_rules(4, 10, 4)]  # 10 mod 4 is neither 0 nor at least 4
    ['10 mod 4 = 2']
    """
    if not stages <= group <= micro_batches:
        rule = f"must be from the {stages} stages to the {micro_batches} micro-batches"
        return [_broken(GROUP, rule, group, "give another --micro-batch-group or number of micro-batches")]
    rest = micro_batches % group
    if rest and rest < stages:
        rule = f"must leave no micro-batches over, or at least the {stages} stages"
        mend = "give another --micro-batch-group or number of micro-batches"
        return [_broken(GROUP, rule, f"{micro_batches} mod {group} = {rest}", mend)]
    return []


def _chunks(flags: SplitFlags) -> tuple[int, list[BrokenRule]]:
    """Chunks of a stage."""
    if flags.per_chunk is None:
        return flags.chunks or 1, []
    per_stage = flags.counted // flags.stages
    if flags.counted % flags.stages or per_stage % flags.per_chunk == 0:
        return max(1, per_stage // flags.per_chunk), []  # stages that differ are told of later
    return 1, [_broken(PER_CHUNK, f"must divide the {per_stage} layers of a stage", flags.per_chunk)]


def _per_stage(flags: SplitFlags, chunks: int) -> tuple[list[int], list[BrokenRule]]:
    """Layers of each stage, those that embedding and loss stand for included."""
    return _uneven(flags, chunks) if flags.is_uneven else _even(flags, chunks)


def _even(flags: SplitFlags, chunks: int) -> tuple[list[int], list[BrokenRule]]:
    each, rest = divmod(flags.counted, flags.stages)
    counted = "" if flags.counted == flags.layers else ", embedding and loss counted,"
    if rest:
        rule = f"the layers of the model{counted} must be divisible by the {flags.stages} stages"
        return [], [_broken("--num-layers", rule, flags.counted)]
    if each % chunks:
        rule = f"the layers of a stage{counted} must be divisible by the {chunks} chunks"
        return [], [_broken("--num-layers", rule, each)]
    return [each] * flags.stages, []


def _uneven(flags: SplitFlags, chunks: int) -> tuple[list[int], list[BrokenRule]]:
    """Middle stages share what the first and last leave."""
    left = flags.layers - (flags.first or 0) - (flags.last or 0)
    middle = flags.stages - (flags.first is not None) - (flags.last is not None)
    broken = [
        _broken(key, f"must be divisible by the {chunks} chunks", number)
        for key, number in ((FIRST, flags.first), (LAST, flags.last))
        if number is not None and number % chunks
    ]
    each = 0
    if middle > 0:
        each, rest = divmod(left, middle)
        if left < 0 or rest:
            rule = f"the layers of the {middle} middle stages must be at least 0 and divisible by {middle}"
            broken.append(_broken("--num-layers", rule, left))
        elif each % chunks:
            rule = f"the layers of a middle stage must be divisible by the {chunks} chunks"
            broken.append(_broken("--num-layers", rule, each))
    per_stage = [each] * flags.stages
    per_stage[0] = per_stage[0] if flags.first is None else flags.first
    per_stage[-1] = per_stage[-1] if flags.last is None else flags.last
    return per_stage, broken


def _cells(flags: SplitFlags, per_stage: list[int], chunks: int) -> Cells | None:
    """Letters of each cell; None where the first or last holds too few."""
    layers = [number // chunks for _ in range(chunks) for number in per_stage]
    layers[0] -= flags.with_embedding
    layers[-1] -= flags.with_loss
    if min(layers) < 0:
        return None
    cells = ["t" * number for number in layers]
    cells[0] = "E" + cells[0]
    cells[-1] += "m" * flags.mtp_layers + "L"
    return tuple(cells)
