"""
What the profiles of other planners hold before they become a model.

Readers fill these and the estimation draws conclusions, so both know the same words
and neither knows the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ProfiledMemory:
    """
    Memory that Galvatron measured of one layer, or of all that is no layer on a stage.

    Attributes
    ----------
    states_mb
        Parameters, gradients and optimizer state of one device, MB, by tensor-parallel
        size; not divided over data-parallel devices.
    activation_mb
        Activation memory of one sample on one device, MB, by tensor-parallel size.
    checkpoint_mb
        The same of a layer that is recomputed in full, whole; None where not measured.
    """

    states_mb: Mapping[int, float]
    activation_mb: Mapping[int, float]
    checkpoint_mb: float | None = None


@dataclass(frozen=True, kw_only=True)
class GalvatronProfile:
    """
    What Galvatron measured of a model: times of the forward on one device, memory on several.

    Sequence lengths are one for all kinds of layers, or one a kind: ``(2048,)``, ``(512, 128)``.

    Attributes
    ----------
    source
        File of the times, for what is said of it.
    kinds
        Kinds of layers, K.
    layer_ms
        Forward of one layer and one sample, milliseconds; by kind (0 to K-1), batch size
        and that kind's sequence length.
    other_ms
        Forward of one sample through all that is no layer, milliseconds; by batch size
        and sequence lengths.
    layer_memory
        By kind and that kind's sequence length.
    first, last
        What is no layer on the first and on the last stage; by sequence lengths.
    sequence_parallel
        Whether the memory was measured with sequence parallelism.
    profiled_layers
        Layer counts of the small models that were timed, for what is said of them.
    """

    source: str
    kinds: int
    layer_ms: Mapping[tuple[int, int, int], float]
    other_ms: Mapping[tuple[int, tuple[int, ...]], float]
    layer_memory: Mapping[tuple[int, int], ProfiledMemory]
    first: Mapping[tuple[int, ...], ProfiledMemory]
    last: Mapping[tuple[int, ...], ProfiledMemory]
    sequence_parallel: bool
    profiled_layers: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GraphNode:
    """
    An operator of a PipeDream graph.

    Attributes
    ----------
    name
        Its id in the file, such as ``node4``.
    operator
        What it computes, as the file describes it.
    forward_ms, backward_ms
        Times of one minibatch, milliseconds.
    activation_mb
        Its output, MB.
    parameter_mb
        Its weights, MB.
    """

    name: str
    operator: str
    forward_ms: float
    backward_ms: float
    activation_mb: float
    parameter_mb: float

    @property
    def is_free(self) -> bool:
        """Whether it takes no time and holds nothing."""
        return not (self.forward_ms or self.backward_ms or self.activation_mb or self.parameter_mb)


@dataclass(frozen=True, kw_only=True)
class OperatorGraph:
    """
    A graph of operators without cycles.

    Attributes
    ----------
    source
        File that it was read from.
    nodes
        In the order of the file.
    inputs
        Positions in ``nodes`` whose outputs each node takes, ascending; shape (nodes,).
    """

    source: str
    nodes: tuple[GraphNode, ...]
    inputs: tuple[tuple[int, ...], ...]
