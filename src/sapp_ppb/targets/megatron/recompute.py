"""
Which layers Megatron-LM recomputes, by its flags.

Block takes the first N decoders of every chunk, uniform every layer in groups of N,
selective the modules of one list in every layer.  Layers of multi-token prediction are
left alone under block, and uniform takes them only with N = 1.  Source:
``__post_init__`` in ``megatron/core/transformer/transformer_config.py``,
``_checkpointed_forward`` in ``transformer_block.py`` and ``multi_token_prediction.py``.
"""

from dataclasses import dataclass

from sapp_ppb.costs import Recompute
from sapp_ppb.targets.config import BrokenRule, CellTypes
from sapp_ppb.targets.megatron.layout import Cells

GRANULARITY, METHOD = "--recompute-granularity", "--recompute-method"
NUM_LAYERS = "--recompute-num-layers"


@dataclass(frozen=True, kw_only=True)
class RecomputeFlags:
    """
    Flags of activation recomputation; None for those that are not given.

    Attributes
    ----------
    granularity, method, layers
        ``full`` or ``selective``, ``block`` or ``uniform``, and N.
    modules
        What selective recomputes.
    per_rank
        Whether N of block counts the layers of a stage, dealt over its chunks (MindSpeed).
    """

    granularity: str | None = None
    method: str | None = None
    layers: int | None = None
    modules: tuple[str, ...] = ()
    per_rank: bool = False


def recompute_rules(flags: RecomputeFlags, *, mtp_layers: int) -> tuple[BrokenRule, ...]:
    """
    Rules of recompute that flags break.

    Examples
    --------
    >>> print(*recompute_rules(RecomputeFlags(granularity="full", layers=2), mtp_layers=0))
    --recompute-method: must be block or uniform with full recompute (got none)
    """
    granularity = flags.granularity
    if granularity is None:
        return ()
    if granularity not in ("full", "selective"):
        return (_broken(GRANULARITY, "must be full or selective", granularity),)
    broken = []
    if flags.method not in (None, "block", "uniform"):
        broken.append(_broken(METHOD, "must be block or uniform", flags.method))
    if granularity == "selective":
        if flags.layers is not None:
            broken.append(_broken(NUM_LAYERS, "must not be given with selective recompute", flags.layers))
        return tuple(broken)
    if flags.method is None:
        broken.append(_broken(METHOD, "must be block or uniform with full recompute", None))
    if flags.layers is None:
        broken.append(_broken(NUM_LAYERS, "must be given with full recompute, and be at least 1", None))
    elif flags.method == "uniform":
        broken += _uniform_rules(flags.layers, mtp_layers)
    return tuple(broken)


def _uniform_rules(layers: int, mtp_layers: int) -> list[BrokenRule]:
    if layers < 1:
        return [_broken(NUM_LAYERS, "must be at least 1", layers)]
    if mtp_layers and layers > 1:
        return [_broken(NUM_LAYERS, "must be 1 for MTP layers with uniform recompute", layers)]
    return []


def _broken(key: str, rule: str, found: object) -> BrokenRule:
    return BrokenRule(key=key, rule=rule, found="none" if found is None else str(found))


def recompute_notes(flags: RecomputeFlags) -> tuple[str, ...]:
    """
    Say how recompute is modelled where that is not plain.

    Examples
    --------
    >>> recompute_notes(RecomputeFlags(granularity="selective", modules=("core_attn", "moe_act")))
    ("selective recompute of core_attn, moe_act is taken for what the model file gives as 'selective'",)
    """
    notes = []
    if flags.granularity == "selective":
        modules = ", ".join(flags.modules) or "core_attn"
        notes.append(
            f"selective recompute of {modules} is taken for what the model file gives as 'selective'"
        )
    elif flags.granularity == "full" and flags.method == "uniform" and (flags.layers or 1) > 1:
        notes.append(
            f"uniform recompute keeps one input for every {flags.layers} layers and holds as many again in "
            "the backward; it is modelled as full recompute of every layer, each with its own input"
        )
    elif (
        flags.granularity == "full"
        and flags.method == "block"
        and flags.layers is not None
        and flags.layers < 1
    ):
        notes.append(f"block recompute of {flags.layers} layers recomputes nothing")
    elif flags.granularity is None and any((flags.method, flags.layers is not None, flags.modules)):
        notes.append(f"recompute flags without {GRANULARITY} recompute nothing")
    return tuple(notes)


def types_of(cells: Cells, stages: int, flags: RecomputeFlags, *, on_a_v: bool = False) -> CellTypes | None:
    """
    Type of each layer of each cell.

    Parameters
    ----------
    cells
        Letters of each cell; ``n`` is an empty place, which counts for block (MindSpeed).
    on_a_v
        Whether the second chunk of a stage comes back from the last stage to the first.

    Returns
    -------
    tuple
        Indexed ``[chunk][stage]``, decoders before layers of multi-token prediction; None when
        cells are no multiple of the stages, or full recompute has no method or N.

    Examples
    --------
    >>> block = RecomputeFlags(granularity="full", method="block", layers=1)
    >>> [[r.label for r in cell] for cell in types_of(("Ett", "tmL"), 2, block)[0]]
    [['full', 'none'], ['full', 'none']]
    """
    if len(cells) % stages or (
        flags.granularity == "full" and (flags.method is None or flags.layers is None)
    ):
        return None
    chunks = len(cells) // stages
    full = [flags.layers or 0] * chunks
    if flags.per_rank and not on_a_v:
        full = [dealt(full[chunk], chunk, chunks) for chunk in range(chunks)]
    of_cell = [_of_cell(cell, full[k // stages], flags) for k, cell in enumerate(cells)]
    rows = [tuple(of_cell[first : first + stages]) for first in range(0, len(cells), stages)]
    return tuple(row[::-1] if on_a_v and chunk % 2 else row for chunk, row in enumerate(rows))


def dealt(layers: int, chunk: int, chunks: int) -> int:
    """
    First layers of a chunk that block recomputes, when N is counted by stage (MindSpeed).

    Layer l of chunk v is recomputed where l V + v < N, as they are dealt round and round;
    what a chunk is too short for goes to no other.

    Examples
    --------
    >>> [dealt(5, chunk, 3) for chunk in range(3)]  # chunks 0, 1, 2, 0, 1
    [2, 2, 1]
    """
    return max(0, -((chunk - layers) // chunks))


def _of_cell(cell: str, full: int, flags: RecomputeFlags) -> tuple[Recompute, ...]:
    if flags.granularity == "selective":
        everywhere = Recompute.SELECTIVE
    else:
        everywhere = Recompute.FULL if flags.granularity == "full" else Recompute.NONE
    if everywhere is not Recompute.FULL or flags.method != "block":
        return (everywhere,) * (cell.count("t") + cell.count("m"))
    places = [letter for letter in cell if letter in "tn"]
    decoders = [
        Recompute.FULL if place < full else Recompute.NONE
        for place, letter in enumerate(places)
        if letter == "t"
    ]
    return (*decoders, *[Recompute.NONE] * cell.count("m"))
