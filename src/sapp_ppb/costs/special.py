"""What makes a layer a special one, and what that must be; each check gives one sentence, or None."""

from sapp_ppb.costs.checks import number_fault, shown, text_fault


def transient_fault(transient_mb: object, *, is_body: bool) -> str | None:
    """
    Fault of memory that exists only while a layer runs; a layer has none that a plan moves.

    Examples
    --------
    >>> transient_fault(3.0, is_body=True)
    'transient_mb is for HEAD and TAIL layers (got 3.0 for a BODY)'
    """
    fault = number_fault("transient_mb", transient_mb)
    if fault is None and transient_mb and is_body:
        return f"transient_mb is for HEAD and TAIL layers (got {shown(transient_mb)} for a BODY)"
    return fault


def tie_fault(tied_to: object, *, name: object, count: object, is_body: bool) -> str | None:
    """
    Fault of the name of a layer whose parameters another one uses too; None where there is none.

    Examples
    --------
    >>> tie_fault("Emb", name="Out", count=2, is_body=False)
    'tied_to is for a layer with a count of 1 (got 2)'
    """
    if tied_to is None:
        return None
    fault = text_fault("tied_to", tied_to)
    if fault:
        return fault
    if is_body:
        return f"tied_to is for HEAD and TAIL layers (got {shown(tied_to)} for a BODY)"
    if tied_to == name:
        return f"tied_to must name another layer (got {shown(tied_to)}, its own name)"
    return None if count == 1 else f"tied_to is for a layer with a count of 1 (got {shown(count)})"
