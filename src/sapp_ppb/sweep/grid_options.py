"""
A grid from options, as text of a command line or as values of a YAML file.

Both go through the same words: ``4,8,16``, ``1-4`` and ``40000:64000:4000``, or lists.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any

from sapp_ppb.costs import Recompute, RecomputeType
from sapp_ppb.costs.checks import shown
from sapp_ppb.costs.per_stage import PerStage
from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.yaml_file import read_yaml_document
from sapp_ppb.schedules import Flavour, P2PMode, ScheduleName
from sapp_ppb.sweep.grid import Grid
from sapp_ppb.sweep.work import Effort

AUTO = "auto"
_MOST_VALUES = 10_000  # of one range
_DIGITS = re.compile(r"\d{1,9}")
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")
_THOUSANDS = re.compile(r"0\d\d")  # what 56,000 ends in, and no list of limits


def _whole(value: object) -> int:
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError("must be a whole number")


def _wholes(value: object) -> tuple[int, ...]:
    """
    Whole numbers of a list, or of text such as ``1-4`` or ``4,8,16``; each once.

    Examples
    --------
    >>> _wholes("1-3,8"), _wholes([4, "6-7"]), _wholes(2)
    ((1, 2, 3, 8), (4, 6, 7), (2,))
    """
    found: list[int] = []
    for entry in _entries(value):
        bounds = _RANGE.fullmatch(entry.strip()) if isinstance(entry, str) else None
        if bounds is None:
            found.append(_whole_of(entry))
            continue
        first, last = int(bounds[1]), int(bounds[2])
        if not first <= last < first + _MOST_VALUES:
            raise ValueError(f"has a range that is empty or too long ({entry.strip()})")
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


def _whole_of(entry: object) -> int:
    try:
        return _whole(entry)
    except ValueError:
        raise ValueError("must hold whole numbers, or ranges such as 1-4") from None


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a number")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ValueError("must be a number") from None
    if not math.isfinite(number) or (isinstance(value, str) and "_" in value):
        raise ValueError("must be a number")
    return number


def _limits(value: object) -> tuple[PerStage | None, ...]:
    """
    Memory limits: numbers, ranges as first:last:step, in a file also lists (one a stage) and null.

    Examples
    --------
    >>> _limits("56000,64000"), _limits("40:48:4"), _limits([[30, 20], None])
    ((56000.0, 64000.0), (40.0, 44.0, 48.0), ((30.0, 20.0), None))
    """
    entries = _entries(value)
    if isinstance(value, str) and any(_THOUSANDS.fullmatch(entry) for entry in entries[1:]):
        raise ValueError(f"looks like one number with a thousands comma; write {value.replace(',', '')}")
    found: list[PerStage | None] = []
    for entry in entries:
        if entry is None or isinstance(entry, list):
            found.append(None if entry is None else tuple(_number(each) for each in entry))
        elif isinstance(entry, str) and ":" in entry:
            found += _range(entry)
        else:
            found.append(_number(entry))
    return tuple(dict.fromkeys(found))


def _per_stage(value: object) -> PerStage:
    """
    Read a number, or one a stage.

    Examples
    --------
    >>> _per_stage("1.5"), _per_stage("1,0.5"), _per_stage([1, 0.5])
    (1.5, (1.0, 0.5), (1.0, 0.5))
    """
    numbers = tuple(_number(entry) for entry in _entries(value))
    return numbers[0] if len(numbers) == 1 and not isinstance(value, list) else numbers


def _range(text: str) -> list[float]:
    parts = text.split(":")
    if len(parts) != 3:
        raise ValueError(f"has a range that is not first:last:step ({text.strip()})")
    first, last, step = (_number(part) for part in parts)
    if step <= 0 or last < first or (last - first) / step >= _MOST_VALUES:
        raise ValueError(f"has a range that is empty or too long ({text.strip()})")
    return [first + step * index for index in range(int((last - first) / step * (1 + 1e-12)) + 1)]


def _entries(value: object) -> list[Any]:
    if isinstance(value, str):
        return list(value.split(","))
    if isinstance(value, list):
        if not value:
            raise ValueError("must hold at least one value")
        return value
    return [value]


def _schedules(value: object) -> object:
    """Names of schedules, or ``auto`` for every one."""
    names = [entry.strip() if isinstance(entry, str) else entry for entry in _entries(value)]
    if names == [AUTO]:
        return AUTO
    for name in names:
        _one_of(name, ScheduleName, AUTO)
    if AUTO in names:
        raise ValueError("names schedules beside auto, which tries them all")
    return tuple(ScheduleName(name) for name in dict.fromkeys(names))


def _one_of(value: object, known: Any, *more: str) -> object:
    words = [*(str(each.value) for each in known), *more]
    if value not in words:
        raise ValueError(f"must be one of {', '.join(words)}")
    return value


def _types(value: object, types: Sequence[RecomputeType] = tuple(Recompute)) -> tuple[RecomputeType, ...]:
    labels = [entry.strip() if isinstance(entry, str) else entry for entry in _entries(value)]
    known = {r.label: r for r in types}
    if any(not isinstance(label, str) or label not in known for label in labels):
        raise ValueError(f"must be one or more of {', '.join(known)}")
    return tuple(known[label] for label in labels)


def _margin(value: object) -> float | str:
    if isinstance(value, str) and value.strip().endswith("%"):
        _number(value.strip().removesuffix("%"))
        return value
    return _number(value)


def _share(value: object) -> float:
    """
    Share as a number or a percentage.

    Examples
    --------
    >>> _share("1%"), _share(0.02)
    (0.01, 0.02)
    """
    if isinstance(value, str) and value.strip().endswith("%"):
        return _number(value.strip().removesuffix("%")) / 100
    return _number(value)


def _group(value: object) -> object:
    return value if value == "remainder-first" else _whole(value)


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


# What reads the value of each option, and the field of Grid that it fills; in capitals a field of
# the problems, or of Effort.
_READ: dict[str, tuple[Callable[[object], object], str]] = {
    "devices": (_whole, "devices"),
    "global-batch": (_whole, "global_batch"),
    "stages": (_wholes, "stages"),
    "interleave": (_wholes, "interleave"),
    "schedule": (_schedules, "schedules"),
    "memory-limit": (_limits, "memory_limits_mb"),
    "micro-batch-size": (_wholes, "micro_batch_sizes"),
    "model-micro-batch-size": (_whole, "model_micro_batch_size"),
    "tensor-parallel": (_wholes, "tensor_parallel"),
    "p2p": (_number, "p2p_ms"),
    "micro-batch-group": (_group, "micro_batch_group"),
    "sequence-chunks": (_whole, "sequence_chunks"),
    "overlap-factor": (_number, "overlap_factor"),
}
_OF_PROBLEMS: dict[str, tuple[Callable[[object], object], str]] = {
    "memory-margin": (_margin, "memory_margin"),
    "constant-memory": (_number, "constant_memory_mb"),
    "stage-speed": (_per_stage, "stage_speed"),
    "step-extra": (_per_stage, "step_extra_ms"),
    "p2p-mode": (lambda value: P2PMode(str(_one_of(value, P2PMode))), "p2p_mode"),
    "flavour": (lambda value: Flavour(str(_one_of(value, Flavour))), "flavour"),
    "recompute": (_types, "recompute"),
    "max-recompute-types": (_whole, "max_recompute_types"),
    "recompute-working-set": (_truth, "recompute_working_set"),
    "min-layers": (_whole, "min_layers_per_cell"),
    "target": (_text, "target"),
}
_OF_EFFORT: dict[str, tuple[Callable[[object], object], str]] = {
    "time-limit": (_number, "time_limit_s"),
    "gap": (_share, "gap"),
    "seed": (_whole, "seed"),
}
OPTIONS = (*_READ, *_OF_PROBLEMS, *_OF_EFFORT)


def read_grid(
    path: str | PathLike[str] | None,
    given: Mapping[str, object],
    types: Sequence[RecomputeType] = tuple(Recompute),
) -> tuple[Grid, Effort]:
    """
    Read a grid, and how hard its problems are tried, from a file and from options.

    Parameters
    ----------
    path
        YAML file with the names of options as keys; None for none.
    given
        Values of options by name, None where it was not given.
    types
        What may be recomputed how: the types of a model, with its strategies.

    Raises
    ------
    InputError
        All faults of the file at once, or all of the options; also for what both give.

    Examples
    --------
    >>> grid, effort = read_grid(None, {"devices": 8, "global-batch": 64, "stages": "2,4", "time-limit": 5})
    >>> grid.stages, effort.time_limit_s
    ((2, 4), 5.0)
    """
    values: dict[str, object] = {}
    if path is not None:
        values = _from_file(path, given, types)
    faults: list[str] = []
    for name, value in given.items():
        if value is not None:
            _read(name, f"--{name}", value, types, values, faults)
    faults += [f"--{name} must be given" for name in ("devices", "global-batch") if name not in values]
    if faults:
        raise InputError("sweep", faults)
    return _grid(values), Effort(**_fields(_OF_EFFORT, values))


def _from_file(
    path: str | PathLike[str], given: Mapping[str, object], types: Sequence[RecomputeType]
) -> dict[str, object]:
    document = read_yaml_document(path)
    faults, values = list(document.faults), dict[str, object]()
    raw = document.value
    if not isinstance(raw, dict):
        raise InputError(str(path), [*faults, f"must hold keys and values (got {shown(raw)})"])
    for key, value in raw.items():
        name, place = str(key).replace("_", "-"), document.at(str(key))
        if name not in OPTIONS:
            faults.append(f"{place} is unknown; one of {', '.join(OPTIONS)}")
        elif name in values:
            faults.append(f"{place} is given twice; keep one")
        elif given.get(name) is not None:
            faults.append(f"{place} is given on the command line too; keep one")
        else:
            _read(name, place, value, types, values, faults)
    if faults:
        raise InputError(str(path), faults)
    return values


def _read(
    name: str,
    place: str,
    value: object,
    types: Sequence[RecomputeType],
    values: dict[str, object],
    faults: list[str],
) -> None:
    """Read one value, or keep its fault."""
    read, _ = (_READ | _OF_PROBLEMS | _OF_EFFORT)[name]
    read = partial(_types, types=types) if read is _types else read
    try:
        values[name] = read(value)
    except ValueError as error:
        faults.append(f"{place} {error} (got {shown(_wrong(value, read))})")


def _wrong(value: object, read: Callable[[object], object]) -> object:
    """Value that can not be read; of a list the first entry that can not, where there is one."""
    for entry in value if isinstance(value, list) else ():
        try:
            read(entry)
        except ValueError:
            return _wrong(entry, read)
    return value


def _grid(values: Mapping[str, object]) -> Grid:
    fields = _fields(_READ, values)
    if fields.get("schedules") == AUTO:
        fields |= {"schedules": (), "every_schedule": True}
    return Grid(**fields, given=_fields(_OF_PROBLEMS, values))


def _fields(known: Mapping[str, tuple[Callable[[object], object], str]], values: Mapping[str, object]) -> Any:
    return {field: values[name] for name, (_, field) in known.items() if name in values}
