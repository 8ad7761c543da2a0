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
    with pytest.raises(ScheduleError, match="custom: found no ops, needs a line of them for each stage"):
        parse_csv(text)


@pytest.mark.parametrize("entry", ["0X0", "F0", "0F", "0f0", "-1F0", "0F0.", "0F.1", "٣F0", "1234567890F0"])
def test_what_is_no_op_is_refused_with_row_and_column(entry: str) -> None:
    with pytest.raises(
        ScheduleError, match=f"row 2, column 3: found '{entry}'; an op is a cell, one of F, B, I, W"
    ):
        parse_csv(f"0F0\n1F0,1B0,{entry}\n")


@pytest.mark.parametrize("entry", ["0SEND_F0", "0RECV_B0", "0UNSHARD", "1REDUCE_GRAD"])
def test_communication_ops_are_refused_with_the_format_to_write_instead(entry: str) -> None:
    with pytest.raises(ScheduleError, match=f"found '{entry}'; only compute ops .* format compute_only"):
        parse_csv(f"0F0,{entry}\n")


def test_idle_entries_do_not_count() -> None:
    # PyTorch's table slot by slot, and the same order with compute ops alone.
    assert parse_csv("0F0,0F1,,0B0,,0B1,\n,1F0,1B0,1F1,1B1\n") == parse_csv(
        "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1"
    )


def test_an_empty_line_between_rows_is_a_stage_without_ops() -> None:
    assert parse_csv("0F0,0B0\n\n2F0,2B0\n").rows[1] == ()


def test_overlapped_pairs_are_two_ops_and_their_place() -> None:
    schedule = parse_csv("0F0,0F1,( 0F2 ; 3B0 )OVERLAP_F_B,0B0\n1F0\n")
    assert [str(op) for op in schedule.rows[0]] == ["0F0", "0F1", "0F2", "3B0", "0B0"]
    assert schedule.pairs == ((2,), ())
    assert schedule.to_csv().splitlines()[0] == "0F0,0F1,(0F2;3B0)OVERLAP_F_B,0B0"


@pytest.mark.parametrize(
    "entry",
    ["(0F0;0B0)", "(0B0;0F1)OVERLAP_F_B", "(0F0;0I0)OVERLAP_F_B", "(0F0)OVERLAP_F_B", "0F0;0B0)OVERLAP_F_B"],
)
def test_what_is_no_pair_is_refused(entry: str) -> None:
    with pytest.raises(ScheduleError, match="a pair is a forward and a whole backward, like"):
        parse_csv(f"{entry}\n")


def test_sequence_chunks_follow_a_point() -> None:
    # Chunks 0 and 1 make k = 2.
    schedule = parse_csv("0F0.0,0F0.1,0B0.1,0B0.0\n")
    assert schedule.sequence_chunks == 2
    assert schedule.rows[0][1] == Op(OpKind.F, 0, 0, 1)
    assert schedule.to_csv() == "0F0.0,0F0.1,0B0.1,0B0.0\n"


def test_a_chain_that_turns_on_the_last_stage_lies_on_a_v() -> None:
    assert parse_csv("0F0,3F0\n1F0,2F0\n").placement is Placement.V
    assert parse_csv("0F0,2F0\n1F0,3F0\n").placement is Placement.LOOP
    assert parse_csv("0F0,1F0\n").placement is Placement.LOOP  # one stage holds both chunks anyway


def test_a_long_entry_is_cut_in_the_message() -> None:
    with pytest.raises(ScheduleError, match=r"found 'x{57}\.\.\.'"):
        parse_csv("x" * 10_000)


def test_all_faults_are_gathered_in_one_error() -> None:
    with pytest.raises(
        ScheduleError, match=r"(?s)2 faults.*row 1, column 1: found 'a'.*row 2, column 2: found 'b'"
    ):
        parse_csv("a,0F0\n1F0,b\n")
