"""Ctrl-C, and what else asks a process to stop: the best plan so far is written, with exit code 3."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import sapp_ppb.__main__ as entry
from sapp_ppb.cli.main import app
from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.interrupts import STOPPING, held_interrupts, stop_as_by_ctrl_c
from sapp_ppb.plan import StoppedBy
from sapp_ppb.planner import plan_pipeline, plan_schedules, with_cost_of_target
from sapp_ppb.planner.every_schedule import schedule_problems
from sapp_ppb.planner.met import Met
from sapp_ppb.planner.proof.highs import LinearProgram
from sapp_ppb.problem import Problem
from sapp_ppb.readers import read_model
from sapp_ppb.simulator import simulate
from tests.cli.conftest import environment
from tests.faults.conftest import begun, left_over

# Two chunks and several recompute types: never proven within a minute, so an interrupt always comes before.
LONG = ("-s", "4", "-i", "2", "-mb", "64", "-mem", "700", "-t", "60", "--recompute", "none,selective,full")


def sent_when_there_is_a_plan(model, out, number):
    """Begin to plan on a terminal, send a signal once it shows a best plan, and give code and stderr."""
    ours, theirs = pty.openpty()
    with begun("plan", model, *LONG, "-o", out, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said, end = b"", time.monotonic() + 120
        while b"search: best" not in said and time.monotonic() < end:
            if select.select([ours], [], [], 1.0)[0]:
                said += os.read(ours, 65536)
        process.send_signal(number)
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            said += more
        code = process.wait(timeout=120)
    os.close(ours)
    return code, said.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "timeout"])
def test_the_best_plan_so_far_is_written(model, plan_file, tmp_path, number):
    # SIGTERM is what a batch system and `timeout` send; it ended the process with nothing written.
    code, said = sent_when_there_is_a_plan(model, tmp_path / "out", number)
    assert code == 3, said
    assert "Traceback" not in said
    assert "interrupted; this is the best plan until then" in said
    outcome = json.loads((tmp_path / "out" / "plan.json").read_text(encoding="utf-8"))["outcome"]
    assert (outcome["status"], outcome["stopped_by"]) == ("feasible", "interrupt")
    assert outcome["lower_bound_ms"] <= outcome["makespan_ms"]
    assert left_over(tmp_path / "out") == []


@pytest.mark.parametrize("after_s", [0.05, 0.2])
def test_an_interrupt_while_starting_is_one_line(model, after_s):
    with begun("plan", model, *LONG, stdout=-1, stderr=-1) as process:
        time.sleep(after_s)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    # Before a line of ours runs Python answers itself; from then on it is our word.
    assert process.returncode == 3 or b"sapp_ppb/cli" not in stderr, stderr
    assert process.returncode != 3 or b"Traceback" not in stderr
    assert stdout == b""


def test_an_interrupt_before_the_command_is_imported_is_one_line(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("sapp_ppb.interrupts.stop_as_by_ctrl_c", interrupted)
    with pytest.raises(SystemExit) as end:
        entry.main()
    assert (end.value.code, capsys.readouterr().err) == (3, "error: interrupted\n")


@pytest.mark.parametrize("place", ["parse_args", "invoke"])
def test_an_interrupt_outside_of_any_verb_is_one_line(monkeypatch, capsys, place):
    # typer ended the process with 130 and no word.
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"sapp_ppb.cli.older_flags.Verbs.{place}", interrupted)
    monkeypatch.setattr("sys.argv", ["sapp-ppb", "schedule", "1f1b", "-s", "2", "-mb", "2"])
    for name in ("stop_as_by_ctrl_c", "stop_no_more"):
        monkeypatch.setattr(f"sapp_ppb.interrupts.{name}", lambda: None)
    with pytest.raises(SystemExit) as end:
        entry.main()
    assert (end.value.code, capsys.readouterr().err) == (3, "error: interrupted\n")


@pytest.mark.parametrize("number", STOPPING)
def test_an_interrupt_after_the_command_changes_nothing(number):
    """What the interpreter does at its end showed a traceback of Python's, after all was written."""
    program = (
        "import atexit, os, sys\n"
        f"atexit.register(os.kill, os.getpid(), {int(number)})\n"
        "from sapp_ppb.__main__ import main\n"
        "sys.argv = ['sapp-ppb', 'schedule', '1f1b', '-s', '2', '-mb', '2']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "F0" in done.stdout


@contextmanager
def interrupt_at(call: int, rooms=("planner",)):
    """Send this process Ctrl-C at the n-th call of a function in some rooms; yields calls made so far."""
    places = tuple(f"{os.sep}sapp_ppb{os.sep}{room}{os.sep}" for room in rooms)
    made = [0]

    def count(frame, event, _):
        if event == "call" and any(place in frame.f_code.co_filename for place in places):
            made[0] += 1
            if made[0] == call:
                signal.raise_signal(signal.SIGINT)

    sys.setprofile(count)
    try:
        yield made
    finally:
        sys.setprofile(None)


def problem_of(model, **changes):
    options = {"stages": 2, "micro_batches": 8, "memory_limit_mb": 1200} | changes
    return Problem(model=read_model(model), **options)


def ways_of_planning(model):
    """Every way of planning, as a function of nothing."""
    one = problem_of(model)
    chunks = problem_of(model, interleave=2)
    aimed = problem_of(model, target="megatron")
    differing = problem_of(model, stage_speed=(1.0, 0.8))
    few = problem_of(model, max_recompute_types=1)
    return {
        "one chunk": lambda: plan_pipeline(one, time_limit_s=0.05),
        "two chunks": lambda: plan_pipeline(chunks, time_limit_s=0.05),
        "side by side": lambda: plan_pipeline(chunks, time_limit_s=0.05, threads=2),
        "sets of types": lambda: plan_pipeline(few, time_limit_s=0.05),
        "a framework": lambda: plan_pipeline(aimed, time_limit_s=0.05),
        "a choice of devices": lambda: plan_pipeline(differing, time_limit_s=0.05, reorder_stages=True),
        "every schedule": lambda: plan_schedules(schedule_problems(one, 1), time_limit_s=0.1)[0].outcome,
    }


WAYS = (
    "one chunk",
    "two chunks",
    "side by side",
    "sets of types",
    "a framework",
    "a choice of devices",
    "every schedule",
)


@pytest.fixture
def met(monkeypatch):
    """Plans of the problem asked that were met; empty it before a run."""
    plans = []
    usual = Met.take

    def take(self, timeline):
        usual(self, timeline)
        plans.append(timeline)  # not before: an interrupt at the very call comes before the plan is known

    monkeypatch.setattr(Met, "take", take)
    return plans


def check_interrupted(plan, call, met):
    """Interrupt at a call: there is an outcome unless no plan was met before; give whether it came at all."""
    met.clear()
    with interrupt_at(call) as made:
        try:
            outcome = plan()
        except KeyboardInterrupt:
            assert not met, f"a plan was lost at call {call}"
            return True
    if made[0] < call:
        return False
    assert outcome.plan is not None
    timeline = simulate(outcome.plan)
    assert timeline.fits_memory
    assert timeline.makespan_ms == outcome.makespan_ms
    assert outcome.lower_bound_ms <= outcome.step_ms
    assert outcome.stopped_by in (StoppedBy.INTERRUPT, StoppedBy.PROOF)
    return True


def calls_of(plan):
    with interrupt_at(0) as made:
        plan()
    return made[0]


# Python itself drops an interrupt that comes while a generator is thrown away, and says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("way", WAYS)
def test_no_plan_is_lost_wherever_an_interrupt_comes(model, met, way):
    plan = ways_of_planning(model)[way]
    # Some early ones, where all is set up, and others all over the run.
    for call in (30, 100, 300, *np.linspace(1, calls_of(plan), 6, dtype=int)[1:-1].tolist()):
        check_interrupted(plan, call, met)


@pytest.mark.slow
# Python itself drops an interrupt that comes while a generator is thrown away, and says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("way", WAYS)
def test_no_plan_is_lost_at_any_of_many_calls(model, met, way):
    plan = ways_of_planning(model)[way]
    calls = np.unique(np.geomspace(1, calls_of(plan), 40, dtype=int)).tolist()
    assert sum(check_interrupted(plan, call, met) for call in calls) > len(calls) / 2


def test_a_plan_for_a_framework_outlives_an_interrupt_of_what_that_costs(model, monkeypatch):
    outcome = plan_pipeline(problem_of(model, target="megatron"), time_limit_s=0.1)
    monkeypatch.setattr(
        "sapp_ppb.planner.plan_pipeline", lambda *_, **__: outcome if outcome.plan else pytest.fail("planned")
    )

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sapp_ppb.planner.with_cost_of_target", interrupted)
    words = ["plan", str(model), "-s", "2", "-mb", "8", "-mem", "1200", "--target", "megatron", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 3
    assert json.loads(result.stdout)["outcome"]["makespan_ms"] == outcome.makespan_ms


def test_after_an_interrupt_nothing_more_is_planned(model, monkeypatch):
    # The second half, what the target costs, ran its time all the same.
    outcome = plan_pipeline(problem_of(model, target="megatron"), time_limit_s=0.1)
    monkeypatch.setattr("sapp_ppb.planner.restriction.plan_pipeline", lambda *_, **__: pytest.fail("planned"))
    stopped = replace(outcome, stopped_by=StoppedBy.INTERRUPT)
    assert with_cost_of_target(stopped, time_limit_s=1.0) is stopped


@pytest.mark.parametrize("call", [1, 2, 5, 10, 20, 40, 80])
def test_what_is_being_written_is_finished_first(model, tmp_path, monkeypatch, call):
    # An interrupt between the plan and its file took both: here it comes in the n-th call that writes.
    outcome = plan_pipeline(problem_of(model), time_limit_s=0.1)

    def planned(*_, **__):
        made[0] = 0  # what is called from here on counts
        return outcome

    monkeypatch.setattr("sapp_ppb.planner.plan_pipeline", planned)
    monkeypatch.setattr("sapp_ppb.cli.output_files._OF_A_TIMELINE", ())  # drawing takes long
    words = ["plan", str(model), "-s", "2", "-mb", "8", "-mem", "1200", "-o", str(tmp_path / "out")]
    with interrupt_at(call, ("simulator", "writers", "report")) as made:
        made[0] = -1_000_000
        result = CliRunner().invoke(app, words)
    assert made[0] > call
    assert result.exit_code == 3, result.stderr
    assert "makespan" in result.stdout
    assert result.stderr.endswith("error: interrupted\n")
    written = json.loads((tmp_path / "out" / "plan.json").read_text(encoding="utf-8"))
    assert written["outcome"]["makespan_ms"] == outcome.makespan_ms
    assert left_over(tmp_path / "out") == []


def test_the_solver_is_stopped_in_the_middle():
    # A knapsack of 60 things and 12 limits takes minutes; an interrupt was heard when they were over.
    random = np.random.default_rng(0)
    program = LinearProgram()
    things = [
        program.add_column(-float(value), 0.0, 1.0, integer=True) for value in random.integers(50, 99, 60)
    ]
    for _ in range(12):
        weights = random.integers(1, 100, 60).astype(float).tolist()
        program.add_row(dict(zip(things, weights, strict=True)), upper=1500.0)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun_at = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        program.solve(time_limit_s=100.0)
    timer.join()
    assert time.monotonic() - begun_at < 50.0


class TestHeldInterrupts:
    def test_come_at_the_end(self):
        done = []
        with pytest.raises(KeyboardInterrupt), held_interrupts() as asked:  # noqa: PT012
            assert not asked()
            signal.raise_signal(signal.SIGINT)
            assert asked()
            done.append(True)
        assert done

    def test_are_not_held_twice(self):
        with pytest.raises(KeyboardInterrupt), held_interrupts():  # noqa: PT012
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            pytest.fail("a second one comes through")

    def test_are_held_however_many_by_the_patient(self):
        done = []
        with pytest.raises(KeyboardInterrupt), held_interrupts(patient=True):  # noqa: PT012
            for _ in range(3):
                signal.raise_signal(signal.SIGINT)
            done.append(True)
        assert done

    def test_go_to_the_block_outside_first(self):
        steps = []
        with pytest.raises(KeyboardInterrupt), held_interrupts():  # noqa: PT012
            with held_interrupts(patient=True):
                signal.raise_signal(signal.SIGINT)
            steps.append("the outer block goes on")
        assert steps

    def test_leave_the_handlers_as_they_were(self):
        before = signal.getsignal(signal.SIGINT)
        with pytest.raises(InputError), held_interrupts():
            raise InputError("x", ["y"])
        assert signal.getsignal(signal.SIGINT) is before

    def test_are_none_in_another_thread(self):
        asked = []

        def work():
            with held_interrupts() as is_asked:
                asked.append(is_asked())

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert asked == [False]


def test_what_is_ignored_stays_ignored(monkeypatch):
    # nohup ignores that the terminal goes; a run under it goes on.
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        stop_as_by_ctrl_c()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_types_of_the_small_model_are_what_the_long_problem_mixes(model):
    (body,) = read_model(model).bodies
    assert set(body.considered) == {Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL}
