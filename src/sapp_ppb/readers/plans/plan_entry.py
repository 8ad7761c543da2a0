"""What a plan file may hold, key by key, and our words for what it may not."""

import re
from collections.abc import Callable, Mapping
from functools import partial

from sapp_ppb.costs.checks import LARGEST_NUMBER, number_fault, shown, text_fault
from sapp_ppb.costs.recompute import Recompute
from sapp_ppb.plan import Status, StoppedBy
from sapp_ppb.readers.models.model_notes import unknown_key_notes
from sapp_ppb.schedules import Flavour, P2PMode, ScheduleName
from sapp_ppb.targets import TARGETS

# One sentence for a value that may not stand at a place, None for one that may.
Check = Callable[[str, object], str | None]
LABELS = tuple(recompute.label for recompute in Recompute)
_SHA256 = re.compile("[0-9a-f]{64}")
_LARGEST_WHOLE = 2**53  # what a float, and so any JSON reader, holds exactly


def _whole(place: str, value: object, *, least: int = 0) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= _LARGEST_WHOLE:
        return None
    return f"{place} must be a whole number of at least {least} (got {shown(value)})"


def _word(place: str, value: object, *, words: tuple[str, ...]) -> str | None:
    if isinstance(value, str) and value in words:
        return None
    return f"{place} must be one of {', '.join(words)} (got {shown(value)})"


def _or_null(place: str, value: object, *, check: Check) -> str | None:
    return None if value is None else check(place, value)


def _numbers(place: str, value: object) -> str | None:
    if not isinstance(value, list):
        return f"{place} must be a list of numbers (got {shown(value)})"
    faults = (number_fault(f"{place}[{index}]", number) for index, number in enumerate(value))
    return next((fault for fault in faults if fault), None)


def _whole_numbers(place: str, value: object) -> str | None:
    if not isinstance(value, list):
        return f"{place} must be a list of whole numbers (got {shown(value)})"
    faults = (_whole(f"{place}[{index}]", number) for index, number in enumerate(value))
    return next((fault for fault in faults if fault), None)


def _names(place: str, value: object) -> str | None:
    if not isinstance(value, list):
        return f"{place} must be a list of names (got {shown(value)})"
    faults = (text_fault(f"{place}[{index}]", name) for index, name in enumerate(value))
    return next((fault for fault in faults if fault), None)


def _per_stage(place: str, value: object) -> str | None:
    return _numbers(place, value) if isinstance(value, list) else number_fault(place, value)


def _group(place: str, value: object) -> str | None:
    if value == "remainder-first" or _whole(place, value, least=1) is None:
        return None
    return f'{place} must be a whole number of at least 1 or "remainder-first" (got {shown(value)})'


def _types(place: str, value: object, *, words: tuple[str, ...] = LABELS) -> str | None:
    if not isinstance(value, list) or not value:
        return f"{place} must be a list of recompute types (got {shown(value)})"
    faults = (_word(f"{place}[{index}]", label, words=words) for index, label in enumerate(value))
    return next((fault for fault in faults if fault), None)


def _margin(place: str, value: object) -> str | None:
    """MB or text; whether the text is a share is judged by the problem."""
    return text_fault(place, value) if isinstance(value, str) else number_fault(place, value)


def _boolean(place: str, value: object) -> str | None:
    return None if isinstance(value, bool) else f"{place} must be true or false (got {shown(value)})"


def _share(place: str, value: object) -> str | None:
    """Any finite number: a part of the bubble may be negative."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_NUMBER:
        return None
    return f"{place} must be a number (got {shown(value)})"


def _text_or_number(place: str, value: object) -> str | None:
    return text_fault(place, value) if isinstance(value, str) else _share(place, value)


def _object(place: str, value: object) -> str | None:
    return None if isinstance(value, dict) else f"{place} must be an object (got {shown(value)})"


def _hash(place: str, value: object) -> str | None:
    if isinstance(value, str) and _SHA256.fullmatch(value):
        return None
    return f"{place} must be a SHA-256 of 64 hexadecimal digits (got {shown(value)})"


def _list(place: str, value: object) -> str | None:
    return None if isinstance(value, list) else f"{place} must be a list (got {shown(value)})"


def check_matrix(place: str, value: object) -> str | None:
    """Fault of a V x S matrix of counts; its shape is judged where V and S are known."""
    if not isinstance(value, list) or not all(isinstance(row, list) for row in value):
        return f"{place} must be a list of lists of counts (got {shown(value)})"
    faults = (
        _whole(f"{place}[{chunk}][{stage}]", count)
        for chunk, row in enumerate(value)
        for stage, count in enumerate(row)
    )
    return next((fault for fault in faults if fault), None)


def _or(check: Check) -> Check:
    return partial(_or_null, check=check)


TOP_KEYS: Mapping[str, Check] = {
    "format": text_fault,
    "version": _whole,
    "model": text_fault,
    "mtp": _names,
    "problem": _object,
    "counts": _object,
    "outcome": _object,
}
PROBLEM_KEYS: Mapping[str, Check] = {
    "stages": partial(_whole, least=1),
    "interleave": partial(_whole, least=1),
    "micro_batches": partial(_whole, least=1),
    "schedule": partial(_word, words=tuple(name.value for name in ScheduleName)),
    "memory_limit_mb": _or(_per_stage),
    "constant_memory_mb": _per_stage,
    "p2p_ms": _per_stage,
    "min_layers_per_cell": _whole,
    "micro_batch_group": _or(_group),
    "target": _or(partial(_word, words=TARGETS)),
    "recompute": _or(_types),
    "memory_margin": _margin,
    "max_recompute_types": _or(_whole),
    "recompute_working_set": _boolean,
    "fix": _or(_object),
    "sequence_chunks": partial(_whole, least=1),
    "p2p_mode": partial(_word, words=tuple(P2PMode)),
    "overlap_factor": number_fault,
    "flavour": _or(partial(_word, words=tuple(Flavour))),
    "order": _or(_object),
    "estimate": _boolean,
    "stage_speed": _or(_per_stage),
    "step_extra_ms": _per_stage,
}


def problem_keys(labels: tuple[str, ...]) -> Mapping[str, Check]:
    """Keys of a problem whose model has types of such labels."""
    return {**PROBLEM_KEYS, "recompute": _or(partial(_types, words=labels))}


FIX_KEYS: Mapping[str, Check] = {"layers": check_matrix, "recompute": _object, "places": _object}
PLACES_KEYS: Mapping[str, Check] = {
    "recompute": partial(_word, words=LABELS),
    "first": partial(_whole, least=1),
    "every": partial(_whole, least=1),
    "entries_left": _whole,
    "chunks": partial(_whole, least=1),
}
ORDER_KEYS: Mapping[str, Check] = {"path": text_fault, "sha256": _hash}
OUTCOME_KEYS: Mapping[str, Check] = {
    "status": partial(_word, words=tuple(status.value for status in Status)),
    "makespan_ms": _or(number_fault),
    "step_ms": _or(number_fault),
    "lower_bound_ms": _or(number_fault),
    "gap": _or(number_fault),
    "stopped_by": partial(_word, words=tuple(reason.value for reason in StoppedBy)),
    "seconds": number_fault,
    "seed": _whole,
    "peak_memory_mb": _numbers,
    "bubble": _or(_object),
    "without_target": _object,
    "stage_order": _whole_numbers,
    "infeasible": _object,
}
WITHOUT_TARGET_KEYS: Mapping[str, Check] = {"makespan_ms": number_fault, "lower_bound_ms": number_fault}
BUBBLE_KEYS: Mapping[str, Check] = dict.fromkeys(
    ("total", "fill_drain", "imbalance", "recompute", "communication"), _share
)
SHORTAGE_KEYS: Mapping[str, Check] = {
    "stage": _or(_whole),
    "op": _or(text_fault),
    "over_mb": _or(number_fault),
    "smallest_limit_mb": _or(number_fault),
    "proven": _boolean,
    "remedies": _list,
}
REMEDY_KEYS: Mapping[str, Check] = {"change": text_fault, "value": _text_or_number}
# Keys that need not be there; gap and total are computed from the others.
_OPTIONAL = frozenset(
    {
        "mtp",
        "counts",
        "micro_batch_group",
        "target",
        "recompute",
        "memory_margin",
        "max_recompute_types",
        "recompute_working_set",
        "fix",
        "layers",
        "first",
        "every",
        "entries_left",
        "chunks",
        "sequence_chunks",
        "p2p_mode",
        "overlap_factor",
        "flavour",
        "order",
        "estimate",
        "stage_speed",
        "step_extra_ms",
        "step_ms",
        "stage_order",
        "without_target",
        "infeasible",
        "proven",
        "gap",
        "total",
    }
)
# Keys of these names that must be there although others of the name need not.
_NEEDED = frozenset({"outcome.bubble.recompute", "problem.fix.places.recompute"})


def check_object(raw: Mapping[str, object], checks: Mapping[str, Check], prefix: str) -> list[str]:
    """
    One sentence for every key of an object that is missing or holds what it may not.

    Examples
    --------
    >>> check_object({"change": ""}, REMEDY_KEYS, "outcome.infeasible.remedies[0].")
    ["outcome.infeasible.remedies[0].change must be text that is not empty (got '')", \
'outcome.infeasible.remedies[0].value is missing']
    """
    faults = []
    for key, check in checks.items():
        if key in raw:
            fault = check(f"{prefix}{key}", raw[key])
            faults += [fault] if fault else []
        elif key not in _OPTIONAL or f"{prefix}{key}" in _NEEDED:
            faults.append(f"{prefix}{key} is missing")
    return faults


def key_notes(raw: Mapping[str, object], checks: Mapping[str, Check], prefix: str) -> list[str]:
    """One sentence for every key that is not read."""
    return unknown_key_notes(list(raw), tuple(checks), prefix)
