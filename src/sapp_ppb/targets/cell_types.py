"""Layers of a plan one by one: the type of each in each cell, and back."""

import numpy as np

from sapp_ppb.costs import RecomputeType
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.targets.config import CellTypes


def cell_types(plan: Plan) -> CellTypes:
    """
    Type of each layer of each cell, kind after kind; of a kind strategies first, then the most recomputed.

    Returns
    -------
    tuple
        Indexed ``[chunk][stage]``; the layers of a cell in the order of the chain.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> memory = {Recompute.NONE: 600, Recompute.FULL: 40}
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=3, forward_ms=1, activation_mb=memory)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> plan = plan_from_matrices(problem, {"Dec": {"none": [[1, 1]], "full": [[1, 0]]}})
    >>> [[r.label for r in cell] for cell in cell_types(plan)[0]]
    [['full', 'none'], ['none']]
    """
    return tuple(tuple(_types_of(plan, cell) for cell in row) for row in plan.problem.cell_at)


def _types_of(plan: Plan, cell: int) -> tuple[RecomputeType, ...]:
    return tuple(
        recompute
        for counts in plan.counts[:, :, cell].tolist()
        for recompute in reversed(plan.problem.model.types)
        for _ in range(counts[recompute])
    )


def plan_from_types(problem: Problem, types: CellTypes) -> Plan:
    """
    Plan whose layers, taken along the chain, have the types given.

    Parameters
    ----------
    types
        Type of each layer of each cell, indexed ``[chunk][stage]``; shape (V, S).

    Raises
    ------
    InputError
        When the shape is another, there are more or fewer layers than the model has, or
        the layers are no plan of the problem.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=3, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> plan_from_types(problem, (((Recompute.NONE,), (Recompute.NONE, Recompute.NONE)),)).offset.tolist()
    [[0, 1]]
    """
    chunks, stages, bodies = problem.interleave, problem.stages, problem.model.bodies
    if len(types) != chunks or any(len(row) != stages for row in types):
        found = f"{len(types)} chunks of {'/'.join(str(len(row)) for row in types)} stages"
        raise InputError(
            "plan", [f"types must be given for {chunks} chunks of {stages} stages (got {found})"]
        )
    given = sum(len(cell) for row in types for cell in row)
    if given != problem.model.body_count:
        fault = f"the configuration has {given} layers and the model {problem.model.body_count} BODY layers"
        raise InputError("plan", [f"{fault}; give the model file of this configuration"])
    kinds = iter(np.repeat(np.arange(len(bodies)), [layer.count for layer in bodies]).tolist())
    counts = np.zeros((len(bodies), len(problem.model.types), problem.cells), dtype=np.int64)
    for chunk, stage, cell in _along_the_chain(problem):
        for recompute in types[chunk][stage]:
            counts[next(kinds), recompute, cell] += 1
    return Plan(problem=problem, counts=counts)


def _along_the_chain(problem: Problem) -> list[tuple[int, int, int]]:
    """Chunk and stage of every cell, with the cell, in the order of the chain."""
    places = [(cell, v, s) for v, row in enumerate(problem.cell_at) for s, cell in enumerate(row)]
    return [(v, s, cell) for cell, v, s in sorted(places)]
