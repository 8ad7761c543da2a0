"""The command ``sapp-ppb``: its verbs and what is common to them."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from sapp_ppb.cli import calibrate, check, compare, export, plan, schedule, simulate
from sapp_ppb.cli.costs import dryrun_guide
from sapp_ppb.cli.costs import group as costs
from sapp_ppb.cli.guard import BAD_INPUT, FITS, say, verb
from sapp_ppb.cli.older_flags import Verbs
from sapp_ppb.cli.output import write_result
from sapp_ppb.cli.sweep import verb as sweep
from sapp_ppb.errors import PpbError

_INTERRUPTED_BY_TYPER = 130
app = typer.Typer(
    name="sapp-ppb",
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # rich's markup would cost half of the time that help takes
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    """Print the version and stop, when that was asked for."""
    if wanted:
        from sapp_ppb import __version__

        write_result(f"sapp-ppb {__version__}\n")
        raise typer.Exit


@app.callback(
    help="""
Balances pipeline parallelism: which layers go on which stage and chunk, and which of
them are recomputed, so that a training step is as short as it can be and fits the memory.

\b
  sapp-ppb plan MODEL.json -s 16 -i 2 -mb 32 -mem 56000    find the best plan
  sapp-ppb simulate MODEL.json PLAN.json                   time a plan that exists
  sapp-ppb compare MODEL.json PLAN.json -s 16 -mb 32       set plans beside the best one
  sapp-ppb schedule interleaved -s 4 -mb 8 -i 2            print the order of a schedule
  sapp-ppb sweep MODEL.json --devices 64 --global-batch 256   plan for every number of stages
  sapp-ppb check CONFIG.yaml --model MODEL.json            what a configuration takes, and its rules
  sapp-ppb export PLAN.json --to megatron                  a plan in a framework's words
  sapp-ppb costs trace TRACES --body NAME -mb 16           make a model file from timelines
  sapp-ppb calibrate MODEL.json steps.csv -o NEW.json      add what measured steps take besides

Exit codes: 0 a plan that fits, 1 no plan fits or a rule is broken, 2 bad input, 3 interrupted or
no plan in time.
"""
)
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Hold the options that come before any verb."""


for name, module, function in (
    ("plan", plan, plan.plan),
    ("simulate", simulate, simulate.simulate),
    ("compare", compare, compare.compare),
    ("schedule", schedule, schedule.schedule),
    ("sweep", sweep, sweep.sweep),
    ("check", check, check.check),
    ("export", export, export.export),
    ("calibrate", calibrate, calibrate.calibrate),
):
    app.command(name, help=module.HELP, short_help=module.SHORT_HELP)(verb(function))
app.command("dryrun-guide", help=dryrun_guide.HELP, short_help=dryrun_guide.SHORT_HELP)(
    verb(dryrun_guide.dryrun_guide)
)
app.add_typer(costs.app, name="costs", help=costs.HELP, short_help=costs.SHORT_HELP)


def main() -> None:
    """Run the command."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, who wants none of it
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  open until the end
    try:
        app(prog_name="sapp-ppb")
    except SystemExit as end:
        if end.code == _INTERRUPTED_BY_TYPER:  # outside of any verb
            raise KeyboardInterrupt from None
        if isinstance(
            end.__context__, BrokenPipeError
        ):  # nobody reads the help to its end; 1 would say no plan
            sys.exit(FITS)
        raise
    except PpbError as error:  # the version can not be written, which is asked for before any verb
        say(f"error: {error}")
        sys.exit(BAD_INPUT)
    except OSError as error:
        if error.filename is not None or error.filename2 is not None:
            raise
        # Only help is printed by typer itself; what could not be written would raise once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        say(f"error: stdout: the help can not be written ({error.strerror})")
        sys.exit(BAD_INPUT)
