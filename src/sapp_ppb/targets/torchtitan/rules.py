"""
The rules of torchtitan, over what a configuration says.

Source: ``torchtitan/distributed/pipeline_parallel.py`` (``pipeline_llm``,
``pipeline_module_split``, ``build_pipeline_schedule``) and ``activation_checkpoint.py``;
PyTorch 2.13, ``torch.distributed.pipelining.schedules``.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from sapp_ppb.costs import Recompute
from sapp_ppb.costs.checks import shown
from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules import Placement, ScheduleName, build_schedule, ops_fault
from sapp_ppb.targets.config import BrokenRule, CellTypes
from sapp_ppb.targets.torchtitan.parts import EMBEDDING, HEADS, NORM, Parts, layer_of, layers_of
from sapp_ppb.targets.torchtitan.target import SCHEDULES, micro_batch_fault, round_size

PARTS_KEY = "module_fqns_per_model_part"
SCHEDULE_KEY = "pipeline_parallel_schedule"
MODES = ("none", "full", "selective", "memory_budget")
_SINGLE = (ScheduleName.ONE_F_ONE_B, ScheduleName.GPIPE)
_ON_A_V = (ScheduleName.ZBV, ScheduleName.DUALPIPEV)
# Names that stand for no order of their own, and go with that of a file.
FAMILIES = ("PipelineScheduleSingle", "PipelineScheduleMulti")
_FAMILIES = {name.lower(): name == FAMILIES[0] for name in FAMILIES}
_BY_NAME = {text.lower(): name for name, text in SCHEDULES.items()}
_SHOWN = 5
Types = tuple[Recompute, ...]


def schedule_named(text: str) -> ScheduleName | None:
    """
    Schedule that PyTorch finds under a name, whose case it ignores; None when there is none.

    Examples
    --------
    >>> schedule_named("interleaved1f1b"), schedule_named("2F2B")
    (<ScheduleName.INTERLEAVED: 'interleaved'>, None)
    """
    return _BY_NAME.get(text.lower())


def is_single(text: str) -> bool | None:
    """
    Whether what PyTorch finds under a name runs one part a rank; None when there is nothing.

    Examples
    --------
    >>> is_single("1F1B"), is_single("PipelineScheduleMulti"), is_single("2F2B")
    (True, False, None)
    """
    if text.lower() in _FAMILIES:
        return _FAMILIES[text.lower()]
    schedule = schedule_named(text)
    return None if schedule is None else schedule in _SINGLE


def placement_of(schedule: ScheduleName | None) -> Placement:
    """Say where the parts go: rank r holds r and 2S - 1 - r on a V, else r, r + S, and so on."""
    return Placement.V if schedule in _ON_A_V else Placement.LOOP


def part_rules(parts: int, stages: int, schedule: ScheduleName | None) -> list[BrokenRule]:
    """
    Rules of the number of parts.

    Parameters
    ----------
    parts, stages
        How many parts, and ranks.
    schedule
        Schedule that runs them; None for a family of them.

    Examples
    --------
    >>> print(*part_rules(6, 4, ScheduleName.LOOPED_BFS))
    module_fqns_per_model_part: the parts must divide by pipeline_parallel_degree (got 6 parts for 4 ranks)
    """
    found = f"{parts} parts for {stages} ranks"
    if parts % stages:
        return [
            BrokenRule(key=PARTS_KEY, rule="the parts must divide by pipeline_parallel_degree", found=found)
        ]
    name = SCHEDULES.get(schedule, "") if schedule else ""
    if schedule in _SINGLE and parts != stages:
        rule = f"{name} runs one part a rank"
        return [BrokenRule(key=SCHEDULE_KEY, rule=rule, found=found, mend="use Interleaved1F1B")]
    if schedule in _ON_A_V and parts != 2 * stages:
        return [BrokenRule(key=SCHEDULE_KEY, rule=f"{name} runs exactly two parts a rank", found=found)]
    if schedule is ScheduleName.INTERLEAVED and parts == stages:
        rule = f"{name} wants at least two parts a rank"
        return [BrokenRule(key=SCHEDULE_KEY, rule=rule, found=found, mend="use 1F1B")]
    return []


def module_rules(parts: Parts, layers: int | None = None) -> list[BrokenRule]:
    """
    Rules of the lists of modules.

    Parameters
    ----------
    parts
        Names of the modules of each part.
    layers
        Layers of the model; None takes the highest that is named.

    Examples
    --------
    >>> print(*module_rules([["tok_embeddings", "layers.0"], ["layers.2", "norm", "output"]]))
    module_fqns_per_model_part: a layer in no part is dropped without a word (got layers.1 in none)
    """
    named = [index for part in parts for index in layers_of(part)]
    most = max(named, default=-1) + 1 if layers is None else layers
    return [
        BrokenRule(key=PARTS_KEY, rule=rule, found=found)
        for rule, found in (
            *_layer_faults(parts, named, most),
            *_order_faults(parts),
            *_end_faults(parts),
        )
    ]


def _layer_faults(parts: Parts, named: Sequence[int], layers: int) -> Iterator[tuple[str, str]]:
    """Every module once, and each part some."""
    if empty := [index for index, part in enumerate(parts) if not part]:
        yield "a part must hold a module", f"none in {_listed('part', empty)}"
    if missing := sorted(set(range(layers)) - set(named)):
        yield "a layer in no part is dropped without a word", f"{_layers(missing)} in none"
    if beyond := sorted({index for index in named if index >= layers}):
        yield "a layer that the model does not have is ignored", f"{_layers(beyond)} of {layers} layers"
    times = Counter(module for part in parts for module in set(part))
    if doubled := [module for module, number in times.items() if number > 1]:
        found = shown(", ".join(doubled[:_SHOWN]))
        yield "a module in two parts runs twice, with weights of its own in each", f"{found} in several"


def _order_faults(parts: Parts) -> Iterator[tuple[str, str]]:
    """Layers rise from part to part."""
    spans = [layers_of(part) for part in parts]
    before = [-1, *accumulate((max(span, default=-1) for span in spans), max)]
    late = [part for part, span in enumerate(spans) if span and span[0] < before[part]]
    if late:
        part = late[0]
        yield (
            "the layers of a part follow those of the parts before it",
            f"layers.{spans[part][0]} in part {part}, behind layers.{before[part]}",
        )


def _end_faults(parts: Parts) -> Iterator[tuple[str, str]]:
    """Find the embedding first, norm and head last."""
    yield from _place_faults(parts, (EMBEDDING,), 0, "the first part")
    yield from _place_faults(parts, HEADS, len(parts) - 1, "the last part")
    norms = [index for index, part in enumerate(parts) if NORM in part]
    last = max((index for index, part in enumerate(parts) if layers_of(part)), default=0)
    if not norms:
        yield f"{NORM} in no part is dropped without a word", "none"
    elif norms[0] < last:
        yield f"{NORM} stands behind the last layer", f"part {norms[0]} of {len(parts)}"


def _place_faults(parts: Parts, modules: Sequence[str], wanted: int, place: str) -> Iterator[tuple[str, str]]:
    found = [index for index, part in enumerate(parts) if set(modules) & set(part)]
    name = " or ".join(modules)
    if not found:
        yield f"{name} stands in {place}", "none"
    elif found != [wanted] and not (len(found) > 1 and wanted in found):
        yield f"{name} stands in {place}", f"part {found[0]} of {len(parts)}"


def module_notes(parts: Parts) -> list[str]:
    """
    Say what lists of modules hold that is odd or not modelled.

    Examples
    --------
    >>> module_notes([["vision_encoder", "tok_embeddings", "layers.1", "layers.0"], ["norm", "output"]])
    ['vision_encoder in part 0 is not priced', 'part 0 names its layers out of order; they run in order']
    """
    known = {EMBEDDING, NORM, *HEADS}
    notes = []
    for index, part in enumerate(parts):
        indices = [layer for module in part if (layer := layer_of(module)) is not None]
        notes += [
            f"{shown(module).strip(chr(39))} in part {index} is not priced"
            for module in dict.fromkeys(part)
            if module not in known and layer_of(module) is None
        ]
        if indices != sorted(indices):
            notes.append(f"part {index} names its layers out of order; they run in order")
    return notes


def micro_batch_rules(
    schedule: ScheduleName, stages: int, chunks: int, micro_batches: int
) -> list[BrokenRule]:
    """
    Say why PyTorch refuses the micro-batches.

    Examples
    --------
    >>> print(*micro_batch_rules(ScheduleName.ONE_F_ONE_B, 4, 1, 2))
    pipeline_parallel_schedule: 1F1B wants at least as many micro-batches as stages, 4 (got 2 micro-batches)
    """
    fault = micro_batch_fault(schedule, stages, micro_batches)
    if fault is None:
        fault = ops_fault(stages, chunks, micro_batches) or _build_fault(
            schedule, stages, chunks, micro_batches
        )
    if fault is None:
        return []
    rule = fault.removeprefix("torchtitan's ").split(" (got")[0]
    return [BrokenRule(key=SCHEDULE_KEY, rule=rule, found=f"{micro_batches} micro-batches")]


def _build_fault(schedule: ScheduleName, stages: int, chunks: int, micro_batches: int) -> str | None:
    group = group_of(schedule, stages, micro_batches)
    try:
        build_schedule(schedule, stages, chunks, micro_batches, group)
    except ScheduleError as error:
        return str(error)
    return None


def group_of(schedule: ScheduleName | None, stages: int, micro_batches: int | None) -> int | None:
    """
    Micro-batches that the interleaved schedule takes together; None where that is its usual number.

    Examples
    --------
    >>> group_of(ScheduleName.INTERLEAVED, 4, 10), group_of(ScheduleName.INTERLEAVED, 4, 8)
    (5, None)
    """
    if schedule is not ScheduleName.INTERLEAVED or micro_batches is None or micro_batches < stages:
        return None
    size = round_size(stages, micro_batches)
    return None if size == stages else size


def checkpoint_rules(mode: str, option: str) -> list[BrokenRule]:
    """
    Rules of activation checkpointing.

    Examples
    --------
    >>> print(*checkpoint_rules("selective", "attn"))
    selective_ac_option: must be 'op' or a number of layers (got 'attn')
    """
    if mode not in MODES:
        rule = f"must be one of {', '.join(MODES)}"
        return [BrokenRule(key="activation_checkpoint.mode", rule=rule, found=shown(mode))]
    if mode == "selective" and option != "op" and _every(option) is None:
        rule = "must be 'op' or a number of layers"
        return [BrokenRule(key="selective_ac_option", rule=rule, found=shown(option))]
    return []


def _every(option: str) -> int | None:
    return int(option) if option.isascii() and option.isdigit() and len(option) < 10 else None


def checkpoint_types(
    mode: str, option: str, layers_per_part: Sequence[int], stages: int, placement: Placement
) -> CellTypes | None:
    """
    Types of the layers of every cell, indexed ``[chunk][stage]``.

    Every n-th layer is counted over the parts of a rank, as it builds them; an n of 0
    takes every layer.

    Returns
    -------
    tuple
        None where the mode leaves them to the compiler, or is unknown.

    Examples
    --------
    Rank 0 builds layers 0 and 1, then 4 and 5, and recomputes the third of them:

    >>> types = checkpoint_types("selective", "3", [2, 2, 2, 2], 2, Placement.LOOP)
    >>> [[[r.label for r in cell] for cell in row] for row in types]
    [[['none', 'none'], ['none', 'none']], [['full', 'none'], ['full', 'none']]]
    """
    every = _every(option)
    if checkpoint_rules(mode, option) or mode == "memory_budget":
        return None
    chunks = len(layers_per_part) // stages
    rows: list[list[Types]] = [[] for _ in range(chunks)]
    for stage in range(stages):
        built = 0
        for chunk in range(chunks):
            number = layers_per_part[placement.cell_of(stage, chunk, stages)]
            rows[chunk].append(tuple(_type(mode, every, built + index + 1) for index in range(number)))
            built += number
    return tuple(tuple(row) for row in rows)


def _type(mode: str, every: int | None, position: int) -> Recompute:
    """Type of the layer that a rank builds as its first, second and so on."""
    if mode != "selective":
        return Recompute.FULL if mode == "full" else Recompute.NONE
    if every is None:
        return Recompute.SELECTIVE
    return Recompute.NONE if every and position % every else Recompute.FULL


def _layers(indices: Sequence[int]) -> str:
    more = len(indices) - _SHOWN
    words = ", ".join(f"layers.{index}" for index in indices[:_SHOWN])
    return words + (f" and {more} more" if more > 0 else "")


def _listed(word: str, indices: Sequence[int]) -> str:
    return f"{word} " + ", ".join(map(str, indices[:_SHOWN]))
