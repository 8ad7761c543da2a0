"""Which problems come of a grid, and what is skipped."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.sweep import Grid, list_candidates
from tests.sweep.conftest import BODY, GRID, MODEL


def chosen(candidate):
    problem = candidate.problem
    return problem.stages, problem.interleave, problem.micro_batches, problem.memory_limit_mb


def test_every_combination_is_a_problem_with_its_share_of_the_batch():
    # 2 stages: 8 / 2 = 4 pipelines, 16 / 4 = 4 micro-batches; 4 stages: 2 pipelines, 8 micro-batches.
    found, skipped = list_candidates(MODEL, GRID)
    assert [chosen(each) for each in found] == [
        (stages, chunks, batches, limit)
        for stages, batches in ((2, 4), (4, 8))
        for chunks in (1, 2)
        for limit in (900, 1200)
    ]
    assert [each.data_parallel for each in found] == [4] * 4 + [2] * 4
    assert not skipped


def test_stages_that_are_left_open_are_all_divisors_up_to_the_layers():
    # Divisors of 24 up to 8 layers; with two devices a stage those of 12.
    grid = Grid(devices=24, global_batch=24, interleave=(1,))
    assert [each.problem.stages for each in list_candidates(MODEL, grid)[0]] == [1, 2, 3, 4, 6, 8]
    grid = replace(grid, tensor_parallel=(2,))
    assert [each.problem.stages for each in list_candidates(MODEL, grid)[0]] == [1, 2, 3, 4, 6]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"stages": (2, 3)}, "8 devices do not divide into pipelines of 3 stages"),
        ({"stages": (2, 16)}, "8 devices do not divide into pipelines of 16 stages"),
        ({"tensor_parallel": (1, 3)}, "8 devices do not divide into pipelines of 2 stages x 3 devices"),
        (
            {"micro_batch_sizes": (1, 3)},
            "a global batch of 16 does not divide into micro-batches of 3 on 4 pipelines",
        ),
        ({"interleave": (1, 5)}, "8 BODY layers are too few for 4 stages x 5 chunks"),
        ({"schedules": (ScheduleName.ONE_F_ONE_B,), "interleave": (1, 2)}, "1f1b: chunks must be 1"),
        ({"memory_limits_mb": (900.0, (900.0,) * 3)}, "memory-limit must be one number or 2 of them (got 3)"),
    ],
)
def test_what_is_no_problem_is_skipped_with_the_reason(changes, reason):
    found, skipped = list_candidates(MODEL, replace(GRID, **changes))
    assert found
    assert any(each.reason.startswith(reason) for each in skipped)


def test_what_a_target_refuses_is_skipped():
    # MindFormers has 1F1B and interleaving, and not the zero bubble of several chunks.
    names = (ScheduleName.INTERLEAVED, ScheduleName.INTERLEAVED_ZERO_BUBBLE)
    grid = replace(GRID, schedules=names, interleave=(2,), given={"target": "mindformers"})
    found, skipped = list_candidates(MODEL, grid)
    assert {each.problem.schedule_name.value for each in found} == {"interleaved"}
    assert {each.chosen["schedule"] for each in skipped} == {"interleaved-zero-bubble"}
    assert all("interleaved-zero-bubble" in each.reason for each in skipped)


def test_nothing_left_is_refused_with_the_reasons():
    with pytest.raises(InputError, match="no problem is left: 8 devices do not divide into pipelines of 3"):
        list_candidates(MODEL, replace(GRID, stages=(3, 5)))


def test_an_unknown_target_is_refused():
    with pytest.raises(InputError, match="nemo"):
        list_candidates(MODEL, replace(GRID, given={"target": "nemo"}))


def test_every_schedule_is_tried_once_for_each_order():
    found, skipped = list_candidates(MODEL, replace(GRID, stages=(2,), every_schedule=True))
    names = [(each.problem.interleave, each.problem.schedule_name.value) for each in found]
    assert len(names) == 2 * len(set(names))  # two limits
    assert {(1, "1f1b"), (1, "gpipe"), (2, "interleaved"), (2, "zbv"), (2, "dualpipev")} <= set(names)
    assert (1, "interleaved") not in names  # the order of 1f1b
    assert not skipped


def test_a_schedules_own_options_go_to_it_alone():
    names = (ScheduleName.ONE_F_ONE_B, ScheduleName.SEQ1F1B, ScheduleName.DUALPIPEV, ScheduleName.INTERLEAVED)
    grid = replace(
        GRID,
        stages=(2,),
        memory_limits_mb=(None,),
        schedules=names,
        sequence_chunks=2,
        overlap_factor=0.5,
        micro_batch_group=4,
    )
    found, _ = list_candidates(MODEL, grid)
    own = {
        (each.problem.schedule_name.value, each.problem.interleave): (
            each.problem.sequence_chunks,
            each.problem.overlap_factor,
            each.problem.micro_batch_group,
        )
        for each in found
    }
    assert own[("1f1b", 1)] == (1, 0.0, None)
    assert own[("seq1f1b", 1)] == (2, 0.0, None)
    assert own[("interleaved", 2)] == (1, 0.0, 4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"devices": 0}, r"devices must be a whole number from 1 to 1,000,000 \(got 0\)"),
        ({"stages": (2, True)}, r"stages must be a whole number .* \(got True\)"),
        ({"interleave": ()}, "interleave must hold at least one value"),
        ({"memory_limits_mb": ()}, "memory-limit must hold at least one value"),
        ({"sequence_chunks": 2}, "sequence-chunks is for the schedule seq1f1b"),
        ({"overlap_factor": 0.5}, "overlap-factor is for the schedule dualpipev"),
        ({"schedules": (ScheduleName.CUSTOM,)}, "schedule custom has one size; plan it alone"),
        (
            {"stages": tuple(range(1, 1001)), "interleave": tuple(range(1, 101))},
            "has 200,000 combinations of 20,000 at most",
        ),
    ],
)
def test_a_grid_that_can_not_be_is_refused(changes, words):
    with pytest.raises(InputError, match=words):
        replace(GRID, **changes)


def test_costs_grow_with_the_micro_batch_size_and_parameters_do_not():
    grid = replace(
        GRID,
        stages=(2,),
        interleave=(1,),
        memory_limits_mb=(None,),
        micro_batch_sizes=(1, 2, 4),
        model_micro_batch_size=2,
        p2p_ms=3.0,
    )
    found, _ = list_candidates(MODEL, grid)
    halved, same, doubled = (each.problem for each in found)
    assert same.model is MODEL
    body = doubled.model.bodies[0]
    assert (body.forward_ms, body.backward_ms[Recompute.FULL], body.activation(Recompute.NONE)) == (
        20,
        60,
        120,
    )
    assert (body.parameter_mb, doubled.model.heads[0].parameter_mb) == (BODY.parameter_mb, 150)
    assert halved.model.bodies[0].forward_ms == 5
    assert [problem.p2p_ms for problem in (halved, same, doubled)] == [1.5, 3.0, 6.0]
    # 4 pipelines: 16 / (4 x 1), 16 / (4 x 2) and 16 / (4 x 4).
    assert [problem.micro_batches for problem in (halved, same, doubled)] == [4, 2, 1]
    assert len({each.question for each in found}) == 1  # they answer the same question


counts = st.integers(1, 12)


@given(
    st.integers(1, 48),
    st.integers(1, 96),
    st.lists(counts, min_size=1, max_size=4, unique=True),
    st.lists(st.integers(1, 3), min_size=1, max_size=3, unique=True),
    st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True),
)
def test_devices_and_batch_are_those_asked_for(devices, batch, stages, tensor, sizes):
    grid = Grid(
        devices=devices,
        global_batch=batch,
        stages=tuple(stages),
        interleave=(1,),
        tensor_parallel=tuple(tensor),
        micro_batch_sizes=tuple(sizes),
    )
    try:
        found, skipped = list_candidates(MODEL, grid)
    except InputError:
        return
    assert all((each.devices, each.global_batch) == (devices, batch) for each in found)
    tried = {(s, t, b) for s in stages for t in tensor for b in sizes}
    taken = {(each.problem.stages, each.tensor_parallel, each.micro_batch_size) for each in found}
    whole = {
        (s, t, b)
        for s, t, b in tried
        if s <= 8 and devices % (s * t) == 0 and batch % (devices // (s * t) * b) == 0
    }
    assert taken == whole
    assert bool(skipped) == (whole != tried)
