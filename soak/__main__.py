"""
Everything in this folder, one part after the other: ``make soak``.

Parts are the scripts that have a ``main`` and the files of tests.  The laws run for
``SAPP_PPB_SOAK_SECONDS`` seconds, 1200 by default, and every other part for a quarter of that.
The exit code is 1 when any part found something.

``python -m soak PART ...`` runs some parts alone.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from soak.laws import seconds_to_run

FOLDER = Path(__file__).parent
# The part that runs the whole time, and the share of it that the others do.
_LONGEST, _SHARE = "laws", 0.25


def parts() -> list[str]:
    """Name the parts, the longest first."""
    scripts = [
        path.stem
        for path in FOLDER.glob("*.py")
        if path.stem != "__main__" and "\ndef main(" in path.read_text(encoding="utf-8")
    ]
    tests = [path.stem for path in FOLDER.glob("test_*.py")]
    return sorted([*scripts, *tests], key=lambda part: (part != _LONGEST, part))


def command(part: str) -> list[str]:
    """Give the command that runs a part."""
    if part.startswith("test_"):
        return [sys.executable, "-m", "pytest", "-q", "-s", str(FOLDER / f"{part}.py")]
    return [sys.executable, "-m", f"soak.{part}"]


def seconds_of(part: str) -> float:
    """Find how long a part runs."""
    return seconds_to_run() * (1.0 if part == _LONGEST else _SHARE)


def main(words: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Soak the tool in what it may meet.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(parts()))
    asked = parser.parse_args(words).parts
    if unknown := sorted(set(asked) - set(parts())):
        parser.error(f"there is no part {', '.join(unknown)}; parts are {', '.join(parts())}")
    found = []
    for part in asked or parts():
        print(f"\n{part}, for {seconds_of(part):g} s", flush=True)
        environment = os.environ | {"SAPP_PPB_SOAK_SECONDS": f"{seconds_of(part):g}"}
        if subprocess.run(command(part), cwd=FOLDER.parent, env=environment, check=False).returncode:
            found.append(part)
    print(f"\nfindings in {', '.join(found)}" if found else "\nno findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
