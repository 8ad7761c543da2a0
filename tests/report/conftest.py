"""A plan that is timed by hand in tests/simulator/test_timeline.py."""

from random import Random

import numpy as np
import pytest
from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import OrderFile, ScheduleName
from sapp_ppb.simulator import Timeline, simulate
from tests.strategies import problems, random_mode, random_plan, with_devices, with_special_layers


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


def pair_plan() -> Plan:
    """
    One stage that runs F of micro-batch 1 and B of micro-batch 0 together.

    f = 1, b = 2, and the pair takes 1 + 2 - 0.5 x 1 = 2.5 ms: F0 0 - 1, the pair 1 - 3.5, B1 3.5 - 5.5.
    """
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=1, forward_ms=1)
    problem = Problem(
        model=Model(name="pair", layers=(body,)),
        stages=1,
        micro_batches=2,
        schedule=ScheduleName.CUSTOM,
        order_file=OrderFile(path="order.csv", text="0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"),
        overlap_factor=0.5,
    )
    counts = np.zeros((1, len(Recompute), 1), dtype=int)
    counts[0, Recompute.NONE] = 1
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


@st.composite
def plans(draw) -> Plan:
    """
    Draw a plan under any schedule, run in any way, on devices alike or not; some layers are special.

    Many have two chunks, which overlap needs.
    """
    problem = draw(problems(chunks=draw(st.sampled_from([1, 2, 2, 3]))))
    unequal, rng = draw(st.booleans()), Random(draw(st.integers(0, 2**32 - 1)))
    problem = random_mode(rng, problem)
    problem = with_special_layers(rng, problem) if rng.random() < 0.5 else problem
    return random_plan(rng, with_devices(rng, problem) if unequal else problem)
