"""The table of docs/accuracy.md: what runs took, and what the simulator says of them."""

import json
import statistics
from functools import cached_property

import numpy as np

from sapp_ppb.estimation import calibrate
from sapp_ppb.readers.measurements.run_file import read_run_file
from sapp_ppb.simulator.graph import op_graph
from sapp_ppb.simulator.price import price


class Row:
    """
    A run beside what the simulator says of it.

    Attributes
    ----------
    run
        What its file holds; docs/accuracy.md says what that is.
    plan
        Plan that ran, each cell a layer of its own.
    calibrated
        What is simulated for it: ``before_ms``, ``after_ms`` and ``left_out_ms`` of a calibration.
    """

    def __init__(self, path, step, calibrated):
        self.name = path.stem
        self.run = json.loads(path.read_text(encoding="utf-8"))
        self.plan, self.calibrated = step.plan, calibrated

    def ratio(self, simulated_ms):
        """Measured over simulated time, of the median step."""
        return self.run["step_ms"] / simulated_ms

    @cached_property
    def lateness_ms(self):
        """What each op took beyond its time, and how long after what it waits for it began; (2, ops)."""
        graph = op_graph(self.plan.problem)
        prices = price(self.plan).price_list(self.plan.problem)[graph.price]
        start, end = np.empty_like(prices), np.empty_like(prices)
        # The ops of a run stand stage by stage, as those of ``first`` do.
        start[graph.first] = [op["start_ms"] for op in self.run["ops"]]
        end[graph.first] = [op["end_ms"] for op in self.run["ops"]]
        ended = np.append(end, 0.0)  # -1 stands for nothing to wait for
        ready = np.maximum(ended[graph.before], ended[graph.giver])
        return np.array([end - start - prices, start - ready])


# Heading of each column, and what stands in it.
COLUMNS = (
    ("run", lambda row: row.name),
    ("S", lambda row: row.run["stages"]),
    ("V", lambda row: row.run["interleave"]),
    ("M", lambda row: row.run["micro_batches"]),
    ("layers a cell", lambda row: " ".join(map(str, row.run["layers_per_cell"]))),
    ("simulated, ms", lambda row: f"{row.calibrated.before_ms:,.1f}"),
    ("measured, ms", lambda row: f"{row.run['step_ms']:,.1f}"),
    ("ratio", lambda row: f"{row.ratio(row.calibrated.before_ms):.3f}"),
    ("of the shortest step", lambda row: f"{min(row.run['steps_ms']) / row.calibrated.before_ms:.3f}"),
    ("calibrated, ms", lambda row: f"{row.calibrated.after_ms:,.1f}"),
    ("ratio calibrated", lambda row: f"{row.ratio(row.calibrated.after_ms):.3f}"),
    ("ratio left out", lambda row: f"{row.ratio(row.calibrated.left_out_ms):.3f}"),
)


def table(folder):
    """
    Lines of the table, and what they come to.

    Parameters
    ----------
    folder
        Where the files of the runs are, one a run.
    """
    paths = sorted(folder.glob("*.json"))
    steps = [step for path in paths for step in read_run_file(path)]
    found = calibrate(steps)
    rows = [Row(*each) for each in zip(paths, steps, found.runs, strict=True)]
    ratios = [row.ratio(row.calibrated.before_ms) for row in rows]
    longer, later = np.median(np.hstack([row.lateness_ms for row in rows]), axis=1)
    return [
        line(heading for heading, _ in COLUMNS),
        line("---" for _ in COLUMNS),
        *(line(write(row) for _, write in COLUMNS) for row in rows),
        "",
        f"{len(rows)} configurations: median ratio {statistics.median(ratios):.3f}, "
        f"smallest {min(ratios):.3f}, largest {max(ratios):.3f}.",
        f"Calibrated, the median error falls from {found.median_before:.1%} to {found.median_after:.1%}; "
        f"of runs left out of the calibration it is {found.median_left_out:.1%}.",
        "",
        f"The calibration found {found.op_overhead_ms:.2f} ms an op and {found.hop_ms:.2f} ms a hop.",
        f"In the median, an op took {longer:.2f} ms longer than its time,",
        f"and began {later:.2f} ms after all that it waits for had ended.",
    ]


def line(cells):
    """One line of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"
