"""Commands that the docs show exist, with the options that they are shown with."""

import re
from pathlib import Path

import pytest

from tests.cli.test_cli_options import OPTIONS

DOCS = Path(__file__).parent.parent / "docs"
LINES = [
    (path.name, line.split("#")[0].strip())
    for path in sorted(DOCS.rglob("*.md"))
    for line in path.read_text(encoding="utf-8").splitlines()
    if line.lstrip().startswith("sapp-ppb ")
]


def test_there_are_commands():
    assert len(LINES) > 10


@pytest.mark.parametrize(("name", "line"), LINES)
def test_a_command_is_one_of_the_tools(name, line):
    words = line.split()[1:]
    verb = next(known for known in (" ".join(words[:2]), words[0]) if known in OPTIONS)
    known = {flag for flags in OPTIONS[verb].values() for flag in flags}
    flags = {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)}
    assert flags <= known, name
