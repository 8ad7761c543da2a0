"""The list schedule: complete, within its memory, and never slower than the order made for equal stages."""

from random import Random

import pytest

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules import OpKind, StageCosts, check_schedule, interleaved_zero_bubble, zb_auto
from sapp_ppb.schedules.zb_auto import Rows, makespan_ms


def live(rows: Rows) -> list[int]:
    """Most micro-batches alive on each stage, from F to W."""
    step = {OpKind.F: 1, OpKind.I: 0, OpKind.W: -1}
    counts = [[step[op.kind] for op in row] for row in rows]
    return [max(sum(row[: end + 1]) for end in range(len(row))) for row in counts]


def uneven(rng: Random, stages: int, most_live: int) -> StageCosts:
    """Stages of up to twice each other's time, with a backward that is split anyhow."""

    def times() -> tuple[float, ...]:
        return tuple(rng.uniform(0.5, 1.0) for _ in range(stages))

    return StageCosts(
        forward_ms=times(),
        input_ms=times(),
        weight_ms=times(),
        hop_ms=(rng.choice([0.0, 0.1, 0.5]),) * stages,
        most_live=(most_live,) * stages,
    )


def shares_of_zb_h1(room: int) -> list[float]:
    """Makespans over those of ZB-H1, in so many times the memory that it needs, for random stages."""
    shares = []
    for seed in range(60):
        rng = Random(seed)
        stages, micro_batches = rng.randint(1, 6), rng.randint(1, 15)
        # ZB-H1 keeps S micro-batches alive on every stage, or all of them.
        costs = uneven(rng, stages, room * min(stages, micro_batches))
        known = interleaved_zero_bubble(stages, 1, micro_batches).rows
        ours = zb_auto(stages, micro_batches, costs).rows
        shares.append(makespan_ms(ours, costs) / makespan_ms(known, costs))
    return shares


def test_it_is_never_slower_than_zb_h1_in_the_same_memory() -> None:
    shares = shares_of_zb_h1(room=1)
    assert max(shares) <= 1.0
    assert min(shares) < 0.98


def test_twice_the_memory_makes_it_faster_on_most_uneven_stages() -> None:
    shares = shares_of_zb_h1(room=2)
    assert max(shares) <= 1.0
    assert sum(share < 0.999 for share in shares) > len(shares) / 2


@pytest.mark.parametrize("most_live", [1, 2, 3, 9])
def test_it_runs_within_any_memory(most_live: int) -> None:
    for seed in range(10):
        rng = Random(seed)
        stages, micro_batches = rng.randint(1, 5), rng.randint(1, 9)
        schedule = zb_auto(stages, micro_batches, uneven(rng, stages, most_live))
        check_schedule(schedule)
        assert max(live(schedule.rows)) <= most_live


def test_stages_may_have_different_memory() -> None:
    costs = StageCosts(
        forward_ms=(1, 1, 1), input_ms=(1, 1, 1), weight_ms=(1, 1, 1), hop_ms=(0, 0), most_live=(5, 1, 3)
    )
    found = live(zb_auto(3, 6, costs).rows)
    assert all(used <= most for used, most in zip(found, costs.most_live, strict=True))
    assert found[1] == 1


def test_more_memory_than_helps_is_not_used() -> None:
    # S 4, M 8, F = I = W = 1: 8 x 3 of work and 3 forwards before the last stage begins, 27; ZB-H1's four
    # micro-batches are enough for it, though there is room for eight.
    ones = (1.0,) * 4
    costs = StageCosts(forward_ms=ones, input_ms=ones, weight_ms=ones, hop_ms=ones[:3], most_live=(8,) * 4)
    free = StageCosts(forward_ms=ones, input_ms=ones, weight_ms=ones, hop_ms=(0.0,) * 3, most_live=(8,) * 4)
    assert makespan_ms(zb_auto(4, 8, free).rows, free) == 27.0
    assert max(live(zb_auto(4, 8, free).rows)) == 4
    # With slow sends more in flight does help.
    fewer = StageCosts(forward_ms=ones, input_ms=ones, weight_ms=ones, hop_ms=ones[:3], most_live=(4,) * 4)
    assert makespan_ms(zb_auto(4, 8, costs).rows, costs) < makespan_ms(zb_auto(4, 8, fewer).rows, fewer)


def test_the_same_costs_give_the_same_order() -> None:
    costs = uneven(Random(3), 4, 4)
    assert zb_auto(4, 9, costs) == zb_auto(4, 9, costs)


def test_costs_of_other_stages_are_refused() -> None:
    with pytest.raises(ScheduleError, match="zb-auto: costs must be those of 3 stages"):
        zb_auto(3, 4, uneven(Random(0), 2, 2))


def test_memory_in_which_nothing_runs_is_refused() -> None:
    with pytest.raises(ScheduleError, match=r"zb-auto: every stage must hold a micro-batch \(got \(0, 0\)\)"):
        zb_auto(2, 4, uneven(Random(0), 2, 0))
