"""Strategies: what a layer may do beside recomputation, each with a name that the model gives it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from sapp_ppb.costs.checks import number_fault, shown, text_fault
from sapp_ppb.costs.recompute import Recompute
from sapp_ppb.errors import InputError

MOST_STRATEGIES = 8
_LONGEST_NAME = 40


class Strategy(int):
    """
    Number of a strategy among a model's types, behind the five of ``Recompute``, with its name.

    It is used wherever a recompute type is; strategies of the same number are equal
    only if their names are.

    Examples
    --------
    >>> swap = Strategy(5, "swap")
    >>> swap.label, swap + 0, swap == Strategy(5, "offload")
    ('swap', 5, False)
    """

    label: str

    def __new__(cls, number: int, label: str) -> Self:
        """Make a number with a name."""
        made = super().__new__(cls, number)
        made.label = label
        return made

    @property
    def mindformers_lists(self) -> tuple[str, ...]:
        """MindFormers YAML lists that count a layer of this type: none."""
        return ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Strategy) and other.label != self.label:
            return False
        return int.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return int.__hash__(self)

    def __repr__(self) -> str:
        return f"<Strategy {self.label!r}: {int(self)}>"

    def __getnewargs__(self) -> tuple[int, str]:  # type: ignore[override]  # for copies and other processes
        return int(self), self.label


# What a plan may choose for a layer.
RecomputeType = Recompute | Strategy


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerStrategy:
    """
    What a strategy costs one layer.

    Attributes
    ----------
    name
        Its name in plan files, tables and options; none of the five recompute types has it.
    backward_ms
        Backward time of the layer under it, milliseconds, what it adds included.
    activation_mb
        Activation memory of the layer and one micro-batch on the device, MB; a 0 is a value.

    Raises
    ------
    InputError
        If a value is not allowed, with all faults at once.

    Examples
    --------
    >>> LayerStrategy(name="full", backward_ms=1, activation_mb=1)
    Traceback (most recent call last):
    sapp_ppb.errors.InputError: strategy 'full': name is that of a recompute type; choose another (got 'full')
    """

    name: str
    backward_ms: float
    activation_mb: float

    def __post_init__(self) -> None:
        """Check every field."""
        checks = [
            name_fault("name", self.name),
            number_fault("backward_ms", self.backward_ms),
            number_fault("activation_mb", self.activation_mb),
        ]
        faults = [fault for fault in checks if fault]
        if faults:
            raise InputError(f"strategy {shown(self.name)}", faults)


def name_fault(field: str, value: object) -> str | None:
    """
    Fault of a strategy's name, which stands in lists with commas beside the recompute types.

    Examples
    --------
    >>> name_fault("name", "a,b")
    "name must be text without commas and blanks at its ends (got 'a,b')"
    """
    fault = text_fault(field, value)
    if fault or not isinstance(value, str):
        return fault
    if "," in value or value != value.strip():
        return f"{field} must be text without commas and blanks at its ends (got {shown(value)})"
    if len(value) > _LONGEST_NAME:
        return f"{field} must be at most {_LONGEST_NAME} characters long (got {len(value)})"
    if value.casefold() in [recompute.label for recompute in Recompute]:
        return f"{field} is that of a recompute type; choose another (got {shown(value)})"
    return None


def names_faults(names: object) -> list[str]:
    """
    Faults of the names of strategies: each alone, and that they differ.

    Examples
    --------
    >>> names_faults(("swap", "swap"))
    ["strategies must have unique names (got 'swap' 2 times)"]
    """
    if not isinstance(names, tuple | list):
        return [f"strategies must be a tuple of names (got {shown(names)})"]
    faults = [fault for name in names if (fault := name_fault("strategies", name))]
    if faults:
        return faults
    faults += [
        f"strategies must have unique names (got {shown(name)} {times} times)"
        for name, times in Counter(names).items()
        if times > 1
    ]
    if len(names) > MOST_STRATEGIES:
        faults.append(f"strategies must be at most {MOST_STRATEGIES} (got {len(names)})")
    return faults


@lru_cache(maxsize=64)
def numbered(names: tuple[str, ...]) -> tuple[RecomputeType, ...]:
    """
    List the five recompute types and, behind them, strategies in a given order.

    Examples
    --------
    >>> [recompute.label for recompute in numbered(("swap",))]
    ['none', 'selective', 'comm', 'both', 'full', 'swap']
    """
    return (*Recompute, *(Strategy(len(Recompute) + index, name) for index, name in enumerate(names)))


def type_named(label: str, types: Sequence[RecomputeType]) -> RecomputeType:
    """
    Type of a label such as ``"full"``.

    Raises
    ------
    InputError
        If no type has this label; the message lists those that exist.

    Examples
    --------
    >>> int(type_named("swap", numbered(("swap",))))
    5
    """
    for recompute in types:
        if recompute.label == label:
            return recompute
    allowed = ", ".join(recompute.label for recompute in types)
    raise InputError("recompute type", [f"{label!r} is unknown; one of {allowed}"])
