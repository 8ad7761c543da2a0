"""Micro-batches of a step, and the groups in which they come, in a configuration of Megatron-LM."""

from sapp_ppb.readers.frameworks.megatron_values import BATCH, Values
from sapp_ppb.targets.config import BrokenRule
from sapp_ppb.targets.megatron.flags import GROUP_SIZE
from sapp_ppb.targets.megatron.split import group_rules


def micro_batches_of(values: Values, stages: int | None) -> tuple[int | None, list[BrokenRule], list[str]]:
    """Micro-batches of a step, rules of the batch that are broken, and what is missing."""
    numbers, advice = values.numbers, "give --micro-batches"
    batch, size = numbers.get("global-batch-size"), numbers.get("micro-batch-size")
    if any(name in values.unknown for name in BATCH):
        return None, [], [f"the number of micro-batches does not follow from the file; {advice}"]
    broken = [
        BrokenRule(key=f"--{name}", rule="must be larger than 0", found=str(numbers[name]))
        for name in BATCH
        if name in numbers and numbers[name] <= 0
    ]
    if broken:
        return None, broken, [f"the number of micro-batches does not follow from the file; {advice}"]
    if size is not None and batch is None:
        return 1, [], []
    if size is None or batch is None:
        return None, [], [f"--global-batch-size and --micro-batch-size are not given; {advice}"]
    if stages is None or "nproc-per-node" not in numbers:
        sizes = f"global batch of {batch} by the micro-batch size of {size}"
        fault = f"{sizes} and the data-parallel size, which the file does not say"
        return None, [], [f"the number of micro-batches is the {fault}; {advice}"]
    return _of_world(values, stages, batch, size)


def _of_world(
    values: Values, stages: int, batch: int, size: int
) -> tuple[int | None, list[BrokenRule], list[str]]:
    """Micro-batches where the number of devices is known."""
    numbers = values.numbers
    world = numbers.get("nnodes", 1) * numbers["nproc-per-node"]
    model = stages * numbers.get("tensor-model-parallel-size", 1) * numbers.get("context-parallel-size", 1)
    if world % model:
        rule = f"devices must be a multiple of tensor, pipeline and context-parallel size, {model}"
        return None, [BrokenRule(key="--nproc-per-node", rule=rule, found=str(world))], []
    step = size * (world // model)
    if batch % step:
        rule = f"must be a multiple of micro-batch size by data-parallel size, {size} x {world // model}"
        return None, [BrokenRule(key="--global-batch-size", rule=rule, found=str(batch))], []
    return batch // step, [], []


def group_of(
    values: Values, stages: int | None, chunks: int, micro_batches: int | None
) -> tuple[int | None, list[BrokenRule]]:
    """Micro-batch group where it counts, and its rules where they can be asked."""
    group = values.numbers.get(GROUP_SIZE)
    if chunks == 1:
        return None, []
    asked = stages is not None and micro_batches is not None and GROUP_SIZE not in values.unknown
    if not asked or stages is None or micro_batches is None:
        return group, []
    return group, group_rules(stages, micro_batches, stages if group is None else group)
