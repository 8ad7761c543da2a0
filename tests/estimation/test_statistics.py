"""What stands in for a library of statistics: proven by what makes an answer right, not by another one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sapp_ppb.estimation.statistics import non_negative_least_squares, student_quantile

SIZES = st.tuples(st.integers(1, 12), st.integers(1, 8))
ENTRIES = st.integers(-20, 20).map(float)  # whole numbers: ties, zeros and equal columns are usual


@given(st.data())
def test_no_unknown_could_move_and_come_closer(data):
    # Karush, Kuhn and Tucker: at the least sum of squares over x >= 0, which is convex, no derivative
    # lets an unknown grow, and that of an unknown above 0 is 0.
    rows, columns = data.draw(SIZES)
    matrix = data.draw(arrays(float, (rows, columns), elements=ENTRIES))
    measured = data.draw(arrays(float, rows, elements=ENTRIES))
    values = non_negative_least_squares(matrix, measured)
    gain = matrix.T @ (measured - matrix @ values)
    scale = 1e-9 * (1 + np.linalg.norm(matrix) * (np.linalg.norm(measured) + np.linalg.norm(matrix)))
    assert (values >= 0).all()
    assert (gain <= scale).all()
    assert (np.abs(gain[values > 0]) <= scale).all()


@given(st.data())
def test_what_was_made_of_unknowns_is_found_again(data):
    rows, columns = data.draw(st.tuples(st.integers(8, 12), st.integers(1, 4)))
    matrix = data.draw(arrays(float, (rows, columns), elements=ENTRIES))
    matrix[:columns] += 500 * np.eye(columns)  # each row has an unknown of its own, so all are determined
    truth = data.draw(arrays(float, columns, elements=st.sampled_from([0.0, 1.0, 7.0, 1e4])))
    found = non_negative_least_squares(matrix, matrix @ truth)
    assert found == pytest.approx(truth, rel=1e-9, abs=1e-9)
    assert (found[truth == 0.0] <= 1e-9).all()


def test_nothing_to_find_is_nothing():
    assert non_negative_least_squares(np.zeros((3, 0)), np.ones(3)).tolist() == []
    assert non_negative_least_squares(np.zeros((3, 2)), np.ones(3)).tolist() == [0.0, 0.0]
    assert non_negative_least_squares(np.zeros((0, 2)), np.zeros(0)).tolist() == [0.0, 0.0]


# Two-sided 95 % points as tables of the distribution print them, and 1.960 of the normal one.
@pytest.mark.parametrize(
    ("freedom", "value"),
    [
        *[(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (10, 2.228), (30, 2.042)],
        *[(60, 2.000), (120, 1.980), (10**9, 1.960)],
    ],
)
def test_quantiles_are_those_of_the_tables(freedom, value):
    assert round(student_quantile(0.975, freedom), 3) == value


@pytest.mark.parametrize("share", [0.6, 0.9, 0.975, 0.9999])
def test_two_degrees_of_freedom_have_a_closed_form(share):
    # P(T < t) = 1/2 + t / (2 sqrt(2 + t^2)), hence t = (2p - 1) / sqrt(2p (1 - p))
    assert student_quantile(share, 2) == pytest.approx((2 * share - 1) / np.sqrt(2 * share * (1 - share)))
