"""Plans from V x S matrices of counts, as people write them."""

from collections.abc import Mapping, Sequence
from numbers import Integral

import numpy as np

from sapp_ppb.costs.checks import LARGEST_COUNT, shown
from sapp_ppb.errors import InputError
from sapp_ppb.plan.plan import Counts, Plan, cut_faults
from sapp_ppb.problem import Problem


def plan_from_matrices(
    problem: Problem, matrices: Mapping[str, Mapping[str, Sequence[Sequence[int]]]]
) -> Plan:
    """
    Plan from V x S matrices indexed ``[chunk][stage]``, by layer name and type name.

    Returns
    -------
    Plan
        Layers and types that are left out have no layers there.

    Raises
    ------
    InputError
        When a name is unknown, a matrix has another shape, or the counts are no plan.
    """
    return Plan(problem=problem, counts=counts_from_matrices(problem, matrices))


def counts_from_matrices(
    problem: Problem, matrices: Mapping[str, Mapping[str, Sequence[Sequence[int]]]]
) -> Counts:
    """
    Read counts along the chain from V x S matrices indexed ``[chunk][stage]``, by layer name and type name.

    Returns
    -------
    ndarray
        Shape (BODY layers, types, cells); they need not add up to the model's layers.

    Raises
    ------
    InputError
        When a name is unknown or a matrix has another shape.
    """
    names = [layer.name for layer in problem.model.bodies]
    counts = np.zeros((len(names), len(problem.model.types), problem.cells), dtype=np.int64)
    faults = [
        f"layer {name!r} is unknown; the model's BODY layers are {', '.join(names[:8])}"
        for name in matrices
        if name not in names
    ]
    for name in [name for name in names if name in matrices]:
        for label, matrix in matrices[name].items():
            recompute = problem.model.type_named(label)
            if len(matrix) != problem.interleave or any(len(row) != problem.stages for row in matrix):
                faults.append(
                    f"{name} {label} must have {problem.interleave} rows of {problem.stages} counts"
                )
                continue
            wrong = [count for row in matrix for count in row if not _is_count(count)]
            if wrong:
                faults.append(
                    f"{name} {label} must hold whole numbers from 0 to {LARGEST_COUNT} "
                    f"(got {shown(wrong[0])})"
                )
                continue
            counts[names.index(name), recompute, np.array(problem.cell_at)] = matrix
    if faults:
        raise InputError("plan", cut_faults(faults))
    return counts


def _is_count(value: object) -> bool:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and 0 <= int(value) <= LARGEST_COUNT  # type: ignore[call-overload, no-any-return, unused-ignore]
