"""Small problems that are proven optimal in a moment, so that no clock decides what is found."""

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.sweep import Grid, list_candidates

BODY = layer_from_times(
    name="Dec",
    kind=LayerKind.BODY,
    count=8,
    forward_ms=10,
    parameter_mb=100,
    activation_mb={Recompute.NONE: 60, Recompute.FULL: 4},
)
HEAD = layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=5, parameter_mb=150)
TAIL = layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=8, parameter_mb=120)
MODEL = Model(name="tiny", layers=(HEAD, BODY, TAIL))
GRID = Grid(devices=8, global_batch=16, stages=(2, 4), memory_limits_mb=(900.0, 1200.0))


def pytest_collection_modifyitems(config, items):
    """Leave tests that need a cluster out unless they are asked for, and count them as left out."""
    if "cluster" in (config.option.markexpr or ""):
        return
    left_out = [item for item in items if item.get_closest_marker("cluster")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def candidates():
    """Eight problems: two numbers of stages, of chunks and limits each."""
    found, _ = list_candidates(MODEL, GRID)
    return found


def settled(found):
    """List what must be the same wherever a sweep ran: all but the seconds."""
    return [{name: value for name, value in row.cells.items() if name != "seconds"} for row in found.rows]
