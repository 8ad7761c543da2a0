"""Options that say in which order a pipeline runs its ops, and how."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sapp_ppb.errors import InputError

if TYPE_CHECKING:
    from sapp_ppb.schedules import Flavour, MicroBatchGroup, OrderFile, P2PMode, ScheduleName


AUTO = "auto"  # the schedule that is best
ScheduleOption = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        metavar="NAME",
        help="gpipe, 1f1b, interleaved, interleaved-less-memory, looped-bfs, interleaved-zero-bubble, zbv, "
        "dualpipev, seq1f1b, zb-auto or custom; auto plans them all and takes the best.  "
        "[default: 1f1b, with chunks interleaved]",
    ),
]
GroupOption = Annotated[
    str | None,
    typer.Option(
        "--micro-batch-group",
        metavar="N",
        help="Micro-batches that interleaved schedules take together: a number, or remainder-first.  "
        "[default: S]",
    ),
]
SequenceChunks = Annotated[
    int,
    typer.Option(
        "--sequence-chunks", metavar="K", help="Pieces of every micro-batch's sequence, for seq1f1b."
    ),
]
OrderPath = Annotated[
    Path | None,
    typer.Option("--order", metavar="FILE.csv", help="Order of the ops, in PyTorch's notation, for custom."),
]
P2PModeOption = Annotated[
    str,
    typer.Option(
        "--p2p-mode",
        metavar="MODE",
        help="async, or blocking: with chunks, a forward's output leaves after the backward behind it.",
    ),
]
OverlapFactor = Annotated[
    float,
    typer.Option(
        "--overlap-factor",
        metavar="A",
        help="Share of the shorter op that an overlapped pair of dualpipev saves, 0 to 1.",
    ),
]
FlavourOption = Annotated[
    str | None,
    typer.Option(
        "--flavour",
        metavar="NAME",
        help="torch: a split backward of the first cell does everything in its weight gradient.",
    ),
]


def schedule_name(text: str | None) -> "ScheduleName | None":
    """Name of a schedule; None stands for the default, and for every one of them."""
    from sapp_ppb.schedules import ScheduleName

    if text is None or text == AUTO:
        return None
    if text in tuple(ScheduleName):
        return ScheduleName(text)
    raise InputError("--schedule", [f"{text!r} is unknown; one of {', '.join(ScheduleName)}, {AUTO}"])


def micro_batch_group(text: str | None) -> "MicroBatchGroup":
    """Read a micro-batch group: a number, or the word for the older tool's groups."""
    remainder_first: Literal["remainder-first"] = "remainder-first"
    if text is None or text == remainder_first:
        return None if text is None else remainder_first
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise InputError("--micro-batch-group", [f"{text!r} is neither a whole number nor {remainder_first}"])


def order_file(path: Path | None) -> "OrderFile | None":
    """File of a custom order, read; None when none is given."""
    from sapp_ppb.readers import read_order

    return None if path is None else read_order(path)


def p2p_mode(text: str) -> "P2PMode":
    """
    Read when messages leave.

    Examples
    --------
    >>> p2p_mode("blocking").value
    'blocking'
    """
    from sapp_ppb.schedules import P2PMode

    if text in tuple(P2PMode):
        return P2PMode(text)
    raise InputError("--p2p-mode", [f"{text!r} is unknown; one of {', '.join(P2PMode)}"])


def flavour(text: str | None) -> "Flavour | None":
    """Framework whose own way is modelled; None for none."""
    from sapp_ppb.schedules import Flavour

    if text is None or text in tuple(Flavour):
        return None if text is None else Flavour(text)
    raise InputError("--flavour", [f"{text!r} is unknown; one of {', '.join(Flavour)}"])
