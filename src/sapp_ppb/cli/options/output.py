"""Options that say what is printed and written."""

from typing import Annotated

import typer

from sapp_ppb.errors import InputError

Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="DIR", help="Folder to write results, pictures and traces to."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the plan file, and nothing else, on stdout.")]
ModelOutput = Annotated[
    str | None, typer.Option("--output", "-o", metavar="MODEL.json", help="Model file to write.")
]
ModelJson = Annotated[bool, typer.Option("--json", help="Print the model file, and nothing else, on stdout.")]
ShowTimeline = Annotated[
    bool, typer.Option("--timeline", help="Draw in text what every stage does when, if it fits.")
]
Tokens = Annotated[
    int | None,
    typer.Option(
        "--tokens-per-micro-batch", metavar="N", help="Tokens of a micro-batch; prints tokens per second."
    ),
]


def tokens_per_micro_batch(number: int | None) -> int | None:
    """Give the tokens back, or refuse a number that is none of tokens."""
    if number is not None and number < 1:
        raise InputError("--tokens-per-micro-batch", [f"must be at least 1 (got {number})"])
    return number


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
