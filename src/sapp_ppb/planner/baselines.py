"""What people do without a planner: plans to compare with."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.price import layer_tables

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A named plan; it may exceed the memory limit."""

    name: str
    plan: Plan


def baselines(problem: Problem) -> tuple[Baseline, ...]:
    """
    Even split without and with full recompute, and the classic bottleneck partition.

    Those that break a rule of the problem, such as a cell left empty, are left out.  Where some
    layer can not be left alone, or not be under full recompute, the names say the least or the most.

    Returns
    -------
    tuple
        Up to three, in this order.
    """
    light, heavy = _types(problem, most=False), _types(problem, most=True)
    even, bottleneck = _even_split(problem), _bottleneck_split(problem)
    least = "no" if (light == Recompute.NONE).all() else "least"
    most = "full" if (heavy == Recompute.FULL).all() else "most"
    wanted = (
        (f"even split, {least} recompute", even, light),
        (f"even split, {most} recompute", even, heavy),
        (f"bottleneck partition, {least} recompute", bottleneck, light),
    )
    found = []
    for name, sizes, types in wanted:
        try:
            found.append(Baseline(name=name, plan=_plan(problem, sizes, types)))
        except InputError:
            continue
    return tuple(found)


def _types(problem: Problem, *, most: bool) -> Ints:
    """
    First or last type that the problem considers for each BODY entry; FULL is the last where it may be.

    A strategy stands only for a layer that has no recompute type.
    """
    considered = [problem.considered(layer) for layer in problem.model.bodies]
    ordinary = [tuple(r for r in types if isinstance(r, Recompute)) or types for types in considered]
    return np.array([types[-1 if most else 0] for types in ordinary])


def _even_split(problem: Problem) -> Ints:
    """N div C layers in each cell, one more in the first N mod C cells."""
    even, more = divmod(problem.model.body_count, problem.cells)
    return np.array([even + (cell < more) for cell in range(problem.cells)])


def _bottleneck_split(problem: Problem) -> Ints:
    """
    Split with the least longest cell, in time without recompute at the speed of its stage.

    Greedy filling under a cap, and bisection on the cap; O(N log(range)).
    """
    tables = layer_tables(problem)
    counts = [layer.count for layer in problem.model.bodies]
    times = np.repeat(tables.forward_ms + tables.backward_ms[:, Recompute.NONE], counts)
    fixed = tables.fixed.forward_ms + tables.fixed.backward_ms
    least = [problem.least_layers(cell) for cell in range(problem.cells)]
    speeds = np.array(problem.speed_per_cell)
    low, high = 0.0, float(times.sum() + fixed.sum()) / float(speeds.min())
    sizes = _filled(times, fixed, least, high * speeds)
    for _ in range(60):
        middle = (low + high) / 2
        tried = _filled(times, fixed, least, middle * speeds)
        low, high = (low, middle) if tried is not None else (middle, high)
        sizes = tried if tried is not None else sizes
    return _even_split(problem) if sizes is None else sizes


def _filled(
    times: NDArray[np.float64], fixed: NDArray[np.float64], least: list[int], caps: NDArray[np.float64]
) -> Ints | None:
    """Fill cell after cell, each up to its cap; None when layers are left over."""
    sizes, at, total = [], 0, len(times)
    spent = np.concatenate([[0.0], np.cumsum(times)])
    for cell, fewest in enumerate(least):
        needed_later = sum(least[cell + 1 :])
        room = max(caps[cell] - fixed[cell], 0.0) * (1 + 1e-12)
        upto = int(np.searchsorted(spent, spent[at] + room, side="right")) - 1
        upto = min(upto, total - needed_later)
        if upto - at < fewest:
            return None
        sizes.append(upto - at)
        at = upto
    return np.array(sizes) if at == total else None


def _plan(problem: Problem, sizes: Ints, types: Ints) -> Plan:
    kinds = np.repeat(np.arange(len(types)), [layer.count for layer in problem.model.bodies])
    cells = np.repeat(np.arange(problem.cells), sizes)
    counts = np.zeros((len(types), len(problem.model.types), problem.cells), dtype=np.int64)
    np.add.at(counts, (kinds, types[kinds], cells), 1)
    return Plan(problem=problem, counts=counts)
