"""The judge on orders that are wrong."""

import dataclasses

import pytest

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules import Op, OpKind, Placement, build_schedule, check_schedule, parse_csv
from sapp_ppb.schedules.groups import grouped_rows, remainder_first_groups
from sapp_ppb.schedules.interleaved_less_memory import warm_ups


def refuse(text: str, words: str, placement: Placement = Placement.LOOP) -> None:
    with pytest.raises(ScheduleError, match=words):
        check_schedule(parse_csv(text, placement))


def test_a_missing_backward_is_named() -> None:
    refuse(
        "0F0,0B0,0F1", r"stage 0: found 0F1 for cell 0, micro-batch 1; needs F and either B or both I and W"
    )


def test_a_missing_forward_is_named() -> None:
    refuse("0B0", "found 0B0 for cell 0, micro-batch 0; needs F")


def test_an_input_gradient_without_its_weight_gradient_is_named() -> None:
    refuse("0F0,0I0", "found 0F0 0I0 for cell 0, micro-batch 0; needs F")


def test_a_full_backward_beside_a_split_one_is_refused() -> None:
    refuse("0F0,0B0,0I0,0W0", "found 0F0 0B0 0I0 0W0 for cell 0")


def test_a_cell_without_any_op_is_named() -> None:
    # Cell 3 on two stages makes V = 2, so cell 2 must be on stage 0.
    refuse("0F0,0B0\n1F0,3F0,3B0,1B0", "stage 0: found no op for cell 2, micro-batch 0")


def test_an_op_twice_is_named() -> None:
    refuse("0F0,0F0,0B0", "stage 0: found 0F0 again; each op is allowed once")


def test_an_op_on_the_wrong_stage_is_named_once_and_with_its_home() -> None:
    refuse("0F0,1B0,0B0\n1F0", "^custom: stage 0: found 1B0; cell 1 lives on stage 1$")


def test_the_home_of_a_cell_follows_the_placement() -> None:
    text = "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0"  # up the stages and back down
    check_schedule(parse_csv(text, Placement.V))
    refuse(text, "stage 0: found 3F0; cell 3 lives on stage 1")


def test_ops_outside_the_sizes_are_named() -> None:
    schedule = build_schedule("1f1b", 2, 1, 2)
    rows = (
        *schedule.rows[:1],
        (*schedule.rows[1], Op(OpKind.F, 5, 0), Op(OpKind.F, 1, 2), Op(OpKind.F, -1, 0)),
    )
    with pytest.raises(ScheduleError, match="found 5F0; cells end at 1, micro-batches at 1") as caught:
        check_schedule(dataclasses.replace(schedule, rows=rows))
    assert str(caught.value).startswith("1f1b: 3 faults")


def test_a_missing_row_is_named() -> None:
    schedule = build_schedule("1f1b", 2, 1, 2)
    with pytest.raises(ScheduleError, match="found 1 rows, needs one for each of 2 stages"):
        check_schedule(dataclasses.replace(schedule, rows=schedule.rows[:1]))


def test_sizes_below_one_are_named() -> None:
    schedule = build_schedule("1f1b", 2, 1, 2)
    with pytest.raises(ScheduleError, match=r"chunks must be a whole number, at least 1 \(got 0\)"):
        check_schedule(dataclasses.replace(schedule, chunks=0))


def test_many_faults_are_counted_and_cut() -> None:
    # Ten micro-batches without a backward; eight are shown.
    refuse(",".join(f"0F{m}" for m in range(10)), "(?s)^custom: 10 faults.*and 2 more$")


def test_a_typing_error_in_a_cell_number_is_answered_at_once() -> None:
    # 10^9 cells x 10^9 micro-batches: the judge must not lay them all out.
    refuse("999999999F999999999", f"{10**18} faults")


def test_a_weight_gradient_before_its_input_gradient_is_named() -> None:
    refuse("0F0,0W0,0I0", "stage 0: found 0W0 before 0I0, which it needs")


def test_a_backward_before_its_forward_is_named() -> None:
    refuse("0B0,0F0", "stage 0: found 0B0 before 0F0, which it needs")


def test_a_sequence_chunk_before_the_one_it_attends_to_is_named() -> None:
    refuse("0F0.1,0F0.0,0B0.1,0B0.0", "stage 0: found 0F0.1 before 0F0.0, which it needs")


def test_a_backward_of_a_sequence_chunk_before_that_of_a_later_one_is_named() -> None:
    # Chunk 1 attended to the keys and values of chunk 0, so it has gradients for them.
    refuse("0F0.0,0F0.1,0B0.0,0B0.1", "stage 0: found 0B0.0 before 0B0.1, which it needs")


def test_a_missing_sequence_chunk_is_named() -> None:
    refuse("0F0.1,0B0.1", "found no op for cell 0, micro-batch 0, sequence chunk 0; needs F")


def test_a_whole_op_among_sequence_chunks_is_named() -> None:
    refuse("0F0.0,0F0.1,0B0.1,0B0", "found 0B0; cells end at 0, .* sequence chunks run from 0 to 1")


def test_a_pair_may_wait_for_itself_only_where_it_does_not_overlap() -> None:
    # The backward needs what the forward beside it makes.
    alone = parse_csv("(0F0;0B0)OVERLAP_F_B")
    check_schedule(alone)
    with pytest.raises(ScheduleError, match=r"^with overlapped pairs these ops wait for each other: 0F0$"):
        check_schedule(alone, overlapping=True)


def test_a_chunk_before_the_chunk_it_follows_is_named() -> None:
    refuse("1F0,0F0,1B0,0B0", "stage 0: found 1F0 before 0F0, which it needs")


def test_ops_that_wait_for_each_other_are_named_for_each_stage() -> None:
    # Stage 0 wants a gradient of micro-batch 0 before it sends micro-batch 1; stage 1 wants 1 first.
    refuse("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1", "^these ops wait for each other: 0B0, 1F1$")


def test_a_long_list_of_stuck_stages_is_cut() -> None:
    # Nine stages start with a backward that the next stage never sends; the tenth gets no input.
    rows = [f"{s}B0,{s}F0" for s in range(9)] + ["9F0,9B0"]
    refuse("\n".join(rows), "^these ops wait for each other: 0B0, 1B0, .*, 7B0, and 2 more$")


def test_the_less_memory_order_waits_for_itself_with_a_remainder() -> None:
    # S 2, V 2, M 3: one group of 2 + 1; warm-ups 3 and 2, as the rule for whole groups has them.
    # Stage 1 runs 1F0 1F1 1F2 (warm-up and first pair), then wants 3B0 though its 3F0 comes later.
    built = build_schedule("interleaved-less-memory", 2, 2, 4)
    rows = grouped_rows(2, remainder_first_groups(3, 2), warm_ups(2, 2))
    broken = dataclasses.replace(built, micro_batches=3, rows=rows)
    with pytest.raises(ScheduleError, match="stage 1: found 3B0 before 3F0, which it needs"):
        check_schedule(broken)


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_the_less_memory_order_never_runs_with_a_remainder(stages: int, rounds: int) -> None:
    # Stage S-1 warms up with (V-1)S forwards and wants the first backward after one more forward, but with
    # remainder r > 0 its last chunk starts only after (V-1)(S + r) forwards.
    for remainder in range(1, stages):
        micro_batches = rounds * stages + remainder
        rows = grouped_rows(2, remainder_first_groups(micro_batches, stages), warm_ups(stages, 2))
        built = build_schedule("interleaved-less-memory", stages, 2, stages)
        with pytest.raises(ScheduleError, match=f"stage {stages - 1}: found {2 * stages - 1}B0 before"):
            check_schedule(dataclasses.replace(built, micro_batches=micro_batches, rows=rows))
