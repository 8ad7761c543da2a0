"""The page as a file: what it says, that it is whole, the same every time, and closed to what is foreign."""

import hashlib
import json
import re
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Outcome, Plan, Status, StoppedBy
from sapp_ppb.problem import Problem
from sapp_ppb.report.page import page_text, write_page
from sapp_ppb.simulator import simulate
from tests.report.conftest import hand_plan

DOCS = Path(__file__).parents[2] / "docs"
HOSTILE = "</script><script>alert(1)</script>&\"'"


def outcome_of(timeline, **known):
    """Give what is known of a plan that was timed."""
    return Outcome(
        problem=timeline.plan.problem,
        plan=timeline.plan,
        status=known.pop("status", Status.FEASIBLE),
        stopped_by=StoppedBy.BUDGET,
        makespan_ms=timeline.makespan_ms,
        peak_memory_mb=timeline.peak_memory_mb,
        bubble=timeline.bubble,
        **known,
    )


def text_of(timeline, **given):
    return page_text(outcome_of(timeline), timeline, **given)


def data_of(text):
    """Numbers of the drawings."""
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return json.loads(data)


def visible(text):
    """Text of a page without its tags, style and script."""
    body = re.sub(r"<(style|script).*?</\1>", "", text, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


class TestWhatItSays:
    @pytest.mark.parametrize(
        ("known", "said"),
        [
            ({"status": Status.OPTIMAL, "lower_bound_ms": 25.0}, "proven optimal"),
            # (25 - 24.9) / 25 is 0.4 %; (25 - 24) / 25 is 4 %, and 1 / 3 of a ms 1.333 %, rounded up.
            ({"lower_bound_ms": 24.9}, "at most 0.40% from optimal"),
            ({"lower_bound_ms": 24.0}, "at most 4.00% from optimal"),
            ({"lower_bound_ms": 25 - 1 / 3}, "at most 1.34% from optimal"),
            ({}, "nothing is proven of faster plans"),
        ],
    )
    def test_how_good_the_plan_is(self, known, said, timeline):
        assert said in visible(page_text(outcome_of(timeline, **known), timeline))

    def test_every_section_in_the_order_of_the_documentation(self, timeline):
        headings = re.findall(r"<h2[^>]*>(.*?)</h2>", text_of(timeline, lists={"MindFormers": "x"}))
        documentation = (DOCS / "reading-a-report.md").read_text(encoding="utf-8")
        assert headings == re.findall(r"^## (.*)$", documentation, flags=re.MULTILINE)

    def test_what_is_known_of_every_stage(self, timeline):
        # Stage 1 works 3 x (2 + 5) = 21 of 25 ms and holds 200 + 2 x 11 MB.
        assert "1 2 (1 full) 84.0% 222" in visible(text_of(timeline))

    def test_one_limit_and_one_a_stage(self):
        one = visible(text_of(simulate(hand_plan(memory_limit_mb=230))))
        each = visible(text_of(simulate(hand_plan(memory_limit_mb=(200, 230, 250)))))
        assert "222 230 96.5%" in one  # 222 / 230 = 0.9652
        assert "110 250 44.0%" in each  # stage 2 holds 100 + 10 MB

    def test_a_plan_over_its_limit(self):
        said = visible(text_of(simulate(hand_plan(memory_limit_mb=220))))
        assert "exceeds the memory limit" in said
        assert "exceeds the limit on 1 stage (1)" in said
        assert "from optimal" not in said

    def test_why_a_layer_is_recomputed(self):
        # As NONE the layer would hold 9 MB more for each of two micro-batches: 222 + 18 of 225.
        said = visible(text_of(simulate(hand_plan(memory_limit_mb=225))))
        assert "1 of 4 layers are recomputed; each is needed" in said
        assert "1 Dec 1 full none 240.0 1F1 15.0" in said

    def test_that_a_layer_need_not_be_recomputed(self, timeline):
        said = visible(text_of(timeline))
        assert "0 of these are needed for memory" in said
        assert "1 Dec 1 full none 240.0 1F1 nothing: it would fit" in said

    def test_where_the_step_goes(self, timeline):
        # Useful work is 4 layers x 3 micro-batches x 3 ms over 3 stages: 12 of 25 ms.
        assert "useful work 12.0 48.0%" in visible(text_of(timeline))

    def test_tokens_and_lists_that_are_given(self, timeline):
        said = visible(text_of(timeline, tokens=1000, lists={"Mine": "a < b"}))
        assert "120,000 per second" in said  # 3 x 1000 in 0.025 s
        assert "Mine Copy a &lt; b" in said

    def test_a_section_without_content_is_left_out(self, timeline):
        assert "The plan, to copy" not in text_of(timeline)


class TestItsText:
    def test_is_the_same_every_time(self, timeline):
        assert text_of(timeline) == text_of(simulate(hand_plan()))

    def test_runs_its_own_script_and_style_alone(self, timeline):
        text = text_of(timeline)
        (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
        assert policy.startswith("default-src 'none'; ")
        for tag, source in (("style", "style-src"), ("script", "script-src")):
            content = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
            assert len(content) == 1
            digest = b64encode(hashlib.sha256(content[0].encode()).digest()).decode()
            assert f"{source} 'sha256-{digest}'" in policy

    def test_asks_nobody(self, timeline):
        assert not re.findall(r"(?:src|href)=[\"'](?!#)|url\(|@import|https?:", text_of(timeline))

    def test_has_no_name_as_markup(self):
        text = text_of(simulate(named(HOSTILE)), lists={HOSTILE: HOSTILE})
        assert "alert(1)</script>" not in text
        assert text.count("<script") == 2
        assert f"{HOSTILE}0 1" in data_of(text)["cells"][0]["layers"]

    def test_names_sixty_one_layers_of_their_own(self):
        text = text_of(simulate(named("Layer", 61)))
        assert "Layer60 </bdi>" in text.replace("</bdi>", " </bdi>")


def named(name, kinds=2):
    """Plan of layers of these names, all recomputed, on two stages."""
    layers = tuple(
        layer_from_times(
            name=f"{name}{k}", kind=LayerKind.BODY, forward_ms=1, activation_mb={Recompute.FULL: 1}
        )
        for k in range(kinds)
    )
    counts = np.zeros((kinds, 5, 2), dtype=int)
    counts[: kinds // 2, Recompute.FULL, 0] = counts[kinds // 2 :, Recompute.FULL, 1] = 1
    model = Model(name=name, layers=layers)
    return Plan(problem=Problem(model=model, stages=2, micro_batches=2), counts=counts)


class TestTheFile:
    def test_is_written_whole(self, timeline, tmp_path):
        path = tmp_path / "new" / "report.html"
        write_page(outcome_of(timeline), timeline, path)
        assert path.read_bytes().decode("utf-8") == text_of(timeline)
        assert [file.name for file in path.parent.iterdir()] == ["report.html"]

    def test_is_not_replaced_unasked(self, timeline, tmp_path):
        path = tmp_path / "report.html"
        path.write_text("mine", encoding="utf-8")
        with pytest.raises(InputError, match="the file exists; give --force"):
            write_page(outcome_of(timeline), timeline, path)
        assert path.read_text(encoding="utf-8") == "mine"
        write_page(outcome_of(timeline), timeline, path, force=True)
        assert path.read_text(encoding="utf-8") != "mine"

    def test_of_a_plan_needs_its_timeline(self, timeline):
        with pytest.raises(InputError, match="a plan needs its timeline; give simulate"):
            page_text(outcome_of(timeline), None)

    def test_of_no_plan_needs_none(self, timeline):
        nothing = replace(outcome_of(timeline), plan=None, makespan_ms=None, status=Status.INFEASIBLE)
        assert "No plan fits the memory." in visible(page_text(nothing, None))


def test_the_numbers_of_16_stages_and_32_micro_batches_are_small():
    body = layer_from_times(
        name="Dec", kind=LayerKind.BODY, count=80, forward_ms=123.456789, parameter_mb=3.3
    )
    problem = Problem(
        model=Model(name="m", layers=(body,)), stages=16, interleave=2, micro_batches=32, p2p_ms=0.1
    )
    counts = np.zeros((1, 5, 32), dtype=int)
    counts[0, 0] = [3] * 16 + [2] * 16
    text = text_of(simulate(Plan(problem=problem, counts=counts)))
    assert len(json.dumps(data_of(text))) < 200_000
    assert len(text) < 250_000
