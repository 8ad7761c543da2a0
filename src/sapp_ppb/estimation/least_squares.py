"""
Non-negative least squares that says how far its answer can be trusted.

Costs and memory are never negative, and a system that does not determine them is never
answered in silence: what can not be told apart is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_RANK = 1e-9  # singular values below this share of the largest count as none
_SHARE = 1e-6  # an unknown with less than this share in a free direction is determined
_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """
    What a system of measurements says of its unknowns.

    Attributes
    ----------
    names, values
        The unknowns, and the best non-negative value of each; shape (unknowns,).
    half_width
        Half of each 95 % confidence interval; None for all where there are no more
        measurements than unknowns, and NaN for an unknown that is pushed to 0.
    residuals
        Measured minus rebuilt, in the unit of the measurements; shape (measurements,).
    condition
        Largest over smallest singular value with columns of length 1; infinite when some
        unknowns are not determined.
    free
        Unknowns that the measurements do not determine, in groups that they can not tell apart.
    """

    names: tuple[str, ...]
    values: Floats
    half_width: Floats | None
    residuals: Floats
    condition: float
    free: tuple[tuple[str, ...], ...]


def non_negative_fit(matrix: Floats, measured: Floats, names: Sequence[str]) -> Fit:
    """
    Fit unknowns of at least 0 to measurements that are linear in them.

    Columns are scaled to length 1 first, so that units do not matter.

    Parameters
    ----------
    matrix
        Share of each unknown in each measurement; shape (measurements, unknowns).
    measured
        Shape (measurements,).
    names
        One for each unknown.

    References
    ----------
    .. [1] Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23.

    Examples
    --------
    >>> fit = non_negative_fit(np.array([[1.0, 1], [1, 2], [1, 3]]), np.array([12.0, 14, 16]), ["a", "b"])
    >>> fit.values.round(9).tolist(), fit.free  # a + b = 12 and b = 2
    ([10.0, 2.0], ())
    >>> non_negative_fit(np.array([[1.0, 2, 0]]), np.array([3.0]), ["a", "b", "c"]).free
    (('a', 'b'), ('c',))
    """
    from scipy.optimize import nnls  # 0.3 s, only for those who fit

    lengths = np.linalg.norm(matrix, axis=0)
    scaled = matrix / np.where(lengths > 0, lengths, 1.0)
    values, _ = nnls(scaled, measured, maxiter=100 * max(len(names), 1))
    values = np.asarray(values / np.where(lengths > 0, lengths, 1.0))
    free, condition = _determined(scaled, names)
    residuals = measured - matrix @ values
    return Fit(
        names=tuple(names),
        values=values,
        half_width=None if free else _half_width(matrix, values, residuals),
        residuals=residuals,
        condition=condition,
        free=free,
    )


def _determined(scaled: Floats, names: Sequence[str]) -> tuple[tuple[tuple[str, ...], ...], float]:
    """Find the unknowns that stay free, in groups, and the condition number."""
    _, singular, directions = np.linalg.svd(scaled, full_matrices=True)
    rank = int((singular > _RANK * max(singular.max(initial=0.0), 1e-300)).sum())
    if rank == len(names):
        return (), float(singular[0] / singular[rank - 1])
    space = directions[rank:]
    # Two unknowns can not be told apart when a free direction moves both.
    shares = space.T @ space
    groups: list[tuple[str, ...]] = []
    left = [index for index in range(len(names)) if shares[index, index] > _SHARE]
    while left:
        group, grown = [left[0]], True
        while grown:
            more = [
                at for at in left if at not in group and any(abs(shares[at, had]) > _SHARE for had in group)
            ]
            group, grown = group + more, bool(more)
        groups.append(tuple(names[index] for index in sorted(group)))
        left = [index for index in left if index not in group]
    return tuple(groups), float("inf")


def _half_width(matrix: Floats, values: Floats, residuals: Floats) -> Floats | None:
    """Half-widths of the confidence intervals of the unknowns that are above 0."""
    from scipy.stats import t

    inside = values > 0
    spare = len(residuals) - int(inside.sum())
    if spare <= 0 or not inside.any():
        return None
    part = matrix[:, inside]
    variance = float(residuals @ residuals) / spare
    covariance = variance * np.linalg.inv(part.T @ part)
    widths = np.full(len(values), np.nan)
    widths[inside] = np.sqrt(np.diag(covariance).clip(min=0)) * t.ppf((1 + _CONFIDENCE) / 2, spare)
    return widths
