"""Which of plans of equal makespan is better, and recompute taken off where nothing needs it."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute, RecomputeType
from sapp_ppb.plan import Plan
from sapp_ppb.simulator import Timeline
from sapp_ppb.simulator.memory import LiveRows, problem_rows
from sapp_ppb.simulator.price import layer_tables, price, without_recompute
from sapp_ppb.targets import can_say_cell, is_nested

# Of a scale that numbers are told apart by; sums have 53.
_BITS = 40


def tie_rank(timeline: Timeline) -> tuple[float, float, int]:
    """
    Rank a plan among those of its makespan; the least is best.

    Returns
    -------
    tuple
        Milliseconds a micro-batch that recompute adds, highest share of a limit (MB where
        there is no limit), and layers by which neighbouring stages differ.
    """
    plan = timeline.plan
    backward_ms = price(plan).backward_ms
    added_ms = float((backward_ms - without_recompute(plan).backward_ms).sum())
    limits = np.array(plan.problem.limit_per_stage_mb)
    peaks = np.array(timeline.peak_memory_mb) / np.where(np.isfinite(limits), np.maximum(limits, 1.0), 1.0)
    rough = np.abs(np.diff(plan.per_chunk_and_stage(plan.layers_per_cell), axis=1)).sum()
    peak = float(peaks.max())
    return _rounded(added_ms, float(backward_ms.sum())), _rounded(peak, peak), int(rough)


def _rounded(value: float, scale: float) -> float:
    """
    Round to some 12 digits of a scale, as sums of the same numbers in another order differ in the last bits.

    What is rounded to is a power of two, so that times in other units are rounded alike.
    """
    unit = math.ldexp(1.0, math.frexp(scale)[1] - _BITS)
    return round(value / unit) * unit


def tidied(plan: Plan) -> Plan:
    """
    Take recompute off layers, one at a time, wherever memory allows and no backward gets longer.

    No path gets longer when no backward does, so the makespan can only fall.
    Types of equal time tie: the one that recomputes less is preferred, and any to a strategy.

    Returns
    -------
    Plan
        The same split.
    """
    if plan.problem.fix is not None and plan.problem.fix.settles_recompute:
        return plan
    tidier = _Tidier(plan)
    for stage, live in enumerate(problem_rows(plan.problem)):
        # A strategy may hold more than what is slower, so that a turn can make room for another.
        while tidier.tidies(stage, live) and len(plan.problem.model.types) > len(Recompute):
            pass
    return replace(plan, counts=tidier.counts)


class _Tidier:
    """Turns layers of a plan into lesser types; ``counts`` are those of the plan so far."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._tables, costs = plan, layer_tables(plan.problem), price(plan)
        self.counts, self._parameter = plan.counts.copy(), costs.parameter_mb
        self._activation, self._again = costs.activation_mb.copy(), costs.again_mb.copy()

    def tidies(self, stage: int, live: LiveRows) -> bool:
        """Turn what can be turned on a stage, in one pass; whether that was anything."""
        problem, turned = self._plan.problem, False
        cells = problem.cells_of(stage)
        limit = problem.limit_per_stage_mb[stage]
        room = limit - problem.constant_per_stage_mb[stage] - self._parameter[cells].sum()
        for cell in cells:
            for k, more, less in _steps(self._plan):
                while self.counts[k, more, cell] and _may_turn(
                    self._plan, self.counts[:, :, cell], k, more, less
                ):
                    before = self._activation[cell], self._again[cell]
                    self._turn(cell, k, more, less)
                    if live.totals(self._activation[cells], self._again[cells]).max() > room:
                        self._activation[cell], self._again[cell] = before
                        self.counts[k, [more, less], cell] += (1, -1)
                        break
                    turned = True
        return turned

    def _turn(self, cell: int, k: int, more: RecomputeType, less: RecomputeType) -> None:
        """Turn one layer and hold what it then holds."""
        tables = self._tables
        self.counts[k, [more, less], cell] += (-1, 1)
        self._activation[cell] += tables.activation_mb[k, less] - tables.activation_mb[k, more]
        self._again[cell] = (tables.again_mb * (self.counts[:, :, cell] > 0)).max()


def _steps(plan: Plan) -> Iterator[tuple[int, RecomputeType, RecomputeType]]:
    """Entry, a type, and one that is less work and is no slower; the least work first."""
    for k, layer in enumerate(plan.problem.model.bodies):
        considered = layer.least_work_first(plan.problem.considered(layer))
        for place, less in enumerate(considered):
            for more in reversed(considered[place + 1 :]):
                if layer.backward_ms[less] <= layer.backward_ms[more]:
                    yield k, more, less


def _may_turn(plan: Plan, cell: NDArray[np.int64], k: int, more: RecomputeType, less: RecomputeType) -> bool:
    """Whether the target can still say the cell when one layer turns from a type to another."""
    after = cell.copy()
    after[k, more] -= 1
    after[k, less] += 1
    return not is_nested(plan.problem.target) or can_say_cell(after)
