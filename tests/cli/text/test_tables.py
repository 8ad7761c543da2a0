"""What people read: rows, bars and the progress line."""

import io
import subprocess
import sys
from dataclasses import replace

import pytest

from sapp_ppb.cli.output import write_result
from sapp_ppb.cli.progress import ProgressLine, progress_text
from sapp_ppb.cli.text.explanation import explanation_rows
from sapp_ppb.cli.text.tables import outcome_text
from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import Outcome, Shortage, Status, StoppedBy
from sapp_ppb.planner import Explanation, Progress, Relaxed
from sapp_ppb.problem import Problem
from sapp_ppb.report.summary import shortage_rows
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
        monkeypatch.setattr("sapp_ppb.cli.text.tables.terminal_columns", lambda: columns)
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


@pytest.mark.parametrize(
    ("shortage", "said"),
    [
        (
            Shortage(stage=1, op="1F0", over_mb=2.0, smallest_limit_mb=42.1),
            "stage 1, by 2.0 MB over 40 MB, at op 1F0, in the plan that exceeds it least of those found",
        ),
        (
            Shortage(stage=None, op=None, over_mb=3.0, smallest_limit_mb=None, proven=False),
            "some stage, by 3.0 MB at least; which could not be computed in time",
        ),
        (
            Shortage(stage=None, op=None, over_mb=None, smallest_limit_mb=None, proven=False),
            "where, and by how much, is not known",
        ),
    ],
)
def test_what_is_known_of_a_shortage_in_words(shortage, said):
    assert shortage_rows(short(), shortage) == [("short", said)]


def test_without_a_limit_it_is_no_memory_that_is_short():
    outcome = short()
    unlimited = replace(outcome, problem=outcome.problem.changed(memory_limit_mb=None, target="mindformers"))
    shortage = Shortage(stage=None, op=None, over_mb=None, smallest_limit_mb=None, proven=False)
    words = "no memory, but words: mindformers has none for any choice of the types of these layers"
    assert shortage_rows(unlimited, shortage) == [("short", words)]


def test_remedies_in_words():
    remedies = (
        ("memory_limit_mb", 42.1),
        ("constant_memory_less_by_mb", 2.5),
        ("schedule", "1f1b"),
        ("recompute", "full"),
        ("interleave", 2),
        ("stages", 3),
        ("something_later", 7.0),
    )
    shortage = Shortage(stage=1, op="1F0", over_mb=2.0, smallest_limit_mb=42.1, remedies=remedies)
    assert [value for name, value in shortage_rows(short(), shortage) if name == "would do"] == [
        "a limit of 43 MB on every stage (--memory-limit 43), which is the smallest that works, to 1%",
        "2.5 MB less of constant memory on every stage",
        "another schedule (--schedule 1f1b)",
        "recompute full too (--recompute none,full)",
        "fewer chunks (--interleave 2)",
        "one more stage (--stages 3)",
        "something later: 7",
    ]
    unproven = shortage_rows(short(), replace(shortage, proven=False))
    assert unproven[1] == ("would do", "a limit of 43 MB on every stage (--memory-limit 43)")


def test_what_would_gain_most_in_words():
    # 100 to 90 ms by memory, to 95 by recompute, and from 90 to 72 by layers that can be cut.
    explanation = Explanation(
        step_ms=100.0,
        unlimited_memory=Relaxed(step_ms=90.0, lower_bound_ms=90.0),
        free_recompute=Relaxed(step_ms=95.0, lower_bound_ms=0.0),
        divisible_ms=72.0,
        busiest_stage=1,
        busy=0.875,
        fill_drain=0.25,
    )
    assert dict(explanation_rows(short(), explanation)) == {
        "memory": "with unlimited memory 90.0 ms, 10.0% less than now (proven)",
        "recompute": "if it took no time 95.0 ms, 5.0% less than now",
        "size of layers": "with unlimited memory and equal cells 72.0 ms, "
        "20.0% less than with unlimited memory alone",
        "busiest stage": "stage 1 works 87.5% of the step",
        "fill and drain": "25.0% of useful work; more micro-batches (now 4) or more chunks make it less",
        "most to gain": "smaller layers, or a split within layers: 18.0% of the step",
    }
    nothing = replace(
        explanation,
        unlimited_memory=Relaxed(step_ms=100.0, lower_bound_ms=100.0),
        free_recompute=Relaxed(step_ms=100.0, lower_bound_ms=100.0),
        divisible_ms=101.0,
    )
    assert dict(explanation_rows(short(), nothing))["most to gain"].startswith("nothing of these")


def short() -> Outcome:
    """Infeasible outcome of two stages with 40 MB, where only NONE is allowed."""
    memory = {Recompute.NONE: 20, Recompute.FULL: 2}
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=2, forward_ms=1, activation_mb=memory)
    problem = Problem(
        model=Model(name="m", layers=(body,)),
        stages=2,
        micro_batches=4,
        memory_limit_mb=40,
        recompute=(Recompute.NONE,),
    )
    return Outcome(problem=problem, plan=None, status=Status.INFEASIBLE, stopped_by=StoppedBy.PROOF)


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
