"""What the configuration of any framework says of a pipeline, and which of its rules it breaks."""

from dataclasses import dataclass

from sapp_ppb.costs import RecomputeType
from sapp_ppb.schedules import MicroBatchGroup, OrderFile, ScheduleName

# What a list of layers says of itself, for those who read it and those who write it.
LAYERS_FORMAT = "sapp-ppb-layers"
LAYERS_VERSION = 1
LAYERS_COLUMNS = ("index", "name", "stage", "chunk", "recompute")
# Type of each layer of each cell, indexed ``[chunk][stage]``, in the order of the chain.
CellTypes = tuple[tuple[tuple[RecomputeType, ...], ...], ...]


@dataclass(frozen=True, kw_only=True)
class BrokenRule:
    """
    A rule of a framework that a configuration breaks.

    Attributes
    ----------
    key
        Key, flag or place in the file.
    rule
        The rule, in the words of the framework's users.
    found
        What the file has instead.
    mend
        What to do about it; empty where the rule says it.
    """

    key: str
    rule: str
    found: str
    mend: str = ""

    def __str__(self) -> str:
        """One sentence."""
        return f"{self.key}: {self.rule} (got {self.found})" + (f"; {self.mend}" if self.mend else "")


@dataclass(frozen=True, kw_only=True)
class PipelineConfig:
    """
    A configuration, as far as it decides a pipeline.

    Attributes
    ----------
    target
        Name of the framework.
    where
        File that it stands in.
    stages, interleave, micro_batches
        S, V and M; None for what the file does not say.
    schedule, micro_batch_group, order_file
        Order of the ops; None for the framework's default.
    sequence_chunks
        Pieces that each micro-batch's sequence is cut into.
    layers
        BODY layers that it counts, those of multi-token prediction included; None when unknown.
    mtp_layers
        Those of multi-token prediction among them, the last of the chain.
    types
        Recompute type or strategy of each layer in each cell; None when the split is not known.
    memory_limit_mb
        MB a device that the file states; None where it states none.
    broken
        Rules that it breaks.
    unknown
        What is needed and not known, such as a variable of a shell, a sentence each.
    notes
        What is odd or not modelled, a sentence each.
    """

    target: str
    where: str
    stages: int | None = None
    interleave: int = 1
    micro_batches: int | None = None
    schedule: ScheduleName | None = None
    micro_batch_group: MicroBatchGroup = None
    order_file: OrderFile | None = None
    sequence_chunks: int = 1
    layers: int | None = None
    mtp_layers: int = 0
    types: CellTypes | None = None
    memory_limit_mb: float | None = None
    broken: tuple[BrokenRule, ...] = ()
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
