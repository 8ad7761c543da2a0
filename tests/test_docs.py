"""Commands, documents and examples that the docs show are those of the tool."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sapp_ppb.targets import PipelineConfig
from sapp_ppb.writers.check_file import Checked, check_to_json
from tests.cli.conftest import environment
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


def test_the_example_of_the_frameworks_page_prints_what_it_shows():
    text = (DOCS / "frameworks.md").read_text(encoding="utf-8")
    source, shown = re.findall(r"```(?:python)?\n(.*?)```", text.split("## In Python")[1], re.DOTALL)[:2]
    ran = subprocess.run(
        [sys.executable, "-c", source],
        cwd=DOCS.parent,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert ran.stdout == shown


def test_the_document_of_a_check_has_the_keys_that_the_frameworks_page_shows():
    text = (DOCS / "frameworks.md").read_text(encoding="utf-8")
    shown = json.loads(re.findall(r"```json\n(.*?)```", text, re.DOTALL)[0])
    config = PipelineConfig(target="megatron", where="run.sh")
    found = json.loads(check_to_json(Checked(config=config, broken=(), unknown=())))
    assert list(found) == list(shown)
    assert list(found["config"]) == list(shown["config"])
