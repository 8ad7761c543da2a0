"""What pyproject.toml promises is what is tested, listed and written down."""

import re
import tomllib
from datetime import date
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import sapp_ppb
from release.licences import BEGIN, END, PAGE, is_free

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED = [Requirement(text) for text in PROJECT["dependencies"]]
RELEASES = re.findall(
    r"^## \[(\d+\.\d+\.\d+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
)


def version_of(requirement, operator):
    return next(Version(clause.version) for clause in requirement.specifier if clause.operator == operator)


def test_the_oldest_versions_that_are_tested_are_the_oldest_that_are_allowed():
    lines = (ROOT / "requirements" / "minimal.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    tested = {each.name: version_of(each, "==") for each in pins}
    assert tested == {each.name: version_of(each, ">=") for each in NEEDED}


def test_pythons_are_named_from_the_oldest_that_is_allowed_to_the_newest_that_was_tested():
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert named == re.findall(r"^\| (3\.\d+)\.\d+ \| newest", page, re.MULTILINE)


def test_every_dependency_has_a_licence_that_goes_with_ours():
    table = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    made = dict(re.findall(r"^\| (\S+) \| (.+) \|$", table, re.MULTILINE)[1:])
    assert {each.name for each in NEEDED} <= made.keys()
    assert [name for name, licence in made.items() if not is_free(licence)] == []


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "MIT AND GPL-3.0-only", "UNKNOWN", "(MIT OR X) AND Y"])
def test_a_licence_of_which_nothing_is_known_is_not_free(licence):
    assert not is_free(licence)


def test_the_newest_version_of_the_changelog_is_that_of_the_package():
    assert RELEASES[0][0] == PROJECT["version"]


def test_releases_of_the_changelog_stand_from_new_to_old_and_bear_dates():
    numbers = [tuple(map(int, number.split("."))) for number, _ in RELEASES]
    days = [date.fromisoformat(day) for _, day in RELEASES]
    assert numbers == sorted(set(numbers), reverse=True)
    assert days == sorted(days, reverse=True)


def test_the_version_is_written_in_one_place():
    # A second place is forgotten at the next release.
    written = [
        path
        for path in Path(sapp_ppb.__file__).parent.rglob("*.py")
        if PROJECT["version"] in path.read_text("utf-8")
    ]
    assert written == []


def test_no_test_reads_the_sources_of_the_checkout():
    # `make test-wheel` takes them away: a test that reads them says nothing of what is installed.
    found = [
        path.name
        for path in (ROOT / "tests").rglob("*.py")
        if re.search(r"""f?["']src["'/]""", path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_types_are_shipped():
    assert (Path(sapp_ppb.__file__).parent / "py.typed").exists()
