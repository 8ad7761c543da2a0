"""Orders from files: what can run is taken, and what can not is refused with the file's name."""

import pytest

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules import OrderFile, build_schedule, custom


def refuse(text: str, words: str, sizes: tuple[int, int, int, int] = (2, 1, 2, 1)) -> None:
    with pytest.raises(ScheduleError, match=words):
        custom(*sizes, OrderFile(path="order.csv", text=text))


def test_any_legal_order_is_taken() -> None:
    # Stage 0 takes its backwards the other way round than its forwards.
    text = "0F0,0F1,0B1,0B0\n1F0,1F1,1B1,1B0\n"
    schedule = custom(2, 1, 2, 1, OrderFile(path="order.csv", text=text))
    assert (schedule.name, schedule.to_csv()) == ("custom", text)


def test_an_order_on_a_v_with_pairs_is_taken() -> None:
    known = build_schedule("dualpipev", 4, 2, 8)
    file = OrderFile(path="order.csv", text=known.to_csv())
    schedule = build_schedule("custom", 4, 2, 8, order=file)
    assert (schedule.rows, schedule.pairs, schedule.placement) == (known.rows, known.pairs, known.placement)


def test_a_deadlock_is_refused_with_the_ops_that_wait() -> None:
    # Stage 0 wants a gradient of micro-batch 0 before it sends micro-batch 1; stage 1 wants 1 first.
    refuse("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1", r"^order\.csv: these ops wait for each other: 0B0, 1F1$")


def test_faults_of_the_order_carry_the_files_name_once() -> None:
    refuse(
        "0F0,0B0,0F1\n1F0,1B0,1F1,1B1", r"^order\.csv: stage 0: found 0F1 for cell 0, micro-batch 1; needs"
    )
    refuse("0F0,0X0\n1F0", r"^order\.csv: row 1, column 2: found '0X0'")


def test_other_sizes_are_refused_with_the_options_that_mend_them() -> None:
    refuse(
        "0F0,0B0\n1F0,1B0\n2F0,2B0",
        r"(?s)^order\.csv: 2 faults.*holds 3 stages \(asked for 2\); give --stages 3.*"
        r"holds 1 micro-batches \(asked for 2\); give --micro-batches 1",
    )
    refuse("0F0.0,0F0.1,0B0.1,0B0.0", "give --sequence-chunks 2", (1, 1, 1, 1))
    refuse("0F0,1F0,1B0,0B0", "holds 2 chunks .*; give --interleave 2", (1, 1, 1, 1))


def test_a_file_of_far_too_many_entries_is_refused_at_once() -> None:
    # Two stages and two micro-batches have 2 x 2 x 3 ops at most, and 100 entries for each.
    refuse(
        "0F0," * 8_000_000, r"^order\.csv: holds 8,000,001 entries, of which .* 1,200 at most; check the file"
    )


def test_a_byte_order_mark_is_no_op() -> None:
    file = OrderFile(path="order.csv", text="\ufeff0F0,0B0\r\n")
    assert custom(1, 1, 1, 1, file).to_csv() == "0F0,0B0\n"
    # Of the bytes ef bb bf 30 46 30 2c 30 42 30 0d 0a, as sha256sum says.
    assert file.sha256.startswith("ca15d5ab6a68")
