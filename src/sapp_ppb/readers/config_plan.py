"""The plan that a framework's configuration runs, priced with the model file of its user."""

import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from sapp_ppb.costs import Layer, Model, Recompute, RecomputeType, Strategy
from sapp_ppb.costs.checks import shown
from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets import CellTypes, PipelineConfig, plan_from_types
from sapp_ppb.targets.torchtitan.rules import group_of

# Sizes that micro-batches follow from: what --micro-batches settles of what a file leaves open.
_OF_MICRO_BATCHES = re.compile(
    r"micro[-_ ]?batch(?!.*group)|batch[-_]size|n_?nodes|nproc|(tensor-model|context)-parallel-size"
)
_OF_SCHEDULE = re.compile(r"^the schedule is not known")
_SIZES = {"stages": "--stages", "interleave": "--interleave"}


def plan_of_config(config: PipelineConfig, model: Model, given: Mapping[str, Any] | None = None) -> Plan:
    """
    Plan that a configuration runs.

    Parameters
    ----------
    config
        What its file says.
    model
        Its layers.  A model that counts multi-token prediction to its TAIL gets all
        other layers.
    given
        Fields of ``Problem`` that count before what the file says.

    Returns
    -------
    Plan
        Under a problem that binds no planner: no target, no recompute types, and empty
        cells where the configuration has them.

    Warns
    -----
    FileNote
        When the model does not mark the layers of multi-token prediction that the file counts.

    Raises
    ------
    InputError
        If a value is missing, or the model has other layers, or none of their types.
    ScheduleError
        If the order of the ops does not exist for these sizes.
    """
    given = dict(given or {})
    faults = [*missing_for_price(config, given), *_contradictions(config, given)]
    if faults or config.types is None:
        raise InputError(config.where, faults)
    try:
        problem = Problem(model=model, **_fields(config, given))
        return _plan(config, config.types, problem, keep_least="min_layers_per_cell" in given)
    except InputError as error:
        raise InputError(config.where, error.faults) from None


def still_unknown(config: PipelineConfig, given: Mapping[str, Any]) -> tuple[str, ...]:
    """
    List what a configuration leaves open and no option settles.

    Examples
    --------
    >>> config = PipelineConfig(target="megatron", where="run.sh", unknown=("--global-batch-size is ${GBS}",))
    >>> still_unknown(config, {}), still_unknown(config, {"micro_batches": 8})
    (('--global-batch-size is ${GBS}',), ())
    """
    settled = [
        words
        for field, words in (("micro_batches", _OF_MICRO_BATCHES), ("schedule", _OF_SCHEDULE))
        if getattr(config, field) is None and field in given
    ]
    return tuple(
        sentence for sentence in config.unknown if not any(words.search(sentence) for words in settled)
    )


def missing_for_price(config: PipelineConfig, given: Mapping[str, Any]) -> list[str]:
    """Say what a price needs and neither the file nor an option says."""
    faults = []
    if config.stages is None:
        faults.append("does not say the number of stages; write it into the file")
    if config.micro_batches is None and "micro_batches" not in given:
        faults.append("does not say the number of micro-batches; give --micro-batches")
    if config.types is None:
        why = "; ".join([*still_unknown(config, given), *map(str, config.broken)][:3])
        faults.append("does not say the layers of every cell" + (f": {why}" if why else ""))
    return faults


def _contradictions(config: PipelineConfig, given: Mapping[str, Any]) -> list[str]:
    """Refuse sizes that the split of the file does not have."""
    own = {"stages": config.stages, "interleave": config.interleave}
    return [
        f"has {own[name]} {'stages' if name == 'stages' else 'chunks a stage'}, not {given[name]}; "
        f"give {option} {own[name]}"
        for name, option in _SIZES.items()
        if name in given and own[name] is not None and given[name] != own[name]
    ]


def _fields(config: PipelineConfig, given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the problem: what is given, and where nothing is, what the file says."""
    order = config.order_file
    own = {
        "stages": config.stages,
        "interleave": config.interleave,
        "micro_batches": config.micro_batches,
        "schedule": ScheduleName.CUSTOM if order is not None else config.schedule,
        "order_file": order,
        "sequence_chunks": config.sequence_chunks,
        "micro_batch_group": config.micro_batch_group,
        "memory_limit_mb": config.memory_limit_mb,
        "min_layers_per_cell": 0,
    }
    if "schedule" in given or "order_file" in given:  # group, pieces and order are those of another schedule
        own |= {"schedule": None, "micro_batch_group": None, "order_file": None, "sequence_chunks": 1}
    elif config.target in ("torchtitan", "pytorch") and "micro_batches" in given:
        own["micro_batch_group"] = group_of(config.schedule, config.stages or 1, given["micro_batches"])
    return own | dict(given)


def _plan(config: PipelineConfig, types: CellTypes, problem: Problem, *, keep_least: bool) -> Plan:
    """Put the model's layers where the configuration has its own."""
    types = _with_layers_of(problem, config, types)
    faults = _type_faults(problem, types)
    if faults:
        raise InputError(config.where, faults)
    plan = plan_from_types(problem, types)
    if keep_least:
        return plan
    try:  # frameworks want no empty cell where there is none
        return Plan(problem=problem.changed(min_layers_per_cell=1), counts=plan.counts)
    except InputError:
        return plan


def _with_layers_of(problem: Problem, config: PipelineConfig, types: CellTypes) -> CellTypes:
    """
    Leave out layers of multi-token prediction that the model counts to its TAIL.

    Raises
    ------
    InputError
        When the model has neither as many layers as the file nor as many without those.
    """
    model, placed, mtp = problem.model, sum(len(cell) for row in types for cell in row), config.mtp_layers
    if config.layers is not None and placed != config.layers:
        fault = f"places {placed} of its {config.layers} layers; mend the rules that it breaks first"
        raise InputError(config.where, [fault])
    if model.body_count == placed:
        if model.mtp_count != mtp:
            warnings.warn(
                f"{config.where}: has {mtp} layers of multi-token prediction, and the model "
                f'{shown(model.name)} marks {model.mtp_count}; mark them with "mtp": true in the model file',
                FileNote,
                stacklevel=4,
            )
        return types
    if mtp and model.body_count == placed - mtp:
        return _shortened(problem, types, mtp)
    of_mtp = f", {mtp} of them for multi-token prediction" if mtp else ""
    raise InputError(
        config.where,
        [
            f"has {placed} layers{of_mtp}, and the model {shown(model.name)} has {model.body_count} BODY "
            "layers; give the model file of this configuration"
        ],
    )


def _shortened(problem: Problem, types: CellTypes, number: int) -> CellTypes:
    """Take the last layers of the chain away."""
    kept = [list(row) for row in types]
    places = [(cell, v, s) for v, row in enumerate(problem.cell_at) for s, cell in enumerate(row)]
    for _, chunk, stage in sorted(places, reverse=True):
        cell = kept[chunk][stage]
        taken = min(number, len(cell))
        kept[chunk][stage] = cell[: len(cell) - taken]
        number -= taken
    return tuple(tuple(row) for row in kept)


def _type_faults(problem: Problem, types: CellTypes) -> list[str]:
    """Say which types the model does not measure, and the key of the model file that would."""
    bodies = problem.model.bodies
    places = [(cell, v, s) for v, row in enumerate(problem.cell_at) for s, cell in enumerate(row)]
    used = [recompute for _, v, s in sorted(places) for recompute in types[v][s]]
    bounds = np.cumsum([0, *(layer.count for layer in bodies)])
    return [
        _type_fault(layer, recompute)
        for layer, low, high in zip(bodies, bounds, bounds[1:], strict=False)
        for recompute in sorted(set(used[low:high]))
        if recompute not in layer.considered
    ]


def _type_fault(layer: Layer, recompute: RecomputeType) -> str:
    if isinstance(recompute, Strategy):
        return f"runs layers of {shown(layer.name)} under {recompute.label}, which is none of its strategies"
    keys = (
        [] if Recompute.NONE in layer.considered and layer.activation_mb[0] else [Recompute.NONE.memory_key]
    )
    needed = " and ".join(dict.fromkeys([*keys, recompute.memory_key]))
    return (
        f"runs layers of {shown(layer.name)} as {recompute.label}, and the model file does not say what they "
        f"then hold; add {needed} in MB to this layer"
    )
