"""One plan timed with any overhead of its ops and any time of its hops, and what these count for."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sapp_ppb.plan import Plan
from sapp_ppb.simulator.graph import PLAIN_OPS, graph_of
from sapp_ppb.simulator.path_kernel import counted_path
from sapp_ppb.simulator.price import OVERHEAD, price, price_rule
from sapp_ppb.simulator.timeline import hop_times


class Counted(NamedTuple):
    """A step, and how many ops and hops a path has that decides it."""

    makespan_ms: float
    ops: int
    hops: int


class Besides:
    """
    A plan whose step is wanted for many overheads and hop times; those of its own model are left out.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=3, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=3, micro_batches=1)
    >>> plan = plan_from_matrices(problem, {"Dec": {"none": [[1, 1, 1]]}})
    >>> Besides(plan).step(0.5, 0.25)  # 3 x (1 + 2), 6 ops of 0.5 and 4 hops of 0.25
    Counted(makespan_ms=13.0, ops=6, hops=4)
    """

    def __init__(self, plan: Plan) -> None:
        without, with_one = (
            # What stages do after their last op is no part of a step from first op to last.
            plan.problem.changed(
                model=replace(plan.problem.model, op_overhead_ms=ms, hop_ms=0.0), step_extra_ms=0.0
            )
            for ms in (0.0, 1.0)
        )
        graph = graph_of(without)
        self._columns = (graph.before, graph.price, graph.giver)
        self._durations_ms = price(plan).price_list(without)
        self._one_op = price_rule(with_one)[:, :, OVERHEAD].ravel()
        self._hop_ms = hop_times(without, graph)
        self._one_hop = (graph.edge >= 0).astype(np.float64)

    def step(self, op_overhead_ms: float, hop_ms: float) -> Counted:
        """Time the step; of paths that tie, one is counted.  Linear in ops."""
        columns = (
            *self._columns,
            self._hop_ms + hop_ms * self._one_hop,
            self._durations_ms + op_overhead_ms * self._one_op,
            self._one_op,
            self._one_hop,
            *np.empty((3, len(self._one_hop))),
        )
        if len(self._one_hop) > PLAIN_OPS:
            *_, end_ms, ops, hops = columns
            last = counted_path(*columns)
        else:
            # Lists are several times faster than arrays for one element at a time.
            lists = [column.tolist() for column in columns]
            *_, end_ms, ops, hops = lists
            last = counted_path.python(*lists)
        return Counted(float(end_ms[last]), int(ops[last]), int(hops[last]))
