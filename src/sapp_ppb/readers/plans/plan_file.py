"""
The plan file, version 1.

All faults of a file are raised at once, what is merely odd is a warning of class
FileNote.  What the file says of time and memory is read and not judged: the
simulator has the last word on both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from sapp_ppb.costs.checks import shown
from sapp_ppb.costs.model import Model
from sapp_ppb.errors import InputError, PpbError
from sapp_ppb.fix import Fix, PlaceRule
from sapp_ppb.plan import (
    PLAN_FORMAT,
    PLAN_VERSION,
    Bubble,
    Outcome,
    Shortage,
    Status,
    StoppedBy,
    WithoutTarget,
    counts_from_matrices,
    plan_from_matrices,
)
from sapp_ppb.problem import Problem
from sapp_ppb.readers.formats.json_file import read_document
from sapp_ppb.readers.formats.notes import warn_of
from sapp_ppb.readers.plans.order_file import read_order
from sapp_ppb.readers.plans.plan_entry import (
    BUBBLE_KEYS,
    FIX_KEYS,
    ORDER_KEYS,
    OUTCOME_KEYS,
    PLACES_KEYS,
    PROBLEM_KEYS,
    REMEDY_KEYS,
    SHORTAGE_KEYS,
    TOP_KEYS,
    WITHOUT_TARGET_KEYS,
    Check,
    check_matrix,
    check_object,
    key_notes,
    problem_keys,
)
from sapp_ppb.schedules import Flavour, P2PMode, ScheduleName

PLAN_OTHERWISE = "give a plan file, such as the plan.json that sapp-ppb plan -o DIR writes"


@dataclass
class _Findings:
    """What reading gathers on its way through one file."""

    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def check(self, raw: object, checks: Mapping[str, Check], prefix: str) -> None:
        """Check one object; anything else than an object has been named where it was found."""
        if isinstance(raw, dict):
            self.faults += check_object(raw, checks, prefix)
            self.notes += key_notes(raw, checks, prefix)


def read_plan(path: str | PathLike[str], model: Model) -> Outcome:
    """
    Outcome of a plan file.

    Parameters
    ----------
    path
        JSON file.
    model
        Model that the plan spreads; the file holds only its name.

    Returns
    -------
    Outcome
        What the file says; an infeasible one has no plan.

    Warns
    -----
    FileNote
        For unknown keys, and when the file was made for a model of another name.

    Raises
    ------
    InputError
        If the file can not be read, is no plan file or a newer one, holds what it may
        not, or does not fit the model; with all faults at once.
    """
    document = read_document(path, PLAN_OTHERWISE)
    raw = _refuse_other_files(str(path), document.value)
    found = _Findings(faults=list(document.faults))
    _check(raw, tuple(r.label for r in model.types), found)
    if not found.faults and raw["model"] != model.name:
        found.notes.append(f"the plan was made for the model {shown(raw['model'])}, not {shown(model.name)}")
    if not found.faults:
        _check_mtp(raw.get("mtp"), model, found)
    warn_of(path, found.notes)
    if found.faults:
        raise InputError(str(path), found.faults)
    try:
        return _outcome(raw, model, Path(path).parent)
    except InputError as error:
        raise InputError(str(path), error.faults) from None
    except PpbError as error:
        raise InputError(str(path), [str(error)]) from None


def _check_mtp(names: list[str] | None, model: Model, found: _Findings) -> None:
    """Compare the layers of multi-token prediction with those of the model, where the file names them."""
    own = {layer.name: layer.is_mtp for layer in model.bodies}
    found.faults += [
        f"mtp names {shown(name)}, which is no BODY layer of the model; it has {', '.join(list(own)[:8])}"
        for name in names or ()
        if name not in own
    ]
    if names is None or set(names) == {name for name, is_mtp in own.items() if is_mtp} or found.faults:
        return
    marked = ", ".join(name for name, is_mtp in own.items() if is_mtp) or "none"
    found.notes.append(
        f"mtp names {', '.join(map(shown, names)) or 'none'}, and the model marks {marked}; the model counts"
    )


def _refuse_other_files(where: str, raw: object) -> dict[str, Any]:
    """Give the document back, unless it is no plan file or one that only a later release can read."""
    if not isinstance(raw, dict):
        raise InputError(where, [f"must hold a JSON object (got {shown(raw)})"])
    if raw.get("format") != PLAN_FORMAT:
        fault = f"is no plan file: format must be {PLAN_FORMAT!r} (got {shown(raw.get('format'))})"
        if "layers_description" in raw:
            fault = "is a model file, not a plan file; the model comes first, then the plan"
        raise InputError(where, [fault])
    version = raw.get("version")
    if isinstance(version, int) and version > PLAN_VERSION:
        fault = (
            f"has version {shown(version)}, newer than {PLAN_VERSION}, the newest known here; update sapp-ppb"
        )
        raise InputError(where, [fault])
    if version != PLAN_VERSION or isinstance(version, bool):
        raise InputError(where, [f"version must be {PLAN_VERSION} (got {shown(version)})"])
    return raw


def _check(raw: dict[str, Any], labels: tuple[str, ...], found: _Findings) -> None:
    """Gather the faults and notes of the whole document."""
    found.check(raw, TOP_KEYS, "")
    problem = raw.get("problem")
    found.check(problem, problem_keys(labels), "problem.")
    if isinstance(problem, dict):
        found.check(problem.get("order"), ORDER_KEYS, "problem.order.")
    _check_fix(problem, labels, found)
    outcome = raw.get("outcome")
    found.check(outcome, OUTCOME_KEYS, "outcome.")
    if isinstance(outcome, dict):
        found.check(outcome.get("bubble"), BUBBLE_KEYS, "outcome.bubble.")
        found.check(outcome.get("without_target"), WITHOUT_TARGET_KEYS, "outcome.without_target.")
        _check_shortage(outcome.get("infeasible"), found)
    _check_counts("counts", raw.get("counts"), labels, found)
    if not found.faults:
        _check_whole(raw, found)


def _check_shortage(raw: object, found: _Findings) -> None:
    found.check(raw, SHORTAGE_KEYS, "outcome.infeasible.")
    remedies = raw.get("remedies") if isinstance(raw, dict) else None
    for index, remedy in enumerate(remedies if isinstance(remedies, list) else []):
        place = f"outcome.infeasible.remedies[{index}]"
        if not isinstance(remedy, dict):
            found.faults.append(f"{place} must be an object (got {shown(remedy)})")
        found.check(remedy, REMEDY_KEYS, f"{place}.")


def _check_fix(problem: object, labels: tuple[str, ...], found: _Findings) -> None:
    """Check what is fixed: one matrix, or matrices by layer and type."""
    fix = problem.get("fix") if isinstance(problem, dict) else None
    if not isinstance(fix, dict):
        return
    if ("layers" in fix or "places" in fix) is ("recompute" in fix):
        found.faults.append(f"problem.fix must give layers or recompute, one of the two (got {shown(fix)})")
    found.check(fix.get("places"), PLACES_KEYS, "problem.fix.places.")
    found.check(fix, {key: FIX_KEYS[key] for key in FIX_KEYS if key in fix}, "problem.fix.")
    _check_counts("problem.fix.recompute", fix.get("recompute"), labels, found)


def _check_counts(where: str, counts: object, labels: tuple[str, ...], found: _Findings) -> None:
    """Check that counts are matrices of counts by layer and type."""
    for name, by_type in counts.items() if isinstance(counts, dict) else ():
        place = f"{where}[{shown(name)}]"
        if not isinstance(by_type, dict):
            found.faults.append(f"{place} must be an object (got {shown(by_type)})")
            continue
        for label, matrix in by_type.items():
            if label not in labels:
                found.faults.append(f"{place} knows no type {shown(label)}; one of {', '.join(labels)}")
                continue
            fault = check_matrix(f"{place}.{label}", matrix)
            found.faults += [fault] if fault else []


def _check_whole(raw: dict[str, Any], found: _Findings) -> None:
    """Check what only several keys together show: a plan, or why there is none."""
    outcome, counts = raw["outcome"], raw.get("counts")
    stages = raw["problem"]["stages"]
    devices = outcome.get("stage_order")
    if devices is not None and (len(devices) != stages or sorted(devices) != list(range(len(devices)))):
        found.faults.append(
            f"outcome.stage_order must list every device from 0 to {stages - 1} once (got {shown(devices)})"
        )
    if outcome["status"] == Status.INFEASIBLE:
        if counts:
            found.faults.append("counts must be left out when the status is infeasible")
        if "infeasible" not in outcome:
            found.faults.append("outcome.infeasible is missing, which says why nothing fits")
        return
    if not counts:
        found.faults.append(f"counts is missing, which a status of {outcome['status']} needs")
    if outcome["makespan_ms"] is None:
        found.faults.append("outcome.makespan_ms must be a number when there is a plan (got None)")
    if len(outcome["peak_memory_mb"]) != stages:
        found.faults.append(
            f"outcome.peak_memory_mb must list {stages} stages (got {len(outcome['peak_memory_mb'])})"
        )


def _outcome(raw: dict[str, Any], model: Model, folder: Path) -> Outcome:
    """Outcome of a document in which every key is allowed."""
    problem, known = _problem(raw["problem"], model, folder), raw["outcome"]
    infeasible = known["status"] == Status.INFEASIBLE
    return Outcome(
        problem=problem,
        plan=None if infeasible else plan_from_matrices(problem, raw["counts"]),
        status=Status(known["status"]),
        stopped_by=StoppedBy(known["stopped_by"]),
        makespan_ms=known["makespan_ms"],
        step_ms=known.get("step_ms"),
        lower_bound_ms=known["lower_bound_ms"],
        peak_memory_mb=tuple(known["peak_memory_mb"]),
        bubble=None if known["bubble"] is None else _bubble(known["bubble"]),
        seconds=known["seconds"],
        seed=known["seed"],
        shortage=_shortage(known["infeasible"]) if infeasible else None,
        without_target=WithoutTarget(**{key: known["without_target"][key] for key in WITHOUT_TARGET_KEYS})
        if "without_target" in known
        else None,
        stage_order=tuple(known["stage_order"]) if "stage_order" in known else None,
    )


def _problem(raw: dict[str, Any], model: Model, folder: Path) -> Problem:
    values = {key: raw[key] for key in PROBLEM_KEYS if raw.get(key) is not None}
    values |= {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    if raw.get("recompute") is not None:
        values["recompute"] = tuple(model.type_named(label) for label in raw["recompute"])
    values.pop("estimate", None)  # the model says it
    order = values.pop("order", None)
    if order is not None:
        values["order_file"] = read_order(order["path"], order["sha256"], folder)
    fix = values.pop("fix", None)
    words = {"schedule": ScheduleName, "p2p_mode": P2PMode, "flavour": Flavour}
    values |= {key: word(values[key]) for key, word in words.items() if key in values}
    problem = Problem(model=model, **values)
    return problem if fix is None else replace(problem, fix=_fix(fix, problem))


def _fix(raw: dict[str, Any], problem: Problem) -> Fix:
    """Read what is fixed along the chain, which only the problem's placement shows."""
    if "recompute" in raw:
        counts = counts_from_matrices(problem, raw["recompute"])
        return Fix(recompute=tuple(tuple(map(tuple, types)) for types in counts.tolist()))
    rule = None
    if "places" in raw:
        known = {key: raw["places"][key] for key in PLACES_KEYS if key in raw["places"]}
        rule = PlaceRule(**known | {"recompute": problem.model.type_named(known["recompute"])})
    if "layers" not in raw:
        return Fix(places=rule)
    matrix, cells = raw["layers"], problem.cell_at
    if len(matrix) != len(cells) or any(len(row) != problem.stages for row in matrix):
        raise InputError("problem", [f"fix.layers must have {len(cells)} rows of {problem.stages} counts"])
    by_cell = {
        cell: n for row, there in zip(matrix, cells, strict=True) for n, cell in zip(row, there, strict=True)
    }
    return Fix(layers=tuple(by_cell[cell] for cell in range(problem.cells)), places=rule)


def _bubble(raw: dict[str, float]) -> Bubble:
    return Bubble(**{key: raw[key] for key in BUBBLE_KEYS if key != "total"})


def _shortage(raw: dict[str, Any]) -> Shortage:
    remedies = tuple((remedy["change"], remedy["value"]) for remedy in raw["remedies"])
    known = {key: raw[key] for key in SHORTAGE_KEYS if key in raw}
    return Shortage(**known | {"remedies": remedies})
