"""A model file's times out of timelines in which layers have names."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sapp_ppb.costs import Layer, LayerKind, Model, layer_from_times
from sapp_ppb.costs.measured import ScopeTrace
from sapp_ppb.errors import InputError
from sapp_ppb.estimation.scope_times import LayerTimes, kept_steps, layer_times


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """
    A layer of the model to make.

    Attributes
    ----------
    name
        Its name in the traces, without the index before or behind it.
    kind
        HEAD, BODY or TAIL.
    count
        How many the model has; None counts those that are seen.
    """

    name: str
    kind: LayerKind
    count: int | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """
    What the traces say of one layer of the model.

    Attributes
    ----------
    layer
        The layer of the model.
    seen
        How many layers of it were seen, each in one step or more.
    forward_ms, backward_ms
        Least, median and most over layers and steps, milliseconds of one micro-batch.
    again_ms
        Median of what doing the forward again took; it is in no other time.
    """

    layer: Layer
    seen: int
    forward_ms: tuple[float, float, float]
    backward_ms: tuple[float, float, float]
    again_ms: float


@dataclass(frozen=True, kw_only=True)
class TraceEstimate:
    """
    A model from traces, and what it rests on.

    Attributes
    ----------
    model
        Times only: no memory.
    measured
        A row for each layer of the model.
    stages
        Sources of the traces of each stage, from the first stage on.
    steps
        Steps that count, in each trace; shape (traces,), in the order given.
    notes
        What was left out or taken for granted, one sentence each.
    """

    model: Model
    measured: tuple[Measured, ...]
    stages: tuple[tuple[str, ...], ...]
    steps: tuple[int, ...]
    notes: tuple[str, ...]


def model_from_scopes(
    traces: Sequence[ScopeTrace],
    wanted: Sequence[Wanted],
    micro_batches: int,
    *,
    name: str = "measured",
    per_layer: bool = False,
) -> TraceEstimate:
    """
    Join the traces of several ranks into one model.

    HEAD layers are timed on the first stage, TAIL layers on the last, BODY layers on
    all.  A stage is told by the index of its first BODY layer, and traces of the same BODY
    layers are of one stage; where layers have no index, or count from 0 on every rank as
    PyTorch's modules do, the first rank is the first stage.

    Parameters
    ----------
    traces
        At least one.
    wanted
        Layers of the model in the order of the chain, at least one of them BODY.
    micro_batches
        Micro-batches of a step.
    name
        Name of the model.
    per_layer
        Keep each BODY layer that is seen as an entry of its own.

    Raises
    ------
    InputError
        If a layer is in no trace where it should be, with all faults at once.

    Notes
    -----
    A layer's time is the median over steps, a kind's the mean over its layers.
    """
    if micro_batches < 1:
        raise InputError("micro-batches", [f"must be a whole number of at least 1 (got {micro_batches})"])
    if len(traces) > 1 and any(_numbers_anew(trace) for trace in traces):
        _refuse_doubtful(wanted, per_layer=per_layer)
    times = [layer_times(trace, micro_batches) for trace in traces]
    bodies = [want.name for want in wanted if want.kind is LayerKind.BODY]
    groups = _stages(traces, times, bodies)
    found: list[Measured] = []
    faults: list[str] = []
    notes: list[str] = []
    for want in wanted:
        parts = _parts(want, times, groups)
        if not parts:
            where = {LayerKind.HEAD: "on the first stage", LayerKind.TAIL: "on the last stage"}
            faults.append(f"{want.name} is in no trace {where.get(want.kind, '')}".rstrip())
            continue
        found += _measured(want, parts, notes, per_layer=per_layer)
    if faults:
        raise InputError("traces", faults)
    return TraceEstimate(
        model=Model(name=name, layers=tuple(row.layer for row in found)),
        measured=tuple(found),
        stages=tuple(tuple(traces[index].source for index in group) for group in groups),
        steps=tuple(len(kept_steps(trace)[0]) - 1 for trace in traces),
        notes=tuple([*_dropped(traces), *notes]),
    )


def _refuse_doubtful(wanted: Sequence[Wanted], *, per_layer: bool) -> None:
    """Refuse to count layers that bear the same number on several ranks."""
    anew = "these traces count layers from 0 on every rank"
    if per_layer:
        raise InputError("--per-layer", [f"can not tell which layer is which: {anew}"])
    unknown = [want.name for want in wanted if want.kind is LayerKind.BODY and want.count is None]
    if unknown:
        raise InputError(
            "--body", [f"{', '.join(unknown)} must be given with a count, as NAME:COUNT: {anew}"]
        )


def _is(name: str, want: str) -> bool:
    """Whether a name in a trace means a layer: with a number before it or behind it, or as it stands."""
    plain = name.removeprefix("nn.Module: ")
    behind = plain.removeprefix(want)
    return (
        plain == want
        or plain.endswith(f"-{want}")
        or (behind != plain and behind[:1] in tuple("_.:#") and behind[1:].isdecimal())
    )


def index_of(name: str) -> int | None:
    """
    Find the number before a layer's name, or behind it.

    Examples
    --------
    >>> index_of("42-DecodeLayer"), index_of("nn.Module: DecodeLayer_7"), index_of("lm_head-Linear")
    (42, 7, None)
    """
    digits = "0123456789"
    before = name[: len(name) - len(name.lstrip(digits))]
    behind = name[len(name.rstrip(digits)) :]
    number = before if before and name[len(before) :].startswith("-") else ""
    if not number and behind and name[: -len(behind)].endswith(("_", ".", ":", "#")):
        number = behind
    return int(number) if 0 < len(number) < 10 else None


def _stages(
    traces: Sequence[ScopeTrace], times: Sequence[Sequence[LayerTimes]], bodies: Sequence[str]
) -> list[list[int]]:
    """Group the traces by stage, from the first stage on, as indices."""
    keys: dict[tuple[object, ...], list[int]] = {}
    for at, (trace, found) in enumerate(zip(traces, times, strict=True)):
        indices = sorted(
            index
            for part in found
            if any(_is(part.name, body) for body in bodies) and (index := index_of(part.name)) is not None
        )
        # Ranks without a number stay in the order in which they were given.
        rank = at if trace.rank is None else trace.rank
        tells = indices and not _numbers_anew(trace)
        keys.setdefault((0, *indices) if tells else (1, rank, at), []).append(at)
    return [keys[key] for key in sorted(keys, key=lambda key: tuple(map(_number, key)))]


def _numbers_anew(trace: ScopeTrace) -> bool:
    """Whether a trace counts the layers of its rank from 0, as PyTorch's names of modules do."""
    return trace.backwards is not None


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _parts(
    want: Wanted, times: Sequence[Sequence[LayerTimes]], groups: Sequence[Sequence[int]]
) -> list[LayerTimes]:
    """Find the times of a layer on the stages where it counts."""
    where = {LayerKind.HEAD: groups[:1], LayerKind.TAIL: groups[-1:]}.get(want.kind, groups)
    return [part for group in where for at in group for part in times[at] if _is(part.name, want.name)]


def _measured(
    want: Wanted, parts: Sequence[LayerTimes], notes: list[str], *, per_layer: bool
) -> list[Measured]:
    """Rows of a layer: one, or for BODY layers that are kept apart one each."""
    by_name: dict[str, list[LayerTimes]] = {}
    for part in parts:
        by_name.setdefault(part.name, []).append(part)
    names = sorted(by_name, key=lambda name: (index_of(name) is None, index_of(name) or 0, name))
    if want.kind is not LayerKind.BODY:
        # Ranks of one stage run the same; several names are parts of one layer.
        return [_row(want.name, want, 1, [by_name[name] for name in names], notes, add=True)]
    if per_layer:
        return [_row(name, want, 1, [by_name[name]], notes) for name in names]
    count = want.count or len(names)
    if want.count is not None and want.count != len(names):
        notes.append(f"{want.name}: {len(names)} of {want.count} layers seen; the others are taken for equal")
    return [_row(want.name, want, count, [by_name[name] for name in names], notes)]


def _row(
    name: str,
    want: Wanted,
    count: int,
    layers: Sequence[Sequence[LayerTimes]],
    notes: list[str],
    *,
    add: bool = False,
) -> Measured:
    """Row of one or several layers; ``add`` sums them instead of taking their mean."""
    samples = [
        [np.concatenate([getattr(part, field) for part in parts]) for parts in layers]
        for field in ("forward_ms", "backward_ms", "again_ms")
    ]
    combine = np.sum if add else np.mean
    forward, backward, again = (float(combine([np.median(values) for values in field])) for field in samples)
    if backward == 0.0:
        notes.append(f"{name}: no backward was seen; it is taken for 2 x the forward")
    if again > 0.0:
        notes.append(f"{name}: its forward was done again for {again:.6g} ms, which is left out")
    if forward <= 0.0:
        raise InputError("traces", [f"{name} takes no time in the steps that count; is its name right?"])
    spread = [np.concatenate(field) for field in samples[:2]]
    layer = layer_from_times(
        name=name,
        kind=want.kind,
        count=count,
        forward_ms=forward,
        backward_ms=backward or None,
    )
    return Measured(
        layer=layer,
        seen=len(layers),
        forward_ms=_three(spread[0]),
        backward_ms=_three(spread[1]),
        again_ms=again,
    )


def _three(values: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> tuple[float, float, float]:
    return float(values.min()), float(np.median(values)), float(values.max())


def _dropped(traces: Sequence[ScopeTrace]) -> list[str]:
    """Say what was left out of each trace."""
    notes = []
    for trace in traces:
        _, dropped = kept_steps(trace)
        if dropped:
            notes.append(
                f"{trace.source}: the first {dropped} steps are left out, which are seldom like the others"
            )
        if len(trace.steps_us) < 2:
            notes.append(f"{trace.source}: no steps are marked; the whole trace counts as one")
    return notes
