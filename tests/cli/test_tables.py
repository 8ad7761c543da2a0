"""What people read: rows, bars and the progress line."""

import io
import subprocess
import sys

import pytest

from sapp_ppb.cli.output import write_result
from sapp_ppb.cli.progress import ProgressLine, progress_text
from sapp_ppb.cli.tables import outcome_text
from sapp_ppb.planner import Progress
from tests.cli.conftest import environment

WORDS = ("-s", "2", "-mb", "4", "-t", "0.2", "-mem", "1200")


class Terminal(io.StringIO):
    """Something that says it is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize(("encoding", "full"), [("utf-8", "█"), ("ascii", "#"), ("latin-1", "#")])
def test_bars_are_drawn_in_what_the_encoding_has(encoding, full, model_file):
    words = [sys.executable, "-m", "sapp_ppb", "plan", str(model_file(name="Schicht-层")), *WORDS]
    done = subprocess.run(
        words, env=environment() | {"PYTHONIOENCODING": encoding}, capture_output=True, check=True
    )
    text = done.stdout.decode(encoding)
    assert full * 10 in text
    assert "\x1b" not in text


@pytest.mark.parametrize(("spare", "bar"), [(2, 20), (1, 10), (-8, 10), (-9, 0)])
def test_the_bar_is_as_long_as_the_terminal_allows(spare, bar, model_file, run, tmp_path, monkeypatch):
    from sapp_ppb.readers import read_model, read_plan
    from sapp_ppb.simulator import simulate

    def rows(columns):
        monkeypatch.setattr("sapp_ppb.cli.tables._columns", lambda: columns)
        return outcome_text(outcome, timeline).splitlines()[3:5]

    run("plan", model_file(), *WORDS, "-o", tmp_path)
    outcome = read_plan(tmp_path / "plan.json", read_model(model_file()))
    assert outcome.plan is not None
    timeline = simulate(outcome.plan)
    # A row with its longest bar, and 2 blanks that every column has on its right.
    longest = max(map(len, rows(160)))
    shown = rows(longest + spare)
    assert [sum(map(row.count, "█░#")) for row in shown] == [bar, bar]
    assert all(len(row) <= longest + spare for row in shown)


def test_sixty_four_stages_have_a_row_each(model_file, run):
    stdout = run("plan", model_file(nb_layer=130), "-s", "64", "-mb", "64", "-t", "0.1").stdout
    rows = stdout.split("stage", 2)[2].split("\n\n")[0].splitlines()[1:]
    assert [row.split()[0] for row in rows] == [str(stage) for stage in range(64)]


def test_characters_that_a_terminal_does_not_know_are_escaped(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    write_result("层\n")
    assert raw.getvalue() == b"\\u5c42\n"


def test_a_progress_in_words():
    progress = Progress(phase="search", best_ms=84304.0, bound_ms=80000.0, seconds=1.25)
    # 1 - 80,000 / 84,304 = 5.11 %
    assert progress_text(progress) == "search: best 84,304.0 ms, bound 80,000.0 ms, gap 5.11%, 1.2 s"
    none_yet = Progress(phase="search", best_ms=None, bound_ms=0.0, seconds=0.0)
    assert progress_text(none_yet) == "search: nothing fits yet, bound 0.0 ms, 0.0 s"


def test_the_progress_line_is_written_over_and_taken_away(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressLine() as line:
        line(Progress(phase="search", best_ms=2.0, bound_ms=1.0, seconds=0.0))
    assert "best 2.0 ms" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert "\n" not in terminal.getvalue()


def test_without_a_terminal_there_is_no_progress_line(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with ProgressLine() as line:
        line(Progress(phase="search", best_ms=2.0, bound_ms=1.0, seconds=0.0))
    assert pipe.getvalue() == ""
