"""
A part of a layer, such as one projection: all that it costs, in one place.

What a layer holds, how long it takes and what recomputing it saves and costs are sums over
its parts.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sapp_ppb.costs import Recompute
from sapp_ppb.costs.device import Device
from sapp_ppb.estimation.setup import TrainingSetup

BYTES = 2  # of a weight or activation in bf16 and fp16
MB = 2**20
# Which parts each type does again; FULL does all of them.
_AGAIN = {
    Recompute.NONE: frozenset[Recompute](),
    Recompute.SELECTIVE: frozenset({Recompute.SELECTIVE}),
    Recompute.COMM: frozenset({Recompute.COMM}),
    Recompute.BOTH: frozenset({Recompute.SELECTIVE, Recompute.COMM}),
}


@dataclass(frozen=True, kw_only=True)
class Part:
    """
    What one part of a layer costs on one device, for the forward of one micro-batch.

    Attributes
    ----------
    name
        Name, for people.
    parameters
        Parameters in the whole model.
    share
        Which share of them one device has; the rest is on its neighbours.
    is_expert
        Whether they belong to experts, which fewer data-parallel devices repeat.
    is_copy
        Whether they are counted elsewhere in the model and only held here once more.
    flops
        Operations of matrix products, two for each multiplication and addition.
    moved_bytes
        Bytes read from and written to memory.
    tensor_bytes, expert_bytes
        Bytes sent to neighbours of tensor and of expert parallelism.
    kept_bytes
        Activations that the backward needs, whatever is recomputed inside the layer.
    output_bytes
        Activations that need not be kept when this part is done again.
    again
        Type that does this part again, SELECTIVE or COMM; None: only FULL does.
    is_outside
        Whether not even FULL does it again.
    """

    name: str
    parameters: int = 0
    share: float = 1.0
    is_expert: bool = False
    is_copy: bool = False
    flops: float = 0.0
    moved_bytes: float = 0.0
    tensor_bytes: float = 0.0
    expert_bytes: float = 0.0
    kept_bytes: float = 0.0
    output_bytes: float = 0.0
    again: Recompute | None = None
    is_outside: bool = False

    def is_done_again(self, recompute: Recompute) -> bool:
        """Whether a type does this part again."""
        if recompute is Recompute.FULL:
            return not self.is_outside
        return self.again in _AGAIN[recompute]


def parameter_count(parts: Iterable[Part]) -> int:
    """Parameters that the parts add to the model."""
    return sum(part.parameters for part in parts if not part.is_copy)


def parameter_mb(parts: Iterable[Part], setup: TrainingSetup) -> float:
    """
    Weights, gradients and optimizer states that one device holds, MB.

    What ZeRO shares is divided by the data-parallel devices that repeat the same parameters,
    which for experts are ``data / expert`` [1]_.

    References
    ----------
    .. [1] Rajbhandari et al., SC 2020, arXiv:1910.02054, figure 1.

    Examples
    --------
    >>> setup = TrainingSetup(sequence_length=1, data=4, zero=1)
    >>> parameter_mb([Part(name="x", parameters=2**20)], setup)  # 2 + 4 + 12 / 4
    9.0
    """
    weight, gradient, state = setup.dtype.bytes_per_parameter
    total = 0.0
    for part in parts:
        repeats = setup.data // setup.expert if part.is_expert else setup.data
        shared = [repeats if setup.zero >= stage else 1 for stage in (3, 2, 1)]
        each = weight / shared[0] + gradient / shared[1] + state / shared[2]
        total += part.parameters * part.share * each
    return total / MB


def activation_mb(parts: Iterable[Part], recompute: Recompute, input_bytes: float) -> float:
    """
    Activations of one micro-batch that a layer keeps for its backward, MB.

    Parameters
    ----------
    input_bytes
        What the layer begins with; FULL keeps this, and the parts outside.

    Examples
    --------
    >>> parts = [Part(name="x", kept_bytes=3 * MB, output_bytes=MB, again=Recompute.COMM)]
    >>> [activation_mb(parts, r, 0.5 * MB) for r in Recompute]
    [4.0, 4.0, 3.0, 3.0, 0.5]
    """
    if recompute is Recompute.FULL:
        outside = sum(part.kept_bytes + part.output_bytes for part in parts if part.is_outside)
        return (input_bytes + outside) / MB
    kept = sum(
        part.kept_bytes + (0.0 if part.is_done_again(recompute) else part.output_bytes) for part in parts
    )
    return kept / MB


@dataclass(frozen=True, kw_only=True)
class Times:
    """
    Milliseconds of a layer's forward and of its backward by recompute type.

    Attributes
    ----------
    forward_ms
        Computing and sending.
    backward_ms
        By Recompute, shape (5,).
    weight_grad_ms
        Part of the backward that makes the gradients of weights.
    """

    forward_ms: float
    backward_ms: tuple[float, ...]
    weight_grad_ms: float


def layer_times(parts: Iterable[Part], setup: TrainingSetup, device: Device) -> Times:
    """
    Time a layer: each part at the speed of its slowest resource, one after the other.

    The backward computes twice what the forward does, for the gradients of inputs and of weights,
    and sends as much.  What a recompute type does again takes its forward time again, sending included.

    Examples
    --------
    >>> device = Device(name="d", peak_tflop_per_s=1, achievable_fraction=1, memory_mb=1,
    ...                 memory_gb_per_s=1, link_gb_per_s=1, network_gb_per_s=1)
    >>> parts = [Part(name="norm", moved_bytes=1e6, tensor_bytes=2e6, again=Recompute.COMM),
    ...          Part(name="matrix", parameters=1, flops=4e9, moved_bytes=1e6)]
    >>> times = layer_times(parts, TrainingSetup(sequence_length=1), device)
    >>> times.forward_ms, times.backward_ms  # 1 + 2 + 4; 2 * 5 + 2, then 3 or all 7 again
    (7.0, (12.0, 12.0, 15.0, 15.0, 19.0))
    >>> times.weight_grad_ms
    4.0
    """
    works = [
        (
            part,
            device.work_ms(flops=part.flops, moved_bytes=part.moved_bytes),
            device.send_ms(part.tensor_bytes, group=setup.tensor)
            + device.send_ms(part.expert_bytes, group=setup.tensor * setup.expert),
        )
        for part in parts
    ]
    base = sum(2 * work + send for _, work, send in works)
    extra = [sum(work + send for part, work, send in works if part.is_done_again(r)) for r in Recompute]
    return Times(
        forward_ms=sum(work + send for _, work, send in works),
        backward_ms=tuple(base + again for again in extra),
        weight_grad_ms=sum(work for part, work, _ in works if part.parameters and part.flops),
    )
