"""What docs/sweeps.md shows is what there is: its grid is read, its columns are all."""

import re
from pathlib import Path

from sapp_ppb.sweep.grid_options import read_grid
from sapp_ppb.sweep.row import INPUTS, RESULTS

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")


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
