"""A plan that is timed by hand in tests/simulator/test_timeline.py."""

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import Timeline, simulate


def hand_plan(name: str = "hand", **given) -> Plan:
    """
    Three stages of 1, 2 and 1 layers, one of stage 1 recomputed in full.

    f = 1, b = 2 and recomputed 3; 100 MB of parameters a layer, 10 MB live, recomputed 1.
    """
    memory = {Recompute.NONE: 10, Recompute.FULL: 1}
    body = layer_from_times(
        name="Dec", kind=LayerKind.BODY, count=4, forward_ms=1, parameter_mb=100, activation_mb=memory
    )
    problem = Problem(model=Model(name=name, layers=(body,)), stages=3, micro_batches=3, **given)
    counts = np.zeros((1, len(Recompute), 3), dtype=int)
    counts[0, Recompute.NONE], counts[0, Recompute.FULL] = (1, 1, 1), (0, 1, 0)
    return Plan(problem=problem, counts=counts)


@pytest.fixture
def timeline() -> Timeline:
    """
    Time the plan by hand, a column a millisecond.

    0 |F0 F1 F2 .. .. .. .. .. .. .. .. B0 B0 .. .. .. .. .. B1 B1 .. .. .. B2 B2
    1 |.. F0 F0 F1 F1 .. B0 B0 B0 B0 B0 F2 F2 B1 B1 B1 B1 B1 B2 B2 B2 B2 B2
    2 |.. .. .. F0 B0 B0 F1 B1 B1 .. .. .. .. F2 B2 B2
    """
    return simulate(hand_plan())
