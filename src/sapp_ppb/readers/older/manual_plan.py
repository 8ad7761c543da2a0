"""
The manual YAML of the older SAPP tool: configs of MindFormers under names of their own.

Each entry says offset and recompute lists, its number of chunks, and a file name for
its picture.  All faults of a file are raised at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike

from sapp_ppb.costs.checks import count_fault, shown, text_fault
from sapp_ppb.errors import InputError, PpbError, ScheduleError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.readers.formats.mindformers_lists import counts_from_list, layers_from_offset, plan_from_lists
from sapp_ppb.readers.formats.notes import warn_of
from sapp_ppb.readers.formats.yaml_file import YamlDocument, read_yaml_document
from sapp_ppb.readers.models.model_notes import unknown_key_notes
from sapp_ppb.readers.plans.named_plan import NamedPlan, unbound

_LISTS = ("recompute", "select_recompute", "select_comm_recompute")
_KEYS = ("offset", *_LISTS, "interleave_num", "show", "file_name")
_PICTURES = (".png", ".svg")


@dataclass
class _Findings:
    """What reading gathers on its way through one file."""

    document: YamlDocument
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fault(self, place: str, words: str) -> None:
        """Keep a fault that starts behind the name of its place."""
        self.faults.append(f"{self.document.at(place)} {words}")


def read_manual_plans(path: str | PathLike[str], problem: Problem) -> tuple[NamedPlan, ...]:
    """
    Plans of a manual YAML.

    Parameters
    ----------
    path
        YAML file: ``{name: {offset, recompute, select_recompute, select_comm_recompute,
        interleave_num, show, file_name}}``.
    problem
        What the plans are for.  An entry with another ``interleave_num`` gets the same
        problem with its chunks, under the same schedule where that takes them and the
        default one where not.  The problem's target and recompute types bind no entry.

    Returns
    -------
    tuple
        In the order of the file.

    Warns
    -----
    FileNote
        For unknown keys.

    Raises
    ------
    InputError
        If the file can not be read, an entry is no plan of the problem, or a
        ``file_name`` leaves its folder; with all faults at once.
    """
    document = read_yaml_document(path)
    found = _Findings(document, faults=list(document.faults))
    entries = document.value
    if not isinstance(entries, dict) or not entries:
        fault = f"must hold at least one named plan, name: {{offset: ...}} (got {shown(entries)})"
        raise InputError(str(path), [fault, *found.faults])
    plans = [_entry(name, entry, problem, found) for name, entry in entries.items()]
    known = [plan for plan in plans if plan is not None]
    found.faults += _shared_names(known)
    warn_of(path, found.notes)
    if found.faults:
        raise InputError(str(path), found.faults)
    return tuple(known)


def _entry(name: str, entry: object, problem: Problem, found: _Findings) -> NamedPlan | None:
    """Plan of one entry; None when it has faults."""
    name_fault = text_fault("the name of a plan", name)
    if name_fault:
        found.faults.append(name_fault)
        return None
    if not isinstance(entry, dict):
        found.fault(name, f"must hold offset and recompute lists (got {shown(entry)})")
        return None
    found.notes += unknown_key_notes(entry, _KEYS, f"{name}.")
    before = len(found.faults)
    for key, fault in (
        ("show", _show_fault(entry.get("show", True))),
        ("file_name", _file_name_fault(entry.get("file_name"))),
    ):
        if fault:
            found.fault(f"{name}.{key}", fault)
    theirs = _problem_of(name, entry, problem, found)
    plan = None if theirs is None else _plan(name, entry, theirs, found)
    if plan is None or len(found.faults) > before:
        return None
    return NamedPlan(name=name, plan=plan, file_name=entry.get("file_name"))


def _show_fault(value: object) -> str | None:
    return None if isinstance(value, bool) else f"must be true or false (got {shown(value)})"


def _file_name_fault(value: object) -> str | None:
    """Refuse a name that could lead out of the output folder, on any system, or to no picture."""
    if value is None:
        return None
    fault = text_fault("", value)
    if fault:
        return fault.lstrip()
    if not isinstance(value, str) or any(mark in value for mark in "/\\:") or value.startswith("."):
        return f"must be a plain name without a folder, such as manual1.svg (got {shown(value)})"
    if not value.lower().endswith(_PICTURES):
        return f"must end in {' or '.join(_PICTURES)} (got {shown(value)})"
    return None


def _shared_names(plans: list[NamedPlan]) -> list[str]:
    """Faults of plans that would write their pictures over each other."""
    owners: dict[str, list[str]] = {}
    for plan in plans:
        if plan.file_name is not None:
            owners.setdefault(plan.file_name, []).append(plan.name)
    return [
        f"{', '.join(names)} have the same file_name {shown(file_name)}; give each its own"
        for file_name, names in owners.items()
        if len(names) > 1
    ]


def _problem_of(name: str, entry: Mapping[str, object], problem: Problem, found: _Findings) -> Problem | None:
    """Problem that an entry answers; None when its chunks are none."""
    chunks = entry.get("interleave_num", problem.interleave)
    fault = count_fault("", chunks)
    if fault or not isinstance(chunks, int):
        found.fault(f"{name}.interleave_num", (fault or "").lstrip())
        return None
    try:
        return with_chunks(unbound(problem), chunks)
    except PpbError as error:
        faults = error.faults if isinstance(error, InputError) else (str(error),)
        for words in faults:
            found.fault(f"{name}.interleave_num", f"= {chunks} can not be: {words}")
        return None


def with_chunks(problem: Problem, chunks: int) -> Problem:
    """
    Give a problem another number of chunks a stage.

    Its schedule and micro-batch group stay where they take the chunks; the default
    schedule comes in their place where they do not.

    Raises
    ------
    InputError
        If there are not layers or hops enough for so many cells.
    ScheduleError
        If no schedule takes these sizes.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> with_chunks(problem, 2).schedule_name.value  # 1f1b takes one chunk only
    'interleaved'
    """
    if chunks == problem.interleave:
        return problem
    try:
        return replace(problem, interleave=chunks)
    except ScheduleError:
        usual = {"schedule": None, "micro_batch_group": None, "order_file": None, "flavour": None}
        return replace(problem, interleave=chunks, sequence_chunks=1, overlap_factor=0.0, **usual)  # type: ignore[arg-type]


def _plan(name: str, entry: Mapping[str, object], problem: Problem, found: _Findings) -> Plan | None:
    """Plan of an entry's lists; None when they have faults."""
    if "offset" not in entry:
        found.fault(name, "has no offset; give 0 for an even split, or a list")
        return None
    try:
        layers = layers_from_offset(entry["offset"], problem)
    except ValueError as error:
        found.fault(f"{name}.offset", str(error))
        return None
    counts = []
    for key in _LISTS:
        try:
            counts.append(counts_from_list(entry.get(key), layers))
        except ValueError as error:
            found.fault(f"{name}.{key}", str(error))
    if len(counts) < len(_LISTS):
        return None
    try:
        return plan_from_lists(problem, layers, *counts)
    except InputError as error:
        for words in error.faults:
            found.fault(name, f"is no plan: {words}")
        return None
