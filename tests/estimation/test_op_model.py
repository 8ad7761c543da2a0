"""Times of ops are divided among the layers of their cells, and nothing is guessed."""

import numpy as np
import pytest
from hypothesis import given

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.costs.measured import OpTrace
from sapp_ppb.errors import InputError
from sapp_ppb.estimation import CellLayers, cells_of_split, model_from_ops
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import OpKind
from sapp_ppb.simulator import simulate
from tests.strategies import plans


def ops_of(timeline):
    """Gather the times of every op of a timeline, as a trace would give them."""
    times: dict[tuple[int, str], list[float]] = {}
    rows = zip(timeline.plan.problem.order.rows, timeline.start_ms, timeline.end_ms, strict=True)
    for row, starts, ends in rows:
        for op, start, end in zip(row, starts, ends, strict=True):
            times.setdefault((op.cell, OpKind(op.kind).name), []).append(float(end - start))
    return OpTrace(source="simulated", times_ms={key: tuple(found) for key, found in times.items()})


def model():
    types = {Recompute.NONE: 10, Recompute.SELECTIVE: 5, Recompute.FULL: 1}
    return Model(
        name="tiny",
        layers=(
            layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=5.5, backward_ms=8),
            layer_from_times(
                name="Dec",
                kind=LayerKind.BODY,
                count=12,
                forward_ms=10.25,
                backward_ms=21,
                activation_mb=types,
            ),
            layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=7, backward_ms=15),
        ),
    )


def test_a_model_that_is_simulated_is_got_back():
    problem = Problem(model=model(), stages=6, micro_batches=8)
    matrices = {
        "none": [[1, 0, 1, 1, 2, 1]],
        "selective": [[0, 2, 1, 0, 0, 0]],
        "full": [[0, 0, 0, 2, 1, 0]],
    }
    plan = plan_from_matrices(problem, {"Dec": matrices})
    cells = CellLayers(bodies=("Dec",), counts=plan.counts, head="Emb", tail="Out")
    estimate = model_from_ops([ops_of(simulate(plan))], [cells], name="tiny")
    for found, given_ in zip(estimate.model.layers, problem.model.layers, strict=True):
        assert (found.name, found.kind, found.count) == (given_.name, given_.kind, given_.count)
        assert found.forward_ms == pytest.approx(given_.forward_ms, rel=1e-9)
    got, had = estimate.model.bodies[0], problem.model.bodies[0]
    for recompute in (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL):
        assert got.backward_ms[recompute] == pytest.approx(had.backward_ms[recompute], rel=1e-9)
    assert estimate.ops == 6 * 8 * 2


def test_without_a_plain_backward_the_full_one_less_a_forward_is_taken():
    trace = OpTrace(source="x", times_ms={(0, "F"): (20.0,), (0, "B"): (64.0,)})
    counts = np.zeros((1, 5, 1), dtype=int)
    counts[0, Recompute.FULL] = 2
    (layer,) = model_from_ops([trace], [CellLayers(bodies=("Dec",), counts=counts)]).model.layers
    # 20 / 2 forward, 64 / 2 = 32 backward of which 10 is the forward again
    assert (layer.backward_ms[Recompute.NONE], layer.backward_ms[Recompute.FULL]) == pytest.approx((22, 32))


def test_a_split_backward_is_put_together():
    trace = OpTrace(source="x", times_ms={(0, "F"): (4.0, 4.2, 3.9), (0, "I"): (5.0,), (0, "W"): (3.5,)})
    (layer,) = model_from_ops([trace], [cells_of_split("--split", "2", "Dec")]).model.layers
    assert (layer.forward_ms, layer.backward_ms[0]) == pytest.approx((2.0, 4.25))  # median 4.0; (5 + 3.5) / 2


def test_cells_that_do_not_tell_layers_apart_are_named():
    times = {(cell, kind): (10.0,) for cell in (0, 1) for kind in "FB"}
    with pytest.raises(InputError, match=r"forward times of 2 cells do not tell apart Emb and Out and Dec"):
        model_from_ops(
            [OpTrace(source="x", times_ms=times)],
            [cells_of_split("--split", "2,2", "Dec", head="Emb", tail="Out")],
        )


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({(7, "F"): (1.0,), (7, "B"): (1.0,)}, "cells 7 were measured, and only 2 are said to exist"),
        ({(0, "F"): (1.0,), (1, "F"): (1.0,)}, "no cell has both a forward and a backward"),
    ],
)
def test_traces_that_can_not_be_divided_are_refused(times, said):
    with pytest.raises(InputError, match=said):
        model_from_ops([OpTrace(source="x", times_ms=times)], [cells_of_split("--split", "2,2", "Dec")])


def test_a_head_that_takes_no_time_is_refused():
    times = {(cell, kind): (10.0,) for cell in (0, 1) for kind in "FB"}
    with pytest.raises(InputError, match="Emb comes out at no time at all"):
        model_from_ops(
            [OpTrace(source="x", times_ms=times)], [cells_of_split("--split", "2,2", "Dec", head="Emb")]
        )


@pytest.mark.parametrize("text", ["", "a,b", "1.5,2", "-1,2", "0,0", "1,,2"])
def test_a_split_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="is no list of whole numbers such as 9,10,10,9"):
        cells_of_split("--split", text, "Dec")


@given(plans())
def test_every_plan_is_rebuilt_or_what_is_free_is_named(plan):
    bodies = tuple(layer.name for layer in plan.problem.model.bodies)
    ends: dict[str, str | None] = {
        "head": "h" if plan.problem.model.heads else None,
        "tail": "t" if plan.problem.model.tails else None,
    }
    trace = ops_of(simulate(plan))
    try:
        cells = CellLayers(bodies=bodies, counts=plan.counts, **ends)
        estimate = model_from_ops([trace], [cells])
    except InputError as error:
        if any(words in str(error) for words in ("do not tell apart", "no time at all", "under strategies")):
            return  # named, which is what is asked of it
        raise
    scale = max(max(times) for times in trace.times_ms.values())
    assert np.abs(estimate.forward.residuals).max() <= 1e-6 * scale
    assert np.abs(estimate.backward.residuals).max() <= 1e-6 * scale


def test_several_runs_tell_together_what_none_tells_alone():
    # In each run head and layers come together: 2 layers and the head take 25 ms, 3 and the head 35.
    runs = [cells_of_split("--split", split, "Dec", head="Emb") for split in ("2", "3")]
    traces = [OpTrace(source="x", times_ms={(0, "F"): (ms,), (0, "B"): (2 * ms,)}) for ms in (25.0, 35.0)]
    layers = model_from_ops(traces, runs).model.layers
    assert [(layer.name, round(layer.forward_ms, 9)) for layer in layers] == [("Emb", 5.0), ("Dec", 10.0)]
    with pytest.raises(InputError, match="do not tell apart Emb and Dec"):
        model_from_ops(traces[:1], runs[:1])
    with pytest.raises(InputError, match="are 2, and the runs 3; give one run, or one for each trace"):
        model_from_ops(traces, [*runs, runs[0]])


def test_a_run_under_a_strategy_is_refused():
    counts = np.zeros((1, 6, 1), dtype=int)
    counts[0, 5] = 2
    trace = OpTrace(source="x", times_ms={(0, "F"): (2.0,), (0, "B"): (4.0,)})
    with pytest.raises(InputError, match="run: has layers under strategies, whose times are not told apart"):
        model_from_ops([trace], [CellLayers(bodies=("Dec",), counts=counts)])
