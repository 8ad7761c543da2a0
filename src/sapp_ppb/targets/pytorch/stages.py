"""
The stages that a model is cut into for PyTorch, and the names of the cuts.

A stage index is a place along the chain.  Source: PyTorch 2.13,
``torch/distributed/pipelining/_utils.py`` (``generate_stage_to_rank_mapping``),
``_IR.py`` (``SplitPoint``).
"""

from collections.abc import Sequence
from itertools import pairwise

from sapp_ppb.costs.checks import shown
from sapp_ppb.schedules import Placement
from sapp_ppb.targets.config import BrokenRule
from sapp_ppb.targets.torchtitan.parts import HEADS, NORM, layer_of

KEY, CUTS = "PIPELINE_STAGES", "SPLIT_SPEC"
_BEHIND = (NORM, *HEADS, "head", "ln_f")  # what may begin a stage that has no layer
# Rank, first layer, and the layer behind the last.
Stage = tuple[int, int, int]


def stages_of(layers_per_cell: Sequence[int], ranks: int, placement: Placement) -> list[Stage]:
    """
    Rank and layers of every stage index.

    Examples
    --------
    >>> stages_of([2, 1, 1, 2], 2, Placement.V)
    [(0, 0, 2), (1, 2, 3), (1, 3, 4), (0, 4, 6)]
    """
    stages, start = [], 0
    for index, number in enumerate(layers_per_cell):
        stages.append((placement.stage_of(index, ranks), start, start + number))
        start += number
    return stages


def placement_of(ranks: Sequence[int]) -> tuple[int, Placement] | None:
    """
    Count the ranks, and say how the stages lie on them; None where they lie otherwise.

    Examples
    --------
    >>> placement_of([0, 1, 1, 0]), placement_of([0, 1, 0, 1]), placement_of([0, 0, 1])
    ((2, <Placement.V: 'v'>), (2, <Placement.LOOP: 'loop'>), None)
    """
    number = max(ranks, default=0) + 1
    if len(ranks) % number:
        return None
    for placement in (Placement.LOOP, Placement.V):
        if placement is Placement.V and len(ranks) != 2 * number:
            continue
        if all(placement.stage_of(index, number) == rank for index, rank in enumerate(ranks)):
            return number, placement
    return None


def cuts_of(stages: Sequence[Stage]) -> list[str]:
    """
    Modules before which the model is cut.

    Examples
    --------
    >>> cuts_of([(0, 0, 2), (1, 2, 3), (2, 3, 3)])  # the last stage holds no layer, and begins with the norm
    ['layers.2', 'norm']
    """
    layers = stages[-1][2] if stages else 0
    return [f"layers.{first}" if first < layers else NORM for _, first, _ in stages[1:]]


def stage_rules(stages: Sequence[Stage], layers: int | None = None) -> list[BrokenRule]:
    """
    Rules of the layers of the stages.

    Parameters
    ----------
    layers
        Layers of the model; None where they are not known.

    Examples
    --------
    >>> print(*stage_rules([(0, 0, 2), (1, 3, 5)]))
    PIPELINE_STAGES: every layer must stand in one stage, in order (got stage 1 from layer 3, behind layer 1)
    """
    broken = []
    bounds = [(0, 0, 0), *stages]
    for index, (before, stage) in enumerate(pairwise(bounds)):
        if stage[1] != before[2] or stage[2] < stage[1]:
            rule = "every layer must stand in one stage, in order"
            found = f"stage {index} from layer {stage[1]}, behind layer {before[2] - 1}"
            return [BrokenRule(key=KEY, rule=rule, found=found)]
    bare = [index for index, (_, first, stop) in enumerate(stages) if first == stop]
    inner = [index for index in bare if index not in (0, len(stages) - 1)]
    if inner:
        broken.append(
            BrokenRule(key=KEY, rule="a stage must hold a module", found=f"none in stage {inner[0]}")
        )
    if layers is not None and stages[-1][2] != layers:
        found = f"{stages[-1][2]} of {layers} layers"
        broken.append(BrokenRule(key=KEY, rule="the stages must hold all layers", found=found))
    return broken


def layers_of_cuts(cuts: Sequence[tuple[str, str]], layers: int | None) -> list[int] | None:
    """
    Layers of every stage that cuts make; None when the layers of the model are not known.

    Parameters
    ----------
    cuts
        Name of a module, and ``BEGINNING`` or ``END`` of it.

    Raises
    ------
    ValueError
        If a cut is at no layer, or the cuts do not rise; a sentence.

    Examples
    --------
    >>> layers_of_cuts([("layers.2", "BEGINNING"), ("layers.3", "END")], 6)
    [2, 2, 2]
    """
    starts: list[int | None] = []
    for module, point in cuts:
        index = layer_of(module)
        if index is not None:
            starts.append(index + (point == "END"))
        elif module in _BEHIND and point == "BEGINNING":
            starts.append(layers)
        else:
            raise ValueError(f"a cut must be at a layer, layers.N (got {shown(module)})")
    if layers is None:
        return None
    bounds = [0, *(start if start is not None else layers for start in starts), layers]
    if any(high < low for low, high in pairwise(bounds)):
        raise ValueError(
            f"cuts must rise, up to {layers} layers (got {shown(', '.join(name for name, _ in cuts))})"
        )
    return [high - low for low, high in pairwise(bounds)]
