"""Names of the frameworks that a plan can be made for, and what each forbids."""

from sapp_ppb.errors import InputError

TARGETS = ("mindformers",)


def may_mix_selective_and_comm(target: str | None) -> bool:
    """
    Whether SELECTIVE may stand beside COMM in one cell.

    Parameters
    ----------
    target
        Name of a framework; None plans for none, and leaves the planner free.

    Raises
    ------
    InputError
        If the framework is unknown.

    Examples
    --------
    >>> may_mix_selective_and_comm(None), may_mix_selective_and_comm("mindformers")
    (True, False)
    """
    if target is not None and target not in TARGETS:
        raise InputError("target", [f"{target!r} is unknown; one of {', '.join(TARGETS)}"])
    return target is None
