"""Compile every kernel of the planner, so that no compiler runs on the time limit."""

import numpy as np

from sapp_ppb.costs import LayerKind, Model, layer_from_times
from sapp_ppb.planner.proof.cuts import Separator
from sapp_ppb.planner.proof.families import PathFamilies
from sapp_ppb.planner.proof.patterns import undominated
from sapp_ppb.planner.proof.segments import chain_segments
from sapp_ppb.planner.search.annealing import Search
from sapp_ppb.planner.search.search_kernel import anneal
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import batched_makespans
from sapp_ppb.simulator.kernel import is_compiled
from sapp_ppb.simulator.order_kernel import sort_ops


def needs_compiling() -> bool:
    """Whether the kernels must be compiled first, which takes some 20 s once."""
    return not is_compiled(anneal)


def compile_kernels() -> None:
    """Run every kernel on a problem of two layers; milliseconds once they are compiled."""
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=2, forward_ms=1)
    problem = Problem(model=Model(name="warm-up", layers=(body,)), stages=2, micro_batches=2)
    for _ in Search(problem, seed=0).run(moves=1):
        pass
    Separator(problem).paths(np.ones((3, problem.cells)), windows=1, above_ms=0.0)
    families = PathFamilies(problem, chain_segments(problem))
    families.runs_within(families.bound())
    undominated(np.zeros(1, dtype=np.int64), np.ones((1, 1)))
    one = np.zeros(1, dtype=np.int32)
    sort_ops(np.array([0, 1], dtype=np.int32), one - 1, one > 0, np.array([False, True]), one.copy(), one)
    batched_makespans(problem, np.ones((1, 4 * problem.cells)))
