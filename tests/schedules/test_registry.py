"""Names, sizes and what is refused with which words."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from sapp_ppb.errors import PpbError, ScheduleError
from sapp_ppb.schedules import (
    Op,
    OpKind,
    OrderFile,
    Placement,
    ScheduleName,
    build_schedule,
    default_name,
    interleaved,
    interleaved_less_memory,
    usual_chunks,
)
from tests.cli.conftest import environment


def warm_ups(schedule_rows: tuple[tuple[Op, ...], ...]) -> list[int]:
    """Count the forwards before the first pair: one less than before the first backward."""
    return [[op.kind for op in row].index(OpKind.B) - 1 for row in schedule_rows]


def live(schedule_rows: tuple[tuple[Op, ...], ...]) -> list[int]:
    """Most micro-batches alive at once, counted over the chunks of a stage."""
    peaks = []
    for row in schedule_rows:
        count = peak = 0
        for op in row:
            count += 1 if op.kind is OpKind.F else -1
            peak = max(peak, count)
        peaks.append(peak)
    return peaks


def test_these_names_are_known() -> None:
    assert " ".join(ScheduleName) == (
        "gpipe 1f1b interleaved interleaved-less-memory looped-bfs interleaved-zero-bubble zbv dualpipev "
        "seq1f1b zb-auto custom"
    )


def test_the_default_follows_the_chunks() -> None:
    assert default_name(1) is ScheduleName.ONE_F_ONE_B
    assert default_name(3) is ScheduleName.INTERLEAVED


@pytest.mark.parametrize("name", ScheduleName)
def test_a_built_schedule_carries_its_sizes_and_is_built_once(name: ScheduleName) -> None:
    chunks = 2 if "interleaved" in name else usual_chunks(name)
    more: dict[str, Any] = {}
    if name is ScheduleName.SEQ1F1B:
        more = {"sequence_chunks": 2}
    elif name is ScheduleName.CUSTOM:
        more = {"order": OrderFile(path="order.csv", text=build_schedule("1f1b", 3, 1, 6).to_csv())}
    schedule = build_schedule(name, 3, chunks, 6, **more)
    assert (schedule.name, schedule.stages, schedule.chunks, schedule.micro_batches) == (name, 3, chunks, 6)
    assert schedule.placement is (Placement.V if name in ("zbv", "dualpipev") else Placement.LOOP)
    assert build_schedule(name.value, 3, chunks, 6, **more) is schedule


def test_chunks_that_are_not_asked_for_are_the_schedules_own() -> None:
    assert build_schedule("zbv", 2, None, 3) is build_schedule("zbv", 2, 2, 3)
    assert build_schedule("1f1b", 2, None, 3) is build_schedule("1f1b", 2, 1, 3)


def test_a_custom_order_is_refused_without_its_file() -> None:
    with pytest.raises(ScheduleError, match=r"custom: needs an order; give --order FILE\.csv"):
        build_schedule("custom", 1, 1, 1)


def test_sizes_from_numpy_are_kept_as_plain_numbers() -> None:
    schedule = build_schedule("interleaved", np.int64(5), np.int64(2), np.int64(15))  # type: ignore[arg-type]
    assert type(schedule.stages) is int
    assert type(schedule.rows[0][0].cell) is int


@pytest.mark.parametrize(
    ("group", "warm", "alive"),
    [
        # S 4, V 2, M 8: min(2(3-s) + (2-1)N, 16) forwards, and one more with the first pair.
        (None, [10, 8, 6, 4], [11, 9, 7, 5]),
        (4, [10, 8, 6, 4], [11, 9, 7, 5]),
        (8, [14, 12, 10, 8], [15, 13, 11, 9]),
    ],
)
def test_interleaved_warms_up_as_megatron(group: int | None, warm: list[int], alive: list[int]) -> None:
    rows = interleaved(4, 2, 8, group).rows
    assert warm_ups(rows) == warm
    assert live(rows) == alive


def test_less_memory_warms_up_by_one_forward_a_hop() -> None:
    # S 4, V 2: (3-s) + (2-1)4 forwards, and one more with the first pair.
    rows = interleaved_less_memory(4, 2, 8).rows
    assert warm_ups(rows) == [7, 6, 5, 4]
    assert live(rows) == [8, 7, 6, 5]


def test_remainder_first_puts_the_remainder_in_the_first_group() -> None:
    # S 4, V 2, M 10: groups of 4 + 2 and 4; warm-up 2(3-s) + (2-1)6.
    rows = interleaved(4, 2, 10, "remainder-first").rows
    assert warm_ups(rows) == [12, 10, 8, 6]
    forwards = " ".join(str(op) for op in rows[0] if op.kind is OpKind.F)
    assert forwards == ("0F0 0F1 0F2 0F3 0F4 0F5 4F0 4F1 4F2 4F3 4F4 4F5 0F6 0F7 0F8 0F9 4F6 4F7 4F8 4F9")


@pytest.mark.parametrize(("micro_batches", "group"), [(5, 5), (10, 6), (12, 4)])
def test_remainder_first_is_megatron_with_a_first_group_of_s_plus_the_remainder(
    micro_batches: int, group: int
) -> None:
    # Holds with at most two groups (4 + 1; 4 + 2 and 4) and without a remainder.
    assert interleaved(4, 3, micro_batches, "remainder-first") == interleaved(4, 3, micro_batches, group)


def test_fewer_micro_batches_than_stages_run_as_one_group() -> None:
    assert interleaved(4, 2, 3) == interleaved(4, 2, 3, 3)


REFUSED: list[tuple[tuple[Any, ...], str]] = [
    (
        ("zbh", 2, 1, 2),
        r"schedule 'zbh' is unknown; one of gpipe, 1f1b, interleaved, .*, zbv, custom or one of 3 more",
    ),
    (("1f1b", 0, 1, 2), r"1f1b: stages must be a whole number, at least 1 \(got 0\)"),
    (("1f1b", 2, 1, 2.0), r"micro_batches must be a whole number, at least 1 \(got 2.0\)"),
    (("1f1b", True, 1, 2), r"stages must be a whole number, at least 1 \(got True\)"),
    (("gpipe", "2", -1, None), r"(?s)3 faults.*stages.*got '2'.*chunks.*got -1.*micro_batches.*got None"),
    (("gpipe", 2, 2, 4), r"gpipe: chunks must be 1 \(got 2\); use interleaved"),
    (("1f1b", 2, 2, 4), r"1f1b: chunks must be 1 \(got 2\); use interleaved"),
    (
        ("1f1b", 2, 1, 4, 2),
        r"1f1b: takes no --micro-batch-group \(got 2\); leave it out or use interleaved, "
        r"interleaved-zero-bubble or seq1f1b$",
    ),
    (("zbv", 2, 1, 4), r"zbv: chunks must be 2 \(got 1\); leave --interleave out"),
    (("dualpipev", 2, 3, 4), r"dualpipev: chunks must be 2 \(got 3\)"),
    (("dualpipev", 4, 2, 7), r"micro-batches must be at least twice the stages, 8 \(got 7\); use zbv"),
    (("zb-auto", 2, 2, 4), r"zb-auto: chunks must be 1 \(got 2\); use interleaved"),
    (("seq1f1b", 2, 1, 4), r"sequence-chunks must be at least 2 \(got 1\); .*, or use 1f1b"),
    (("seq1f1b", 2, 2, 4), r"sequence-chunks must be at least 2 \(got 1\); .*, or use interleaved"),
    (("interleaved-zero-bubble", 2, 1, 4, 2), r"takes no --micro-batch-group with one chunk a stage"),
    # 10 // 4 = 2 rounds of 5; 11 is no multiple of 2.  11 mod 6 = 5, 11 mod 7 = 4, 11 mod 11 = 0.
    (
        ("interleaved-zero-bubble", 4, 2, 11),
        r"11 micro-batches can not be run in 2 equal rounds; use 8 or 12 micro-batches, or give "
        r"--micro-batch-group 6, 7 or 11$",
    ),
    (("interleaved-zero-bubble", 4, 2, 11, 5), r"--micro-batch-group 5 does not work .*; use 6, 7 or 11$"),
    (("interleaved-less-memory", 2, 2, 4, "remainder-first"), r"takes no --micro-batch-group"),
    (("interleaved", 2, 1, 4), r"interleaved: chunks must be at least 2 \(got 1\); use 1f1b"),
    (("interleaved-less-memory", 2, 1, 4), r"chunks must be at least 2 \(got 1\); use 1f1b"),
    # 10 mod 4 = 2; sizes: 10 mod 5 = 0, 10 mod 6 = 4 >= 4, 10 mod 10 = 0.
    (
        ("interleaved", 4, 2, 10),
        r"10 micro-batches are not a multiple of 4 stages; use 8 or 12 micro-batches, "
        r"or give --micro-batch-group remainder-first, 5, 6 or 10$",
    ),
    (
        ("interleaved", 4, 2, 10, 7),
        r"--micro-batch-group 7 does not work with 4 stages and 10 micro-batches; "
        r"use remainder-first, 5, 6 or 10$",
    ),
    (("interleaved", 4, 2, 8, 3), r"--micro-batch-group 3 does not work .*; use remainder-first, 4 or 8$"),
    (("interleaved", 4, 2, 8, 9), r"--micro-batch-group 9 does not work .*; use remainder-first, 4 or 8$"),
    (("interleaved", 4, 2, 8, 0), r"--micro-batch-group 0 does not work"),
    (("interleaved", 4, 2, 8, "first"), r"--micro-batch-group first does not work"),
    (("interleaved", 1, 2, 1, True), r"--micro-batch-group True does not work"),
    (("interleaved", 4, 2, 3, 4), r"--micro-batch-group 4 does not work .*; use 3$"),
    (
        ("interleaved", 4, 2, 3, "remainder-first"),
        r"remainder-first needs at least as many micro-batches as stages \(got 3 for 4 stages\)",
    ),
    (
        ("interleaved-less-memory", 4, 2, 9),
        r"9 micro-batches are not a multiple of 4 stages, and with the remainder in the first group "
        r"the order would wait for itself; "
        r"use 8 or 12 micro-batches",
    ),
    (("interleaved-less-memory", 4, 2, 3), r"use 4 micro-batches"),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED)
def test_what_does_not_exist_is_refused_with_what_does(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(ScheduleError, match=words):
        build_schedule(*arguments)


def test_a_group_that_only_equals_a_good_one_is_refused_though_that_was_built() -> None:
    build_schedule("interleaved", 1, 2, 1, 1)
    with pytest.raises(ScheduleError, match="--micro-batch-group True does not work"):
        build_schedule("interleaved", 1, 2, 1, True)


def test_a_schedule_error_is_a_value_error_of_this_package() -> None:
    with pytest.raises(ValueError, match="unknown") as caught:
        build_schedule("", 1, 1, 1)
    assert isinstance(caught.value, PpbError)


def test_this_room_imports_nothing_beyond_the_standard_library() -> None:
    program = (
        "import sys, sapp_ppb.schedules; print([m for m in ('numpy', 'numba', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
