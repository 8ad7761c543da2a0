"""What Megatron-LM can say: one recompute setting, its schedules and groups, MTP in the last chunk."""

import numpy as np
import pytest
from hypothesis import given

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.megatron.target import MEGATRON, recompute_words
from tests.targets.megatron_cases import megatron_plans

BLOCK = "--recompute-granularity full --recompute-method block --recompute-num-layers"


def problem_of(layers: int, *, mtp: int = 0, **changes) -> Problem:
    memory = {recompute: 100.0 - recompute for recompute in Recompute}
    entries = [("Dec", layers, False), ("Mtp", mtp, True)]
    bodies = tuple(
        layer_from_times(
            name=name, kind=LayerKind.BODY, count=count, forward_ms=1, activation_mb=memory, is_mtp=is_mtp
        )
        for name, count, is_mtp in entries
        if count
    )
    head = layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=1)
    tail = layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=1)
    sizes = {"stages": 2, "micro_batches": 4} | changes
    return Problem(model=Model(name="m", layers=(head, *bodies, tail)), **sizes)


def plan_of(full: list[int], none: list[int], *, mtp: list[int] | None = None, **changes) -> Plan:
    """Plan of FULL and NONE layers by cell, and of MTP layers that are left alone."""
    problem = problem_of(sum(full) + sum(none), mtp=sum(mtp or []), **changes)
    counts = np.zeros((len(problem.model.bodies), 5, problem.cells), dtype=int)
    counts[0, Recompute.FULL], counts[0, Recompute.NONE] = full, none
    if mtp:
        counts[1, Recompute.NONE] = mtp
    return Plan(problem=problem, counts=counts)


@pytest.mark.parametrize(
    ("full", "none", "words"),
    [
        ([0, 0], [3, 4], ""),
        ([3, 4], [0, 0], "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"),
        ([2, 2], [1, 2], f"{BLOCK} 2"),
        ([1, 3], [0, 2], f"{BLOCK} 3"),  # stage 0 has but one layer, which is the first of it
        ([1, 2], [1, 2], None),  # stage 0 has a second layer, which two for all would recompute
    ],
)
def test_recompute_is_said_in_flags(full, none, words):
    plan = plan_of(full, none)
    assert recompute_words(plan) == words
    assert bool(MEGATRON.unsaid(plan)) is (words is None)


def test_layers_of_multi_token_prediction_are_left_alone_by_blocks():
    plan = plan_of([2, 2], [2, 0], mtp=[0, 1])
    assert recompute_words(plan) == f"{BLOCK} 2"
    assert MEGATRON.unsaid(plan) == ()


def test_mtp_layers_stand_together_in_a_last_chunk():
    apart = plan_of([0, 0], [3, 0], mtp=[1, 1], min_layers_per_cell=0)
    assert MEGATRON.unsaid(apart) == (
        "all MTP layers must stand in one cell, in the last chunk of its stage",
    )
    early = plan_of([0] * 4, [1, 1, 0, 0], mtp=[0, 1, 0, 0], interleave=2, min_layers_per_cell=0)
    assert "last chunk" in MEGATRON.unsaid(early)[0]


def test_ways_are_one_type_for_all_or_the_first_layers_of_every_chunk():
    ways = MEGATRON.ways(problem_of(5))
    # HEAD and TAIL cells may be empty, so a cell has up to five layers.
    assert [way.words for way in ways][3:] == [f"{BLOCK} {number}" for number in range(1, 6)]
    assert [way.problem.recompute for way in ways[:3]] == [
        (Recompute.FULL,),
        (Recompute.NONE,),
        (Recompute.SELECTIVE,),
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schedule": ScheduleName.GPIPE}, "has no schedule gpipe; use 1f1b or interleaved"),
        ({"interleave": 2, "micro_batch_group": 5, "micro_batches": 8}, None),  # 8 mod 5 = 3 >= 2
        ({"interleave": 2, "stages": 3, "micro_batch_group": 2, "micro_batches": 2}, "the 3 stages to the 2"),
        ({"interleave": 2, "micro_batch_group": "remainder-first", "micro_batches": 5}, "no remainder first"),
        ({"interleave": 2, "micro_batch_group": "remainder-first"}, None),
        ({"interleave": 2}, None),
    ],
)
def test_schedules_and_groups_that_megatron_takes(changes, said):
    refused = MEGATRON.refuses(problem_of(8, **changes))
    assert said in refused[0] if said else refused == ()


def test_several_chunks_on_one_stage_are_refused():
    (fault,) = MEGATRON.refuses(problem_of(8, stages=1, interleave=2))
    assert "must be greater than 1 for several chunks a stage (got 1)" in fault


@given(megatron_plans())
def test_every_plan_of_its_settings_can_be_said(plan):
    assert MEGATRON.unsaid(plan) == ()
