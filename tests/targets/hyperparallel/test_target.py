"""What HyperParallel's PPOptimizer can say, and the rules of its result."""

import pytest
from hypothesis import given

from sapp_ppb.costs import Recompute
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.hyperparallel.rules import offset_rules, partition_rules, types_of_partition
from sapp_ppb.targets.hyperparallel.target import HYPERPARALLEL, SCHEDULES
from tests.strategies import plans
from tests.targets.megatron_cases import model_of

NONE, FULL = Recompute.NONE, Recompute.FULL


def problem_of(**changes) -> Problem:
    return Problem(**{"model": model_of(8), "stages": 2, "micro_batches": 4} | changes)


@given(plans())
def test_whatever_runs_under_its_schedules_can_be_said(plan):
    if plan.problem.schedule_name in SCHEDULES and plan.problem.micro_batch_group is None:
        unsaid = HYPERPARALLEL.unsaid(plan)
        assert len(unsaid) == len(plan.strategies)  # which it has no words for
        assert all("has no setting for" in fault for fault in unsaid)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"interleave": 2}, None),
        ({"interleave": 2, "schedule": ScheduleName.INTERLEAVED_LESS_MEMORY}, None),
        ({"interleave": 2, "micro_batch_group": 2}, None),  # the number of stages
        ({"interleave": 2, "micro_batch_group": "remainder-first"}, None),  # 4 mod 2 = 0: none remains
        ({"interleave": 2, "micro_batch_group": 4}, "has no field for micro-batch groups"),
        ({"schedule": ScheduleName.GPIPE}, "has no schedule gpipe; use one of 1f1b, interleaved"),
    ],
)
def test_schedules_and_groups(changes, said):
    refused = HYPERPARALLEL.refuses(problem_of(**changes))
    assert said in refused[0] if said else refused == ()


def test_its_plans_are_planned_as_freely_as_without():
    free = plan_pipeline(problem_of(memory_limit_mb=700.0))
    bound = plan_pipeline(problem_of(memory_limit_mb=700.0, target="hyperparallel"))
    assert bound.makespan_ms == free.makespan_ms


def cells(*numbers, types=None):
    return [[(number, (types or {}).get(number, NONE)) for number in cell] for cell in numbers]


@pytest.mark.parametrize(
    ("partition", "said"),
    [
        (cells([0, 1], [2, 3]), None),
        (cells([0], [1, 2]), None),
        (cells([1, 0], [3, 2]), None),  # the order within a cell is that of the numbers
        (cells([0, 1, 2, 3]), "num_of_interleave x pp_degree, 1 x 2, entries (got 1)"),
        (cells([0, 2], [1, 3]), "must follow one another along the cells (got 2 where 1 should be)"),
        (cells([0, 1], [3, 4]), "(got 3 where 2 should be)"),
        (cells([0, 1], [1, 2]), "(got 1 where 2 should be)"),
        (cells([0], [1]), "and a layer between them"),
        (cells([], [0, 1, 2]), "must hold the HEAD in its first entry"),
        (cells([0, 1], [2, 3], types={0: FULL}), "the HEAD is never recomputed (got full)"),
        (cells([0, 1], [2, 3], types={3: FULL}), "the TAIL is never recomputed (got full)"),
    ],
)
def test_rules_of_a_partition(partition, said):
    found = [str(rule) for rule in partition_rules(partition, stages=2, chunks=1)]
    assert len(found) == bool(said)
    assert all(said in rule for rule in found)


def test_types_are_those_of_body_layers_by_chunk_and_stage():
    partition = cells([0, 1], [2], [3, 4], [5], types={1: FULL, 4: FULL})
    assert types_of_partition(partition, stages=2) == (((FULL,), (NONE,)), ((NONE, FULL), ()))


TWO_FIVE = (((NONE,) * 2, (NONE,) * 5),)


@pytest.mark.parametrize(
    ("offset", "said"),
    [
        ({}, None),
        ({"Dec": [[-1, 2]]}, None),  # 7 // 2 = 3
        ({"A": [[0, -1]], "B": [[0, 4]]}, None),  # 2 of A (1 each, less 1) and 5 of B: all less one number
        ({"Dec": [[0, 3]]}, "other layers in stage 0 chunk 0, stage 1 chunk 0"),  # 3 + 6 layers
        ({"Dec": [[-1, 1]]}, "other layers in stage 1 chunk 0"),
        ({"Dec": [[-1], [2]]}, "must be 1 rows, one a chunk, of 2 numbers"),
    ],
)
def test_rules_of_offsets(offset, said):
    found = [str(rule) for rule in offset_rules(offset, TWO_FIVE)]
    assert len(found) == bool(said)
    assert all(said in rule for rule in found)
