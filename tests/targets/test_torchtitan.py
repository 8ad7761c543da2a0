"""What torchtitan can say: one mode of activation checkpointing, its schedules, no empty part."""

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.torchtitan import TORCHTITAN, checkpoint_mode


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


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schedule": ScheduleName.ZB_AUTO}, "has no schedule zb-auto"),
        ({"min_layers_per_cell": 0}, "a module in every model part"),
        ({"stages": 3, "micro_batches": 2}, "at least as many micro-batches as stages, 3"),
        ({"interleave": 2, "micro_batches": 5, "micro_batch_group": "remainder-first"}, "leaves a rest"),
        ({"interleave": 2, "micro_batches": 4, "micro_batch_group": 4}, "groups of 2 micro-batches"),
        ({"interleave": 2, "micro_batches": 4}, None),
        ({"schedule": ScheduleName.GPIPE, "micro_batches": 1}, None),
    ],
)
def test_what_torchtitan_runs(changes, said):
    plan = plan_of({NONE: [2] * (changes.get("stages", 2) * changes.get("interleave", 1))}, **changes)
    refused = TORCHTITAN.refuses(plan.problem)
    assert said in refused[0] if said else refused == ()
