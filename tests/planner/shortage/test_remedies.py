"""Which single change makes a problem fit, by hand and by planning with the change."""

from dataclasses import replace
from typing import Any

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.fix import Fix
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.planner.shortage.infeasible import find_shortage
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName

NONE, SELECTIVE, FULL = Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL


def problem_of(count: int, **changes: Any) -> Problem:
    """Layers of 10 MB of parameters, and 20, 8 or 2 MB a live micro-batch."""
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=count,
        forward_ms=1,
        parameter_mb=10,
        activation_mb={NONE: 20, SELECTIVE: 8, FULL: 2},
    )
    given: dict[str, Any] = {"model": Model(name="m", layers=(body,)), "stages": 2, "micro_batches": 4}
    return Problem(**(given | changes))


def remedies_of(problem: Problem) -> dict[str, float | str]:
    return dict(find_shortage(problem, time_limit_s=10.0).remedies)


def test_the_type_with_least_recompute_that_does():
    # (2, 2) layers, two live on stage 0: NONE 2 x 50 = 100, SELECTIVE 2 x 26 = 52, FULL 2 x 14 = 28 MB;
    # with one layer less there, stage 1 holds 3 x 30 = 90 MB.
    problem = problem_of(4, recompute=(NONE,), memory_limit_mb=60.0)
    assert remedies_of(problem)["recompute"] == "selective"
    assert remedies_of(replace(problem, memory_limit_mb=30.0))["recompute"] == "full"


def test_no_type_is_named_where_none_is_forbidden():
    assert "recompute" not in remedies_of(problem_of(4, memory_limit_mb=20.0))


def test_less_constant_memory_by_the_excess():
    # FULL: stage 0 holds 2 x 14 = 28 and 5 more, stage 1 2 x 12 and 5 more: 3 over 30 MB.
    problem = problem_of(4, memory_limit_mb=30.0, constant_memory_mb=5.0)
    assert remedies_of(problem)["constant_memory_less_by_mb"] == pytest.approx(3.0)
    # 2 of constant memory are less than the 8 that would have to go from 20 + 2.
    tight = problem_of(4, memory_limit_mb=22.0, constant_memory_mb=2.0)
    assert "constant_memory_less_by_mb" not in remedies_of(tight)


def test_one_more_stage():
    # FULL on three stages with 3, 2 and 1 live: one layer of 16, one of 14, two of 12 MB make 24.
    assert remedies_of(problem_of(4, memory_limit_mb=24.0))["stages"] == 3
    assert "stages" not in remedies_of(problem_of(4, memory_limit_mb=23.0))
    # Four layers of which each stage needs one: there is no fifth stage.
    assert "stages" not in remedies_of(problem_of(4, stages=4, memory_limit_mb=5.0))
    # What a new stage may hold is not known where stages differ.
    assert "stages" not in remedies_of(problem_of(4, memory_limit_mb=(24.0, 23.0)))


@pytest.mark.parametrize(
    ("limit_mb", "chunks"), [(169.0, 2), (140.0, 2), (139.0, 1), (120.0, 1), (119.0, None)]
)
def test_fewer_chunks_the_most_that_fit(limit_mb, chunks):
    # NONE, six layers of 10 + 20 x live.  V = 1: two live and one, (2, 4) layers hold 100 and 120 MB.
    # V = 2, cells a b c d: stage 0 has 3a + 2c or 4a + c live, stage 1 2b + d or 3b; (1, 1, 1, 3) holds
    # 20 + 20 x 5 = 120 and 40 + 20 x 5 = 140 MB.  V = 3, one layer a cell: 30 + 20 x (4 + 3) = 170 MB.
    problem = problem_of(6, interleave=3, micro_batches=8, recompute=(NONE,), memory_limit_mb=limit_mb)
    assert remedies_of(problem).get("interleave") == chunks


def test_a_schedule_that_keeps_less_alive():
    # One layer a cell: stage 0 has 8 + 3 = 11 live, which is 20 + 20 x 11 = 240 MB, or 4 + 4 = 8: 180 MB.
    chunks = problem_of(8, stages=4, interleave=2, micro_batches=8, recompute=(NONE,))
    assert remedies_of(replace(chunks, memory_limit_mb=180.0))["schedule"] == "interleaved-less-memory"
    assert "schedule" not in remedies_of(replace(chunks, memory_limit_mb=179.0))
    # All 8 live: two layers a stage hold 340 MB.  4, 3, 2 and 1 live: (1, 1, 2, 4) hold 90, 70, 100, 120.
    flat = problem_of(8, stages=4, micro_batches=8, schedule=ScheduleName.GPIPE, recompute=(NONE,))
    assert remedies_of(replace(flat, memory_limit_mb=120.0))["schedule"] == "1f1b"


def test_less_memory_needs_micro_batches_that_stages_divide():
    problem = problem_of(
        8,
        interleave=2,
        micro_batches=7,
        micro_batch_group="remainder-first",
        recompute=(NONE,),
        memory_limit_mb=100.0,
    )
    assert "schedule" not in remedies_of(problem)


def test_out_of_time_nothing_is_claimed():
    shortage = find_shortage(problem_of(4, recompute=(NONE,), memory_limit_mb=60.0), time_limit_s=0.0)
    assert set(dict(shortage.remedies)) == {"memory_limit_mb"}


def test_the_limit_named_under_zb_auto_is_one_within_which_a_plan_fits():
    # The order of zb-auto is made for the limit, so a higher limit has another order.
    memory = {Recompute.NONE: 100.0, Recompute.FULL: 20.0}
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=8, forward_ms=10, activation_mb=memory)
    problem = Problem(
        model=Model(name="auto", layers=(body,)),
        stages=4,
        micro_batches=8,
        schedule=ScheduleName.ZB_AUTO,
        memory_limit_mb=30.0,  # two layers of one micro-batch hold 40 MB
    )
    shortage = find_shortage(problem, time_limit_s=5.0)
    assert shortage.smallest_limit_mb is not None
    assert not shortage.proven
    wider = replace(problem, memory_limit_mb=shortage.smallest_limit_mb)
    assert plan_pipeline(wider, time_limit_s=1.0).plan is not None


def test_a_type_with_which_the_target_can_say_no_plan_is_no_remedy():
    # (2, 2) layers, two live on stage 0: SELECTIVE 2 x 26 = 52, BOTH 2 x 14 = 28 MB.  torchtitan has no BOTH.
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=4,
        forward_ms=1,
        parameter_mb=10,
        activation_mb={NONE: 20, SELECTIVE: 8, Recompute.BOTH: 2},
    )
    problem = problem_of(4, model=Model(name="m", layers=(body,)), recompute=(NONE,), memory_limit_mb=30.0)
    assert remedies_of(problem)["recompute"] == "both"
    assert "recompute" not in remedies_of(replace(problem, target="torchtitan"))
    assert (
        remedies_of(replace(problem, target="torchtitan", memory_limit_mb=52.0))["recompute"] == "selective"
    )


def test_what_is_fixed_as_the_target_can_not_say_it_is_told_as_that_and_not_as_short_memory():
    # Chain a a b b, of which a is never recomputed and b always.  A cell of a a b would need MindFormers to
    # recompute its last layer alone; of (2, 2) each cell is of one kind.  Room there is for all left alone.
    layers = [
        layer_from_times(
            name=name, kind=LayerKind.BODY, count=2, forward_ms=1, parameter_mb=10, activation_mb=memory
        )
        for name, memory in (("a", {NONE: 20}), ("b", {FULL: 2}))
    ]
    fix = Fix(layers=(3, 1))
    problem = problem_of(
        4, model=Model(name="m", layers=tuple(layers)), memory_limit_mb=500.0, target="mindformers", fix=fix
    )
    outcome = plan_pipeline(problem, time_limit_s=0.5)
    assert outcome.plan is None
    shortage = outcome.shortage
    assert shortage is not None
    assert (shortage.stage, shortage.over_mb, shortage.smallest_limit_mb) == (None, None, None)
    assert shortage.remedies == (("fix", "none"),)


def test_a_type_that_is_allowed_and_not_mixed_is_told_as_one_more_to_mix():
    # (2, 2) layers: NONE 2 x 50 = 100 MB on stage 0, SELECTIVE 2 x 26 = 52; all may be used, none mixed.
    problem = problem_of(4, memory_limit_mb=60.0, max_recompute_types=0)
    outcome = plan_pipeline(problem, time_limit_s=0.5)
    assert outcome.shortage is not None
    remedies = dict(outcome.shortage.remedies)
    assert remedies["max_recompute_types"] == 1
    assert "recompute" not in remedies
    assert plan_pipeline(replace(problem, max_recompute_types=1), time_limit_s=0.5).plan is not None


def test_what_takes_a_type_and_a_wider_mix_is_no_single_change():
    # SELECTIVE would do, but is neither allowed nor would there be room for it in the mix.
    problem = problem_of(4, memory_limit_mb=60.0, max_recompute_types=0, recompute=(NONE,))
    outcome = plan_pipeline(problem, time_limit_s=0.5)
    assert outcome.shortage is not None
    assert not {"recompute", "max_recompute_types"} & dict(outcome.shortage.remedies).keys()


def test_the_mix_that_asks_for_the_lowest_limit_is_told():
    # With FULL beside NONE, 2 x 14 = 28 MB would do, with SELECTIVE 52; each of both is proven.
    outcome = plan_pipeline(problem_of(4, memory_limit_mb=20.0, max_recompute_types=1), time_limit_s=0.5)
    assert outcome.shortage is not None
    assert (outcome.shortage.smallest_limit_mb, outcome.shortage.proven) == (28.0, True)


@pytest.mark.parametrize(
    ("count", "limit_mb", "once_told"), [(4, 60.0, {"stages": 3}), (6, 40.0, {"memory_limit_mb": 90.0})]
)
def test_no_change_is_told_that_does_under_the_order_of_some_types_only(count, limit_mb, once_told):
    # NONE alone may be, and under the order of zb-auto that is made for it a third stage would do for four
    # layers in 60 MB, and 90 MB for six.  With FULL to choose from the order keeps more micro-batches alive.
    problem = problem_of(
        count, schedule=ScheduleName.ZB_AUTO, max_recompute_types=0, memory_limit_mb=limit_mb
    )
    outcome = plan_pipeline(problem, time_limit_s=0.1)
    assert outcome.shortage is not None
    assert (outcome.shortage.smallest_limit_mb, outcome.shortage.proven) == (None, False)
    remedies = dict(outcome.shortage.remedies)
    assert remedies.keys() <= {"schedule"}
    for name in remedies.values():
        assert (
            plan_pipeline(replace(problem, schedule=ScheduleName(str(name))), time_limit_s=0.1).plan
            is not None
        )
    assert plan_pipeline(replace(problem, **once_told), time_limit_s=0.1).plan is None


def test_no_limit_is_told_that_does_under_the_order_of_what_a_target_can_say_only():
    # PyTorch has no BOTH, for which the order of zb-auto keeps more micro-batches alive than for SELECTIVE.
    body = layer_from_times(
        name="body",
        kind=LayerKind.BODY,
        count=6,
        forward_ms=1,
        parameter_mb=10,
        activation_mb={NONE: 20, Recompute.BOTH: 2},
    )
    problem = problem_of(6, model=Model(name="m", layers=(body,)), schedule="zb-auto", memory_limit_mb=40.0)
    outcome = plan_pipeline(replace(problem, target="pytorch"), time_limit_s=0.1)
    assert outcome.shortage is not None
    assert outcome.shortage.smallest_limit_mb is None
    assert dict(outcome.shortage.remedies).keys() <= {"schedule"}
    wider = replace(problem, target="pytorch", memory_limit_mb=90.0)  # as for six layers above
    assert plan_pipeline(wider, time_limit_s=0.1).plan is None
