"""
Test the wheel of ``dist`` where nothing of the checkout can help it: ``make test-wheel``.

The wheel is installed in a fresh environment, and the tests of the sdist run beside it
in a folder of their own, from which the sources were taken away.  ``make test-minimal``
does the same with the oldest versions of the dependencies.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from release.pack import DIST, ROOT

_WHERE = "import sapp_ppb, sys; print(sapp_ppb.__file__); print(sapp_ppb.__version__)"


def only(pattern: str) -> Path:
    """Give the one file of ``dist`` with such a name."""
    found = sorted(DIST.glob(pattern))
    if len(found) != 1:
        sys.exit(f"dist has {len(found)} files {pattern}, not one; run make package first")
    return found[0]


def unpacked(sdist: Path, folder: Path) -> Path:
    """Unpack all of an sdist but the sources; its folder."""
    with tarfile.open(sdist) as tar:
        wanted = [each for each in tar if each.name.split("/")[1] != "src"]
        tar.extractall(folder, wanted, filter="data")
    return folder / sdist.name.removesuffix(".tar.gz")


def installed(wheel: Path, folder: Path, python: str, constraints: list[str]) -> Path:
    """Install the wheel and what its tests need in a new environment; the folder of its programs."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    programs = folder / "bin"
    pip = [str(programs / "python"), "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", f"{wheel}[test]", *constraints], check=True)
    subprocess.run([*pip, "check"], check=True)
    return programs


def answers(programs: Path, version: str, place: Path, environment: dict[str, str]) -> None:
    """Check that the package is the installed one, and that both ways to call it say its version."""

    def said(*words: str) -> list[str]:
        done = subprocess.run(
            words, cwd=place, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout.splitlines()

    python = str(programs / "python")
    where, known = said(python, "-c", _WHERE)
    for found, expected in (
        (Path(where).is_relative_to(programs.parent), True),
        (known, version),
        (said(str(programs / "sapp-ppb"), "--version"), [f"sapp-ppb {version}"]),
        (said(python, "-m", "sapp_ppb", "--version"), [f"sapp-ppb {version}"]),
    ):
        if found != expected:
            sys.exit(f"the installed package is not the one that was built: {found!r}, not {expected!r}")


def main() -> None:
    """Install, look, test; the tests' exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="interpreter to make the environment with")
    parser.add_argument("--constraints", type=Path, help="file of pip with versions to take")
    parser.add_argument("tests", nargs="*", help="words for pytest, after --")
    given = parser.parse_args()
    wheel, sdist = only("*.whl"), only("*.tar.gz")
    constraints = ["--constraint", str((ROOT / given.constraints).resolve())] if given.constraints else []
    with tempfile.TemporaryDirectory(prefix="sapp-ppb-") as temporary:
        folder = Path(temporary)
        place = unpacked(sdist, folder / "sdist")
        programs = installed(wheel, folder / "environment", given.python, constraints)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment["XDG_CACHE_HOME"] = str(folder / "cache")  # what is compiled is compiled anew
        answers(programs, wheel.name.split("-")[1], place, environment)
        pytest = [str(programs / "python"), "-m", "pytest", "-o", "pythonpath=.", "-p", "no:cacheprovider"]
        words = ["--collect-in-virtualenv", "tests", "--pyargs", "sapp_ppb", *given.tests]
        sys.exit(subprocess.run([*pytest, *words], cwd=place, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
