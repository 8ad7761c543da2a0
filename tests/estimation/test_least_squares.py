"""Non-negative least squares: what is determined, what is not, and how far it can be trusted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.estimation.least_squares import non_negative_fit


def test_an_exact_system_is_solved_whatever_the_units():
    # a + b = 12 and b = 2, with b in units a million times larger
    matrix = np.array([[1.0, 1e-6], [0.0, 1e-6]])
    fit = non_negative_fit(matrix, np.array([12.0, 2.0]), ["a", "b"])
    assert fit.values == pytest.approx([10, 2e6], rel=1e-9)
    assert (fit.free, fit.half_width) == ((), None)
    assert fit.residuals == pytest.approx([0, 0], abs=1e-9)


def test_nothing_is_ever_negative():
    # Least squares without a bound would give b = -2; with it a is the mean of 10 and 8.
    fit = non_negative_fit(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([10.0, 8.0]), ["a", "b"])
    assert fit.values == pytest.approx([9, 0])
    assert fit.residuals == pytest.approx([1, -1])


def test_what_can_not_be_told_apart_is_named_in_groups():
    # c always comes with d; e comes in nothing; a and b are determined.
    matrix = np.array([[1.0, 0, 1, 2, 0], [1, 1, 0, 0, 0], [2, 1, 0, 0, 0]])
    fit = non_negative_fit(matrix, np.array([5.0, 3, 4]), list("abcde"))
    assert fit.free == (("c", "d"), ("e",))
    assert fit.condition == float("inf")
    assert fit.half_width is None


def test_the_confidence_interval_is_students():
    # The mean of 9, 10 and 11: deviation 1, so 1 / sqrt(3) x 4.3027 (95 %, two degrees of freedom).
    fit = non_negative_fit(np.ones((3, 1)), np.array([9.0, 10.0, 11.0]), ["a"])
    assert fit.half_width == pytest.approx([4.30265 / 3**0.5], rel=1e-5)
    assert fit.condition == pytest.approx(1.0)


def test_an_unknown_that_is_pushed_to_0_has_no_interval():
    matrix = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    fit = non_negative_fit(matrix, np.array([10.0, 9.0, 8.0]), ["a", "b"])
    assert fit.half_width is not None
    assert np.isnan(fit.half_width).tolist() == [False, True]


@given(st.integers(0, 2**32 - 1))
def test_a_system_of_full_rank_gives_its_values_back(seed):
    rng = np.random.default_rng(seed)
    unknowns = int(rng.integers(1, 6))
    matrix = rng.integers(0, 9, (unknowns + int(rng.integers(0, 4)), unknowns)).astype(float)
    values = rng.uniform(1, 1000, unknowns)
    fit = non_negative_fit(matrix, matrix @ values, [f"x{index}" for index in range(unknowns)])
    assert (not fit.free) == (np.linalg.matrix_rank(matrix) == unknowns)
    if not fit.free:
        assert fit.values == pytest.approx(values, rel=1e-6)
    assert fit.residuals == pytest.approx(np.zeros(len(matrix)), abs=1e-6 * (1 + matrix.max() * 1000))
