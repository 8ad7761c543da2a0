"""Where the command runs: no home, odd locales, clocks and terminals, closed and unwritable places."""

import ast
import os
import pwd
import random
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import sapp_ppb
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from sapp_ppb.readers import read_model
from sapp_ppb.simulator.kernel import cache_folders
from tests.cli.conftest import environment
from tests.faults.conftest import PLAN, command

SOURCES = sorted(Path(sapp_ppb.__file__).parent.rglob("*.py"))
# Each is all of the environment, but for where Python finds the package.
ENVIRONMENTS = {
    "nothing": {},
    "plain C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "Pacific/Kiritimati"},
    "Turkish": {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Europe/Istanbul", "HOME": "/"},
    "German": {
        "LC_ALL": "de_DE.UTF-8",
        "LC_NUMERIC": "de_DE.UTF-8",
        "TZ": "no such zone",
        "HOME": "relative",
    },
    "a bad terminal": {"TERM": "dumb", "COLUMNS": "20", "LINES": "x", "NO_COLOR": ""},
    "no terminal": {"TERM": "no-such", "COLUMNS": "0", "FORCE_COLOR": "", "HOME": ""},
    "nonsense": {"COLUMNS": "-3", "LC_ALL": "no such locale", "PYTHONHASHSEED": "7", "XDG_CACHE_HOME": "."},
}


@pytest.fixture(scope="module")
def usual(model, plan_file):
    """Say what simulate prints."""
    done = command("simulate", model, plan_file)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_plan_is_timed_and_printed_alike_everywhere(model, plan_file, usual, name, tmp_path):
    env = ENVIRONMENTS[name] | {"PYTHONPATH": environment()["PYTHONPATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    done = command("simulate", model, plan_file, env=env, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.sub("[█▌░#.─-]", "", done.stdout) == re.sub("[█▌░#.─-]", "", usual)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16", "cp1252:strict"])
def test_what_the_terminal_can_not_show_is_escaped(model, plan_file, encoding, tmp_path):
    named = model.read_text(encoding="utf-8").replace('"Dec"', '"Déc→层"')
    (tmp_path / "model.json").write_text(named, encoding="utf-8")
    words = [
        sys.executable,
        "-m",
        "sapp_ppb",
        "plan",
        tmp_path / "model.json",
        "-s",
        "2",
        "-mb",
        "4",
        "-mem",
        "1200",
        "-t",
        "0.1",
    ]
    env = environment() | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(words, env=env, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "makespan" in done.stdout.decode(encoding.split(":")[0])


def test_a_user_without_a_home_needs_none(monkeypatch):
    # As in a container that was given a number for its user: it was a traceback.
    def unknown(*_):
        raise KeyError("no such user")

    for name in ("HOME", "USERPROFILE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(RuntimeError, match="home"):
        Path("~").expanduser()
    assert len(cache_folders()) == 1


def test_a_plan_is_drawn_where_only_the_output_can_be_written(model, plan_file, tmp_path):
    (tmp_path / "file").touch()
    nowhere = str(tmp_path / "file" / "below")  # not even root can make a folder under a file
    env = {name: nowhere for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR", "TMPDIR")}
    done = command("simulate", model, plan_file, "-o", tmp_path / "out", env=environment() | env)
    assert done.returncode == 0
    assert done.stderr.startswith(f"wrote {tmp_path / 'out'}: plan.json, ")
    assert done.stderr.count("\n") == 1  # matplotlib warned of a cache elsewhere


def test_closed_streams_are_missed_by_nobody(model, plan_file, tmp_path):
    words = [sys.executable, "-m", "sapp_ppb", "simulate", model, plan_file]
    closed = ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *words, "--emit-trace", tmp_path / "trace.json"]
    done = subprocess.run(closed, env=environment(), check=False)
    assert done.returncode == 0
    assert (tmp_path / "trace.json").stat().st_size > 0


@pytest.mark.parametrize("words", [["--help"], ["plan", "--help"], ["--version"], ["simulate"]])
def test_a_reader_that_is_gone_is_no_fault(model, plan_file, words):
    # As with `| head`: what is not read is dropped without a word.  Help ended with 1: "no plan fits".
    reading, writing = os.pipe()
    os.close(reading)
    more = [str(model), str(plan_file)] if words == ["simulate"] else []
    done = subprocess.run(
        [sys.executable, "-m", "sapp_ppb", *words, *more],
        env=environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_interrupt_that_nobody_reads_of_has_its_code():
    program = (
        "import sapp_ppb.cli.main as command\n"
        "def interrupted():\n    raise KeyboardInterrupt\n"
        "command.main = interrupted\n"
        "from sapp_ppb.__main__ import main\n"
        "main()\n"
    )
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", program], env=environment(), stderr=full, check=False)
    assert done.returncode == 3


def test_nobody_listening_to_notes_stops_nothing(model, plan_file, tmp_path):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "sapp_ppb",
                "simulate",
                model,
                plan_file,
                "--emit-trace",
                tmp_path / "t.json",
            ],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=full,
            check=False,
        )
    assert done.returncode == 0
    assert b"makespan" in done.stdout


@contextmanager
def jumping_clock(monkeypatch):
    """Let the wall clock jump by days in both directions at every look."""
    jumps = random.Random(7)
    with monkeypatch.context() as patched:
        patched.setattr("time.time", lambda: jumps.uniform(-1e9, 4e9))
        patched.setattr("time.time_ns", lambda: jumps.randrange(4 * 10**18))
        yield


@pytest.mark.parametrize("sizes", [{"stages": 3}, {"stages": 2, "interleave": 2}], ids=["proven", "budget"])
def test_a_clock_that_jumps_changes_nothing(model, monkeypatch, sizes):
    problem = Problem(model=read_model(model), micro_batches=8, memory_limit_mb=900, **sizes)
    usual = plan_pipeline(problem, time_limit_s=0.5)
    with jumping_clock(monkeypatch):
        jumped = plan_pipeline(problem, time_limit_s=0.5)
    assert (jumped.plan, jumped.status, jumped.stopped_by) == (usual.plan, usual.status, usual.stopped_by)
    assert 0.0 <= jumped.seconds < 60.0


def names_of_calls(source):
    """Dotted names of what a file calls, each with its line and the names of its keywords."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


WALL_CLOCKS = r"(^|\.)(time\.(time|time_ns|localtime|gmtime|ctime|strftime)|now|utcnow|today|fromtimestamp)$"


def test_no_wall_clock_is_ever_looked_at():
    # It jumps, and a file with the date in it is never the same twice.
    found = [
        f"{source.name}:{node.lineno} {name}"
        for source in SOURCES
        for name, node in names_of_calls(source)
        if re.search(WALL_CLOCKS, name)
    ]
    assert found == []


def test_every_text_file_has_its_encoding_named():
    # Without it what is read and written depends on the locale.
    missing = []
    for source in SOURCES:
        for name, node in names_of_calls(source):
            words = [ast.unparse(each) for each in node.args]
            named = {keyword.arg for keyword in node.keywords}
            binary = name in ("os.open", "gzip.open") or any(
                re.fullmatch("'[rwxa+]*b[+]?'", w) for w in words
            )
            opens = name.split(".")[-1] in ("open", "fdopen") and not binary
            is_text = opens or name.endswith((".read_text", ".write_text"))
            if is_text and "encoding" not in named:
                missing.append(f"{source.name}:{node.lineno} {name}({', '.join(words)})")
    assert missing == []


def test_no_time_limit_is_refused_and_the_least_one_has_a_plan(model):
    refused = command("plan", model, *PLAN, "-t", "0")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "time-limit must be above 0" in refused.stderr
    least = command("plan", model, *PLAN, "-t", "1e-9", "--json")
    assert (least.returncode, least.stderr) == (0, "")
