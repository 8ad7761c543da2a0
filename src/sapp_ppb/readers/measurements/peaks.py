"""
Peaks of memory: logs of dry runs, CSV files of a profiler, a small YAML of numbers, or our traces.

Which stage a file is of stands in its name or in that of its folder (``stage_3_rank_24``),
unless it is given.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from sapp_ppb.costs.checks import number_fault, printable, shown
from sapp_ppb.errors import InputError
from sapp_ppb.files import is_folder
from sapp_ppb.readers.formats.number_text import number_of
from sapp_ppb.readers.formats.text_file import read_lines
from sapp_ppb.readers.formats.yaml_file import read_yaml_document
from sapp_ppb.readers.measurements.trace_events import trace_events

_LARGEST_FILE_MB = 256
_MOST_ROWS = 2_000_000
_STAGE = re.compile(r"stage[-_]?(\d{1,5})", re.IGNORECASE)
_PEAK = re.compile(
    r"(Used|Actual) peak memory usage \((with|without) fragments\):\s*([0-9.]+)\s*([KMG])B?\b", re.IGNORECASE
)
_MB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}
_RESERVED = re.compile(r"total reserved?\s*\((kb|mb)\)", re.IGNORECASE)
_ALL = "APP"  # the component whose reserved memory is the process's
_READABLE = (".log", ".txt", ".csv")


@dataclass(frozen=True, kw_only=True)
class FoundPeak:
    """
    A peak and where it was found.

    Attributes
    ----------
    stage
        Stage of the run.
    peak_mb
        MB.
    source
        File, for what is said of it.
    """

    stage: int
    peak_mb: float
    source: str


def read_peaks(paths: Sequence[str], *, fragments: bool = False) -> tuple[FoundPeak, ...]:
    """
    Peaks of one run, the highest of each stage.

    Parameters
    ----------
    paths
        Logs (``.log``, ``.txt``), ``memory_record.csv``, ``npu_module_mem.csv``, a YAML, a
        trace of ``sapp-ppb simulate --emit-trace`` (``.json``), or folders of logs and CSV
        files; ``3=PATH`` says that a file is of stage 3.
    fragments
        Take what a dry run says with fragments instead of without.

    Returns
    -------
    tuple
        By stage.

    Raises
    ------
    InputError
        If a file can not be read, holds no peak, or is of no known stage; all faults at once.
    """
    found: dict[int, FoundPeak] = {}
    faults: list[str] = []
    for stage, path in _files(paths):
        try:
            peaks = _peaks_of(path, stage, fragments=fragments)
        except InputError as error:
            faults += [f"{printable(error.where)}: {fault}" for fault in error.faults]
            continue
        for peak in peaks:
            if peak.stage not in found or found[peak.stage].peak_mb < peak.peak_mb:
                found[peak.stage] = peak
    if faults:
        raise InputError("peaks", faults)
    return tuple(found[stage] for stage in sorted(found))


def _files(paths: Sequence[str]) -> Iterator[tuple[int | None, Path]]:
    """Files that paths name, with the stage that is given of each; folders are searched."""
    for text in paths:
        number, equals, rest = text.partition("=")
        given = int(number) if equals and number.isascii() and number.isdigit() and len(number) < 6 else None
        path = Path(text if given is None else rest)
        if not is_folder(path):
            yield given, path
            continue
        inside = sorted(
            file for file in path.rglob("*") if file.suffix.lower() in _READABLE and file.is_file()
        )
        if not inside:
            raise InputError(str(path), [f"holds no file that ends in {', '.join(_READABLE)}"])
        for file in inside:
            yield given, file


def _peaks_of(path: Path, stage: int | None, *, fragments: bool) -> list[FoundPeak]:
    if path.suffix.lower() in (".yaml", ".yml"):
        return _from_yaml(path)
    if path.suffix.lower() == ".json":
        return _from_trace(path)
    stage = _stage_of(path) if stage is None else stage
    if stage is None:
        fault = "its name says no stage, such as stage_3; give it as 3=PATH"
        raise InputError(str(path), [fault])
    is_csv = path.suffix.lower() == ".csv"
    peak = _from_csv(path) if is_csv else _from_log(path, fragments=fragments)
    return [FoundPeak(stage=stage, peak_mb=peak, source=str(path))]


def _stage_of(path: Path) -> int | None:
    """Stage in the name of a file, or else of the nearest folder that says one."""
    for part in reversed(path.parts):
        found = _STAGE.search(part)
        if found:
            return int(found[1])
    return None


def _from_log(path: Path, *, fragments: bool) -> float:
    """Last peak that a dry run prints; the other of its two numbers where one is missing."""
    found: dict[str, float] = {}
    for text in read_lines(path, largest_mb=_LARGEST_FILE_MB, format_name="a log"):
        for line in _PEAK.finditer(text):
            number, fault = number_of("peak memory usage", line[3], above_zero=True)
            if fault:
                raise InputError(str(path), [fault])
            found[line[2].lower()] = number * _MB[line[4].upper()]
    wanted = ("with", "without") if fragments else ("without", "with")
    for kind in wanted:
        if kind in found:
            return found[kind]
    wanted_line = "Used peak memory usage (without fragments): ...M"
    raise InputError(str(path), [f"says no {wanted_line!r}; is it the log of a dry run, to its end?"])


def _from_csv(path: Path) -> float:
    """Most that the process reserved, by the names of the columns, which differ with the version."""
    rows = csv.reader(read_lines(path, largest_mb=_LARGEST_FILE_MB, format_name="CSV"))
    try:
        headings = next((row for row in rows if row), [])
        units = {name: _RESERVED.search(name) for name in headings}
        columns = {name: found[1].lower() for name, found in units.items() if found}
        if not columns or "Component" not in headings:
            got = shown(", ".join(headings), 200)
            fault = f"must have the columns Component and Total Reserved(KB) or (MB) (got {got})"
            raise InputError(str(path), [fault])
        column, unit = next(iter(columns.items()))
        most = _most(path, rows, headings.index("Component"), headings.index(column), column)
    except csv.Error as error:
        raise InputError(str(path), [f"line {rows.line_num} is no CSV: {error}"]) from None
    if most <= 0.0:
        raise InputError(str(path), [f"has no row of component {_ALL} with reserved memory"])
    return most / 1024 if unit == "kb" else most


def _most(path: Path, rows: Any, component: int, place: int, column: str) -> float:
    """Highest number of a column in the rows of the whole process."""
    most = 0.0
    for number, row in enumerate(rows):
        if number > _MOST_ROWS:
            raise InputError(str(path), [f"holds more than {_MOST_ROWS:,} rows; is it the right file?"])
        if len(row) > component and row[component].strip() == _ALL:
            most = max(most, _number(path, rows.line_num, column, row[place] if len(row) > place else None))
    return most


def _number(path: Path, line: int, column: str, value: str | None) -> float:
    text = (value or "").strip()
    if text in ("", "N/A"):  # both mean missing
        return 0.0
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    fault = number_fault(f"{column} (line {line})", number)
    if fault:
        raise InputError(
            str(path), [f"{column} (line {line}) must be a number of at least 0 (got {shown(text)})"]
        )
    return number


def _from_yaml(path: str | PathLike[str]) -> list[FoundPeak]:
    """Peaks under ``peak_memory_mb``, or bytes under ``max_memory_allocated``; a list or by stage."""
    document = read_yaml_document(path)
    if document.faults:
        raise InputError(str(path), document.faults)
    value = document.value if isinstance(document.value, dict) else {}
    keys = {"peak_memory_mb": 1.0, "max_memory_allocated": 2.0**-20}
    given = [key for key in keys if key in value]
    if len(given) != 1:
        fault = (
            "must hold peak_memory_mb (MB) or max_memory_allocated (bytes), "
            f"a list or a number for each stage (got {shown(document.value)})"
        )
        raise InputError(str(path), [fault])
    key = given[0]
    entries = value[key]
    pairs: Mapping[object, object] = dict(enumerate(entries)) if isinstance(entries, list) else entries
    if not isinstance(pairs, dict) or not pairs:
        fault = f"{document.at(key)} must be a list or a number for each stage (got {shown(entries)})"
        raise InputError(str(path), [fault])
    faults, found = [], []
    for stage, number in pairs.items():
        place = f"{key}[{stage}]" if isinstance(entries, list) else f"{key}.{stage}"
        text = str(stage)
        if number is None and isinstance(entries, list):
            continue  # a stage that was not measured
        wrong = number_fault(document.at(place), number, above_zero=True)
        if wrong or not (text.isascii() and text.isdigit() and len(text) < 6):
            faults.append(wrong or f"{document.at(place)} must be named after a stage, such as 3")
        elif isinstance(number, int | float):
            found.append(FoundPeak(stage=int(text), peak_mb=float(number) * keys[key], source=str(path)))
    if faults:
        raise InputError(str(path), faults)
    return found


def _from_trace(path: Path) -> list[FoundPeak]:
    """Peaks that a trace of ours says of its stages, beside its events."""
    about: dict[str, object] = {}
    next(iter(trace_events(path, about)), None)  # what stands before the events is read with the first
    other = about.get("otherData")
    peaks = other.get("peak_memory_mb") if isinstance(other, dict) else None
    if not isinstance(peaks, list) or any(number_fault("", mb) for mb in peaks):
        raise InputError(str(path), ["is no trace of sapp-ppb simulate --emit-trace, which says its peaks"])
    return [
        FoundPeak(stage=stage, peak_mb=float(mb), source=str(path))
        for stage, mb in enumerate(peaks)
        if mb > 0
    ]
