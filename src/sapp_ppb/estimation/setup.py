"""How a transformer is trained, as far as the cost of a layer depends on it."""

from dataclasses import dataclass
from enum import Enum

from sapp_ppb.costs.architecture import Architecture, Block, Experts
from sapp_ppb.costs.checks import count_fault, shown
from sapp_ppb.errors import InputError


class DType(Enum):
    """
    Type of weights and activations, and what a parameter costs with it.

    Weights take 2 bytes.  With bf16 gradients are added up in fp32, 4 bytes; with fp16 they
    are kept in 2, and the optimizer has them in fp32 besides.  Master weights and both Adam
    moments are fp32: 12 bytes with bf16 and 16 with fp16 [1]_.

    References
    ----------
    .. [1] Megatron-LM, docs/source/api-guide/dist_optimizer: theoretical memory of 18 and 20 bytes
       for a parameter, 6 + 12/d and 4 + 16/d where d devices share the optimizer.

    Examples
    --------
    >>> DType.BF16.bytes_per_parameter, DType.FP16.bytes_per_parameter
    ((2, 4, 12), (2, 2, 16))
    """

    BF16 = "bf16"
    FP16 = "fp16"

    @property
    def bytes_per_parameter(self) -> tuple[int, int, int]:
        """Bytes of weight, gradient and optimizer state."""
        return (2, 4, 12) if self is DType.BF16 else (2, 2, 16)


@dataclass(frozen=True, kw_only=True)
class TrainingSetup:
    """
    Sizes of a micro-batch, and how a layer is spread over devices.

    Attributes
    ----------
    sequence_length, micro_batch
        Tokens of a sequence, and sequences of a micro-batch.
    tensor, data, expert
        Devices that share a layer's matrices, that run other data, and of these that share
        the experts; experts are split over ``tensor`` too.
    zero
        What the ``data`` devices share: 0 nothing, 1 optimizer states, 2 gradients too,
        3 weights too.
    sequence_parallel
        Whether what tensor parallelism leaves whole is split over the sequence.
    flash
        Whether the attention never writes its scores to memory (FlashAttention).
    dtype
        Type of weights and activations.

    Raises
    ------
    InputError
        If a value is not allowed, with all faults at once.

    Examples
    --------
    >>> TrainingSetup(sequence_length=4096, micro_batch=2, tensor=8).tokens
    8192
    """

    sequence_length: int
    micro_batch: int = 1
    tensor: int = 1
    data: int = 1
    expert: int = 1
    zero: int = 1
    sequence_parallel: bool = True
    flash: bool = True
    dtype: DType = DType.BF16

    def __post_init__(self) -> None:
        """Check every field."""
        sizes = ("sequence_length", "micro_batch", "tensor", "data", "expert")
        faults = [fault for key in sizes if (fault := count_fault(key, getattr(self, key)))]
        if self.zero not in (0, 1, 2, 3) or isinstance(self.zero, bool):
            faults.append(f"zero must be 0, 1, 2 or 3 (got {shown(self.zero)})")
        if not faults and self.data % self.expert:
            faults.append(f"expert must divide data {self.data} (got {self.expert})")
        if faults:
            raise InputError("training setup", faults)

    @property
    def tokens(self) -> int:
        """Tokens of a micro-batch."""
        return self.sequence_length * self.micro_batch

    @property
    def sequence_split(self) -> int:
        """Devices over which the sequence is split where tensor parallelism leaves it whole."""
        return self.tensor if self.sequence_parallel else 1


def check_fit(architecture: Architecture, setup: TrainingSetup) -> None:
    """
    Refuse a setup that does not divide what it has to divide.

    Raises
    ------
    InputError
        With every reason.
    """
    faults = []
    if setup.sequence_parallel and setup.sequence_length % setup.tensor:
        faults.append(
            f"tensor must divide sequence_length {setup.sequence_length} with sequence parallelism "
            f"(got {setup.tensor})"
        )
    for block in architecture.blocks:
        faults += _faults_of(block, setup)
    if faults:
        raise InputError(f"training setup of {architecture.name}", list(dict.fromkeys(faults)))


def _faults_of(block: Block, setup: TrainingSetup) -> list[str]:
    faults = []
    attention, network = block.attention, block.feed_forward
    if attention.heads % setup.tensor:
        faults.append(f"tensor must divide the {attention.heads} heads (got {setup.tensor})")
    if attention.kv_heads % setup.tensor and setup.tensor % attention.kv_heads:
        faults.append(
            f"tensor must divide the {attention.kv_heads} heads of keys and values, or be a multiple of them "
            f"(got {setup.tensor})"
        )
    if network.width % setup.tensor:
        faults.append(f"tensor must divide the inner width {network.width} (got {setup.tensor})")
    if isinstance(network, Experts) and network.count % setup.expert:
        faults.append(f"expert must divide the {network.count} experts (got {setup.expert})")
    return faults
