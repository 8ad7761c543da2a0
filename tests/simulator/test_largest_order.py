"""The largest orders are built, checked and timed rightly; how fast, ``make bench`` tells."""

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, layer_from_times
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import batched_makespans
from sapp_ppb.simulator.graph import build_graph

pytestmark = pytest.mark.slow


def test_an_order_of_a_quarter_of_a_million_ops_is_built_and_timed() -> None:
    # S 64, V 4, M 512: 2 x 64 x 4 x 512 = 262,144 ops.
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=256, forward_ms=1)
    problem = Problem(model=Model(name="large", layers=(body,)), stages=64, interleave=4, micro_batches=512)
    assert len(build_graph(problem.order).price) == 262_144
    cells = np.ones(problem.cells)
    prices = np.concatenate([cells, 2 * cells, cells, cells])[None]
    # Equal cells, F 1 and B 2: every device works M V (F + B), after S - 1 of each before it starts or ends.
    assert batched_makespans(problem, prices).tolist() == [512 * 4 * 3 + 63 * 3]
