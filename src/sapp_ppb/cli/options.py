"""Options that verbs share, and how text on the command line becomes numbers."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sapp_ppb.errors import InputError

if TYPE_CHECKING:
    from sapp_ppb.costs import Recompute
    from sapp_ppb.schedules import MicroBatchGroup, ScheduleName

_THOUSANDS = re.compile(r"0\d\d")  # what 56,000 ends in, and no list of numbers

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL.json", help="Model file.", show_default=False)]
PlanPath = Annotated[Path, typer.Argument(metavar="PLAN.json", help="Plan file.", show_default=False)]
Stages = Annotated[int, typer.Option("--stages", "-s", metavar="S", help="Pipeline stages.")]
MicroBatches = Annotated[
    int, typer.Option("--micro-batches", "-mb", metavar="M", help="Micro-batches of one step.")
]
Interleave = Annotated[
    int, typer.Option("--interleave", "-i", metavar="V", help="Chunks (virtual stages) on each stage.")
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        "-mem",
        metavar="MB[,MB...]",
        help="Memory limit: one for all stages, or one for each.",
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
MemoryMargin = Annotated[
    str,
    typer.Option(
        "--memory-margin",
        metavar="MB|PERCENT",
        help="Part of the memory limit to keep free, for fragmentation: 2000 or 5%.",
    ),
]
RecomputeTypes = Annotated[
    str | None,
    typer.Option(
        "--recompute",
        metavar="TYPE[,TYPE...]",
        help="Recompute types to choose from: none, selective, comm, both, full.  "
        "[default: those that the model gives]",
    ),
]
Tokens = Annotated[
    int | None,
    typer.Option(
        "--tokens-per-micro-batch", metavar="N", help="Tokens of a micro-batch; prints tokens per second."
    ),
]
HopTime = Annotated[
    str,
    typer.Option(
        "--p2p", metavar="MS[,MS...]", help="Time to send from a stage to the next: one, or one a hop."
    ),
]
ScheduleOption = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        metavar="NAME",
        help="gpipe, 1f1b, interleaved or interleaved-less-memory.  [default: 1f1b, with chunks interleaved]",
    ),
]
GroupOption = Annotated[
    str | None,
    typer.Option(
        "--micro-batch-group",
        metavar="N",
        help="Micro-batches that interleaved takes together: a number or remainder-first.  [default: S]",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="DIR", help="Folder to write to: plan file, pictures (PNG and SVG), trace."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
ShowTimeline = Annotated[
    bool, typer.Option("--timeline", help="Draw in text what every stage does when, if it fits.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the plan file, and nothing else, on stdout.")]


def numbers(option: str, text: str, unit: str) -> float | tuple[float, ...]:
    """
    Read one number, or several with commas between them.

    Raises
    ------
    InputError
        Naming the option and every entry that is no number.

    Examples
    --------
    >>> numbers("--memory-limit", "56000", "MB"), numbers("--p2p", "1,2.5", "ms")
    (56000.0, (1.0, 2.5))
    """
    entries = text.split(",")
    faults = [f"{entry.strip()!r} is not a number of {unit}" for entry in entries if not _is_number(entry)]
    if any(_THOUSANDS.fullmatch(entry) for entry in entries[1:]):
        faults = [f"{text!r} looks like one number with a thousands comma; write {text.replace(',', '')}"]
    if faults:
        raise InputError(option, faults)
    values = tuple(float(entry) for entry in entries)
    return values if len(values) > 1 else values[0]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # which Python allows between digits


def share(option: str, text: str) -> float:
    """
    Read a share, written as 0.01 or as 1%.

    Examples
    --------
    >>> share("--gap", "1%"), share("--gap", "0.01")
    (0.01, 0.01)
    """
    number = text.strip().removesuffix("%")
    if not _is_number(number):
        raise InputError(option, [f"{text!r} is not a share such as 0.01 or 1%"])
    return float(number) / 100 if text.strip().endswith("%") else float(number)


def memory_margin(text: str) -> float | str:
    """
    Read a margin: MB, or a percentage, which stays text.

    Examples
    --------
    >>> memory_margin("2000"), memory_margin("5%")
    (2000.0, '5%')
    """
    if _is_number(text.strip().removesuffix("%")):
        return text if text.strip().endswith("%") else float(text)
    raise InputError("--memory-margin", [f"{text!r} is neither a number of MB nor a percentage such as 5%"])


def recompute_types(text: str | None) -> "tuple[Recompute, ...] | None":
    """
    Read recompute types with commas between them; None stands for all.

    Examples
    --------
    >>> [r.label for r in recompute_types("none,full")]
    ['none', 'full']
    """
    from sapp_ppb.costs import Recompute

    if text is None:
        return None
    labels, known = [label.strip() for label in text.split(",")], [r.label for r in Recompute]
    faults = [
        f"{label!r} is unknown; one or more of {', '.join(known)}" for label in labels if label not in known
    ]
    if faults:
        raise InputError("--recompute", faults)
    return tuple(Recompute.from_label(label) for label in labels)


def tokens_per_micro_batch(number: int | None) -> int | None:
    """Give the tokens back, or refuse a number that is none of tokens."""
    if number is not None and number < 1:
        raise InputError("--tokens-per-micro-batch", [f"must be at least 1 (got {number})"])
    return number


def schedule_name(text: str | None) -> "ScheduleName | None":
    """Name of a schedule; None stands for the default."""
    from sapp_ppb.schedules import ScheduleName

    if text is None or text in tuple(ScheduleName):
        return None if text is None else ScheduleName(text)
    raise InputError("--schedule", [f"{text!r} is unknown; one of {', '.join(ScheduleName)}"])


def micro_batch_group(text: str | None) -> "MicroBatchGroup":
    """Read a micro-batch group: a number, or the word for the older tool's groups."""
    remainder_first: Literal["remainder-first"] = "remainder-first"
    if text is None or text == remainder_first:
        return None if text is None else remainder_first
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise InputError("--micro-batch-group", [f"{text!r} is neither a whole number nor {remainder_first}"])


def refuse_with_json(json_: bool, **given: bool) -> None:
    """
    Refuse options that add to what is printed for people, beside ``--json``.

    Raises
    ------
    InputError
        Naming the first of them that was given.
    """
    for option in (option for option, wanted in given.items() if wanted and json_):
        raise InputError(
            option, ["adds to the table, and --json prints the plan file alone; give one of the two"]
        )
