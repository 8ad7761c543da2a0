"""Two pieces of statistics that would otherwise bring a library of 140 MB along."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# With more degrees of freedom than this the distribution is the normal one to 5 digits.
_MOST_FREEDOM = 100_000


def non_negative_least_squares(matrix: Floats, measured: Floats) -> Floats:
    """
    Find the unknowns of at least 0 whose products with a matrix come closest to what was measured.

    An unknown at 0 whose growth would help most is freed, and the free ones are fitted;
    those that would fall below 0 stop there and are bound again.  Every round comes closer,
    so that no set of free ones is met twice and the end is reached.

    Parameters
    ----------
    matrix
        Shape (measurements, unknowns).
    measured
        Shape (measurements,).

    Returns
    -------
    NDArray
        Shape (unknowns,).

    References
    ----------
    .. [1] Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23.

    Examples
    --------
    >>> non_negative_least_squares(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, -3.0])).tolist()
    [2.0, 0.0]
    """
    values, free = np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1], dtype=bool)
    refused = free.copy()  # of no use as things stand
    # A derivative below this is rounding, as are the residuals that it comes from.
    rounding = 4 * len(measured) * np.finfo(float).eps * float(np.linalg.norm(measured))
    lengths = np.linalg.norm(matrix, axis=0)
    while True:
        residuals = measured - matrix @ values
        gain = np.where(free | refused, 0.0, matrix.T @ residuals)
        best = int(gain.argmax()) if len(gain) else 0
        if not len(gain) or gain[best] <= rounding * lengths[best]:
            return values
        tried, tried_free = values.copy(), free.copy()
        tried_free[best] = True
        tried = _fitted(matrix, measured, tried, tried_free)
        closer = measured - matrix @ tried
        if closer @ closer < residuals @ residuals:
            values, free = tried, tried_free
            refused[:] = False
        else:
            refused[best] = True


def _fitted(matrix: Floats, measured: Floats, values: Floats, free: NDArray[np.bool_]) -> Floats:
    """Fit the free unknowns from values of at least 0; those that stop at 0 are free no more."""
    while True:
        fitted = np.zeros(len(values))
        fitted[free] = np.linalg.lstsq(matrix[:, free], measured, rcond=None)[0]
        falling = np.flatnonzero(free & (fitted <= 0.0))
        if not len(falling):
            return fitted
        shares = values[falling] / np.where(values[falling] > 0.0, values[falling] - fitted[falling], 1.0)
        values = values + shares.min() * (fitted - values)
        free[falling[shares == shares.min()]] = False
        values = np.where(free, np.maximum(values, 0.0), 0.0)


def student_quantile(share: float, freedom: int) -> float:
    """
    Value that a variable of Student's t distribution stays below with a probability above one half.

    Parameters
    ----------
    freedom
        Degrees of freedom, at least 1.

    References
    ----------
    .. [1] Abramowitz and Stegun, Handbook of Mathematical Functions, 1964, 26.7.3 and 26.7.4.

    Examples
    --------
    >>> round(student_quantile(0.975, 1), 6), round(student_quantile(0.975, 10), 6)  # as in any table
    (12.706205, 2.228139)
    """
    low, high = 0.0, 1.0
    while _within(high, freedom) < 2 * share - 1:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if _within(middle, freedom) < 2 * share - 1 else (low, middle)
    return high


def _within(value: float, freedom: int) -> float:
    """Probability that a variable of Student's distribution is no further than a value from 0."""
    freedom = min(freedom, _MOST_FREEDOM)
    angle = math.atan(value / math.sqrt(freedom))
    odd = freedom % 2
    powers = np.arange(odd, freedom - 3, 2)  # of the cosine, in every term but the last
    terms = np.cumprod([math.cos(angle) ** odd, *((powers + 1) / (powers + 2) * math.cos(angle) ** 2)])
    around = math.sin(angle) * float(terms.sum() if freedom > 1 else 0.0)
    return 2 / math.pi * (angle + around) if odd else around
