"""The text form of an order."""

import pytest

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules import Op, OpKind, Placement, parse_csv


def test_ops_are_read_in_their_order() -> None:
    schedule = parse_csv("0F0, 0I0 ,0W0\n", name="mine")
    assert schedule.name == "mine"
    assert schedule.rows == ((Op(OpKind.F, 0, 0), Op(OpKind.I, 0, 0), Op(OpKind.W, 0, 0)),)


def test_sizes_come_from_rows_largest_cell_and_largest_micro_batch() -> None:
    # Cell 5 on 2 stages is chunk 5 // 2 = 2, so V = 3; micro-batches 0 to 6 make M = 7.
    schedule = parse_csv("0F6\r\n5F0\r\n\r\n", Placement.V)
    assert (schedule.stages, schedule.chunks, schedule.micro_batches) == (2, 3, 7)
    assert schedule.placement is Placement.V


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_no_rows_are_refused(text: str) -> None:
    with pytest.raises(ScheduleError, match="custom: found no rows, needs one for each stage"):
        parse_csv(text)


@pytest.mark.parametrize(
    "entry", ["0X0", "F0", "0F", "0f0", "-1F0", "0SEND_F0", "0UNSHARD", "٣F0", "1234567890F0"]
)
def test_what_is_no_op_is_refused_with_row_and_column(entry: str) -> None:
    with pytest.raises(
        ScheduleError, match=f"row 2, column 3: found '{entry}'; an op is a cell, one of F, B, I, W"
    ):
        parse_csv(f"0F0\n1F0,1B0,{entry}\n")


def test_idle_entries_are_refused() -> None:
    with pytest.raises(ScheduleError, match="row 1, column 2: found an idle entry; leave idle entries out"):
        parse_csv("0F0,,0B0\n")


def test_an_empty_line_between_rows_is_refused() -> None:
    with pytest.raises(ScheduleError, match="row 2, column 1: found an idle entry"):
        parse_csv("0F0,0B0\n\n2F0,2B0\n")


def test_overlapped_pairs_are_refused() -> None:
    with pytest.raises(
        ScheduleError, match=r"row 1, column 2: .*OVERLAP_F_B'; overlapped pairs can not be read yet"
    ):
        parse_csv("0F0,(0F6;7B4)OVERLAP_F_B\n")


def test_all_faults_are_gathered_in_one_error() -> None:
    with pytest.raises(
        ScheduleError, match=r"(?s)2 faults.*row 1, column 1: found 'a'.*row 2, column 2: found 'b'"
    ):
        parse_csv("a,0F0\n1F0,b\n")
