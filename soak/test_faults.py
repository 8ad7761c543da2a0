"""
Faults of the machine at any moment, for as long as SAPP_PPB_SOAK_SECONDS says; prints how many there were.

What is there afterwards must be whole, and the next run must not be confused by it.
"""

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import sapp_ppb
from soak import faults
from soak.faults import SECONDS, begun, check_of_one_plan, check_whole, left_over, rounds, run, words_of
from soak.tables import counted
from tests.cli.conftest import BODY, HEAD, TAIL, environment
from tests.faults.conftest import without_rights

PLAN = ("-s", "2", "-mb", "4", "-mem", "1200")
# The first are proven at once, the last one is still searched for when its time is over.
WAYS = (
    PLAN,
    (*PLAN, "-i", "2"),
    (*PLAN, "--target", "megatron"),
    (*PLAN, "--schedule", "auto"),
    ("-s", "4", "-i", "2", "-mb", "64", "-mem", "700", "--recompute", "none,selective,full"),
)
# Values of the environment of which each round takes some; None stands for a variable that is not there.
ODD = {
    "HOME": [None, "", "/", "relative", "/dev/null"],
    "LC_ALL": [None, "C", "tr_TR.UTF-8", "de_DE.UTF-8", "no such locale"],
    "LC_NUMERIC": [None, "de_DE.UTF-8"],
    "TZ": [None, "Pacific/Kiritimati", "Europe/Istanbul", "no such zone", ":"],
    "TERM": [None, "dumb", "no-such"],
    "COLUMNS": [None, "0", "-3", "20", "x"],
    "PYTHONUTF8": [None, "0", "1"],
    "PYTHONHASHSEED": [None, "0", "7"],
    "XDG_CACHE_HOME": [None, "/dev/null/below", "."],
    "MPLCONFIGDIR": [None, "/dev/null/below"],
    "TMPDIR": [None, "/dev/null/below"],
    "NO_COLOR": [None, "", "1"],
}


@pytest.fixture(scope="module")
def counts(request):
    """Count what is injected, and print it when all is over."""
    counts: Counter[str] = Counter()
    yield counts
    counts[faults.FINDINGS] = request.session.testsfailed
    print(f"\n{counted(faults.FAULTS, counts)}", flush=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("soak") / "model.json"
    path.write_text(json.dumps({"name": "tiny", "layers_description": [HEAD, BODY, TAIL]}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def plans(model):
    """Two plans of the model, of 4 and 8 micro-batches."""
    paths = []
    for micro_batches in (4, 8):
        done = run("plan", model, "-s", "2", "-mb", micro_batches, "-mem", "1200", "-t", "0.2", "--json")
        assert done.returncode == 0, done.stderr
        paths.append(model.with_name(f"plan{micro_batches}.json"))
        paths[-1].write_text(done.stdout, encoding="utf-8")
    return paths


@pytest.fixture
def out(model, plans, tmp_path):
    """Give a folder with every file of the first plan."""
    out = tmp_path / "out"
    assert run("simulate", model, plans[0], "-o", out).returncode == 0
    return out


def test_kill_while_files_are_written(model, plans, out, counts):
    moments, names = random.Random(12), {path.name for path in out.iterdir()}
    began = time.monotonic()
    run("simulate", model, plans[0], "-o", out, "--force")
    usual_s = time.monotonic() - began
    for _ in rounds(0.2):
        with begun("simulate", model, moments.choice(plans), "-o", out, "--force") as process:
            time.sleep(moments.uniform(0.1, 1.0) * usual_s)
            process.kill()
        counts[faults.KILLED] += process.returncode == -signal.SIGKILL
        assert names <= {path.name for path in out.iterdir()}
        check_whole(out)
    assert run("simulate", model, plans[1], "-o", out, "--force").returncode == 0
    assert left_over(out) == []


def test_interrupt_while_planning(model, plans, tmp_path, counts):
    moments = random.Random(7)
    for number in rounds(0.3):
        out = tmp_path / f"out{number}"
        way = moments.choices(WAYS, weights=[1, 1, 1, 1, 4])[0]
        words = ("plan", model, *way, "-t", "3", "-o", out)
        with begun(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            time.sleep(moments.uniform(0.0, 3.5))
            process.send_signal(moments.choice([signal.SIGINT, signal.SIGTERM]))
            stdout, stderr = process.communicate(timeout=120)
        counts[faults.INTERRUPTED] += 1
        if process.returncode not in (0, 3):  # before a line of ours was run
            assert "sapp_ppb/cli" not in stderr, (process.returncode, stderr)
            counts[faults.TOO_EARLY] += 1
            continue
        is_written = (out / "plan.json").exists()
        assert "Traceback" not in stderr, stderr
        assert is_written == ("makespan" in stdout), (stdout, stderr)
        assert is_written or process.returncode == 3, stderr
        code_3 = faults.WITH_A_PLAN if is_written else faults.WITHOUT_A_PLAN
        counts[code_3 if process.returncode == 3 else faults.TOO_LATE] += 1
        if out.exists():
            check_whole(out)
            assert left_over(out) == []


def test_disks_that_fill_up(model, plans, out, counts):
    # No file may grow beyond so many bytes: the disk is full for the first one that is larger.
    sizes = random.Random(5)
    for _ in rounds(0.1):
        most = sizes.choice([0, 100, 500, 1000, sizes.randrange(80_000)])
        before = {path.name: path.read_bytes() for path in out.iterdir()}
        done = run(
            *("simulate", model, sizes.choice(plans), "-o", out, "--force"),
            preexec_fn=lambda most=most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        )
        counts[faults.FILLING] += 1
        counts[faults.FULL] += done.returncode == 2
        assert done.returncode in (0, 2), done.stderr
        assert "makespan" in done.stdout
        assert "Traceback" not in done.stderr
        assert (done.returncode == 2) == ("can not be written (File too large)" in done.stderr), done.stderr
        after = {path.name: path.read_bytes() for path in out.iterdir()}
        assert after.keys() == before.keys()
        assert all(len(content) <= most or content == before[name] for name, content in after.items())
        check_whole(out)


def test_places_that_can_not_be_written(model, tmp_path, counts):
    (tmp_path / "locked").mkdir(mode=0o555)
    (tmp_path / "closed").mkdir(mode=0o000)
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "taken" / "plan.json").mkdir(parents=True)
    (tmp_path / "ring").symlink_to("ring")
    places = random.Random(3)
    for _ in rounds(0.05):
        place = places.choice(
            ["locked", "locked/new", "closed/new", "file", "file/new", "taken", "ring", "x" * 300]
        )
        words = ("plan", model, *PLAN, "-t", "60", "-o", tmp_path / place, *places.choice([(), ("--force",)]))
        done = run(*words, preexec_fn=without_rights, timeout=30)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), (place, done.stderr)
        assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"
        counts[faults.UNWRITABLE] += 1


def test_pairs_of_runs_in_one_folder(model, plans, out, counts):
    moments = random.Random(9)
    for _ in rounds(0.1):
        is_killed = moments.random() < 0.3
        with begun("simulate", model, plans[0], "-o", out, "--force") as first:
            time.sleep(moments.uniform(0.0, 1.0))
            with begun("simulate", model, plans[1], "-o", out, "--force") as second:
                time.sleep(moments.uniform(0.0, 1.0))
                if is_killed:
                    first.kill()
        counts[faults.PAIRS] += 1
        counts[faults.PAIRS_KILLED] += first.returncode == -signal.SIGKILL
        assert second.returncode == 0
        assert first.returncode == 0 or is_killed
        check_whole(out)
        check_of_one_plan(out)
        assert left_over(out) == []


def test_outputs_that_nobody_reads(model, plans, tmp_path, counts):
    moments, trace = random.Random(4), tmp_path / "trace.json"
    words = ("simulate", model, plans[0], "--emit-trace", trace, "--force")
    for _ in rounds(0.05):
        trace.unlink(missing_ok=True)
        way = moments.choice(["a reader that goes away", "full", "closed"])
        if way == "closed":
            closing = moments.choice(["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
            shell = ["sh", "-c", f'"$@" {closing}', "sh", *words_of(*words)]
            done = subprocess.run(shell, env=environment(), capture_output=True, check=False)
            assert (done.returncode, b"Traceback" in done.stderr) == (0, False), (closing, done.stderr)
        elif way == "full":
            with (
                Path("/dev/full").open("wb") as full,
                begun(*words, stdout=subprocess.PIPE, stderr=full) as one,
            ):
                said, _nothing = one.communicate(timeout=120)
            assert (one.returncode, "makespan" in said) == (0, True)
        else:
            with begun(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as one:
                assert one.stdout is not None
                assert one.stderr is not None
                time.sleep(moments.uniform(0.0, 0.6))
                one.stdout.close()
                notes = one.stderr.read()
            assert (one.returncode, notes.replace(f"wrote {trace}\n", "")) == (0, "")
        check_whole(tmp_path)
        assert trace.exists()
        counts[faults.UNHEARD] += 1


def test_odd_surroundings(model, plans, tmp_path, counts):
    values, usual = random.Random(8), run("simulate", model, plans[0]).stdout
    for _ in rounds(0.1):
        chosen = {name: values.choice(odd) for name, odd in ODD.items()}
        env = {name: value for name, value in chosen.items() if value is not None}
        env |= {"PYTHONPATH": environment()["PYTHONPATH"], "PYTHONDONTWRITEBYTECODE": "1"}
        done = run("simulate", model, plans[0], env=env, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), chosen
        # Bars are drawn with what the terminal can show.
        assert re.sub("[█▌░#.─-]", "", done.stdout) == re.sub("[█▌░#.─-]", "", usual), chosen
        assert list(tmp_path.iterdir()) == []
        counts[faults.SURROUNDINGS] += 1


def test_solvers_that_can_not_be_loaded(model, tmp_path, counts):
    ways = random.Random(6)
    for _ in rounds(0.1):
        fault = ways.choice(
            ["ImportError('no such library')", "OSError('wrong ELF class')", "SystemError('x')"]
        )
        (tmp_path / "highspy.py").write_text(f"raise {fault}\n", encoding="utf-8")
        env = environment()
        env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), env["PYTHONPATH"]])
        sizes = ("-s", "2", "-i", "2", "-mb", ways.choice([4, 8]), "-mem", ways.choice([900, 1000]))
        done = run("plan", model, *sizes, "-t", "0.2", "--json", env=env)
        assert done.returncode == 0, done.stderr
        assert "note: no proof: the solver HiGHS can not be loaded" in done.stderr
        outcome = json.loads(done.stdout)["outcome"]
        assert outcome["lower_bound_ms"] <= outcome["makespan_ms"]
        assert outcome["status"] == ("feasible" if outcome["gap"] > 1e-6 else "optimal")
        counts[faults.UNSOLVED] += 1


def test_kernels_that_are_compiled_by_several_at_once(model, plans, tmp_path, counts):
    # A package of its own, whose cache of kernels is empty; one of those that fill it is killed.
    shutil.copytree(
        Path(sapp_ppb.__file__).parent,
        tmp_path / "sapp_ppb",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    env = environment() | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), env["PYTHONPATH"]])
    words = ("plan", model, *PLAN, "-t", "0.2", "--json")
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(run, *words, env=env), pool.submit(run, *words, env=env)
        with begun(*words, env=env) as third:
            time.sleep(random.Random(int(SECONDS)).uniform(5.0, 15.0))
            third.kill()
        answers = [first.result(), second.result(), run(*words, env=env)]
    assert [answer.returncode for answer in answers] == [0, 0, 0], [answer.stderr for answer in answers]
    told = [json.loads(answer.stdout)["counts"] for answer in answers]
    assert told == [json.loads(plans[0].read_text(encoding="utf-8"))["counts"]] * 3
    assert "compiling" in answers[0].stderr
    assert "compiling" not in answers[2].stderr
    counts[faults.COMPILED] += 1
