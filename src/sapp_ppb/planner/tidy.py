"""Leave alone what need not be recomputed: same makespan or better, still within the limit."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.simulator.memory import live_rows
from sapp_ppb.simulator.price import layer_tables, price
from sapp_ppb.targets import may_mix_selective_and_comm


def tidied(plan: Plan) -> Plan:
    """
    Take recompute off layers, one at a time, wherever memory allows and no backward gets longer.

    No path gets longer when no backward does, so the makespan can only fall.
    Types of equal time tie: the one that recomputes less is preferred.

    Returns
    -------
    Plan
        The same split.
    """
    problem, tables = plan.problem, layer_tables(plan.problem)
    counts, costs = plan.counts.copy(), price(plan)
    activation = costs.activation_mb.copy()
    placement = problem.order.placement
    for stage, live in enumerate(live_rows(problem.order)):
        cells = [placement.cell_of(stage, chunk, problem.stages) for chunk in range(problem.interleave)]
        limit = problem.limit_per_stage_mb[stage]
        room = limit - problem.constant_per_stage_mb[stage] - costs.parameter_mb[cells].sum()
        for cell in cells:
            for k, more, less in _steps(plan):
                gained = tables.activation_mb[k, less] - tables.activation_mb[k, more]
                while counts[k, more, cell] and _may_turn(plan, counts[:, :, cell], k, more, less):
                    activation[cell] += gained
                    if (live.rows @ activation[cells]).max() > room:
                        activation[cell] -= gained
                        break
                    counts[k, more, cell] -= 1
                    counts[k, less, cell] += 1
    return replace(plan, counts=counts)


def _steps(plan: Plan) -> Iterator[tuple[int, Recompute, Recompute]]:
    """Entry, a type, and one that recomputes less and is no slower; the least recompute first."""
    for k, layer in enumerate(plan.problem.model.bodies):
        considered = plan.problem.considered(layer)
        for less in considered:
            for more in reversed(considered):
                if less < more and layer.backward_ms[less] <= layer.backward_ms[more]:
                    yield k, more, less


def _may_turn(plan: Plan, cell: NDArray[np.int64], k: int, more: Recompute, less: Recompute) -> bool:
    """Whether the target can still say the cell when one layer turns from a type to another."""
    after = cell.copy()
    after[k, more] -= 1
    after[k, less] += 1
    return may_mix_selective_and_comm(plan.problem.target) or not (
        after[:, Recompute.SELECTIVE].any() and after[:, Recompute.COMM].any()
    )
