"""Numbers that stand in a text, which must be written as people and programs write them."""

import re

from sapp_ppb.costs.checks import number_fault, shown

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def number_of(field: str, text: str, *, above_zero: bool = False) -> tuple[float, str | None]:
    """
    Read a number, and say in one sentence what is wrong with it; it is 0 when something is.

    Examples
    --------
    >>> number_of("forward_ms", " 1.5e1 ")
    (15.0, None)
    >>> number_of("forward_ms", "nan")
    (0.0, "forward_ms must be a number of at least 0 (got 'nan')")
    """
    if _NUMBER.fullmatch(text.strip()) is None:
        wanted = "a number above 0" if above_zero else "a number of at least 0"
        return 0.0, f"{field} must be {wanted} (got {shown(text.strip())})"
    number = float(text)
    fault = number_fault(field, number, above_zero=above_zero)
    return (0.0, fault) if fault else (number, None)
