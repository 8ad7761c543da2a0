"""What a model file may hold, key by key, and our words for what it may not."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from sapp_ppb.costs.checks import (
    LARGEST_COUNT,
    LARGEST_NUMBER,
    count_fault,
    number_fault,
    shown,
    text_fault,
)
from sapp_ppb.costs.cost import ESTIMATE, EVERYTHING, MEASURED, NOTHING, Cost
from sapp_ppb.costs.layer import LayerKind


def _printable(text: str) -> str:
    """Let a printable text through."""
    fault = text_fault("text", text)
    if fault:
        raise ValueError(fault)
    return text


def _estimated(value: object) -> frozenset[Cost]:
    """
    Costs that ``source`` marks: all for ``"estimate"``, or those of an object.

    Raises
    ------
    ValueError
        If it is neither.
    """
    fault = _source_fault("source", value)
    if fault:
        raise ValueError(fault)
    if isinstance(value, dict):
        return frozenset(cost for cost in Cost if value.get(cost.value) == ESTIMATE)
    return EVERYTHING if value == ESTIMATE else NOTHING


def _source_fault(where: str, value: object) -> str | None:
    """Words for a source that is none."""
    words = f"{ESTIMATE!r} or {MEASURED!r}"
    if not isinstance(value, dict):
        known = isinstance(value, str) and value in (ESTIMATE, MEASURED)
        return None if known else f"{where} must be {words}, or an object of them by key (got {shown(value)})"
    keys = [cost.value for cost in Cost]
    unknown = [shown(key) for key in value if key not in keys]
    if unknown:
        return f"{where} knows no {', '.join(unknown)}; one of {', '.join(keys)}"
    wrong = [f"{key} {shown(said)}" for key, said in value.items() if said not in (ESTIMATE, MEASURED)]
    return f"{where} must say {words} of each key (got {', '.join(wrong)})" if wrong else None


Number = Annotated[float, Field(ge=0, le=LARGEST_NUMBER)]
Count = Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
Text = Annotated[str, AfterValidator(_printable)]


class _Strict(BaseModel):
    """No text and no bool where a number is wanted; unknown keys are the reader's business."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False, extra="ignore", protected_namespaces=())


class LayerEntry(_Strict):
    """One object of ``layers_description``; a key that is null counts as not given."""

    name: Text
    type: Literal["HEAD", "BODY", "TAIL"]
    nb_layer: Count
    model_name: Text | None = None
    time: Number | None = None
    forward_time: Number | None = None
    memory_parameter: Number | None = None
    memory_activation: Number | None = None
    memory_select_rec: Number | None = None
    memory_select_comm: Number | None = None
    memory_both_comm_select: Number | None = None
    memory_recompute: Number | None = None
    backward_coef: Number | None = None
    select_rec_coef: Number | None = None
    select_comm_coef: Number | None = None
    both_comm_select_coef: Number | None = None
    recompute_coef: Number | None = None
    backward_time: Number | None = None
    select_rec_time: Number | None = None
    select_comm_time: Number | None = None
    both_comm_select_time: Number | None = None
    recompute_time: Number | None = None
    weight_grad_time: Number | None = None
    mtp: bool | None = None
    transient_mb: Number | None = None
    tied_to: Text | None = None
    strategies: Any = None  # judged by ``strategy_entry``
    source: Annotated[Any, AfterValidator(lambda value: None if value is None else _estimated(value))] = None


class TopLevel(_Strict):
    """The top level, without the layers."""

    name: Text
    stage_const_mem: Number | None = None
    op_overhead_ms: Number | None = None
    hop_ms: Number | None = None


LAYER_KEYS = tuple(LayerEntry.model_fields)
TOP_KEYS = (*TopLevel.model_fields, "pre_defined_layer", "auto_partition_layer", "layers_description")
_TEXT_KEYS = frozenset({"name", "model_name", "tied_to"})
_KINDS = tuple(kind.value for kind in LayerKind)


def faults_in_our_words(error: ValidationError, raw: Mapping[str, object], prefix: str) -> list[str]:
    """
    One sentence for every key that pydantic refused.

    Parameters
    ----------
    error
        What pydantic says of ``raw``.
    raw
        The object as the file gives it.
    prefix
        Its place in the file, such as ``layers_description[1].``.
    """
    faults = []
    for detail in error.errors():
        key = str(detail["loc"][0])
        value = raw.get(key)
        if isinstance(value, float) and not math.isfinite(value):
            continue  # the JSON reader has named it
        if detail["type"] == "missing":
            faults.append(f"{prefix}{key} is missing")
        else:
            faults.append(_fault_of(key, value, prefix) or f"{prefix}{key}: {detail['msg']}")
    return faults


def _fault_of(key: str, value: object, prefix: str) -> str | None:
    """Words of a fault, the same that the costs use."""
    if key == "type":
        return _kind_fault(f"{prefix}{key}", value)
    if key in _TEXT_KEYS:
        return text_fault(f"{prefix}{key}", value)
    if key == "source":
        return _source_fault(f"{prefix}{key}", value)
    if key == "mtp":
        return f"{prefix}{key} must be true or false (got {shown(value)})"
    if key == "nb_layer":
        return count_fault(f"{prefix}{key}", value)
    return number_fault(f"{prefix}{key}", value)


def _kind_fault(where: str, value: object) -> str:
    """Words for a type that is none, with a hint when only its spelling is off."""
    fault = f"{where} must be one of {', '.join(_KINDS)} (got {shown(value)})"
    meant = value.strip().upper() if isinstance(value, str) else ""
    return f"{fault}; write {meant}" if meant in _KINDS else fault
