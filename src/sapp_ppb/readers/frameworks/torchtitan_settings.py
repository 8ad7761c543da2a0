"""What a configuration of torchtitan says, TOML or Python, with its types checked and nothing judged."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike

from sapp_ppb.costs.checks import LARGEST_COUNT, shown
from sapp_ppb.errors import InputError
from sapp_ppb.readers.formats.python_settings import CHECKPOINT, Unread, read_python_settings
from sapp_ppb.readers.formats.toml_file import read_toml
from sapp_ppb.schedules import MOST_CELLS

_DEGREE = "pipeline_parallel_degree"
_PARTS = ("module_fqns_per_model_part", "pipeline_parallel_module_fqns_per_model_part")  # newest last
_KEYS = (
    _DEGREE,
    "pipeline_parallel_schedule",
    "pipeline_parallel_schedule_csv",
    *_PARTS,
    "pipeline_parallel_split_points",
    "pipeline_parallel_layers_per_stage",
    "pipeline_parallel_first_stage_less_layers",
    "pipeline_parallel_last_stage_less_layers",
    "pipeline_parallel_microbatch_size",
    "pipeline_parallel_microbatches",
    "num_pp_microbatches",
    "local_batch_size",
    "batch_size",
    "selective_ac_option",
    "memory_budget",
)
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+(?::-([^}]*))?\})")
_USUAL_BATCH = 8  # of every release whose configuration is TOML


@dataclass(frozen=True, kw_only=True)
class TorchtitanSettings:
    """
    Settings of the pipeline; None for what is not known.

    Attributes
    ----------
    stages, schedule, schedule_csv
        Ranks of the pipeline, PyTorch's name of the schedule, and the path of an order, or "".
    parts
        Modules of each part; None without lists.
    split_points
        Names of the layers at which parts begin, as older releases have it.
    per_part, first_less, last_less
        What decides the parts where no lists are given.
    micro_batches
        Where their number itself is given.
    micro_batch_size, batch_size
        Samples of a micro-batch, and of a step of one rank.
    mode, option
        Of activation checkpointing.
    is_old
        Whether the release is one that had the pipeline under ``experimental``.
    unknown
        What is given and can not be read, a sentence each.
    unread
        Keys of these.
    notes
        What was taken for granted, a sentence each.
    """

    stages: int | None
    schedule: str | None
    schedule_csv: str | None
    parts: tuple[tuple[str, ...], ...] | None
    split_points: tuple[str, ...] | None
    per_part: int | None
    first_less: int | None
    last_less: int | None
    micro_batches: int | None
    micro_batch_size: int | None
    batch_size: int | None
    mode: str | None
    option: str | None
    is_old: bool
    unknown: tuple[str, ...]
    unread: frozenset[str]
    notes: tuple[str, ...]


def torchtitan_settings(path: str | PathLike[str], function: str | None = None) -> TorchtitanSettings:
    """
    Read the settings of a TOML file, or of a Python file (``.py``).

    Parameters
    ----------
    path
        The file.
    function
        In Python: the function that makes the configuration.

    Raises
    ------
    InputError
        If the file can not be read, or a setting has another type than it must; all
        faults at once.
    """
    is_python = str(path).lower().endswith(".py")
    if is_python:
        tables: Mapping[str, object] = read_python_settings(path, _KEYS, function)
    else:
        tables = read_toml(path)
    taker = _Taker(tables=tables)
    settings = _taken(taker, is_python=is_python)
    if taker.faults:
        raise InputError(str(path), taker.faults)
    return settings


def _taken(taker: "_Taker", *, is_python: bool) -> TorchtitanSettings:
    """Read every setting, then say what is unknown of them."""
    old = taker.is_old
    where = "experimental" if old else "parallelism"
    notes: list[str] = []
    stages = taker.number(where, _DEGREE, 1, most=MOST_CELLS)
    values = {
        "stages": stages,
        "schedule": taker.text(where, "pipeline_parallel_schedule", "1F1B"),
        "schedule_csv": taker.text(where, "pipeline_parallel_schedule_csv", ""),
        "parts": taker.parts(where, next((key for key in _PARTS[::-1] if taker.has(where, key)), _PARTS[0])),
        "split_points": taker.names(where, "pipeline_parallel_split_points"),
        "per_part": taker.number(where, "pipeline_parallel_layers_per_stage", None),
        "first_less": taker.number(where, "pipeline_parallel_first_stage_less_layers", 1, least=0),
        "last_less": taker.number(where, "pipeline_parallel_last_stage_less_layers", 1, least=0),
        "micro_batch_size": taker.number(where, "pipeline_parallel_microbatch_size", 1),
        "micro_batches": taker.number(where, "num_pp_microbatches", None),
    }
    if old:
        values["micro_batches"] = taker.number(where, "pipeline_parallel_microbatches", stages)
    key = "batch_size" if taker.has("training", "batch_size") else "local_batch_size"
    batch = taker.number("training", key, None if is_python else _USUAL_BATCH)
    if not taker.has("training", key) and values["micro_batches"] is None and not is_python:
        notes.append(f"training.local_batch_size is not given; torchtitan takes {_USUAL_BATCH}")
    mode = taker.text(CHECKPOINT, "mode", None if is_python else "selective")
    option = taker.text(CHECKPOINT, "selective_ac_option", "2")
    return TorchtitanSettings(
        **values,  # type: ignore[arg-type]
        batch_size=batch,
        mode=mode,
        option=option,
        is_old=old,
        unknown=tuple(taker.unknown),
        unread=frozenset(taker.unread),
        notes=tuple(notes),
    )


@dataclass
class _Taker:
    """Takes typed values out of tables, and gathers faults and what is not known."""

    tables: Mapping[str, object]
    faults: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)

    @property
    def is_old(self) -> bool:
        """Whether the pipeline is set where releases before 2025 set it."""
        return self.has("experimental", _DEGREE) and not self.has("parallelism", _DEGREE)

    def has(self, table: str, key: str) -> bool:
        """Whether a key is given."""
        found = self.tables.get(table)
        return isinstance(found, Mapping) and key in found

    def number(
        self, table: str, key: str, usual: int | None, *, least: int = 1, most: int = LARGEST_COUNT
    ) -> int | None:
        """Whole number; None for what is not known or stands for "not given"."""
        value = self._value(table, key, usual)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
            value = int(value)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self._fault(table, key, f"a whole number from {least} to {most}", value)
            return None
        return value

    def text(self, table: str, key: str, usual: str | None) -> str | None:
        """Text; a null stands for the empty one."""
        value = self._value(table, key, usual)
        if value is None:
            return None if key in self.unread or not self.has(table, key) else ""
        if isinstance(value, int) and not isinstance(value, bool) and key == "selective_ac_option":
            value = str(value)
        if not isinstance(value, str) or not value.isprintable():
            self._fault(table, key, "text", value)
            return None
        return value

    def names(self, table: str, key: str) -> tuple[str, ...] | None:
        """List of names."""
        value = self._value(table, key, None)
        if value is None:
            return None
        if not _are_names(value):
            self._fault(table, key, "a list of names", value)
            return None
        return tuple(value)  # type: ignore[arg-type]

    def parts(self, table: str, key: str) -> tuple[tuple[str, ...], ...] | None:
        """Take lists of names; None without any."""
        value = self._value(table, key, None)
        if value is None:
            return None
        if not isinstance(value, list) or not value:
            self._fault(table, key, "a list with a list of modules for each part", value)
            return None
        wrong = [index for index, part in enumerate(value) if not _are_names(part)]
        if wrong:
            self._fault(table, f"{key}[{wrong[0]}]", "a list of names of modules", value[wrong[0]])
            return None
        return tuple(tuple(part) for part in value)

    def _value(self, table: str, key: str, usual: object) -> object:
        """Value of a key, with variables of a shell filled in as far as they can be."""
        found = self.tables.get(table, {})
        if not isinstance(found, Mapping):
            fault = f"{table} must be a table (got {shown(found)})"
            self.faults += [] if fault in self.faults else [fault]
            return None
        value = found.get(key, usual)
        variable = _VARIABLE.fullmatch(value) if isinstance(value, str) else None
        if variable is not None and variable[1] is not None:
            return variable[1]
        if variable is not None:
            value = Unread(why=f"{shown(value)} is a variable of the shell that starts it")
        if isinstance(value, Unread):
            self.unread.add(key)
            self.unknown.append(f"{key} is not known: {value.why}")
            return None
        return value

    def _fault(self, table: str, key: str, wanted: str, value: object) -> None:
        self.faults.append(f"{table}.{key} must be {wanted} (got {shown(value)})")


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(name, str) and name.strip() and name.isprintable() for name in value
    )
