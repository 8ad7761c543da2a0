"""The plan file, version 1: what was asked, what was decided, what is known of it."""

import json
from collections.abc import Mapping
from os import PathLike

import numpy as np

from sapp_ppb.costs.per_stage import PerStage
from sapp_ppb.files import write_text_atomic
from sapp_ppb.fix import PlaceRule
from sapp_ppb.plan import PLAN_FORMAT, PLAN_VERSION, Bubble, Outcome, Plan, Shortage
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import OrderFile, P2PMode


def write_plan(outcome: Outcome, path: str | PathLike[str], force: bool = False) -> None:
    """
    Write a plan file; reading it back gives an equal outcome.

    Parameters
    ----------
    outcome
        The answer to a problem, one without a plan included.
    path
        File to write; missing folders are made.
    force
        Replace a file that exists.

    Raises
    ------
    InputError
        If the file exists and ``force`` is not set, or if it can not be written.
    """
    write_text_atomic(path, plan_to_json(outcome), force)


def plan_to_json(outcome: Outcome) -> str:
    """
    Text of a plan file: the same for equal outcomes, a line for each row of a matrix.

    A key of the problem that is seldom given is written only when it is; a type without
    layers is left out, and so are the counts when nothing fits, and the names of the
    layers of multi-token prediction when there are none.

    Returns
    -------
    str
        JSON, with a line end at its end.
    """
    model = outcome.problem.model
    mtp = [layer.name for layer in model.bodies if layer.is_mtp]
    document: dict[str, object] = {
        "format": PLAN_FORMAT,
        "version": PLAN_VERSION,
        "model": model.name,
        **({"mtp": mtp} if mtp else {}),
        "problem": problem_object(outcome.problem),
    }
    if outcome.plan is not None:
        document["counts"] = _counts(outcome.plan)
    document["outcome"] = _outcome(outcome)
    return json_text(document) + "\n"


def problem_object(problem: Problem) -> dict[str, object]:
    """Say a problem as plan files do; a key that is seldom given is there only when it is."""
    seldom = {
        "micro_batch_group": problem.micro_batch_group,
        "target": problem.target,
        "recompute": None if problem.recompute is None else [r.label for r in problem.recompute],
        "memory_margin": _margin(problem.memory_margin),
        "max_recompute_types": problem.max_recompute_types,
        "recompute_working_set": problem.recompute_working_set or None,
        "fix": _fix(problem),
        "estimate": bool(problem.model.estimated) or None,
        "sequence_chunks": problem.sequence_chunks if problem.sequence_chunks > 1 else None,
        "p2p_mode": None if problem.p2p_mode is P2PMode.ASYNC else problem.p2p_mode.value,
        "overlap_factor": problem.overlap_factor or None,
        "flavour": None if problem.flavour is None else problem.flavour.value,
        "order": None if problem.order_file is None else _order(problem.order_file),
        "stage_speed": _floats(problem.stage_speed),
        "step_extra_ms": _floats(problem.step_extra_ms) or None,
    }
    return {
        "stages": problem.stages,
        "interleave": problem.interleave,
        "micro_batches": problem.micro_batches,
        "schedule": problem.schedule_name.value,
        "memory_limit_mb": _per_stage(problem.memory_limit_mb),
        "constant_memory_mb": _per_stage(problem.constant_memory_mb),
        "p2p_ms": _floats(problem.p2p_ms),
        "min_layers_per_cell": problem.min_layers_per_cell,
    } | {key: value for key, value in seldom.items() if value is not None}


def _per_stage(value: PerStage | None) -> object:
    """MB as people write them: 56000 and not 56000.0, which is the same number when read."""
    if isinstance(value, tuple):
        return [_per_stage(number) for number in value]
    return int(value) if value is not None and float(value).is_integer() else value


def _floats(value: PerStage | None) -> object:
    return [float(number) for number in value] if isinstance(value, tuple) else _float(value)


def _order(order: OrderFile) -> dict[str, object]:
    """Where the order is; the hash tells when the file has changed since."""
    return {"path": order.path, "sha256": order.sha256}


def _margin(margin: float | str) -> object:
    """MB or a share as text; None, which is not written, for none."""
    return margin if isinstance(margin, str) else _per_stage(margin) or None


def _fix(problem: Problem) -> object:
    """Lay out what is fixed as the counts are; None, which is not written, for nothing."""
    if problem.fix is None:
        return None
    cells, rule = np.array(problem.cell_at), problem.fix.places
    if problem.fix.recompute is None:
        split = problem.fix.layers
        return ({} if split is None else {"layers": np.array(split)[cells].tolist()}) | (
            {} if rule is None else {"places": _places(rule)}
        )
    kept, types = zip(problem.model.bodies, problem.fix.recomputed, strict=True), problem.model.types
    return {
        "recompute": {
            layer.name: {r.label: counts[r][cells].tolist() for r in types if counts[r].any()}
            for layer, counts in kept
        }
    }


def _places(rule: PlaceRule) -> dict[str, object]:
    """Say a rule of places; of the first layers and every n-th one is given."""
    known = {
        "first": rule.first,
        "every": rule.every,
        "entries_left": rule.entries_left or None,
        "chunks": rule.chunks if rule.chunks != 1 else None,
    }
    return {"recompute": rule.recompute.label} | {k: v for k, v in known.items() if v is not None}


def _counts(plan: Plan) -> dict[str, object]:
    """Lay counts out by layer and type, each a V x S matrix indexed ``[chunk][stage]``."""
    types = plan.problem.model.types
    return {
        layer.name: {r.label: plan.per_chunk_and_stage(counts[r]).tolist() for r in types if counts[r].any()}
        for layer, counts in zip(plan.problem.model.bodies, plan.counts, strict=True)
    }


def _outcome(outcome: Outcome) -> dict[str, object]:
    known: dict[str, object] = {
        "status": outcome.status.value,
        "makespan_ms": _float(outcome.makespan_ms),
        **({"step_ms": _float(outcome.step_ms)} if outcome.problem.has_extra else {}),
        "lower_bound_ms": _float(outcome.lower_bound_ms),
        "gap": _float(outcome.gap),
        "stopped_by": outcome.stopped_by.value,
        "seconds": _float(outcome.seconds),
        "seed": outcome.seed,
        "peak_memory_mb": [_float(mb) for mb in outcome.peak_memory_mb],
        "bubble": None if outcome.bubble is None else bubble_object(outcome.bubble),
    }
    if outcome.without_target is not None:
        free = outcome.without_target
        known["without_target"] = {"makespan_ms": free.makespan_ms, "lower_bound_ms": free.lower_bound_ms}
    if outcome.stage_order is not None:
        known["stage_order"] = list(outcome.stage_order)
    return known if outcome.shortage is None else known | {"infeasible": _shortage(outcome.shortage)}


def bubble_object(bubble: Bubble) -> dict[str, object]:
    """Say a bubble and its parts as plan files do."""
    parts = ("total", "fill_drain", "imbalance", "recompute", "communication")
    return {part: _float(getattr(bubble, part)) for part in parts}


def _shortage(shortage: Shortage) -> dict[str, object]:
    return {
        "stage": shortage.stage,
        "op": shortage.op,
        "over_mb": _float(shortage.over_mb),
        "smallest_limit_mb": _float(shortage.smallest_limit_mb),
        **({} if shortage.proven else {"proven": False}),
        "remedies": [{"change": change, "value": value} for change, value in shortage.remedies],
    }


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def json_text(value: object, indent: str = "") -> str:
    """JSON with objects and lists of lists spread over lines, and lists of numbers on one."""
    inner = indent + "  "
    if isinstance(value, Mapping) and value:
        lines = [f"{inner}{_plain(key)}: {json_text(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, list | Mapping) for item in value):
        return "[\n" + ",\n".join(inner + json_text(item, inner) for item in value) + f"\n{indent}]"
    return _plain(value)


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
