"""Layers from their times: what a backward takes under every type where it is not given."""

from collections.abc import Mapping, Sequence

from sapp_ppb.costs.checks import number_fault, shown
from sapp_ppb.costs.cost import NOTHING, Cost
from sapp_ppb.costs.layer import Layer, LayerKind
from sapp_ppb.costs.recompute import Recompute
from sapp_ppb.costs.strategy import LayerStrategy
from sapp_ppb.errors import InputError


def layer_from_times(
    *,
    name: str,
    kind: LayerKind,
    count: int = 1,
    forward_ms: float,
    backward_ms: float | None = None,
    coefficients: Mapping[Recompute, float] | None = None,
    explicit: Mapping[Recompute, float] | None = None,
    parameter_mb: float = 0.0,
    activation_mb: Mapping[Recompute, float] | None = None,
    model_name: str | None = None,
    weight_grad_ms: float | None = None,
    is_mtp: bool = False,
    transient_mb: float = 0.0,
    tied_to: str | None = None,
    estimated: frozenset[Cost] = NOTHING,
    strategies: Sequence[LayerStrategy] = (),
) -> Layer:
    """
    Layer whose backward times follow from its forward time where they are not given.

    The base is ``backward_ms``, else 2 x ``forward_ms``.  A type's time is its
    ``explicit`` one, else (1 + coefficient) x base; a given ``backward_ms`` is the
    explicit time of NONE.  A given 0 is a value, not an absence.

    Parameters
    ----------
    name, kind, count, parameter_mb, model_name, weight_grad_ms, is_mtp, transient_mb, tied_to, estimated
        As in Layer.
    forward_ms
        Forward time of one layer, milliseconds.
    backward_ms
        Backward time without recompute, milliseconds; None: 2 x forward.
    coefficients
        Extra backward time as a share of the base, at least 0; a type that is
        missing has its default.
    explicit
        Whole backward times, milliseconds; a type that is missing follows from the base.
    activation_mb
        Activation memory a type, MB; a type that is missing is not given.
    strategies
        What the layer may do beside recomputation.

    Raises
    ------
    InputError
        If a value is not allowed, with all faults at once.

    Examples
    --------
    >>> layer = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=50, backward_ms=80,
    ...                          explicit={Recompute.FULL: 133})
    >>> layer.backward_ms  # 80, 1.04 * 80, 1.125 * 80, 1.165 * 80, as given
    (80.0, 83.2, 90.0, 93.2, 133.0)
    """
    explicit = dict(explicit or {})
    if backward_ms is not None:
        explicit.setdefault(Recompute.NONE, backward_ms)
    coefficients = {r: r.default_coefficient for r in Recompute} | dict(coefficients or {})
    faults = _time_faults(forward_ms, backward_ms, coefficients, explicit)
    usable = not faults
    times = backward_times(forward_ms, coefficients, explicit) if usable else (0.0,) * len(Recompute)
    if kind is not LayerKind.BODY:  # nothing but NONE exists, so nothing else can be too large
        times = (times[Recompute.NONE],) * len(Recompute)
    activation = activation_mb or {}
    layer = None
    try:
        layer = Layer(
            name=name,
            kind=kind,
            count=count,
            forward_ms=forward_ms if usable else 1.0,  # a stand-in, to hear of the other fields' faults
            backward_ms=(*times, *(strategy.backward_ms for strategy in strategies)),
            parameter_mb=parameter_mb,
            activation_mb=(
                *(activation.get(r) for r in Recompute),
                *(strategy.activation_mb for strategy in strategies),
            ),
            model_name=model_name,
            weight_grad_ms=weight_grad_ms if usable else None,  # it is judged against those times
            is_mtp=is_mtp,
            transient_mb=transient_mb,
            tied_to=tied_to,
            estimated=estimated,
            strategies=tuple(strategy.name for strategy in strategies),
        )
    except InputError as error:
        faults += error.faults
    if layer is None or faults:
        raise InputError(f"layer {shown(name)}", faults)
    return layer


def backward_times(
    forward_ms: float, coefficients: Mapping[Recompute, float], explicit: Mapping[Recompute, float]
) -> tuple[float, ...]:
    """
    Backward time of every type: the explicit one, else (1 + coefficient) x base; nothing is checked.

    Parameters
    ----------
    forward_ms
        Forward time, milliseconds; the base is 2 x this where NONE has no explicit time.
    coefficients
        Extra backward time as a share of the base, for every type.
    explicit
        Whole backward times, milliseconds, of any types.

    Returns
    -------
    tuple
        Milliseconds, shape (5,), indexed by Recompute.

    Examples
    --------
    >>> half = dict.fromkeys(Recompute, 0.5)
    >>> backward_times(10, half, {Recompute.NONE: 16, Recompute.COMM: 17})  # 1.5 * 16 where not given
    (16.0, 24.0, 17.0, 24.0, 24.0)
    """
    base = float(explicit.get(Recompute.NONE, 2 * float(forward_ms)))
    return tuple(float(explicit.get(r, (1 + float(coefficients[r])) * base)) for r in Recompute)


def _time_faults(
    forward_ms: float,
    backward_ms: float | None,
    coefficients: Mapping[Recompute, float],
    explicit: Mapping[Recompute, float],
) -> list[str]:
    """Faults of what the times are made from, before anything is computed from it."""
    checks = [number_fault("forward_ms", forward_ms)]
    checks += [number_fault(f"coefficient of {r.label}", coefficients[r]) for r in Recompute]
    checks += [number_fault(f"backward_ms of {r.label}", explicit[r]) for r in Recompute if r in explicit]
    faults = [fault for fault in checks if fault]
    if backward_ms is not None and not faults and explicit[Recompute.NONE] != backward_ms:
        faults.append(f"backward_ms of none is given twice ({backward_ms} and {explicit[Recompute.NONE]})")
    return faults
