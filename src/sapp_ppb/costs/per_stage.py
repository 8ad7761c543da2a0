"""A quantity that is given once for all stages, or once for each."""

import math
from collections.abc import Sequence

from sapp_ppb.costs.checks import LARGEST_NUMBER

PerStage = float | tuple[float, ...]


def listed(value: PerStage | Sequence[float] | None) -> PerStage | None:
    """Turn a list into a tuple, and a list of one number into that number."""
    if not isinstance(value, Sequence):
        return value
    return value[0] if len(value) == 1 else tuple(value)


def plain(value: PerStage | None) -> PerStage | None:
    """Turn a list of equal numbers into that number, so that equal problems compare equal."""
    return value[0] if isinstance(value, tuple) and len(set(value)) == 1 else value


def spread(value: PerStage, stages: int) -> tuple[float, ...]:
    """One number for each stage; shape (S,)."""
    return value if isinstance(value, tuple) else (float(value),) * stages


# Devices of one pipeline that differ more are a slip of the pen.
_SLOWEST, _FASTEST = 1e-3, 1e3


def per_stage_faults(option: str, value: PerStage | None, lengths: tuple[int, ...], unit: str) -> list[str]:
    """
    Faults of what an option gives: each number, and how many of them.

    Examples
    --------
    >>> per_stage_faults("p2p", (1.0, -2.0), (1, 2), "ms")
    ['p2p must be a number of at least 0 ms (got -2.0)']
    """
    faults = _length_faults(option, value, lengths)
    for number in _numbers(value):
        usable = isinstance(number, int | float) and not isinstance(number, bool)
        if not usable or not 0 <= number < math.inf:
            faults.append(f"{option} must be a number of at least 0 {unit} (got {number!r})")
        elif number > LARGEST_NUMBER:
            faults.append(
                f"{option} must be at most {LARGEST_NUMBER:g} {unit} (got {number!r}); check the unit"
            )
    return faults


def speed_faults(value: PerStage | None, lengths: tuple[int, ...]) -> list[str]:
    """
    Faults of the speeds of stages: each number, and how many of them.

    Examples
    --------
    >>> speed_faults((1.0, 0.0), (2,))
    ['stage-speed must be a number from 0.001 to 1,000, 1 for a device as measured (got 0.0)']
    """
    faults = _length_faults("stage-speed", value, lengths)
    for number in _numbers(value):
        usable = isinstance(number, int | float) and not isinstance(number, bool)
        if not usable or not _SLOWEST <= number <= _FASTEST:
            faults.append(
                f"stage-speed must be a number from {_SLOWEST:g} to {_FASTEST:,.0f}, 1 for a device as "
                f"measured (got {number!r})"
            )
    return faults


def _length_faults(option: str, value: PerStage | None, lengths: tuple[int, ...]) -> list[str]:
    if not isinstance(value, tuple) or not lengths or len(value) in lengths:
        return []
    allowed = " or ".join(str(length) for length in sorted(set(lengths)))
    return [f"{option} must be one number or {allowed} of them (got {len(value)})"]


def _numbers(value: PerStage | None) -> tuple[float, ...]:
    return () if value is None else value if isinstance(value, tuple) else (value,)
