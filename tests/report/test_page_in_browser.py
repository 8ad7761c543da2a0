"""The page in Chromium: it draws what was simulated, answers the pointer, and runs nothing foreign."""

from dataclasses import replace

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Outcome, Plan, Shortage, Status, StoppedBy, plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.report import page_data
from sapp_ppb.report.blocks import timeline_blocks
from sapp_ppb.report.colours import EXTRA, EXTRA_LINES, shade
from sapp_ppb.report.page import write_page
from sapp_ppb.report.work import Work
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator import simulate
from tests.report.browser import launched, opened
from tests.report.conftest import hand_plan

pytestmark = pytest.mark.slow

browser = pytest.fixture(scope="module")(launched)
HOSTILE = (
    "</script><script>document.title='run'</script>",
    "<img src=x onerror=\"document.title='run'\">",
    "\"'`&amp;${alert(1)}",
    "שכבה",
    "long" * 100,
)


def outcome_of(timeline, **known):
    """Give what is known of a plan that was timed."""
    return Outcome(
        problem=timeline.plan.problem,
        plan=timeline.plan,
        status=Status.FEASIBLE,
        stopped_by=StoppedBy.BUDGET,
        makespan_ms=timeline.makespan_ms,
        lower_bound_ms=20.0,
        peak_memory_mb=timeline.peak_memory_mb,
        bubble=timeline.bubble,
        **known,
    )


@pytest.fixture
def written(tmp_path):
    """Write the page of a timeline."""

    def write(timeline, **given):
        path = tmp_path / "report.html"
        write_page(outcome_of(timeline), timeline, path, force=True, **given)
        return path

    return write


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_it_loads_in_peace_and_never_scrolls_sideways(browser, written, timeline, width, scheme):
    path = written(timeline, lists={"MindFormers": "offset: [[" + "0, " * 300 + "0]]\n"})
    with opened(browser, path, width=width, scheme=scheme) as it:
        assert it.complaints == []
        assert it.requests == [path.as_uri()]
        assert it.page.evaluate("document.documentElement.scrollWidth") == width
        ground = it.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")


class TestTheTimeline:
    """Times by hand, drawn in tests/report/conftest.py."""

    def test_an_op_says_when_it_runs_and_what_it_waited_for(self, browser, written, timeline):
        with opened(browser, written(timeline)) as it:
            assert it.hover(1, 8) == [
                "1B0: backward of micro-batch 0",
                "cell 1: stage 1, chunk 0, layers: 2 (1 full)",
                "6.00 ms to 11.00 ms, takes 5.00 ms, of which 1.00 ms recompute",
                "waited for its input from 2B0 of stage 2",
                "on the longest path",
            ]
            assert it.hover(1, 14)[3] == "waited for 1F2, before it on its stage"
            assert it.hover(0, 0.5)[3] == "waited for nothing: it is the first"

    def test_a_gap_says_what_it_waits_for(self, browser, written, timeline):
        with opened(browser, written(timeline)) as it:
            assert it.hover(0, 8) == [
                "stage 0 idle for 8.00 ms",
                "3.00 ms to 11.00 ms",
                "0B0 waited for its input from 1B0 of stage 1",
            ]
            assert it.hover(2, 20)[2] == "its ops are done"
            assert it.hover(2, 20, "#memory-view")[0] != ""

    def test_a_hop_is_named(self, browser, written):
        with opened(browser, written(simulate(hand_plan(p2p_ms=0.5)))) as it:
            # F0 of stage 0 ends at 1 and arrives at 1.5.
            assert it.hover(1, 2)[3] == (
                "waited for its input from 0F0 of stage 0, and 0.50 ms for it to arrive"
            )

    def test_every_op_is_drawn_where_it_runs_in_its_colour(self, browser, written, timeline):
        blocks = timeline_blocks(timeline)
        with opened(browser, written(timeline)) as it:
            for stage, kind, start, end, again in zip(
                blocks.stage, blocks.kind, blocks.start_ms, blocks.end_ms, blocks.recompute_ms, strict=True
            ):
                usual = rgb(Work.BACKWARD if kind else Work.FORWARD)
                assert it.colour(int(stage), (start + again + end) / 2) == usual
                assert it.colour(int(stage), start + 0.1) == (rgb(Work.RECOMPUTE) if again else usual)

    def test_toggles_show_and_hide(self, browser, written, timeline):
        with opened(browser, written(timeline)) as it:
            idle, recompute = it.colour(0, 8), it.colour(1, 6.1)
            for name in ("idle", "recompute", "path"):
                it.page.click(f"#show-{name}")
            it.settle()
            assert it.colour(0, 8) != idle
            assert it.colour(1, 6.1) == rgb(Work.BACKWARD) != recompute
            # B0 of stage 2 is on the longest path; F2 of stage 0 is not, and grows faint.
            assert it.colour(2, 5) == rgb(Work.BACKWARD)
            assert it.colour(0, 2.5) != rgb(Work.FORWARD)

    def test_what_the_pointer_drags_over_fills_the_width(self, browser, written, timeline):
        with opened(browser, written(timeline)) as it:
            it.hover(0, 12)
            it.page.mouse.down()
            it.page.mouse.move(*it.place(0, 18))
            it.page.mouse.up()
            it.settle()
            assert shown_span(it) == pytest.approx([12, 18], abs=0.1)
            # What stood at 2/3 of the plot is now the moment 12 + 2/3 x 6 = 16 of stage 1, in B1.
            assert it.hover(1, it.page.evaluate("pageData.makespan_ms") * 2 / 3)[0].startswith("1B1")
            it.page.mouse.dblclick(*it.place(1, 10))
            it.settle()
            assert shown_span(it) == pytest.approx([0, 25], abs=0.01)

    def test_buttons_keys_and_the_wheel_zoom(self, browser, written, timeline):
        with opened(browser, written(timeline)) as it:
            it.page.click("text=Zoom in")
            assert shown_span(it) == pytest.approx([6.25, 18.75], abs=0.1)  # the middle half of 25
            it.page.click("text=Zoom out")
            assert shown_span(it) == pytest.approx([0, 25], abs=0.01)
            it.page.focus("#timeline-view")
            it.page.keyboard.press("+")
            it.page.keyboard.press("+")
            assert shown_span(it) == pytest.approx([9.375, 15.625], abs=0.1)
            it.page.keyboard.press("0")
            it.hover(0, 12.5)
            it.page.keyboard.down("Control")
            it.page.mouse.wheel(0, -240)
            it.page.keyboard.up("Control")
            it.page.wait_for_function("document.querySelector('.spacer').offsetWidth > 2000")
            assert shown_span(it) == pytest.approx([6.25, 18.75], abs=0.2)

    def test_an_op_is_found_by_its_name_and_followed_back(self, browser, written, timeline):
        with opened(browser, written(timeline)) as it:
            it.page.fill("#find", "0b1")
            it.page.keyboard.press("Enter")
            details = it.page.locator("#details")
            assert details.inner_text().startswith("0B1: backward")
            for op in ("1B1", "1F2", "1B0", "2B0", "2F0", "1F0", "0F0"):
                it.page.click("text=What it waited for")
                assert details.inner_text().startswith(f"{op}: ")
            assert it.page.locator("text=What it waited for").is_disabled()
            it.page.fill("#find", "<b>9F9</b>")
            it.page.keyboard.press("Enter")
            assert details.inner_text() == "There is no op <b>9F9</b> in this step."


def test_what_comes_after_the_last_op_is_shown_apart(browser, written):
    # Stages end at 25, 23 and 16 ms; stage 2 works on until 16 + 10.5 = 26.5, which is the step.
    timeline = simulate(hand_plan(step_extra_ms=(0.0, 0.0, 10.5)))
    with opened(browser, written(timeline)) as it:
        assert it.hover(2, 20) == [
            "stage 2 outside the pipeline",
            "16.00 ms to 26.50 ms, takes 10.50 ms",
            "the step ends with it",
        ]
        assert it.hover(0, 24)[0].startswith("0B2: ")
        red, green, blue = it.colour(2, 20)
        # Grey between that of the ground and that of its lines.
        assert red == green == blue
        assert int(EXTRA_LINES[1:3], 16) <= red <= int(EXTRA[1:3], 16)
        assert it.colour(2, 15) == rgb(Work.BACKWARD)
        assert it.complaints == []


def test_ops_that_overlap_share_their_row(browser, written):
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=1)
    problem = Problem(
        model=Model(name="v", layers=(body,)),
        stages=2,
        micro_batches=4,
        schedule=ScheduleName.DUALPIPEV,
        overlap_factor=0.5,
    )
    timeline = simulate(plan_from_matrices(problem, {"Dec": {"none": [[1, 1], [1, 1]]}}))
    at = problem.order.pairs_of(0)[0]
    forward, backward = problem.order.rows[0][at : at + 2]
    middle = (timeline.start_ms[0][at] + timeline.end_ms[0][at]) / 2
    with opened(browser, written(timeline)) as it:
        assert it.hover(0, middle, above_middle=0.25)[0].startswith(f"{forward}: forward")
        lines = it.hover(0, middle, above_middle=-0.25)
        assert lines[0].startswith(f"{backward}: ")
        assert f"together with {forward}, which it overlaps" in lines
        # F 1 and B 2 at a factor of a half: 1 + 2 - 0.5 x 1.
        assert "takes 2.50 ms" in lines[2]
        assert it.complaints == []
        shades = {side: it.colour(0, middle, side) for side in (0.4, -0.4)}
        assert shades == {
            0.4: rgb(Work.FORWARD, forward.cell // 2, 2),
            -0.4: rgb(Work.BACKWARD, backward.cell // 2, 2),
        }


def test_sequence_chunks_are_named(browser, written):
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=2)
    model = Model(name="s", layers=(body,))
    problem = Problem(
        model=model, stages=2, micro_batches=2, schedule=ScheduleName.SEQ1F1B, sequence_chunks=2
    )
    with opened(browser, written(simulate(plan_from_matrices(problem, {"Dec": {"none": [[1, 1]]}})))) as it:
        assert it.hover(0, 1.5)[0] == "0F0.1: forward of micro-batch 0, sequence chunk 1"
        it.page.fill("#find", "1B1.0")
        it.page.keyboard.press("Enter")
        assert it.page.inner_text("#details").startswith("1B1.0: backward of micro-batch 1, sequence chunk 0")


def test_the_memory_of_a_stage_is_that_of_the_simulator(browser, written):
    # Stage 1 holds 2 x 100 MB and 11 MB live for each of two micro-batches from 3 ms on.
    with opened(browser, written(simulate(hand_plan(memory_limit_mb=230)))) as it:
        it.page.select_option("#memory-stage", "1")
        assert it.page.inner_text("#memory-said") == "peak 222 MB of 230 MB, 8 MB free"
        assert it.hover(1, 4, "#memory-view") == ["stage 1: 222 MB of 230 MB", "at 4.00 ms"]


def test_a_click_on_a_reason_shows_its_op(browser, written):
    # 222 MB of 225: the layer that is recomputed can not be left alone, 2 x 9 MB more.
    with opened(browser, written(simulate(hand_plan(memory_limit_mb=225)))) as it:
        it.page.click("[data-op]")
        assert it.page.inner_text("#details").startswith("1F1: forward of micro-batch 1")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text_and_nothing_more(name, browser, tmp_path):
    layers = tuple(
        layer_from_times(name=f"{name}{k}", kind=LayerKind.BODY, count=3, forward_ms=1,
                         activation_mb={Recompute.FULL: 1})
        for k in range(2)
    )  # fmt: skip
    problem = Problem(model=Model(name=name, layers=layers), stages=2, micro_batches=2, memory_limit_mb=9)
    counts = np.zeros((2, 5, 2), dtype=int)
    counts[0, Recompute.FULL, 0] = counts[1, Recompute.FULL, 1] = 3
    timeline = simulate(Plan(problem=problem, counts=counts))
    path = tmp_path / "report.html"
    write_page(outcome_of(timeline), timeline, path, lists={name: name})
    for width in (1280, 400):
        with opened(browser, path, width=width) as it:
            assert it.page.title() == f"{name} - pipeline plan"
            assert it.page.inner_text("h1") == name
            assert it.page.locator("pre").inner_text() == name
            assert f"layers: {name}0 3 (3 full)" in it.hover(0, 1)[1]
            assert it.page.evaluate("document.documentElement.scrollWidth") == width
            assert it.page.locator("script").count() == 2
            assert it.complaints == []


def test_a_list_is_copied(browser, written, timeline):
    path = written(timeline, lists={"MindFormers": "offset: [[0, 0]]\n"})
    with opened(browser, path, permissions=["clipboard-read", "clipboard-write"]) as it:
        it.page.click(".copy")
        it.page.wait_for_selector("text=Copied")
        assert it.page.evaluate("navigator.clipboard.readText()") == "offset: [[0, 0]]\n"


def test_a_page_that_is_thinned_says_so_and_says_true(browser, written, timeline, monkeypatch):
    monkeypatch.setattr(page_data, "MOST_OPS", 5)
    monkeypatch.setattr(page_data, "_MOST_BINS", 5)  # 25 ms in spans of 5
    with opened(browser, written(timeline)) as it:
        assert "Each cell of the picture is a mean over 5.00 ms" in it.page.inner_text("#timeline")
        # Until 5 stage 0 works 3 ms; from 5 to 10 stage 1 waits 1, redoes a forward for 1, then goes back.
        assert it.hover(0, 3)[:2] == [
            "stage 0, 0.00 ms to 5.00 ms",
            "forward 60%, backward 0%, recompute 0%, idle 40%",
        ]
        assert it.hover(1, 7)[1] == "forward 0%, backward 60%, recompute 20%, idle 20%"
        it.page.click("#show-path")
        it.settle()
        assert it.complaints == []


def test_why_nothing_fits(browser, tmp_path):
    problem = replace(hand_plan().problem, memory_limit_mb=50)
    outcome = Outcome(
        problem=problem,
        plan=None,
        status=Status.INFEASIBLE,
        stopped_by=StoppedBy.PROOF,
        shortage=Shortage(stage=1, op="1F1", over_mb=50.0, smallest_limit_mb=100.0),
    )
    path = tmp_path / "report.html"
    write_page(outcome, None, path)
    with opened(browser, path) as it:
        said = it.page.inner_text("main")
        assert "No plan fits the memory." in said
        assert "stage 1, by 50.0 MB over 50 MB, at op 1F1" in said
        assert it.complaints == []


def rgb(work, chunk=0, chunks=1):
    """Red, green and blue of a kind of work."""
    return tuple(bytes.fromhex(shade(work, chunk, chunks)[1:]))


def shown_span(it):
    """First and last moment that the timeline shows, in ms."""
    it.settle()
    return it.page.evaluate(
        """() => {
            const scroller = document.getElementById("timeline-view");
            const whole = scroller.querySelector(".spacer").offsetWidth - GUTTER;
            const plot = scroller.clientWidth - GUTTER;
            const pixels = [scroller.scrollLeft, scroller.scrollLeft + plot];
            return pixels.map(x => x / whole * pageData.makespan_ms);
        }"""
    )
