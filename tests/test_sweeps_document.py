"""What docs/sweeps.md shows is what there is: its example runs, its grid is read, its columns are all."""

import re
import subprocess
import sys
from pathlib import Path

from sapp_ppb.sweep.grid_options import read_grid
from sapp_ppb.sweep.row import INPUTS, RESULTS
from tests.cli.conftest import environment

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")


def test_the_python_example_runs():
    (source,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    words = [sys.executable, "-c", source]
    ran = subprocess.run(
        words, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True, timeout=300
    )
    # 8 devices: one pipeline of 8 stages with 16 micro-batches, or two of 4 with 8 each.
    assert sorted(line.split()[:2] for line in ran.stdout.splitlines()) == [["4", "8"], ["8", "16"]]


def test_the_grid_is_read(tmp_path):
    (source,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "grid.yaml").write_text(source, encoding="utf-8")
    grid, effort = read_grid(tmp_path / "grid.yaml", {})
    assert (grid.devices, grid.stages, grid.interleave) == (128, (4, 8, 16), (1, 2, 3))
    assert grid.memory_limits_mb[-1] == (64_000, 56_000, 56_000, 56_000)
    assert effort.time_limit_s == 5


def test_every_column_is_explained():
    named = set(re.findall(r"`([a-z_]+)`", TEXT.split("## The table")[1].split("## In Python")[0]))
    assert named >= {*RESULTS, "model", "target", "time_limit_s", "asked_gap", "seed"}
    assert INPUTS[0] == "model"
    assert INPUTS[INPUTS.index("target") + 1 :] == ("time_limit_s", "asked_gap", "seed")


def test_every_picture_is_there():
    for name in re.findall(r"\]\((images/[a-z_]+\.png)\)", TEXT):
        assert (ROOT / "docs" / name).read_bytes().startswith(b"\x89PNG")
