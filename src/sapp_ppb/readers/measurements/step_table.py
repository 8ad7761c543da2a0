"""A table of measured steps: CSV with the header ``plan,step_ms``, a plan file and its step a line."""

import csv
import math
import os
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from sapp_ppb.costs import Model
from sapp_ppb.costs.checks import number_fault, printable, shown
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.readers.formats.text_file import read_text, refuse_many
from sapp_ppb.readers.plans.plan_file import read_plan
from sapp_ppb.simulator import MeasuredStep

HEADER = ("plan", "step_ms")
_LARGEST_MB = 16
_MOST_ROWS = 10_000


def read_step_table(path: str | PathLike[str], model: Model) -> list[MeasuredStep]:
    """
    Read the steps of a CSV file, in its order; a plan may stand in it more than once.

    Parameters
    ----------
    path
        CSV file.  Its plans are relative to its folder, and none is outside of it.
    model
        Model that all plans spread.

    Raises
    ------
    InputError
        If the file or one of its plans can not be read, with all faults at once.
    """
    where = str(path)
    wanted = f"a table with the header {','.join(HEADER)}"
    text = read_text(path, largest_mb=_LARGEST_MB, format_name=wanted)
    refuse_many(where, text, lines=2 * _MOST_ROWS, cells=10 * _MOST_ROWS)
    known: dict[str, Plan | InputError] = {}
    steps, faults = [], []
    for line, row in _rows(where, text):
        found, wrong = _row_faults(line, row)
        faults += wrong
        if found is None:
            continue
        name, step_ms = found
        if name not in known:
            known[name] = _plan_of(Path(path).parent, name, model)
        plan = known[name]
        if isinstance(plan, InputError):
            faults += [f"line {line}: {printable(plan.where)}: {fault}" for fault in plan.faults]
        else:
            steps.append(MeasuredStep(name=name, plan=plan, step_ms=step_ms))
    if not steps and not faults:
        faults.append("holds no step below its header; add a line such as plan.json,1234.5")
    if faults:
        raise InputError(where, faults)
    return steps


def _rows(where: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """Lines below the header that are not blank, each with its number."""
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        rows = [(reader.line_num, [entry.strip() for entry in row]) for row in reader if any(row)]
    except csv.Error as error:
        raise InputError(where, [f"line {reader.line_num} is no CSV: {error}"]) from None
    (_, header), *rest = rows or [(1, [""])]  # a file may hold commas alone
    if tuple(header) != HEADER:
        fault = f"must begin with the header {','.join(HEADER)} (got {shown(','.join(header))})"
        raise InputError(where, [fault])
    if len(rest) > _MOST_ROWS:
        raise InputError(where, [f"holds {len(rest):,} steps; at most {_MOST_ROWS:,} are read"])
    yield from rest


def _row_faults(line: int, row: list[str]) -> tuple[tuple[str, float] | None, list[str]]:
    """Plan and step of a row, or what is wrong with it."""
    if len(row) != len(HEADER):
        return None, [f"line {line} must have {len(HEADER)} entries, {' and '.join(HEADER)} (got {len(row)})"]
    name, text = row
    try:
        step_ms = float(text) if "_" not in text else math.nan  # which Python allows between digits
    except ValueError:
        step_ms = math.nan
    fault = number_fault(f"line {line}: step_ms", step_ms, above_zero=True)
    if fault:
        return None, [f"line {line}: step_ms must be a number above 0 (got {shown(text)})"]
    if not name:
        return None, [f"line {line}: plan must name a plan file (got {shown(name)})"]
    return (name, step_ms), []


def _plan_of(folder: Path, name: str, model: Model) -> Plan | InputError:
    """Plan of a file in a folder; the error that says why there is none."""
    try:
        place = folder / name
        real = Path(os.path.realpath(place))  # Path.resolve() raises where links lead in a circle
        if Path(name).is_absolute() or not real.is_relative_to(os.path.realpath(folder)):
            raise InputError(name, ["is outside of the table's folder; copy the plan beside the table"])
        plan = read_plan(place, model).plan
    except InputError as error:
        return error
    except (OSError, ValueError) as error:  # a path that loops, or holds a null character
        return InputError(printable(name), [f"can not be looked up ({error}); check the path"])
    return plan or InputError(name, ["holds no plan, because none fits; name one that has a plan"])
