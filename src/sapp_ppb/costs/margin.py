"""What is kept free of a memory limit: MB, or a share of the limit as text."""

import math

from sapp_ppb.costs.checks import LARGEST_NUMBER, shown


def margin_share(text: str) -> float:
    """
    Share that a text such as ``"5%"`` means; not a number for any other text.

    Examples
    --------
    >>> margin_share("5%"), margin_share("five")
    (0.05, nan)
    """
    number = text.strip()
    try:
        return (
            float(number.removesuffix("%")) / 100 if number.endswith("%") and "_" not in number else math.nan
        )
    except ValueError:
        return math.nan


def margin_faults(margin: object) -> list[str]:
    """
    Faults of a margin.

    Examples
    --------
    >>> margin_faults("5%"), margin_faults("101%")[0][:37]
    ([], 'memory-margin must be a number of at ')
    """
    if isinstance(margin, str):
        if 0 <= margin_share(margin) < 1:
            return []
    elif isinstance(margin, int | float) and not isinstance(margin, bool) and 0 <= margin <= LARGEST_NUMBER:
        return []
    allowed = "a number of at least 0 MB, or a share from 0% to below 100%"
    return [f"memory-margin must be {allowed} (got {shown(margin)})"]


def plain_margin(margin: float | str) -> float | str:
    """
    Give equal margins one form.

    Examples
    --------
    >>> plain_margin(" 5.0 %"), plain_margin("0%")
    ('5%', 0.0)
    """
    if not isinstance(margin, str):
        return float(margin) + 0.0  # + 0.0: -0.0 becomes 0.0
    percent = float(margin.strip().removesuffix("%"))
    return f"{percent:.15g}%" if percent > 0.0 else 0.0
