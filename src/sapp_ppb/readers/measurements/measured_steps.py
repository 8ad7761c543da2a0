"""Measured steps from whatever says them: tables, real runs, and folders of timelines."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from sapp_ppb.costs import Model
from sapp_ppb.files import is_folder
from sapp_ppb.readers.measurements.run_file import is_run_file, read_run_file
from sapp_ppb.readers.measurements.step_table import read_step_table
from sapp_ppb.readers.measurements.traced_run import read_traced_run
from sapp_ppb.simulator import MeasuredStep, TracedRun


def read_measured_steps(paths: Iterable[str | PathLike[str]], model: Model) -> list[MeasuredStep | TracedRun]:
    """
    Read the runs that paths name, in the order given.

    A ``.csv`` is a table of plans and steps; a JSON file of our own real runs says all
    itself; a folder holds the timelines of one run with its ``plan.json``; any other file is
    one such timeline, and those of one folder are one run.

    Parameters
    ----------
    model
        Model that plans spread.  Real runs have the times of their cells and need none.

    Raises
    ------
    InputError
        If a path can not be read, or holds what it may not.
    """
    runs: list[MeasuredStep | TracedRun] = []
    traces: dict[Path, list[Path]] = {}
    for path in map(Path, paths):
        if is_folder(path):
            runs.append(read_traced_run((), path, model))
        elif path.suffix.lower() == ".csv":
            runs += read_step_table(path, model)
        elif is_run_file(path):
            runs += read_run_file(path)
        else:
            traces.setdefault(path.parent, []).append(path)
    return runs + [read_traced_run(files, folder, model) for folder, files in traces.items()]
