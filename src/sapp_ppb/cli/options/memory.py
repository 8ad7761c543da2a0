"""Options that say what memory a stage has, and what may be recomputed to fit in."""

from typing import TYPE_CHECKING, Annotated

import typer

from sapp_ppb.cli.options.values import is_number
from sapp_ppb.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sapp_ppb.costs import RecomputeType


MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        "-mem",
        metavar="MB[,MB...]",
        help="Memory limit: one for all stages, or one for each.",
    ),
]
MemoryMargin = Annotated[
    str,
    typer.Option(
        "--memory-margin",
        metavar="MB|PERCENT",
        help="Part of the memory limit to keep free, for fragmentation: 2000 or 5%.",
    ),
]
ConstantMemory = Annotated[
    str | None,
    typer.Option(
        "--constant-memory",
        "-mc",
        metavar="MB[,MB...]",
        help="Memory that each stage holds besides its layers.  [default: the model file's]",
    ),
]
RecomputeTypes = Annotated[
    str | None,
    typer.Option(
        "--recompute",
        metavar="TYPE[,TYPE...]",
        help="Recompute types to choose from: none, selective, comm, both, full, and strategies of the "
        "model by name.  [default: those that the model gives]",
    ),
]
MaxRecomputeTypes = Annotated[
    int | None,
    typer.Option(
        "--max-recompute-types", metavar="N", help="Most recompute types, none apart, that a plan may mix."
    ),
]
WorkingSet = Annotated[
    bool,
    typer.Option(
        "--recompute-working-set",
        help="Count what a recomputed layer holds again during its own backward.",
    ),
]


def memory_margin(text: str) -> float | str:
    """
    Read a margin: MB, or a percentage, which stays text.

    Examples
    --------
    >>> memory_margin("2000"), memory_margin("5%")
    (2000.0, '5%')
    """
    if is_number(text.strip().removesuffix("%")):
        return text if text.strip().endswith("%") else float(text)
    raise InputError("--memory-margin", [f"{text!r} is neither a number of MB nor a percentage such as 5%"])


def recompute_types(
    text: str | None, known: "Sequence[RecomputeType] | None" = None
) -> "tuple[RecomputeType, ...] | None":
    """
    Read recompute types with commas between them; None stands for all.

    Parameters
    ----------
    known
        Types that may be named; None: the five of recomputation.

    Examples
    --------
    >>> [r.label for r in recompute_types("none,full")]
    ['none', 'full']
    """
    from sapp_ppb.costs import Recompute

    if text is None:
        return None
    by_label = {r.label: r for r in known or Recompute}
    labels, among = [label.strip() for label in text.split(",")], ", ".join(by_label)
    faults = [f"{label!r} is unknown; one or more of {among}" for label in labels if label not in by_label]
    if faults:
        raise InputError("--recompute", faults)
    return tuple(by_label[label] for label in labels)
