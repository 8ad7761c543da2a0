"""
The init YAML of the older SAPP tool: what ran in one or several rounds, and its peaks.

``pipeline_config`` and ``recompute_config`` say what ran, with a list for each stage or,
for several rounds, a list of such; ``memory_usage`` says the peaks, ``time_config`` or
``profiling_config`` the times.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from sapp_ppb.costs import Model
from sapp_ppb.costs.checks import count_fault, number_fault, shown
from sapp_ppb.costs.unit_layer import unit_layer
from sapp_ppb.errors import InputError, PpbError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.readers.formats.mindformers_lists import counts_from_list, layers_from_offset, plan_from_lists
from sapp_ppb.readers.formats.yaml_file import YamlDocument, read_yaml_document
from sapp_ppb.simulator import ObservedRun

LISTS = ("recompute", "select_recompute", "select_comm_recompute")
BODY = "BODY"


@dataclass(frozen=True, kw_only=True)
class InitTimes:
    """Forward times of an init YAML, milliseconds."""

    head_ms: float
    body_ms: float
    tail_ms: float


@dataclass(frozen=True, kw_only=True)
class InitProfile:
    """Where an init YAML says that timelines are, and which of their layers are what."""

    folder: str
    micro_batches: int
    head: tuple[str, ...]
    body: tuple[str, ...]
    tail: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class InitFile:
    """
    What an init YAML holds.

    Attributes
    ----------
    runs
        A run a round, with the peaks that were filled in.
    times, profile
        Whichever of both the file gives; None for what it does not.
    """

    runs: tuple[ObservedRun, ...]
    times: InitTimes | None
    profile: InitProfile | None


@dataclass
class _Findings:
    document: YamlDocument
    faults: list[str] = field(default_factory=list)

    def fault(self, place: str, words: str) -> None:
        """Keep a fault that starts behind the name of its place."""
        self.faults.append(f"{self.document.at(place)} {words}")


def read_init(path: str | PathLike[str], micro_batches: int | None = None) -> InitFile:
    """
    Read the runs, peaks and times of an init YAML.

    Parameters
    ----------
    micro_batches
        Micro-batches of a step when the peaks were measured.  None takes as many as stages:
        with that or more the peaks of 1F1B are the same.  What ``profiling_config`` says is
        of the timelines, not of the dry runs.

    Raises
    ------
    InputError
        If the file can not be read or a value is not allowed, with all faults at once.
    """
    document = read_yaml_document(path)
    found = _Findings(document, list(document.faults))
    raw = document.value if isinstance(document.value, dict) else {}
    sections = {name: _section(raw, name, found) for name in ("pipeline_config", "memory_usage")}
    if found.faults:
        raise InputError(str(path), found.faults)
    profile = _profile(raw, found)
    times = _times(raw, found)
    sizes = _sizes(sections["pipeline_config"], found)
    runs: tuple[ObservedRun, ...] = ()
    if sizes is not None:
        runs = _runs(raw, sizes, micro_batches, found)
    if found.faults:
        raise InputError(str(path), found.faults)
    return InitFile(runs=runs, times=times, profile=profile)


def _section(raw: Mapping[str, Any], name: str, found: _Findings) -> dict[str, Any]:
    value = raw.get(name)
    if isinstance(value, dict):
        return value
    said = f"must hold keys and values (got {shown(value)})" if name in raw else "is missing"
    found.fault(name, said)
    return {}


def _sizes(pipeline: Mapping[str, Any], found: _Findings) -> tuple[int, int] | None:
    """Stages and layers."""
    sizes = []
    for key in ("pipeline_num", "num_layer"):
        fault = count_fault("", pipeline.get(key))
        if fault:
            found.fault(f"pipeline_config.{key}", fault.lstrip() if key in pipeline else "is missing")
        else:
            sizes.append(int(pipeline[key]))
    return (sizes[0], sizes[1]) if len(sizes) == 2 else None


def _runs(
    raw: Mapping[str, Any], sizes: tuple[int, int], micro_batches: int | None, found: _Findings
) -> tuple[ObservedRun, ...]:
    stages, layers = sizes
    offset = raw["pipeline_config"].get("offset", 0)
    rounds = (
        offset if isinstance(offset, list) and any(isinstance(part, list) for part in offset) else [offset]
    )
    several = len(rounds) > 1 or (isinstance(offset, list) and rounds is offset)
    try:
        problem = _of_sizes(stages, layers, micro_batches)
    except PpbError as error:
        found.faults += error.faults if isinstance(error, InputError) else [str(error)]
        return ()
    plans = [_plan(raw, problem, rounds, at, several, found) for at in range(len(rounds))]
    peaks = _peaks(raw["memory_usage"], stages, len(rounds), found)
    if found.faults:
        return ()
    return tuple(
        ObservedRun(plan=plan, peak_mb=part)
        for plan, part in zip(plans, peaks, strict=True)
        if plan is not None
    )


def _of_sizes(stages: int, layers: int, micro_batches: int | None) -> Problem:
    """Problem of the right sizes whose costs say nothing."""
    return Problem(
        model=Model(name="init", layers=(unit_layer(BODY, layers),)),
        stages=stages,
        micro_batches=stages if micro_batches is None else micro_batches,
        min_layers_per_cell=0,
    )


def _plan(
    raw: Mapping[str, Any], problem: Problem, rounds: list[Any], at: int, several: bool, found: _Findings
) -> Plan | None:
    place = "pipeline_config.offset" + (f"[{at}]" if several else "")
    try:
        layers = layers_from_offset(rounds[at], problem)
    except ValueError as error:
        found.fault(place, str(error))
        return None
    config = raw.get("recompute_config") or {}
    if not isinstance(config, dict):
        found.fault("recompute_config", f"must hold keys and values (got {shown(config)})")
        return None
    counts = []
    for key in LISTS:
        value, where = config.get(key), f"recompute_config.{key}"
        if several and isinstance(value, list):
            if len(value) != len(rounds):
                found.fault(
                    where, f"must be a list of {len(rounds)} rounds, as offset is (got {shown(value)})"
                )
                return None
            value, where = value[at], f"{where}[{at}]"
        try:
            counts.append(counts_from_list(value, layers))
        except ValueError as error:
            found.fault(where, str(error))
    return plan_from_lists(problem, layers, *counts) if len(counts) == len(LISTS) else None


def _peaks(usage: Mapping[str, Any], stages: int, rounds: int, found: _Findings) -> list[dict[int, float]]:
    """Peaks of each round, by stage; HEAD and TAIL memory are those of the first round."""
    peaks: list[dict[int, float]] = [{} for _ in range(rounds)]
    for key, stage in (("head_memory", 0), ("tail_memory", stages - 1)):
        if usage.get(key) is not None:
            _keep(peaks[0], stage, usage[key], f"memory_usage.{key}", found)
    if usage.get("body_memories") is not None:
        place = "memory_usage.body_memories"
        for at, (ids, numbers) in enumerate(_of_rounds(usage["body_memories"], rounds, place, found)):
            if len(ids) != len(numbers):
                said = f"names {len(ids)} stages and {len(numbers)} memories in round {at}; give one for each"
                found.fault(place, f"{said} (got {shown(ids)} and {shown(numbers)})")
                continue
            for index, (stage, number) in enumerate(zip(ids, numbers, strict=True)):
                where = f"{place}.memories" + (f"[{at}][{index}]" if rounds > 1 else f"[{index}]")
                if isinstance(stage, bool) or not isinstance(stage, int) or not 0 <= stage < stages:
                    allowed = f"must name stages from 0 to {stages - 1}"
                    found.fault(f"{place}.stage_id", f"{allowed} (got {shown(stage)})")
                elif number is not None:  # left to be filled in
                    _keep(peaks[at], stage, number, where, found)
    return peaks


def _of_rounds(
    bodies: object, rounds: int, place: str, found: _Findings
) -> list[tuple[list[Any], list[Any]]]:
    """Stages and memories of each round; nothing when they have another form, which is a fault."""
    if not isinstance(bodies, dict):
        found.fault(place, f"must hold stage_id and memories (got {shown(bodies)})")
        return []
    lists = []
    for key in ("stage_id", "memories"):
        value = bodies.get(key)
        if rounds == 1 and isinstance(value, list) and not any(isinstance(part, list) for part in value):
            value = [value]
        if not isinstance(value, list) or [type(part) for part in value] != [list] * rounds:
            allowed = f"must be a list, or a list of {rounds} lists for as many rounds"
            found.fault(f"{place}.{key}", f"{allowed} (got {shown(bodies.get(key))})")
            return []
        lists.append(value)
    return list(zip(*lists, strict=True))


def _keep(peaks: dict[int, float], stage: int, number: object, place: str, found: _Findings) -> None:
    fault = number_fault("", number, above_zero=True)
    if fault or not isinstance(number, int | float):
        found.fault(place, (fault or "").lstrip())
    elif stage in peaks and peaks[stage] != float(number):
        found.fault(place, f"is another peak of stage {stage}, which has {peaks[stage]:g} already; keep one")
    else:
        peaks[stage] = float(number)


def _times(raw: Mapping[str, Any], found: _Findings) -> InitTimes | None:
    if raw.get("time_config") is None:
        return None
    section = _section(raw, "time_config", found)
    times = {}
    for key in ("head", "body", "tail"):
        fault = number_fault("", section.get(key), above_zero=True)
        if fault:
            found.fault(f"time_config.{key}", fault.lstrip() if key in section else "is missing")
        else:
            times[f"{key}_ms"] = float(section[key])
    return InitTimes(**times) if len(times) == 3 else None


def _profile(raw: Mapping[str, Any], found: _Findings) -> InitProfile | None:
    if raw.get("profiling_config") is None:
        return None
    section, before = _section(raw, "profiling_config", found), len(found.faults)
    fault = count_fault("", section.get("micro_batch_num"))
    if fault:
        found.fault("profiling_config.micro_batch_num", fault.lstrip())
    folder = section.get("folder_path")
    if not isinstance(folder, str) or not folder.strip():
        found.fault("profiling_config.folder_path", f"must be a path (got {shown(folder)})")
    # The older tool's own defaults are the names of MindFormers' Llama.
    usual = {"head": ["LlamaEmbedding"], "body": ["LLamaDecodeLayer"], "tail": ["lm_head-Linear"]}
    names = {part: section.get(f"{part}_layers") or usual[part] for part in usual}
    names = {part: [value] if isinstance(value, str) else value for part, value in names.items()}
    for part, value in names.items():
        if not isinstance(value, list) or not all(isinstance(name, str) and name.strip() for name in value):
            found.fault(
                f"profiling_config.{part}_layers", f"must be a name or a list of names (got {shown(value)})"
            )
    if len(found.faults) > before:
        return None
    return InitProfile(
        folder=str(folder),
        micro_batches=int(section["micro_batch_num"]),
        head=tuple(names["head"]),
        body=tuple(names["body"]),
        tail=tuple(names["tail"]),
    )
