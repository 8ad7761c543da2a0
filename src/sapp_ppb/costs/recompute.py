"""
The five recompute types: what each costs by default and what files call it.

One table holds all of it, so that a reader, a writer and a target can not
disagree about a type's name or about the list in which MindFormers counts it.
"""

from enum import IntEnum
from typing import NamedTuple, Self

from sapp_ppb.errors import InputError


class _Facts(NamedTuple):
    label: str
    default_coefficient: float  # extra backward time as a share of the backward time
    memory_key: str
    coefficient_key: str
    time_key: str
    mindformers_lists: tuple[str, ...]


class Recompute(IntEnum):
    """
    How much of a layer's forward is done again during its backward.

    The order is that of the extra time: NONE keeps every activation, FULL
    keeps only the layer's input.

    Examples
    --------
    >>> Recompute.FULL.default_coefficient  # backward is 2 x forward, so 0.5 of it is one forward
    0.5
    >>> Recompute.from_label("both").memory_key
    'memory_both_comm_select'
    """

    NONE = 0
    SELECTIVE = 1
    COMM = 2
    BOTH = 3
    FULL = 4

    @property
    def label(self) -> str:
        """Name in plan files, tables and options."""
        return _FACTS[self].label

    @property
    def default_coefficient(self) -> float:
        """Extra backward time as a share of the backward time, where a file gives none."""
        return _FACTS[self].default_coefficient

    @property
    def memory_key(self) -> str:
        """Key of the activation memory in a model file."""
        return _FACTS[self].memory_key

    @property
    def coefficient_key(self) -> str:
        """Key of the coefficient in a model file."""
        return _FACTS[self].coefficient_key

    @property
    def time_key(self) -> str:
        """Key of the explicit backward time in a model file."""
        return _FACTS[self].time_key

    @property
    def mindformers_lists(self) -> tuple[str, ...]:
        """MindFormers YAML lists that count a layer of this type; empty for NONE."""
        return _FACTS[self].mindformers_lists

    @classmethod
    def from_label(cls, label: str) -> Self:
        """
        Type of a label such as ``"full"``.

        Raises
        ------
        InputError
            If no type has this label; the message lists those that exist.
        """
        for recompute in cls:
            if recompute.label == label:
                return recompute
        allowed = ", ".join(recompute.label for recompute in cls)
        raise InputError("recompute type", [f"{label!r} is unknown; one of {allowed}"])


_FACTS = {
    Recompute.NONE: _Facts("none", 0.0, "memory_activation", "backward_coef", "backward_time", ()),
    Recompute.SELECTIVE: _Facts(
        "selective", 0.04, "memory_select_rec", "select_rec_coef", "select_rec_time", ("select_recompute",)
    ),
    Recompute.COMM: _Facts(
        "comm",
        0.125,
        "memory_select_comm",
        "select_comm_coef",
        "select_comm_time",
        ("select_comm_recompute",),
    ),
    Recompute.BOTH: _Facts(
        "both",
        0.165,
        "memory_both_comm_select",
        "both_comm_select_coef",
        "both_comm_select_time",
        ("select_recompute", "select_comm_recompute"),
    ),
    Recompute.FULL: _Facts(
        "full",
        0.5,
        "memory_recompute",
        "recompute_coef",
        "recompute_time",
        ("recompute", "select_recompute", "select_comm_recompute"),
    ),
}
