"""``--timeline``: a small timeline in text."""

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.cli.text import tables
from sapp_ppb.cli.text.text_timeline import timeline_text
from sapp_ppb.simulator import simulate
from tests.report.conftest import hand_plan, pair_plan, plans
from tests.report.test_pictures import equal_timeline

QUICK = ("-s", "2", "-mb", "4", "-t", "0.2")


class Terminal(io.StringIO):
    """Something that says it is a terminal."""

    def isatty(self):
        return True


def test_the_drawn_plan_with_two_characters_a_millisecond():
    # 8 characters of "stage 0 " and 2 x 25.
    assert timeline_text(simulate(hand_plan()), 58).plain.splitlines() == [
        "timeline, a column is 0.5 ms",
        "stage 0 F0F1F2................B0bb..........B1bb......B2bb",
        "stage 1 ..F0ffF1ff..rrB0bbbbbbF2ffrrB1bbbbbbrrB2bbbbbb....",
        "stage 2 ......F0B0bbF1B1bb........F2B2bb..................",
        "F forward, B backward, r recompute, . idle",
    ]


def test_what_comes_after_the_last_op_is_told_from_idle():
    # The drawn plan, which ends at 25, 23 and 16 ms, with 3 ms behind stage 2: hidden, as 16 + 3 < 25.
    lines = timeline_text(simulate(hand_plan(step_extra_ms=(0.0, 0.0, 3.0))), 58).plain.splitlines()
    assert lines[3] == "stage 2 ......F0B0bbF1B1bb........F2B2bb//////............"
    assert lines[4] == "F forward, B backward, r recompute, . idle, / outside the pipeline"


def test_a_name_that_does_not_fit_is_cut_to_its_letter():
    # A character a millisecond.
    assert timeline_text(simulate(hand_plan()), 33).plain.splitlines()[1:4] == [
        "stage 0 FFF........B0.....B1...B2",
        "stage 1 .F0F1.rB0bbF2rB1bbrB2bb..",
        "stage 2 ...FB0FB1....FB2.........",
    ]


def test_cells_are_named_where_a_stage_has_several():
    # One stage, two chunks, f = 1 and b = 3 (FULL) and 2: 0F0 1F0 1B0 0B0 in 7 ms, 4 characters each.
    lines = timeline_text(equal_timeline(1, 2, 1), 8 + 28).plain.splitlines()
    assert lines[1] == "stage 0 0F0f1F0f1B0bbbbbrrrr0B0bbbbb"


def test_a_step_that_is_too_long_says_where_to_look():
    # 2 x 1000 ops in about 4000 ms.
    assert timeline_text(equal_timeline(2, 1, 1000), 80).plain == (
        "timeline: 2000 ops a stage do not fit 80 columns; look at timeline.png, which --output writes"
    )


@pytest.mark.parametrize("columns", [80, 81, 100, 160])
def test_every_row_is_as_wide_as_the_terminal(columns):
    rows = timeline_text(equal_timeline(4, 2, 4), columns).plain.splitlines()[1:-1]
    assert [len(row) for row in rows] == [columns] * 4


@pytest.mark.parametrize(("no_color", "coloured"), [(None, True), ("", True), ("1", False)])
def test_colours_are_for_terminals_that_want_them(no_color, coloured, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    page = tables.rendered([timeline_text(simulate(hand_plan()), 80)])
    assert ("\x1b[38;5;" in page or "\x1b[30;48;5;" in page) is coloured
    assert "F0" in page


def test_what_is_piped_has_no_colours(model_file, run):
    stdout = run("plan", model_file(), *QUICK, "--timeline").stdout
    assert "\x1b" not in stdout
    assert "F forward, B backward, . idle\n" in stdout
    assert "stage 1 ." in stdout


def test_without_the_option_there_is_none(model_file, run):
    assert "a column is" not in run("plan", model_file(), *QUICK).stdout


def test_two_that_overlap_stand_side_by_side():
    # Four characters a millisecond: F0 4, then a pair of 2.5 ms of which each has 5, then B1 8.
    assert timeline_text(simulate(pair_plan()), 8 + 22).plain.splitlines()[1:] == [
        "stage 0 F0ffF1fffB0bbbB1bbbbbb",
        "F forward, B backward, . idle, two that overlap side by side",
    ]


@given(plans(), st.integers(60, 300))
def test_no_row_is_narrower_or_wider(plan, columns):
    rows = timeline_text(simulate(plan), columns).plain.splitlines()[1:-1]
    assert all(len(row) == columns for row in rows)
