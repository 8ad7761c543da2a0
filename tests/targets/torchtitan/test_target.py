"""Problems and plans that torchtitan can not run, and why."""

from dataclasses import replace

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Plan, plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import OrderFile, ScheduleName, build_schedule
from sapp_ppb.targets.torchtitan.target import TORCHTITAN, checkpoint_mode
from tests.torchtitan_plans import model_of, problem_of, with_mode


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"stages": 1, "micro_batches": 4}, "no pipeline on one stage"),
        ({"schedule": ScheduleName.ZB_AUTO}, "has no schedule zb-auto"),
        ({"micro_batches": 1}, "at least as many micro-batches as stages, 2"),
        # 5 // 2 = 2 rounds leave one
        ({"micro_batches": 5, "schedule": ScheduleName.INTERLEAVED_ZERO_BUBBLE}, "into 2 equal rounds"),
        (
            {"interleave": 2, "schedule": ScheduleName.INTERLEAVED, "micro_batch_group": 4},
            "takes groups of 2 micro-batches; give --micro-batch-group 2",
        ),
        (
            {"interleave": 2, "schedule": ScheduleName.INTERLEAVED_ZERO_BUBBLE, "micro_batch_group": 4},
            "takes groups of 2 micro-batches",
        ),
    ],
)
def test_problems_that_it_refuses(changes, words):
    sizes = {"stages": 2, "micro_batches": 8, **changes}
    (fault,) = TORCHTITAN.refuses(Problem(model=model_of(8), **sizes))
    assert words in fault


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"interleave": 2, "schedule": ScheduleName.INTERLEAVED},
        {"interleave": 2, "schedule": ScheduleName.INTERLEAVED, "micro_batches": 1},
        {"interleave": 2, "schedule": ScheduleName.INTERLEAVED_ZERO_BUBBLE},
        {"schedule": ScheduleName.ZBV},
        {"interleave": 3, "schedule": ScheduleName.LOOPED_BFS},
    ],
)
def test_problems_that_it_takes(changes):
    assert (
        TORCHTITAN.refuses(Problem(model=model_of(8), **{"stages": 2, "micro_batches": 8, **changes})) == ()
    )


def test_layers_of_multi_token_prediction_that_it_refuses():
    model = model_of(7, 1)
    layers = [replace(layer, is_mtp=layer.name == "body1") for layer in model.layers]
    problem = Problem(model=replace(model, layers=tuple(layers)), stages=2, micro_batches=8)
    assert TORCHTITAN.refuses(problem) == (
        "torchtitan runs no layers of multi-token prediction in a pipeline; plan without them",
    )


def test_orders_of_ones_own_that_it_refuses():
    cut = OrderFile(path="cut.csv", text=build_schedule("seq1f1b", 2, 1, 2, sequence_chunks=2).to_csv())
    problem = Problem(model=model_of(8), stages=2, micro_batches=2, sequence_chunks=2, order_file=cut)
    assert "does not cut micro-batches along the sequence" in TORCHTITAN.refuses(problem)[0]
    # Cells 0 to 7 go up, back, up and back over two stages.
    text = "0F0,3F0,4F0,7F0,7B0,4B0,3B0,0B0\n1F0,2F0,5F0,6F0,6B0,5B0,2B0,1B0"
    order = OrderFile(path="w.csv", text=text)
    problem = Problem(model=model_of(8), stages=2, interleave=4, micro_batches=1, order_file=order)
    assert "exactly two chunks a stage on a V" in TORCHTITAN.refuses(problem)[0]


@pytest.mark.parametrize(
    ("mode", "every", "expected"),
    [
        ("none", 1, ("none", None)),
        ("full", 1, ("full", None)),
        ("selective", 1, ("selective", "op")),
        ("every", 2, ("selective", "2")),
        ("every", 3, ("selective", "3")),
    ],
)
@pytest.mark.parametrize("interleave", [1, 2])
def test_a_plan_is_said_by_the_mode_that_makes_it(mode, every, expected, interleave):
    schedule = ScheduleName.INTERLEAVED if interleave == 2 else None
    problem = problem_of([12], interleave=interleave, schedule=schedule)
    rows = [[7, 5]] if interleave == 1 else [[4, 2], [3, 3]]
    plan = with_mode(plan_from_matrices(problem, {"body0": {"none": rows}}), mode, every)
    assert checkpoint_mode(plan) == expected
    assert TORCHTITAN.unsaid(plan) == ()


def test_an_empty_part_can_not_be_said():
    problem = Problem(model=model_of(4), stages=3, micro_batches=4, min_layers_per_cell=0)
    plan = plan_from_matrices(problem, {"body0": {"none": [[2, 0, 2]]}})
    assert TORCHTITAN.unsaid(plan) == (
        "a model part must hold a module (got none in part 1); use --min-layers 1",
    )
    ends = plan_from_matrices(problem, {"body0": {"none": [[0, 4, 0]]}})
    assert TORCHTITAN.unsaid(ends) == ()  # the embedding and the head are modules too


def plan_of(by_type: dict[Recompute, list[int]], **changes) -> Plan:
    """Plan of one kind by type and cell."""
    memory = {recompute: 100.0 - recompute for recompute in Recompute}
    count = sum(map(sum, by_type.values()))
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=count, forward_ms=1, activation_mb=memory)
    given = {"stages": 2, "micro_batches": 4} | changes
    problem = Problem(model=Model(name="m", layers=(body,)), **given)
    counts = np.zeros((1, 5, problem.cells), dtype=int)
    for recompute, cells in by_type.items():
        counts[0, recompute] = cells
    return Plan(problem=problem, counts=counts)


FULL, NONE, SELECTIVE = Recompute.FULL, Recompute.NONE, Recompute.SELECTIVE


@pytest.mark.parametrize(
    ("by_type", "mode"),
    [
        ({NONE: [3, 3]}, ("none", None)),
        ({FULL: [3, 3]}, ("full", None)),
        ({SELECTIVE: [3, 3]}, ("selective", "op")),
        ({FULL: [1, 2], NONE: [2, 2]}, ("selective", "2")),  # 3 div 2 and 4 div 2
        ({FULL: [1, 1], NONE: [2, 3]}, ("selective", "3")),  # 3 div 3 and 4 div 3; every second would be 1, 2
        ({FULL: [2, 1], NONE: [1, 2]}, None),
        ({Recompute.COMM: [3, 3]}, None),
        ({SELECTIVE: [1, 1], NONE: [2, 2]}, None),
    ],
)
def test_a_mode_holds_for_the_whole_model(by_type, mode):
    plan = plan_of(by_type)
    assert checkpoint_mode(plan) == mode
    assert bool(TORCHTITAN.unsaid(plan)) is (mode is None)


def test_every_n_th_layer_is_counted_over_the_chunks_of_a_stage():
    # Stage 0 builds 1 + 2 layers: its second is the first of chunk 1; stage 1 builds 2 + 1: its second.
    plan = plan_of({FULL: [0, 1, 1, 0], NONE: [1, 1, 1, 1]}, interleave=2)
    assert checkpoint_mode(plan) == ("selective", "2")


def test_ways_have_every_n_th_layer_with_one_chunk_only():
    one = TORCHTITAN.ways(plan_of({NONE: [3, 3]}).problem)
    two = TORCHTITAN.ways(plan_of({NONE: [1, 2, 2, 1]}, interleave=2).problem)
    # A cell has up to 6 - 1 layers.
    assert [way.words.split()[-1] for way in one[3:]] == ['"2"', '"3"', '"4"', '"5"']
    assert len(two) == 3
