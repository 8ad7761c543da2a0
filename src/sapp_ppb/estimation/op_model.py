"""
Times of layers out of the times of whole ops, when it is known which layers a cell holds.

The forward of a cell takes its layers' forwards, with the HEAD's in the first cell and
the TAIL's in the last; its backward likewise, by recompute type.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Layer, LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.costs.measured import OpTrace
from sapp_ppb.errors import InputError
from sapp_ppb.estimation.least_squares import Fit, non_negative_fit

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class CellLayers:
    """
    Which layers each cell holds.

    Attributes
    ----------
    bodies
        Names of the BODY layers, in the order of the chain.
    counts
        How many of each, by recompute type and cell; shape (BODY layers, 5 or more, cells),
        nothing under a strategy.
    head, tail
        Name of the HEAD and of the TAIL; None without one.
    """

    bodies: tuple[str, ...]
    counts: NDArray[np.int64]
    head: str | None = None
    tail: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class OpEstimate:
    """
    A model from ops, and how well it rebuilds what was measured.

    Attributes
    ----------
    model
        Times only: no memory.
    forward, backward
        The fits, in milliseconds; a measurement each for the cells that were measured.
    ops
        How many ops were measured.
    """

    model: Model
    forward: Fit
    backward: Fit
    ops: int


def model_from_ops(
    traces: Sequence[OpTrace], cells: Sequence[CellLayers], *, name: str = "measured"
) -> OpEstimate:
    """
    Divide the times of ops among the layers of their cells.

    Parameters
    ----------
    traces
        Ops of some ranks or of all; cells that were not measured are left out.
    cells
        What each cell holds: of one run whose ranks all traces are, or of a run for each trace.
    name
        Name of the model.

    Raises
    ------
    InputError
        If an op is of a cell that is none, a layer is under a strategy, or the cells measured
        do not determine the layers.

    Examples
    --------
    >>> counts = np.zeros((1, 5, 3), dtype=int)
    >>> counts[0, Recompute.NONE] = 2
    >>> trace = OpTrace(source="x", times_ms={(0, "F"): (25.0,), (1, "F"): (20.0,), (2, "F"): (20.0,),
    ...                 (0, "B"): (50.0,), (1, "B"): (40.0,), (2, "B"): (40.0,)})
    >>> model = model_from_ops([trace], [CellLayers(bodies=("Dec",), counts=counts, head="Emb")]).model
    >>> [(layer.name, round(layer.forward_ms, 9)) for layer in model.layers]  # 20 / 2, and 25 - 20
    [('Emb', 5.0), ('Dec', 10.0)]
    """
    if len(cells) not in (1, len(traces)):
        fault = f"are {len(traces)}, and the runs {len(cells)}; give one run, or one for each trace"
        raise InputError("traces", [fault])
    if any(part.counts[:, len(Recompute) :].any() for part in cells):
        fault = (
            "has layers under strategies, whose times are not told apart; give one with recompute types only"
        )
        raise InputError("run", [fault])
    groups = [traces] if len(cells) == 1 else [[trace] for trace in traces]
    times = [_medians(group, part.counts.shape[2]) for group, part in zip(groups, cells, strict=True)]
    forward = _fit([_forward_columns(part) for part in cells], times, 0, "forward")
    backward = _fit([_backward_columns(part) for part in cells], times, 1, "backward")
    ops = sum(len(found) for trace in traces for found in trace.times_ms.values())
    layers = _layers(cells[0], _by_name(forward), _by_name(backward))
    return OpEstimate(model=Model(name=name, layers=layers), forward=forward, backward=backward, ops=ops)


def _medians(traces: Sequence[OpTrace], cells: int) -> dict[int, tuple[float, float]]:
    """Forward and backward of each cell that has both, a split backward put together again."""
    found: dict[tuple[int, str], list[float]] = {}
    for trace in traces:
        for key, values in trace.times_ms.items():
            found.setdefault(key, []).extend(values)
    beyond = sorted({cell for cell, _ in found if cell >= cells})
    if beyond:
        fault = f"cells {', '.join(map(str, beyond[:8]))} were measured, and only {cells} are said to exist"
        raise InputError("traces", [f"{fault}; give the layers of every cell"])
    median = {key: float(np.median(values)) for key, values in found.items()}
    times = {}
    for cell in range(cells):
        split = median.get((cell, "I"), 0.0) + median.get((cell, "W"), 0.0)
        forward, backward = median.get((cell, "F")), median.get((cell, "B"), split)
        if forward is not None and backward > 0:
            times[cell] = (forward, backward)
    if not times:
        raise InputError("traces", ["no cell has both a forward and a backward; one of both is needed"])
    return times


def _forward_columns(cells: CellLayers) -> dict[str, Floats]:
    """Share of each unknown in the forward of each cell, by name; shape (cells,) each."""
    return {**_ends(cells), **dict(zip(cells.bodies, cells.counts.sum(axis=1).astype(float), strict=True))}


def _backward_columns(cells: CellLayers) -> dict[str, Floats]:
    columns = _ends(cells)
    for body, counts in zip(cells.bodies, cells.counts, strict=True):
        columns |= {f"{body} {r.label}": counts[r].astype(float) for r in Recompute if counts[r].any()}
    return columns


def _ends(cells: CellLayers) -> dict[str, Floats]:
    size = cells.counts.shape[2]
    found = {}
    for name, cell in ((cells.head, 0), (cells.tail, size - 1)):
        if name is not None:
            found[name] = np.eye(size)[cell]
    return found


def _fit(
    columns: Sequence[Mapping[str, Floats]],
    times: Sequence[Mapping[int, tuple[float, float]]],
    which: int,
    what: str,
) -> Fit:
    """Fit the forwards (0) or backwards (1) of the cells of every run."""
    names = list(dict.fromkeys(name for part in columns for name in part))
    rows, measured = [], []
    for part, of_run in zip(columns, times, strict=True):
        for cell in sorted(of_run):
            rows.append([part[name][cell] if name in part else 0.0 for name in names])
            measured.append(of_run[cell][which])
    fit = non_negative_fit(np.array(rows), np.array(measured), names)
    if fit.free:
        groups = "; ".join(" and ".join(group) for group in fit.free)
        fault = f"the {what} times of {len(rows)} cells do not tell apart {groups}"
        raise InputError("traces", [f"{fault}; measure cells of other layers, or another run"])
    return fit


def _by_name(fit: Fit) -> dict[str, float]:
    return dict(zip(fit.names, fit.values.tolist(), strict=True))


def _layers(
    cells: CellLayers, forward: Mapping[str, float], backward: Mapping[str, float]
) -> tuple[Layer, ...]:
    layers, faults = [], []
    bodies = [(name, LayerKind.BODY) for name in cells.bodies]
    for name, kind in [(cells.head, LayerKind.HEAD), *bodies, (cells.tail, LayerKind.TAIL)]:
        if name is None:
            continue
        if forward[name] <= 0.0:
            faults.append(f"{name} comes out at no time at all; is it in the first or last cell as said?")
            continue
        layers.append(_layer(name, kind, cells, forward[name], backward))
    if faults:
        raise InputError("traces", faults)
    return tuple(layers)


def _layer(
    name: str, kind: LayerKind, cells: CellLayers, forward_ms: float, backward: Mapping[str, float]
) -> Layer:
    if kind is not LayerKind.BODY:
        return layer_from_times(name=name, kind=kind, forward_ms=forward_ms, backward_ms=backward[name])
    explicit = {r: ms for r in Recompute if (ms := backward.get(f"{name} {r.label}")) is not None}
    count = int(cells.counts[cells.bodies.index(name)].sum())
    full = explicit.get(Recompute.FULL)
    base = None
    if Recompute.NONE not in explicit and full is not None and full > forward_ms:
        base = full - forward_ms  # FULL does the whole forward again
    return layer_from_times(
        name=name, kind=kind, count=count, forward_ms=forward_ms, backward_ms=base, explicit=explicit
    )


def cells_of_split(
    where: str, text: str, body: str, *, head: str | None = None, tail: str | None = None
) -> CellLayers:
    """
    Read how many layers of one kind each cell holds, none of them recomputed.

    Examples
    --------
    >>> cells_of_split("--split", "9,10", "Dec").counts[0, Recompute.NONE].tolist()
    [9, 10]
    """
    entries = [entry.strip() for entry in text.split(",")]
    wrong = [entry for entry in entries if not (entry.isascii() and entry.isdigit() and len(entry) < 7)]
    if wrong or not any(int(entry) for entry in entries):
        raise InputError(where, [f"{text!r} is no list of whole numbers such as 9,10,10,9"])
    counts = np.zeros((1, len(Recompute), len(entries)), dtype=np.int64)
    counts[0, Recompute.NONE] = [int(entry) for entry in entries]
    return CellLayers(bodies=(body,), counts=counts, head=head, tail=tail)
