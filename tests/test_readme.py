"""What a reader may copy from the README is run."""

import re
import subprocess
import sys
from pathlib import Path

import sapp_ppb
from tests.cli.conftest import environment

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_prints_what_the_readme_shows():
    source, shown = re.findall(r"```(?:python)?\n(.*?)```", TEXT.split("## In ten lines")[1], re.DOTALL)[:2]
    ran = subprocess.run(
        [sys.executable, "-c", source],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert ran.stdout == shown


def test_the_shell_examples_run(tmp_path):
    block = re.findall(r"```\n(sapp-ppb.*?)```", TEXT, re.DOTALL)[0]
    for line in block.strip().splitlines():
        command = line.split("#")[0].replace("out", str(tmp_path / "out")).split()
        command[0:1] = [sys.executable, "-m", "sapp_ppb"]
        ran = subprocess.run(
            command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=300, check=False
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout


def test_every_room_of_the_readme_exists_and_every_room_is_named():
    rooms = {
        path.name for path in Path(sapp_ppb.__file__).parent.iterdir() if (path / "__init__.py").exists()
    }
    named = set(re.findall(r"^\| `(\w+)/`", TEXT, re.MULTILINE))
    named |= {"readers", "writers"}  # one line names both
    assert named == rooms
