"""``sapp-ppb dryrun-guide``: which runs to make so that memory can be told from their peaks."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sapp_ppb.cli.guard import FITS, say
from sapp_ppb.cli.options.memory import recompute_types
from sapp_ppb.cli.options.output import Force
from sapp_ppb.cli.options.problem import MicroBatchesIfGiven, StagesIfGiven
from sapp_ppb.cli.output import write_document
from sapp_ppb.cli.output_files import free_file
from sapp_ppb.errors import InputError

if TYPE_CHECKING:
    from sapp_ppb.costs import Recompute

SHORT_HELP = "Say which runs tell the memory of layers."
HELP = """
Choose the fewest runs whose peaks tell the constant, parameters, activations, head and tail apart,
and print the YAML of their offset and recompute lists, with places to fill in the peaks.  The runs
have one chunk a stage and are legal for MindFormers.

Without options, on a terminal, asks for them.

\b
Examples:
  sapp-ppb dryrun-guide -s 16 -l 96 --recompute full,selective -o guide.yaml
  sapp-ppb dryrun-guide -s 4 -l 80 > guide.yaml
"""


def dryrun_guide(
    stages: StagesIfGiven = None,
    layers: Annotated[
        int | None, typer.Option("--layers", "-l", metavar="N", help="BODY layers of the model.")
    ] = None,
    recompute: Annotated[
        str | None,
        typer.Option(
            "--recompute",
            metavar="TYPE[,TYPE...]",
            help="Types to tell.  [default: full]",
        ),
    ] = None,
    micro_batches: MicroBatchesIfGiven = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="GUIDE.yaml", help="File to write.")
    ] = None,
    force: Force = False,
) -> int:
    """Choose runs, and write what to fill in."""
    from sapp_ppb.estimation import dryrun_guide as choose
    from sapp_ppb.writers import guide_to_yaml, write_text_atomic

    if stages is None and layers is None and recompute is None and _somebody_is_there():
        stages, layers, recompute = _asked()
    if stages is None or layers is None:
        missing = " and ".join(["--stages"] * (stages is None) + ["--layers"] * (layers is None))
        raise InputError("dryrun-guide", [f"{missing} must be given"])
    if output is not None:
        free_file("--output", output, force=force)
    guide = choose(stages, layers, _types(recompute), micro_batches=micro_batches)
    text = guide_to_yaml(guide.plans)
    rounds = f"{len(guide.plans)} round" + ("s" if len(guide.plans) > 1 else "")
    told = ", ".join(guide.unknowns)
    say(f"{rounds} of {stages} stages tell {told}; condition number {guide.condition:.3g}")
    if output is None:
        write_document(text)
    else:
        write_text_atomic(Path(output), text, force)
        say(f"wrote {output}")
    return FITS


def _types(text: str | None) -> "tuple[Recompute, ...]":
    from sapp_ppb.costs import Recompute

    if text is not None and not text.strip():
        return ()
    return tuple(map(Recompute, recompute_types("full" if text is None else text) or ())) or (Recompute.FULL,)


def _somebody_is_there() -> bool:
    return sys.stdin.isatty()


def _asked() -> tuple[int, int, str]:
    """Ask on the terminal for what was not given."""
    stages = typer.prompt("pipeline stages", type=int, err=True)
    layers = typer.prompt("layers of the model", type=int, err=True)
    types = typer.prompt("recompute types to tell (selective, comm, both, full)", default="full", err=True)
    return int(stages), int(layers), str(types)
