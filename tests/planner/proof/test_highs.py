"""The door to the solver, where its versions differ."""

import numpy as np
import pytest

from sapp_ppb.planner.proof.highs import LinearProgram


def test_bounds_are_set_alike_from_arrays_with_gaps():
    # A bound was said to be infinite, and so a plan optimal that was not: HiGHS before 1.8 read the numbers
    # between those of a column of a matrix.  The least sum of x >= 1, y >= 2, z >= 3 is 6.
    program = LinearProgram()
    for _ in range(3):
        program.add_column(1.0, 0.0, 10.0)
    program.add_row({0: 1.0, 1: 1.0, 2: 1.0}, upper=100.0)
    lower = np.array([[1.0, 9.0], [2.0, 9.0], [3.0, 9.0]])
    upper = np.array([[4.0, 0.0], [5.0, 0.0], [6.0, 0.0]])
    program.set_bounds(np.arange(3), lower[:, 0], upper[:, 0])
    solution = program.solve()
    assert solution.objective == pytest.approx(6.0)
    assert solution.values == pytest.approx(np.array([1.0, 2.0, 3.0]))
