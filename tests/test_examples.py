"""Every example runs, and says what it should."""

import re
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import environment

ROOT = Path(__file__).parent.parent


def run(name, *words):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name, *map(str, words)],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout


def test_the_picture_of_the_readme_shows_what_the_readme_says(tmp_path):
    picture = tmp_path / "picture.png"
    said = run("before_and_after.py", picture)
    before, after = (int(ms.replace(",", "")) for ms in re.findall(r"([\d,]+) ms", said))
    assert round(100 * (1 - after / before)) == 21
    assert "a step that is 21 % shorter" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert picture.read_bytes().startswith(b"\x89PNG")
