"""The page of ``sapp-ppb calibrate``, and the same as JSON: both numbers, and how far every run is off."""

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from sapp_ppb.cli.text.tables import pairs_table, rendered
from sapp_ppb.writers.plan_file import json_text

if TYPE_CHECKING:
    from sapp_ppb.estimation import CalibratedRun, Calibration


def calibration_text(found: "Calibration") -> str:
    """Fill the page: a row a run, then the medians and both numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("run", overflow="fold")
    for heading in ("measured,\nms", "simulated,\nms", "off\nbefore", "off\nafter", "off when\nleft out"):
        table.add_column(heading, justify="right", no_wrap=True)
    for run in found.runs:
        left_out = "" if run.left_out_ms is None else f"{run.error(run.left_out_ms):+.1%}"
        table.add_row(
            Text(run.name),
            f"{run.step_ms:,.1f}",
            f"{run.after_ms:,.1f}",
            f"{run.error(run.before_ms):+.1%}",
            f"{run.error(run.after_ms):+.1%}",
            left_out,
        )
    medians = f"{found.median_before:.1%} before, {found.median_after:.1%} after"
    if found.median_left_out is not None:
        medians += f", {found.median_left_out:.1%} when left out"
    rows = [
        ("overhead of an op", f"{found.op_overhead_ms:,.4g} ms"),
        ("time of a hop", f"{found.hop_ms:,.4g} ms, besides p2p"),
        ("median error", medians),
    ]
    return rendered([table, Text(), pairs_table(rows)])


def calibration_to_json(found: "Calibration") -> str:
    """
    Text of a calibration: both numbers, the median errors, and a row for each run.

    Returns
    -------
    str
        JSON, with a line end at its end.  Errors are shares of the measured step, positive
        where too much is simulated, and medians are of their sizes; what a single run does not
        tell is null.  ``undetermined`` names the numbers that the runs do not tell.
    """
    document: dict[str, object] = {
        "op_overhead_ms": found.op_overhead_ms,
        "hop_ms": found.hop_ms,
        "undetermined": list(found.free),
        "median_error": {
            "before": found.median_before,
            "after": found.median_after,
            "left_out": found.median_left_out,
        },
        "runs": [_row(run) for run in found.runs],
    }
    return json_text(document) + "\n"


def _row(run: "CalibratedRun") -> dict[str, object]:
    return {
        "name": run.name,
        "step_ms": float(run.step_ms),
        "simulated_ms": {"before": run.before_ms, "after": run.after_ms, "left_out": run.left_out_ms},
        "error": {
            "before": run.error(run.before_ms),
            "after": run.error(run.after_ms),
            "left_out": None if run.left_out_ms is None else run.error(run.left_out_ms),
        },
    }
