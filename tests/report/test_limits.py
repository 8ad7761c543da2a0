"""What limits a plan, in numbers that can be checked by hand."""

import pytest
from hypothesis import given

from sapp_ppb.report.critical_path import find_waits
from sapp_ppb.report.limits import limit_rows, step_parts
from sapp_ppb.simulator import simulate
from tests.report.conftest import hand_plan
from tests.strategies import plans


def rows(timeline):
    return dict(limit_rows(timeline, find_waits(timeline)))


@given(plans())
def test_the_parts_of_a_step_add_up_to_it(plan):
    timeline = simulate(plan)
    assert sum(part.ms for part in step_parts(timeline)) == pytest.approx(timeline.makespan_ms, rel=1e-9)


def test_the_busiest_stage_and_the_longest_path(timeline):
    said = rows(timeline)
    # Stage 1 works 3 x (2 + 5) = 21 of 25 ms; the others 3 x 3 = 9, 13 on average.
    assert said["busiest stage"] == (
        "stage 1 works 21.0 ms, 84.0% of the step; the stages work 52.0% of it on average"
    )
    # 0F0 1F0 2F0 2B0 1B0 1F2 1B1 1B2 0B2, of which stage 1 runs 2 + 5 + 2 + 5 + 5 = 19 ms.
    assert said["longest path"] == (
        "9 ops that wait for one another make the step as long as it is; 76.0% of that time is on stage 1"
    )
    assert said["memory"] == "is no limit: none was given"


def test_sending_on_the_longest_path_is_named():
    # Two hops up and two hops down of half a millisecond.
    assert rows(simulate(hand_plan(p2p_ms=0.5)))["longest path"].endswith("on stage 1, 2.0 ms of it sending")


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (222, "1 stage (1) of 3 are within 1% of their limit"),
        ((131, 223, 111), "3 stages (0, 1, 2) of 3 are within 1% of their limit"),
        (300, "no stage is within 1% of its limit; the fullest is stage 1, with 222.0 MB of 300 MB"),
        ((100, 223, 100), "exceeds the limit on 2 stages (0, 2)"),
    ],
)
def test_stages_without_memory_left_are_named(limit, said):
    assert rows(simulate(hand_plan(memory_limit_mb=limit)))["memory"] == said


def test_the_largest_loss_comes_with_what_would_help(timeline):
    parts = {part.name: part.ms for part in step_parts(timeline)}
    largest = max(list(parts)[1:], key=parts.__getitem__)
    assert rows(timeline)["most is lost to"].startswith(f"{largest}: {parts[largest]:,.1f} ms")


def test_time_outside_the_pipeline_is_named_with_what_it_adds():
    # The step of the drawn plan is 25 ms; stage 2 ends at 16 and works on for 10.5: 26.5, 1.5 / 26.5 = 5.7%.
    said = rows(simulate(hand_plan(step_extra_ms=(0, 0, 10.5))))
    assert said["outside the pipeline"] == "adds 1.5 ms, 5.7% of the step with it"
    # 0F0 1F0 2F0 2B0 1B0 1F2 2F2 2B2: 1 + 2 + 1 + 2 + 5 + 2 + 1 + 2 = 16, of which stage 1 runs 2 + 5 + 2.
    assert said["longest path"].startswith("8 ops that wait")
    assert said["longest path"].endswith(f"{9 / 16:.1%} of that time is on stage 1")
    assert "84.0% of the makespan" in said["busiest stage"]
    hidden = rows(simulate(hand_plan(step_extra_ms=(0, 0, 3))))
    assert hidden["outside the pipeline"] == "adds nothing: it is hidden"
    assert "outside the pipeline" not in rows(simulate(hand_plan()))
