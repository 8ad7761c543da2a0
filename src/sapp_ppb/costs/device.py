"""An accelerator, as far as an estimate needs to know it."""

from dataclasses import dataclass

from sapp_ppb.costs.checks import count_fault, number_fault, shown, text_fault
from sapp_ppb.errors import InputError

NUMBERS = (
    "peak_tflop_per_s",
    "achievable_fraction",
    "memory_mb",
    "memory_gb_per_s",
    "link_gb_per_s",
    "network_gb_per_s",
)


@dataclass(frozen=True, kw_only=True)
class Device:
    """
    Speeds and memory of one device.

    Attributes
    ----------
    name
        Name for people.
    peak_tflop_per_s
        Dense matrix products in bf16 or fp16, 10^12 operations per second, as the maker says it.
    achievable_fraction
        Share of the peak that large matrix products reach, above 0 and at most 1.
    memory_mb
        Memory, MB of 2^20 bytes.
    memory_gb_per_s
        Speed of the memory, 10^9 bytes per second.
    link_gb_per_s, network_gb_per_s
        What a device sends per second in a collective, 10^9 bytes in one direction: within
        a node, and between nodes.
    devices_per_node
        Devices that are linked directly.

    Raises
    ------
    InputError
        If a value is not allowed, with all faults at once.

    Examples
    --------
    >>> device = Device(name="half of an A100", peak_tflop_per_s=156, achievable_fraction=0.5,
    ...                 memory_mb=40960, memory_gb_per_s=1000, link_gb_per_s=100, network_gb_per_s=10)
    >>> device.work_ms(flops=78e9, moved_bytes=0.5e9)  # 78e9 / (0.5 x 156e12) against 0.5e9 / 1e12
    1.0
    >>> device.send_ms(1e9, group=8), device.send_ms(1e9, group=16)
    (10.0, 100.0)
    """

    name: str
    peak_tflop_per_s: float
    achievable_fraction: float
    memory_mb: float
    memory_gb_per_s: float
    link_gb_per_s: float
    network_gb_per_s: float
    devices_per_node: int = 8

    def __post_init__(self) -> None:
        """Check every field, then keep one form of each number."""
        checks = [text_fault("name", self.name)]
        checks += [number_fault(key, getattr(self, key), above_zero=True) for key in NUMBERS]
        checks += [count_fault("devices_per_node", self.devices_per_node)]
        checks += [_share_fault(self.achievable_fraction)]
        faults = [fault for fault in checks if fault]
        if faults:
            raise InputError(f"device {shown(self.name)}", faults)
        for key in NUMBERS:
            object.__setattr__(self, key, float(getattr(self, key)))

    def work_ms(self, *, flops: float, moved_bytes: float) -> float:
        """Milliseconds of work that is limited by computing or by memory, whichever is slower."""
        compute_s = flops / (self.peak_tflop_per_s * self.achievable_fraction * 1e12)
        return 1e3 * max(compute_s, moved_bytes / (self.memory_gb_per_s * 1e9))

    def send_ms(self, sent_bytes: float, *, group: int) -> float:
        """Milliseconds of sending within a group of neighbours; slower where it exceeds a node."""
        speed = self.link_gb_per_s if group <= self.devices_per_node else self.network_gb_per_s
        return 1e3 * sent_bytes / (speed * 1e9)


def _share_fault(value: float) -> str | None:
    """Fault of a share that is a number, and more than the whole."""
    if number_fault("", value) or value <= 1:
        return None
    return f"achievable_fraction must be at most 1 (got {shown(value)})"
