"""The front of time against memory."""

from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.sweep.frontier import pareto

points = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


@given(points)
def test_a_point_is_on_the_front_unless_another_beats_it(points):
    beaten = [
        any(x <= a and y <= b and (x, y) != (a, b) for x, y in points)  # the definition, in n squared
        for a, b in points
    ]
    assert pareto(points) == [place for place, is_beaten in enumerate(beaten) if not is_beaten]
