"""``sapp-ppb calibrate``: what the simulator leaves out, from measured steps."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sapp_ppb.cli.guard import FITS, say
from sapp_ppb.cli.options.output import Force, ModelOutput
from sapp_ppb.cli.options.problem import ModelPath
from sapp_ppb.cli.output import write_document, write_result
from sapp_ppb.cli.output_files import free_file

if TYPE_CHECKING:
    from sapp_ppb.estimation import Calibration

SHORT_HELP = "Fit what layer times leave out to measured steps."
HELP = """
Fit two numbers to measured steps: the overhead of an op and the time of a hop, which are not in
the times of layers.  Says how far the simulated steps are from the measured ones before and after,
and for every run with the numbers that the other runs alone give.  The simulator adds both where
the model file has them (op_overhead_ms, hop_ms).

\b
A run is one of
  a .csv file with the header plan,step_ms: a plan file beside it, and its step in milliseconds
  a folder with plan.json and the PyTorch traces (PP:2F0) of the run's ranks, or such a trace
  a file of real runs, sapp-ppb-run, which has the times of its cells and needs no plan

\b
Examples:
  sapp-ppb calibrate llama2_70b.json steps.csv -o calibrated.json
  sapp-ppb calibrate llama2_70b.json run1/ run2/ run3/ --json
"""
_LARGEST_ERROR = 0.05


def calibrate(
    model: ModelPath,
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Tables, folders and files of runs.", show_default=False),
    ],
    output: ModelOutput = None,
    force: Force = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print the calibration as JSON, and nothing else, on stdout.")
    ] = False,
) -> int:
    """Read runs, fit, and write the model."""
    from dataclasses import replace

    from sapp_ppb.cli.text.calibration_page import calibration_text, calibration_to_json
    from sapp_ppb.estimation import calibrate, measured_step
    from sapp_ppb.readers import read_model
    from sapp_ppb.readers.measurements.measured_steps import read_measured_steps
    from sapp_ppb.simulator import MeasuredStep
    from sapp_ppb.writers import write_model

    if output is not None:
        free_file("--output", output, force=force)
    given = read_model(model)
    found = calibrate(
        [
            run if isinstance(run, MeasuredStep) else measured_step(run)
            for run in read_measured_steps(runs, given)
        ]
    )
    _warn(found)
    try:
        if output is not None:
            calibrated = replace(given, op_overhead_ms=found.op_overhead_ms, hop_ms=found.hop_ms)
            write_model(calibrated, Path(output), force)
            say(f"wrote {output}")
    finally:  # a full disk does not take the page from the screen
        if json_:
            write_document(calibration_to_json(found))
        else:
            write_result(calibration_text(found))
    return FITS


def _warn(found: "Calibration") -> None:
    """Say what the numbers can not be trusted in."""
    if len(found.free) > 1:
        say(f"note: the runs do not tell {' and '.join(found.free)} apart; give runs of other sizes")
    elif found.free:
        say(f"note: the runs say nothing of {found.free[0]}, which is left at 0; give runs of several stages")
    bad = [run for run in found.runs if abs(run.error(run.after_ms)) > _LARGEST_ERROR]
    if bad:
        worst = max(bad, key=lambda run: abs(run.error(run.after_ms)))
        say(
            f"warning: {len(bad)} of {len(found.runs)} runs are off by more than {_LARGEST_ERROR:.0%} even "
            f"so, {worst.name} by {worst.error(worst.after_ms):+.1%}; check the times of the layers"
        )
    left_out = found.median_left_out
    if left_out is not None and left_out > _LARGEST_ERROR:
        say(
            f"warning: a run that is left out of the fit is off by {left_out:.1%} in the median, more than "
            f"{_LARGEST_ERROR:.0%}; other plans may be too"
        )
