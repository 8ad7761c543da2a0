"""
Build the sdist and the wheel twice, and prove that both builds are the same: ``make package``.

The first build is made from the checkout as it stands.  The second is made from a copy
of the files that git knows, in another folder, with other times and permissions, in
another time zone and language, and with other hashes.  Equal bytes then say that none
of these, and nothing that lies about in the checkout, gets into a release.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from release.archives import differences, misplaced

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
_OTHERWISE = {"TZ": "Pacific/Auckland", "LC_ALL": "C", "PYTHONHASHSEED": "1", "HOME": "/nonexistent"}
_SRC = "src/"


def git(*words: str) -> str:
    """Ask git about the checkout."""
    if not (ROOT / ".git").exists():
        sys.exit(f"{ROOT} is no checkout of git, which alone knows what belongs to a release; clone it")
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def files_of_git() -> list[str]:
    """Files that git knows and that are still there."""
    return [name for name in git("ls-files", "-z").split("\0") if name and (ROOT / name).exists()]


def seconds_of_release() -> str:
    """Time that every file of a release bears: that of the last commit, unless the caller says another."""
    return os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct").strip()


def copy_of(names: list[str], folder: Path) -> None:
    """Copy files, the last first, each with a time of its own and for nobody but their owner."""
    for number, name in enumerate(reversed(names)):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
        target.chmod(0o700 if os.access(ROOT / name, os.X_OK) else 0o600)
        os.utime(target, (1e9 + number, 1e9 + number))


def build(source: Path, out: Path, **environment: str) -> list[Path]:
    """Build the sdist, and the wheel from the sdist; both, by name."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)],
        env=os.environ | {"SOURCE_DATE_EPOCH": seconds_of_release()} | environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return sorted(out.iterdir())


def contents(names: list[str], version: str) -> tuple[set[str], set[str]]:
    """Files that the wheel must hold, and the sdist: all that git knows; and no others."""
    information = f"sapp_ppb-{version}.dist-info"
    described = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE", "licenses/NOTICE")
    wheel = {name.removeprefix(_SRC) for name in names if name.startswith(f"{_SRC}sapp_ppb/")}
    return wheel | {f"{information}/{name}" for name in described}, {*names, "PKG-INFO"}


def faults_of_readme() -> list[str]:
    """Say what of the README is lost where it is shown as the page of a release."""
    from readme_renderer import markdown

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    page = markdown.render(text) or ""
    marks = {"a title": "<h1", "headings": "<h2", "tables": "<table", "code": "<pre", "its picture": "<img"}
    return [f"README.md renders without {name}" for name, mark in marks.items() if mark not in page]


def main() -> None:
    """Leave both files in ``dist``, or say what is wrong with them and stop."""
    names = files_of_git()
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder)
        first = build(ROOT, there / "first")
        copy_of(names, there / "copy")
        second = build(there / "copy", there / "second", **_OTHERWISE)
        faults = [fault for pair in zip(first, second, strict=True) for fault in differences(*pair)]
        wheel = next(path for path in first if path.suffix == ".whl")
        version = wheel.name.split("-")[1]
        for path, expected in zip((wheel, *(set(first) - {wheel})), contents(names, version), strict=True):
            faults += misplaced(path, expected)
        faults += faults_of_readme()
        if faults:
            sys.exit("\n".join(faults))
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        for path in first:
            print(shutil.copy(path, DIST))
    subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, DIST.iterdir())], check=True
    )
    changed = (
        " and changes that no commit holds: for a trial, not for a release"
        if git("status", "--short")
        else ""
    )
    print(f"two builds of {git('rev-parse', 'HEAD').strip()}{changed}")
    print("they are equal byte for byte, and hold what they should")


if __name__ == "__main__":
    main()
