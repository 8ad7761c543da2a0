"""What a problem refuses, with the words a user reads."""

import math
import re

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.schedules import ScheduleName
from tests.problem.problems import model, problem


@pytest.mark.parametrize(
    ("field", "option", "least"),
    [
        ("stages", "stages", 1),
        ("micro_batches", "micro-batches", 1),
        ("interleave", "interleave", 1),
        ("min_layers_per_cell", "min-layers", 0),
    ],
)
@pytest.mark.parametrize("wrong", [-1, 1.5, 2.0, math.nan, math.inf, True, "4", None])
def test_a_size_that_is_no_whole_number_or_too_small_is_refused(field, option, least, wrong) -> None:
    if (field, wrong) == ("interleave", None):
        return  # the schedule's own number
    words = f"problem: {option} must be a whole number of at least {least} (got {wrong!r})"
    with pytest.raises(InputError, match=re.escape(words)):
        problem(**{field: wrong})


@pytest.mark.parametrize("field", ["stages", "micro_batches", "interleave"])
def test_no_stage_no_chunk_and_no_micro_batch_are_refused(field: str) -> None:
    with pytest.raises(InputError, match=r"must be a whole number of at least 1 \(got 0\)"):
        problem(**{field: 0})


def test_a_step_of_more_ops_than_can_be_held_is_refused_at_once() -> None:
    # 2 x 1,000 x 1 x 3,000 ops, F and B of each
    with pytest.raises(InputError, match="too large: 6,000,000 ops of 2,000,000 at most; plan with fewer"):
        problem(model=model(1000), stages=1000, micro_batches=3000)


def test_too_many_sequence_chunks_are_too_many_ops() -> None:
    # 2 x 4 x 8 x 10^6 ops.
    with pytest.raises(InputError, match="64,000,000 ops of 2,000,000 at most"):
        problem(schedule=ScheduleName.SEQ1F1B, sequence_chunks=10**6)


@pytest.mark.parametrize(
    ("field", "option", "unit"),
    [
        ("memory_limit_mb", "memory-limit", "MB"),
        ("constant_memory_mb", "constant-memory", "MB"),
        ("p2p_ms", "p2p", "ms"),
        ("step_extra_ms", "step-extra", "ms"),
    ],
)
@pytest.mark.parametrize("wrong", [-1, -0.5, math.nan, math.inf, -math.inf, True, "9", 1e16])
def test_a_quantity_that_is_no_usable_number_is_refused_alone_and_in_a_list(
    field, option, unit, wrong
) -> None:
    wanted = f"at most 1e+15 {unit}" if wrong == 1e16 else f"a number of at least 0 {unit}"
    words = re.escape(f"problem: {option} must be {wanted} (got {wrong!r})")
    with pytest.raises(InputError, match=words):
        problem(**{field: wrong})
    with pytest.raises(InputError, match=words):
        problem(**{field: (1.0, 2.0, 3.0, wrong)})


@pytest.mark.parametrize("wrong", [0, -1, 0.0009, 1001, math.nan, math.inf, True, "1"])
def test_a_speed_that_can_not_be_is_refused_alone_and_in_a_list(wrong) -> None:
    words = re.escape(
        f"stage-speed must be a number from 0.001 to 1,000, 1 for a device as measured (got {wrong!r})"
    )
    with pytest.raises(InputError, match=words):
        problem(stage_speed=wrong)
    with pytest.raises(InputError, match=words):
        problem(stage_speed=(1.0, 1.0, 1.0, wrong))


# Equal numbers too: two for four stages are a slip, whatever they say.
@pytest.mark.parametrize("values", [(1, 2), (1, 1), (), (5,) * 5])
def test_a_list_of_another_length_is_refused(values) -> None:
    def refusal(option: str, allowed: str) -> str:
        return re.escape(f"{option} must be one number or {allowed} of them (got {len(values)})")

    with pytest.raises(InputError, match=refusal("memory-limit", "4")):
        problem(memory_limit_mb=values)
    with pytest.raises(InputError, match=refusal("constant-memory", "4")):
        problem(constant_memory_mb=values)
    with pytest.raises(InputError, match=refusal("stage-speed", "4")):
        problem(stage_speed=values)
    with pytest.raises(InputError, match=refusal("step-extra", "4")):
        problem(step_extra_ms=values)
    with pytest.raises(InputError, match=refusal("p2p", "3 or 4")):
        problem(p2p_ms=values)


# Equal entries too: three edges say nothing of the fourth.
@pytest.mark.parametrize("p2p_ms", [(1, 2, 3), (1, 1, 1)])
def test_chunks_that_loop_need_the_wrap(p2p_ms) -> None:
    words = "p2p must list 4 edges, the last one from stage 3 back to stage 0 between chunks (got 3)"
    with pytest.raises(InputError, match=re.escape(words)):
        problem(p2p_ms=p2p_ms, interleave=2)


def test_a_list_has_no_right_length_where_there_are_no_stages() -> None:
    with pytest.raises(InputError) as caught:
        problem(stages=0, memory_limit_mb=(1, 2))
    assert caught.value.faults == ("stages must be a whole number of at least 1 (got 0)",)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("overlap_factor", 1.5, r"overlap-factor must be from 0 to 1 \(got 1.5\)"),
        ("overlap_factor", -0.1, r"overlap-factor must be from 0 to 1 \(got -0.1\)"),
        ("overlap_factor", math.nan, r"overlap-factor must be from 0 to 1 \(got nan\)"),
        ("overlap_factor", True, r"overlap-factor must be from 0 to 1 \(got True\)"),
        ("p2p_mode", "late", r"p2p-mode must be one of async, blocking \(got 'late'\)"),
        ("flavour", "jax", r"flavour must be one of torch \(got 'jax'\)"),
        ("sequence_chunks", 0, r"sequence-chunks must be a whole number of at least 1 \(got 0\)"),
    ],
)
def test_a_way_of_running_that_does_not_exist_is_refused(field, value, words) -> None:
    with pytest.raises(InputError, match=words):
        problem(**{field: value})


def test_all_faults_are_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        problem(stages=0, micro_batches=-3, memory_limit_mb=-1, p2p_ms=math.nan)
    assert str(caught.value).splitlines() == [
        "problem: 4 faults",
        "  stages must be a whole number of at least 1 (got 0)",
        "  micro-batches must be a whole number of at least 1 (got -3)",
        "  memory-limit must be a number of at least 0 MB (got -1)",
        "  p2p must be a number of at least 0 ms (got nan)",
    ]
