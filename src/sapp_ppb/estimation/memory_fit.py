"""
Memory of layers out of the peaks of stages.

A stage holds a constant, the parameters of its layers, and for every live micro-batch
the activations of the layers of each chunk, by recompute type; the first stage of the
chain holds the HEAD besides, the last the TAIL.  How many micro-batches are live is what
the simulator says of the schedule that ran.  Where a stage trades one chunk for
another, its peak is the largest of several rows, and which it is follows from the
answer: both are found in turns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.estimation.least_squares import Fit, non_negative_fit
from sapp_ppb.plan import Plan
from sapp_ppb.simulator import ObservedRun, live_rows

Floats = NDArray[np.float64]
CONSTANT, PARAMETERS, ACTIVATION, HEAD, TAIL = "constant", "parameters", "activation", "head", "tail"
_MOST_TURNS = 50


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryEstimate:
    """
    What peaks say of the memory of layers, MB.

    Attributes
    ----------
    fit
        Every unknown with its interval; a measurement for each peak.
    places
        Run and stage of each peak, in the order of the measurements.
    constant_mb, head_mb, tail_mb
        Of every stage, and of the first and last cell besides.
    parameter_mb
        Of one layer, by its name.
    activation_mb
        Of one layer for one live micro-batch, by its name and recompute type; types
        that did not run are missing.
    """

    fit: Fit
    places: tuple[tuple[int, int], ...]
    constant_mb: float
    head_mb: float
    tail_mb: float
    parameter_mb: Mapping[str, float]
    activation_mb: Mapping[str, Mapping[Recompute, float]]


def fit_memory(runs: Sequence[ObservedRun], *, constant_mb: float | None = None) -> MemoryEstimate:
    """
    Divide peaks among the constant, parameters, activations, HEAD and TAIL.

    Parameters
    ----------
    runs
        At least one; their plans spread the same layers over as many stages.
    constant_mb
        Constant of every stage where it is known; None finds it out.

    Raises
    ------
    InputError
        If the peaks do not determine every unknown, with what they can not tell apart, or
        layers ran under strategies.

    Notes
    -----
    A HEAD's or TAIL's activations are part of ``head_mb`` and ``tail_mb``.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=12, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=5, micro_batches=5)
    >>> plan = plan_from_matrices(problem, {"Dec": {"none": [[2, 3, 2, 3, 2]]}})
    >>> # Parameters 100 and activations 10 MB a layer, head 50, tail 30: stage 0 holds 50 + 2 (100 + 5 x 10).
    >>> peaks = {0: 350.0, 1: 420.0, 2: 260.0, 3: 360.0, 4: 250.0}
    >>> found = fit_memory([ObservedRun(plan=plan, peak_mb=peaks)], constant_mb=0.0)
    >>> round(found.parameter_mb["Dec"], 6), round(found.activation_mb["Dec"][Recompute.NONE], 6)
    (100.0, 10.0)
    """
    places = [(run, stage) for run, observed in enumerate(runs) for stage in sorted(observed.peak_mb)]
    if not places:
        raise InputError("peaks", ["none was given; at least one is needed for each unknown"])
    strategies = sorted({strategy.label for run in runs for strategy in run.plan.strategies})
    if strategies:
        fault = f"layers ran under {', '.join(strategies)}, whose memory is not told apart"
        raise InputError("peaks", [f"{fault}; measure runs with recompute types only"])
    names, choices = _choices(runs, places, constant=constant_mb is None)
    measured = np.array([runs[run].peak_mb[stage] for run, stage in places]) - (constant_mb or 0.0)
    fit = _in_turns(names, choices, measured)
    if fit.free:
        raise InputError("peaks", [_undetermined(fit, len(places))])
    return _estimate(fit, tuple(places), constant_mb)


def _undetermined(fit: Fit, peaks: int) -> str:
    groups = "; ".join(" and ".join(group) for group in fit.free)
    known = ", or give --constant-memory if that is known" if any(CONSTANT in g for g in fit.free) else ""
    return (
        f"{peaks} peaks do not tell apart {groups}; measure another run, with other offsets and recompute "
        f"(sapp-ppb dryrun-guide says which){known}"
    )


def _choices(
    runs: Sequence[ObservedRun], places: Sequence[tuple[int, int]], *, constant: bool
) -> tuple[list[str], list[Floats]]:
    """Names of the unknowns, and for each peak the rows that it may be the largest of."""
    bodies = [layer.name for layer in runs[0].plan.problem.model.bodies]
    totals = np.stack([run.plan.counts.sum(axis=2).T for run in runs]).sum(axis=0)
    ran: NDArray[np.bool_] = np.array(totals > 0, dtype=np.bool_)
    columns = [f"{PARAMETERS} {name}" for name in bodies]
    columns += [
        f"{ACTIVATION} {name} {r.label}" for at, name in enumerate(bodies) for r in Recompute if ran[r, at]
    ]
    names = [*([CONSTANT] if constant else []), *columns, HEAD, TAIL]
    rows = [_rows_of(runs[run].plan, stage, ran, constant=constant) for run, stage in places]
    # Only what some peak holds can be asked for: no first stage measured, no HEAD.
    used: NDArray[np.bool_] = np.concatenate(rows).astype(bool).sum(axis=0) > 0
    keep = [at for at, name in enumerate(names) if used[at] or name not in (HEAD, TAIL)]
    return [names[at] for at in keep], [part[:, keep] for part in rows]


def _rows_of(plan: Plan, stage: int, ran: NDArray[np.bool_], *, constant: bool) -> Floats:
    """Share of each unknown in what a stage holds at each moment that may be its peak."""
    problem = plan.problem
    cells = problem.cells_of(stage)
    held = plan.counts[:, :, cells]
    live = live_rows(problem.order)[stage].rows
    fixed = [np.ones(1)] if constant else []
    fixed += [np.array([float(part.sum())]) for part in held]
    moving = [live @ part[r].astype(float) for at, part in enumerate(held) for r in Recompute if ran[r, at]]
    ends = [np.array([float(0 in cells)]), np.array([float(problem.cells - 1 in cells)])]
    columns = [*fixed, *moving, *ends]
    return np.stack([np.broadcast_to(column, (len(live),)) for column in columns], axis=1)


def _in_turns(names: Sequence[str], choices: Sequence[Floats], measured: Floats) -> Fit:
    """Fit with one row for each peak, choose the rows that are largest then, until they stay."""
    chosen = [int(np.argmax(rows.sum(axis=1))) for rows in choices]
    best = _with_rows(names, choices, measured, chosen)
    fit = best
    for _ in range(_MOST_TURNS):
        largest = [int(np.argmax(rows @ fit.values)) for rows in choices]
        if largest == chosen:
            break
        chosen = largest
        fit = _with_rows(names, choices, measured, chosen)
        best = fit if _norm(fit) < _norm(best) else best
    return best


def _with_rows(
    names: Sequence[str], choices: Sequence[Floats], measured: Floats, chosen: Sequence[int]
) -> Fit:
    """Fit with one row chosen for each peak; what is rebuilt is the largest row all the same."""
    matrix = np.array([rows[at] for rows, at in zip(choices, chosen, strict=True)])
    fit = non_negative_fit(matrix, measured, names)
    rebuilt = np.array([float((rows @ fit.values).max()) for rows in choices])
    return replace(fit, residuals=measured - rebuilt)


def _norm(fit: Fit) -> float:
    return float(fit.residuals @ fit.residuals)


def _estimate(fit: Fit, places: tuple[tuple[int, int], ...], constant_mb: float | None) -> MemoryEstimate:
    values = dict(zip(fit.names, fit.values.tolist(), strict=True))
    parameters: dict[str, float] = {}
    activations: dict[str, dict[Recompute, float]] = {}
    for name, value in values.items():
        kind, _, rest = name.partition(" ")
        if kind == PARAMETERS:
            parameters[rest] = value
        elif kind == ACTIVATION:
            layer, _, label = rest.rpartition(" ")
            activations.setdefault(layer, {})[Recompute.from_label(label)] = value
    return MemoryEstimate(
        fit=fit,
        places=places,
        constant_mb=values.get(CONSTANT, constant_mb or 0.0),
        head_mb=values.get(HEAD, 0.0),
        tail_mb=values.get(TAIL, 0.0),
        parameter_mb=parameters,
        activation_mb=activations,
    )
