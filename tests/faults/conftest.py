"""The command as a process of its own, on a small model that is planned once."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import BODY, HEAD, TAIL, environment

PLAN = ("-s", "2", "-mb", "4", "-mem", "1200")
# Capabilities by which root passes over permissions, and the call of prctl that takes them away.
_DROP_FROM_BOUNDING_SET, _OVER_PERMISSIONS = 24, (1, 2)


def without_rights() -> None:
    """Let permissions bind even root in the process that is about to begin."""
    prctl = ctypes.CDLL(None).prctl
    for capability in _OVER_PERMISSIONS:
        prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)


def command(*words: object, env: dict[str, str] | None = None, **options) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "sapp_ppb", *map(str, words)],
        env=environment() if env is None else env,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        **options,
    )


def begun(*words: object, **options) -> subprocess.Popen[bytes]:
    """Begin the command."""
    return subprocess.Popen(
        [sys.executable, "-m", "sapp_ppb", *map(str, words)], env=environment(), **options
    )


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Model file of 10 layers."""
    path = tmp_path_factory.mktemp("faults") / "model.json"
    path.write_text(json.dumps({"name": "tiny", "layers_description": [HEAD, BODY, TAIL]}), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def plan_file(model: Path) -> Path:
    """Plan file of the model on two stages; what is planned here compiles the kernels."""
    done = command("plan", model, *PLAN, "-t", "0.2", "--json")
    assert done.returncode == 0, done.stderr
    path = model.with_name("plan.json")
    path.write_text(done.stdout, encoding="utf-8")
    return path


def timed_plan(plan: Path, path: Path) -> float:
    """Makespan that a plan file says, which must be a whole one; ``plan`` is one of the same format."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert raw.keys() == json.loads(plan.read_text(encoding="utf-8")).keys()
    return float(raw["outcome"]["makespan_ms"])


def left_over(folder: Path) -> list[str]:
    """Hidden files of a folder, which no run may leave."""
    return sorted(entry.name for entry in os.scandir(folder) if entry.name.startswith("."))
