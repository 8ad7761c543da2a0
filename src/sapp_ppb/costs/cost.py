"""The costs of a layer, and which of them a file may mark as estimated."""

from collections.abc import Iterable
from enum import Enum

ESTIMATE, MEASURED = "estimate", "measured"
"""What ``source`` of a model file may say of a cost."""


class Cost(Enum):
    """
    One cost of a layer; its value is the key that says it in a model file.

    The keys of the other recompute types belong to the cost of NONE: an activation memory
    that is estimated is so for every type.

    Examples
    --------
    >>> Cost.ACTIVATION.value, Cost.ACTIVATION.is_time
    ('memory_activation', False)
    """

    FORWARD = "time"
    BACKWARD = "backward_time"
    WEIGHT_GRAD = "weight_grad_time"
    PARAMETER = "memory_parameter"
    ACTIVATION = "memory_activation"

    @property
    def is_time(self) -> bool:
        """Whether this is a time; else it is a memory."""
        return self in (Cost.FORWARD, Cost.BACKWARD, Cost.WEIGHT_GRAD)


NOTHING: frozenset[Cost] = frozenset()
EVERYTHING = frozenset(Cost)


def estimated_words(costs: Iterable[Cost]) -> str:
    """
    Say what is estimated; nothing where nothing is.

    Examples
    --------
    >>> estimated_words([Cost.FORWARD]), estimated_words(Cost), estimated_words([])
    ('times are estimates', 'times and memory are estimates', '')
    """
    kinds = {cost.is_time for cost in costs}
    said = {True: "times", False: "memory"}
    words = " and ".join(said[kind] for kind in (True, False) if kind in kinds)
    if not words:
        return ""
    return f"{words} {'are estimates' if True in kinds else 'is an estimate'}"
