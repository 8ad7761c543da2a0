"""The progress of a sweep: one line on a terminal, lines of a log elsewhere."""

import io

import pytest

from sapp_ppb.cli import progress
from sapp_ppb.cli.progress import SweepLine, sweep_progress_text
from sapp_ppb.problem import Problem
from sapp_ppb.sweep import Answer, Candidate, RowStatus, SweepProgress
from sapp_ppb.sweep.row import row_of
from sapp_ppb.sweep.work import Effort
from tests.sweep.conftest import MODEL

BEST = row_of(
    Candidate(problem=Problem(model=MODEL, stages=4, micro_batches=8)),
    Answer(status=RowStatus.OPTIMAL, makespan_ms=1234.56),
    Effort(),
)
HALF = SweepProgress(phase="plans", done=5, of=10, cut=2, best=BEST, seconds=3.0, left_s=3.4)


class Terminal(io.StringIO):
    """A terminal that keeps what it was sent."""

    def isatty(self):
        return True


@pytest.fixture
def sent(monkeypatch):
    """Send progresses to a line, and give what arrives on stderr."""

    def sent(stderr, *progresses):
        monkeypatch.setattr("sys.stderr", stderr)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(progress, "_EVERY_S", 0.0)
        with SweepLine() as line:
            for each in progresses:
                line(each)
        return stderr.getvalue()

    return sent


def test_the_words_say_what_is_done_the_best_and_the_time_left():
    assert sweep_progress_text(HALF) == (
        "plans: 5 of 10 problems, 2 of them cut by bound, "
        "best 1,234.6 ms (4 stages, 8 micro-batches, 1f1b), at most 3 s left"
    )
    assert sweep_progress_text(SweepProgress(phase="bounds", done=1, of=3)) == "bounds: 1 of 3 problems"


def test_a_terminal_has_one_line_that_is_taken_away(sent):
    text = sent(Terminal(), HALF)
    assert "\n" not in text
    assert "5 of 10 problems" in text
    assert text.endswith("\r\x1b[K")


def test_news_stay_on_a_line_of_their_own(sent):
    text = sent(Terminal(), HALF, SweepProgress(phase="plans", done=5, of=10, news="a worker died"))
    assert "\r\x1b[Ka worker died\n" in text


def test_a_log_has_plain_lines_now_and_then_and_at_the_end(sent):
    end = SweepProgress(phase="plans", done=10, of=10, best=BEST)
    text = sent(io.StringIO(), SweepProgress(phase="bounds", done=1, of=10), HALF, HALF, end)
    assert "\r" not in text
    assert [line.split(",")[0] for line in text.splitlines()] == [
        "plans: 5 of 10 problems",
        "plans: 10 of 10 problems",
    ]
