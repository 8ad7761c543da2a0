"""The plans that no other beats at both time and memory."""

from collections.abc import Sequence


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """
    Places of the points with no other that is as small in both numbers and smaller in one.

    Equal points are all kept.  Cost: O(n log n).

    Examples
    --------
    >>> pareto([(10, 5), (12, 3), (11, 6), (12, 4), (10, 5)])  # 11, 6 is beaten by 10, 5, and 12, 4 by 12, 3
    [0, 1, 4]
    """
    best, before, kept = float("inf"), float("inf"), []
    for place in sorted(range(len(points)), key=lambda place: points[place]):
        first, second = points[place]
        if second < best or (second == best and first == before):
            kept.append(place)
            best, before = second, first
    return sorted(kept)
