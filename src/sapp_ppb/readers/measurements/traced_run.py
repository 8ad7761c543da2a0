"""A folder with the timelines of one run and, beside them, the plan that ran."""

from collections.abc import Sequence
from pathlib import Path

from sapp_ppb.costs import Model
from sapp_ppb.errors import InputError
from sapp_ppb.files import is_there
from sapp_ppb.readers.measurements.trace_file import read_trace, trace_files
from sapp_ppb.readers.plans.plan_file import read_plan
from sapp_ppb.simulator import TracedRun

PLAN_BESIDE = "plan.json"


def read_traced_run(traces: Sequence[Path], folder: Path, model: Model) -> TracedRun:
    """
    Timelines of the ranks of one run, and its plan.

    Parameters
    ----------
    traces
        Trace files that name ops, as ``PP:2F0``; none for all that are in the folder.
    folder
        Folder of the run, in which ``plan.json`` says what ran.
    model
        Model that the plan spreads.

    Raises
    ------
    InputError
        If a file can not be read, there is no plan, or no trace names ops.
    """
    beside = folder / PLAN_BESIDE
    if not is_there(beside):
        fault = f"holds no {PLAN_BESIDE}; put the plan file of the run beside its traces, under this name"
        raise InputError(str(folder), [fault])
    plan = read_plan(beside, model).plan
    if plan is None:
        raise InputError(str(beside), ["holds no plan, because none fits; give the one that ran"])
    paths = [path for path in traces or trace_files([folder]) if path.name != PLAN_BESIDE]
    found = [ops for path in paths if (ops := read_trace(path, ()).ops) is not None and ops.spans]
    if not found:
        fault = "holds no trace that names ops such as PP:0F0; give those of PyTorch's pipelining"
        raise InputError(str(folder), [fault])
    return TracedRun(name=str(folder), plan=plan, traces=tuple(found))
