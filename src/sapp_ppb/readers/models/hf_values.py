"""Values of a configuration by their keys, with what is wrong about them gathered on the way."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sapp_ppb.costs.checks import LARGEST_COUNT, count_fault, shown


@dataclass
class Values:
    """
    One object of a configuration.

    A value that is missing or not allowed is a fault and reads as 1, so that the others are
    still looked at.

    Attributes
    ----------
    raw
        The object as the file gives it; a key that is null counts as not given.
    prefix
        Its place in the file.
    outer
        An object around it whose keys hold where it says nothing.
    faults, notes
        What was found so far, one sentence each.

    Examples
    --------
    >>> values = Values({"hidden_size": 64, "vocab_size": -3})
    >>> values.count("hidden_size"), values.count("vocab_size"), values.count("num_hidden_layers")
    (64, 1, 1)
    >>> values.faults
    ['vocab_size must be an integer of at least 1 (got -3)', 'num_hidden_layers is missing']
    """

    raw: Mapping[str, object]
    prefix: str = ""
    outer: Mapping[str, object] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def get(self, key: str) -> object:
        """Value as it is given; None where it is not."""
        value = self.raw.get(key)
        return self.outer.get(key) if value is None else value

    def fault(self, key: str, words: str) -> None:
        """Add a fault of one key."""
        self.faults.append(f"{self.prefix}{key} {words}")

    def count(self, key: str, *, default: int | None = None, most: int = LARGEST_COUNT) -> int:
        """Integer of at least 1."""
        value = self.get(key)
        if value is None and default is not None:
            return default
        if value is None:
            self.fault(key, "is missing")
            return 1
        fault = count_fault(f"{self.prefix}{key}", value)
        if fault is None and isinstance(value, int) and value <= most:
            return value
        self.faults.append(fault or f"{self.prefix}{key} must be at most {most} (got {shown(value)})")
        return 1

    def whole(self, key: str, *, default: int, most: int = LARGEST_COUNT) -> int:
        """Integer of at least 0."""
        value = self.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            self.fault(key, f"must be an integer from 0 to {most} (got {shown(value)})")
            return default
        return value

    def flag(self, key: str) -> bool:
        """Whether something is so; not, where nothing is said of it."""
        value = self.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        self.fault(key, f"must be true or false (got {shown(value)})")
        return False

    def indices(self, key: str, end: int) -> tuple[int, ...]:
        """Integers from 0 to below an end; none where nothing is said of them."""
        value = self.get(key)
        if value is None:
            return ()
        listed = value if isinstance(value, list) else None
        if listed is None or any(isinstance(i, bool) or not isinstance(i, int) for i in listed):
            self.fault(key, f"must be a list of layer numbers (got {shown(value)})")
            return ()
        beyond = [index for index in listed if not 0 <= index < end]
        if beyond:
            self.fault(key, f"must hold numbers from 0 to {end - 1} (got {shown(beyond)})")
        return tuple(listed)
