"""Options that say how a plan is sought, and from which plan on."""

from pathlib import Path
from typing import Annotated

import typer

from sapp_ppb.errors import InputError

TimeLimit = Annotated[float, typer.Option("--time-limit", "-t", metavar="SECONDS", help="Time to plan in.")]
Gap = Annotated[
    str, typer.Option("--gap", metavar="G", help="Stop this close to the best possible: 0.01 or 1%.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same plan.")]
ReorderStages = Annotated[
    bool,
    typer.Option(
        "--reorder-stages",
        help="Choose which device does the work of which stage, where speeds or limits differ.",
    ),
]
WarmStart = Annotated[
    Path | None, typer.Option("--warm-start", metavar="PLAN.json", help="Plan file to begin with.")
]
FixPlan = Annotated[
    Path | None,
    typer.Option("--fix", metavar="PLAN.json", help="Plan file of which a part is kept; see --keep."),
]
Keep = Annotated[
    str | None,
    typer.Option(
        "--keep",
        metavar="PART",
        help="What --fix keeps: split (layers of every cell) or recompute (recomputed layers of every "
        "cell).  [default: split]",
    ),
]


def kept_part(fix: Path | None, keep: str | None) -> str:
    """
    Read what ``--fix`` keeps: ``split`` or ``recompute``.

    Raises
    ------
    InputError
        For another word, and when there is no plan to keep a part of.
    """
    if keep is not None and fix is None:
        raise InputError("--keep", ["says what --fix keeps, and there is no --fix"])
    if keep not in (None, "split", "recompute"):
        raise InputError("--keep", [f"{keep!r} is unknown; one of split, recompute"])
    return keep or "split"
