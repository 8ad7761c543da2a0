"""
Processes that are killed and interrupted at any moment, for as long as SAPP_PPB_SOAK_SECONDS says.

What is there afterwards must be whole, and the next run must not be confused by it.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import sapp_ppb
from tests.cli.conftest import BODY, HEAD, TAIL, environment

SECONDS = float(os.environ.get("SAPP_PPB_SOAK_SECONDS", "20"))
PLAN = ("-s", "2", "-mb", "4", "-mem", "1200")
# What whole files end with, by the ends of their names.
ENDS = {".json": b"}", ".png": b"IEND\xaeB`\x82", ".svg": b"</svg>", ".html": b"</html>"}


def words_of(*words):
    return [sys.executable, "-m", "sapp_ppb", *map(str, words)]


def run(*words, env=None):
    return subprocess.run(
        words_of(*words), env=env or environment(), capture_output=True, text=True, check=False
    )


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


def check_whole(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        content = path.read_bytes()
        assert content, path
        assert content.rstrip().endswith(ENDS.get(path.suffix, b"")), path
        if path.suffix == ".json":
            json.loads(content)


def test_kill_while_files_are_written(model, plans, tmp_path):
    out, moments, killed = tmp_path / "out", random.Random(12), 0
    assert run("simulate", model, plans[0], "-o", out).returncode == 0
    names = {path.name for path in out.iterdir()}
    began = time.monotonic()
    run("simulate", model, plans[0], "-o", out, "--force")
    usual_s = time.monotonic() - began
    end = time.monotonic() + SECONDS / 2
    while time.monotonic() < end:
        plan = moments.choice(plans)
        with subprocess.Popen(
            words_of("simulate", model, plan, "-o", out, "--force"),
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            time.sleep(moments.uniform(0.1, 1.0) * usual_s)
            process.kill()
        killed += process.returncode == -signal.SIGKILL
        assert names <= {path.name for path in out.iterdir()}
        check_whole(out)
    assert run("simulate", model, plans[1], "-o", out, "--force").returncode == 0
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == []
    print(f"\nkilled while writing: {killed} processes")


def test_interrupt_while_planning(model, plans, tmp_path):
    moments, codes = random.Random(7), dict.fromkeys((0, 3), 0)
    end = time.monotonic() + SECONDS / 2
    early = 0
    for number in range(1_000_000):
        if time.monotonic() > end:
            break
        out = tmp_path / f"out{number}"
        more = moments.choice([(), ("-i", "2"), ("--target", "megatron"), ("--schedule", "auto")])
        with subprocess.Popen(
            words_of("plan", model, *PLAN, *more, "-t", "3", "-o", out),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            time.sleep(moments.uniform(0.0, 4.0))
            process.send_signal(moments.choice([signal.SIGINT, signal.SIGTERM]))
            stdout, stderr = process.communicate(timeout=120)
        if process.returncode not in codes:  # before a line of ours was run
            assert "sapp_ppb/cli" not in stderr, (process.returncode, stderr)
            early += 1
            continue
        codes[process.returncode] += 1
        assert "Traceback" not in stderr, stderr
        assert ("makespan" in stdout) == (out / "plan.json").exists(), (stdout, stderr)
        if out.exists():
            check_whole(out)
            assert [path.name for path in out.iterdir() if path.name.startswith(".")] == []
    print(f"\ninterrupted: {codes[3]} plans, {codes[0]} had ended, {early} had not begun")


def test_kernels_that_are_compiled_by_several_at_once(model, plans, tmp_path):
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
        with subprocess.Popen(
            words_of(*words), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as third:
            time.sleep(random.Random(int(SECONDS)).uniform(5.0, 15.0))
            third.kill()
        answers = [first.result(), second.result(), run(*words, env=env)]
    assert [answer.returncode for answer in answers] == [0, 0, 0], [answer.stderr for answer in answers]
    counts = [json.loads(answer.stdout)["counts"] for answer in answers]
    assert counts == [json.loads(plans[0].read_text(encoding="utf-8"))["counts"]] * 3
    assert "compiling" in answers[0].stderr
    assert "compiling" not in answers[2].stderr
    print("\nkernels compiled by two processes at once while a third was killed")
