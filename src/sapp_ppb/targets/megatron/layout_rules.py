"""
Rules that Megatron-LM asserts of a layout before it trains.

Source: ``validate_layer_layout`` in ``megatron/core/transformer/
pipeline_parallel_layer_layout.py``, in the order in which it asks.
"""

from sapp_ppb.costs.checks import shown
from sapp_ppb.targets.config import BrokenRule
from sapp_ppb.targets.megatron.layout import LAYOUT_KEY, Cells, compressed


def layout_rules(
    cells: Cells, *, stages: int, layers: int | None, mtp_layers: int | None
) -> tuple[BrokenRule, ...]:
    """
    Rules that a layout breaks.

    Parameters
    ----------
    cells
        Letters of each cell.
    stages
        Pipeline-parallel size.
    layers, mtp_layers
        Decoders and layers of multi-token prediction of the model; None asks for no number.

    Examples
    --------
    >>> [str(rule) for rule in layout_rules(("Et", "t", "tL"), stages=2, layers=3, mtp_layers=0)]
    ['--pipeline-model-parallel-layout: the number of cells must be a multiple of the 2 stages (got 3)']
    """
    return (
        *_size_rules(cells, stages),
        *_end_rules(cells),
        *_count_rules(cells, layers, mtp_layers),
        *_mtp_rules(cells, stages),
    )


def _broken(rule: str, found: object, mend: str = "") -> BrokenRule:
    return BrokenRule(key=LAYOUT_KEY, rule=rule, found=str(found), mend=mend)


def _size_rules(cells: Cells, stages: int) -> list[BrokenRule]:
    if len(cells) % stages == 0:
        return []
    return [_broken(f"the number of cells must be a multiple of the {stages} stages", len(cells))]


def _end_rules(cells: Cells) -> list[BrokenRule]:
    """Embedding and loss stand at the ends of the chain, each once."""
    chain, found = "".join(cells), []
    text = shown(compressed(cells))
    if not chain.startswith("E"):
        found.append(_broken("the first layer must be the embedding, E", text))
    if not chain.endswith("L"):
        found.append(_broken("the last layer must be the loss, L", text))
    return found + [
        _broken(f"the {name}, {letter}, must be specified exactly once", f"{chain.count(letter)} in {text}")
        for letter, name in (("E", "embedding"), ("L", "loss"))
        if chain.count(letter) > 1
    ]


def _count_rules(cells: Cells, layers: int | None, mtp_layers: int | None) -> list[BrokenRule]:
    chain = "".join(cells)
    rules = (
        ("t", "decoders", "--num-layers", layers),
        ("m", "layers of multi-token prediction", "--mtp-num-layers", mtp_layers),
    )
    return [
        _broken(
            f"the number of {name}, {letter}, must be {flag}, which is {wanted}",
            chain.count(letter),
            f"mend the layout or {flag}",
        )
        for letter, name, flag, wanted in rules
        if wanted is not None and chain.count(letter) != wanted
    ]


def _mtp_rules(cells: Cells, stages: int) -> list[BrokenRule]:
    """Layers of multi-token prediction come last, in one cell, in the last chunk of its stage."""
    chain, found = "".join(cells), []
    holders = [k for k, cell in enumerate(cells) if "m" in cell]
    after = chain.partition("m")[2].count("t")
    if after:
        found.append(
            _broken("decoders, t, must be placed before MTP layers, m", f"{after} behind the first m")
        )
    early = [k for k in holders if k < len(cells) - stages]
    if early and len(cells) % stages == 0:
        places = ", ".join(f"stage {k % stages} chunk {k // stages}" for k in early[:4])
        found.append(_broken("MTP layers, m, must be in the last chunk of their stage", places))
    if len(holders) > 1:
        found.append(_broken("all MTP layers, m, must be in one cell", f"{len(holders)} cells"))
    return found


def layout_notes(cells: Cells) -> tuple[str, ...]:
    """
    Say what is odd in a layout and broken by no rule.

    Examples
    --------
    >>> layout_notes(("Et", "tL", ""))
    ('the layout ends with empty cells behind L; Megatron-LM builds the output layer in the last cell',)
    """
    notes = []
    if not cells[0] and "".join(cells).startswith("E"):
        notes.append(
            "the layout begins with empty cells before E; Megatron-LM builds the embedding in the first cell"
        )
    if not cells[-1] and "".join(cells).endswith("L"):
        notes.append(
            "the layout ends with empty cells behind L; Megatron-LM builds the output layer in the last cell"
        )
    return tuple(notes)
