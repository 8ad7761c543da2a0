"""Options that verbs share, and how text on the command line becomes numbers."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sapp_ppb.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sapp_ppb.costs import RecomputeType
    from sapp_ppb.schedules import Flavour, MicroBatchGroup, OrderFile, P2PMode, ScheduleName

_GIGABYTES = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(?:g|gb|gib)", re.IGNORECASE)
_THOUSANDS = re.compile(r"0\d\d")  # what 56,000 ends in, and no list of numbers

AUTO = "auto"  # the schedule that is best
# The frameworks, spelt out, since to import them takes longer than to print a help text.
FRAMEWORKS = "mindformers, megatron, torchtitan, mindspeed, hyperparallel, colossalai, deepspeed, pytorch"
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL.json", help="Model file.", show_default=False)]
PlanPath = Annotated[
    Path,
    typer.Argument(
        metavar="PLAN", help="Plan file, framework's configuration, or manual YAML.", show_default=False
    ),
]
_STAGES = typer.Option("--stages", "-s", metavar="S", help="Pipeline stages.")
_MICRO_BATCHES = typer.Option("--micro-batches", "-mb", metavar="M", help="Micro-batches of one step.")
_INTERLEAVE = typer.Option(
    "--interleave",
    "-i",
    metavar="V",
    help="Chunks (virtual stages) on each stage.  [default: 1; 2 for zbv and dualpipev]",
)
_HOP_TIME = typer.Option(
    "--p2p", metavar="MS[,MS...]", help="Time to send from a stage to the next: one, or one a hop."
)
_MIN_LAYERS = typer.Option("--min-layers", metavar="N", help="Fewest layers in a cell.")
Stages = Annotated[int, _STAGES]
MicroBatches = Annotated[int, _MICRO_BATCHES]
Interleave = Annotated[int | None, _INTERLEAVE]
HopTime = Annotated[str, _HOP_TIME]
MinLayers = Annotated[int, _MIN_LAYERS]
# The same for a verb that must know whether they were given.
_STAGE_SPEED = typer.Option(
    "--stage-speed",
    metavar="X[,X...]",
    help="Speed of each stage's device, 1 as measured: 0.5 takes twice the time.",
)
_STEP_EXTRA = typer.Option(
    "--step-extra",
    metavar="MS[,MS...]",
    help="Time of each stage after its last op, outside the pipeline: one, or one a stage.",
)
StageSpeed = Annotated[str | None, _STAGE_SPEED]
StepExtra = Annotated[str, _STEP_EXTRA]
StagesIfGiven = Annotated[int | None, _STAGES]
MicroBatchesIfGiven = Annotated[int | None, _MICRO_BATCHES]
InterleaveIfGiven = Annotated[int | None, _INTERLEAVE]
HopTimeIfGiven = Annotated[str | None, _HOP_TIME]
MinLayersIfGiven = Annotated[int | None, _MIN_LAYERS]
StepExtraIfGiven = Annotated[str | None, _STEP_EXTRA]
ReorderStages = Annotated[
    bool,
    typer.Option(
        "--reorder-stages",
        help="Choose which device does the work of which stage, where speeds or limits differ.",
    ),
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
Tokens = Annotated[
    int | None,
    typer.Option(
        "--tokens-per-micro-batch", metavar="N", help="Tokens of a micro-batch; prints tokens per second."
    ),
]
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
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help=f"Framework that must be able to say the plan: {FRAMEWORKS}; also says what that costs.",
    ),
]
TimeLimit = Annotated[float, typer.Option("--time-limit", "-t", metavar="SECONDS", help="Time to plan in.")]
Gap = Annotated[
    str, typer.Option("--gap", metavar="G", help="Stop this close to the best possible: 0.01 or 1%.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same plan.")]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="DIR", help="Folder to write results, pictures and traces to."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
ShowTimeline = Annotated[
    bool, typer.Option("--timeline", help="Draw in text what every stage does when, if it fits.")
]
ModelOutput = Annotated[
    str | None, typer.Option("--output", "-o", metavar="MODEL.json", help="Model file to write.")
]
ModelJson = Annotated[bool, typer.Option("--json", help="Print the model file, and nothing else, on stdout.")]
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
    faults = [
        f"{entry.strip()!r} is not a number of {unit}{_in_mb(entry, unit)}"
        for entry in entries
        if not _is_number(entry)
    ]
    if any(_THOUSANDS.fullmatch(entry) for entry in entries[1:]):
        faults = [f"{text!r} looks like one number with a thousands comma; write {text.replace(',', '')}"]
    if faults:
        raise InputError(option, faults)
    values = tuple(float(entry) for entry in entries)
    return values if len(values) > 1 else values[0]


def _in_mb(entry: str, unit: str) -> str:
    """Say what to write for a number of gigabytes where megabytes are asked for."""
    found = _GIGABYTES.fullmatch(entry.strip())
    return f"; write {1024 * float(found[1]):.10g} for {found[1]} GB" if found and unit == "MB" else ""


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """
    Read whole numbers of at least 1, with commas between them.

    Raises
    ------
    InputError
        Naming the option and every entry that is none.

    Examples
    --------
    >>> whole_numbers("--layers", "32"), whole_numbers("--layers", "12,24")
    ((32,), (12, 24))
    """
    entries = [entry.strip() for entry in text.split(",")]
    faults = [
        f"{entry!r} is not a whole number of at least 1"
        for entry in entries
        if not (entry.isascii() and entry.isdigit() and len(entry) < 10 and int(entry))
    ]
    if faults:
        raise InputError(option, faults)
    return tuple(int(entry) for entry in entries)


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


def tokens_per_micro_batch(number: int | None) -> int | None:
    """Give the tokens back, or refuse a number that is none of tokens."""
    if number is not None and number < 1:
        raise InputError("--tokens-per-micro-batch", [f"must be at least 1 (got {number})"])
    return number


def schedule_name(text: str | None) -> "ScheduleName | None":
    """Name of a schedule; None stands for the default, and for every one of them."""
    from sapp_ppb.schedules import ScheduleName

    if text is None or text == AUTO:
        return None
    if text in tuple(ScheduleName):
        return ScheduleName(text)
    raise InputError("--schedule", [f"{text!r} is unknown; one of {', '.join(ScheduleName)}, {AUTO}"])


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


def order_file(path: Path | None) -> "OrderFile | None":
    """File of a custom order, read; None when none is given."""
    from sapp_ppb.readers import read_order

    return None if path is None else read_order(path)


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


def layer_count(option: str, text: str) -> tuple[str, int | None]:
    """
    Read the name of a layer and how many there are, with a colon between them.

    Examples
    --------
    >>> layer_count("--body", "DecodeLayer:80"), layer_count("--body", "Block")
    (('DecodeLayer', 80), ('Block', None))
    """
    name, colon, number = text.rpartition(":")
    if not colon:
        name, number = text, ""
    elif not (number.isascii() and number.isdigit() and 0 < len(number) < 8 and int(number)):
        raise InputError(option, [f"{text!r} is not NAME or NAME:COUNT, with a count of at least 1"])
    if not name.strip():
        raise InputError(option, [f"{text!r} names no layer"])
    return name, int(number) if number else None
