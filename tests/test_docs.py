"""Commands, documents and examples that the docs show are those of the tool."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sapp_ppb import Problem, plan_pipeline, read_model
from sapp_ppb.plan import Status
from sapp_ppb.planner import with_cost_of_target
from sapp_ppb.targets import TARGETS, PipelineConfig, target_named
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


def _costs():
    """Limit, framework, step of any plan and of the framework's best, out of the columns of one chunk."""
    text = (DOCS / "frameworks.md").read_text(encoding="utf-8")
    table = text[text.index("| | `-s 8 -mb 64 -mem 40000`") :].split("\n\n")[0]
    sizes, _, free, *rows = (
        [cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table.split("\n")
    )
    names = {target_named(name).title: name for name in TARGETS}
    for title, *cells in rows:
        for column in (1, 2, 3):
            cell = cells[column - 1]
            number = cell.split(": ")[-1] if ":" in cell else free[column]
            free_ms, said_ms = (float(words.replace(",", "")) for words in (free[column], number))
            yield float(sizes[column].split("-mem ")[1]), names[title], free_ms, said_ms


@pytest.mark.parametrize(("limit_mb", "target", "free_ms", "said_ms"), list(_costs()))
def test_what_a_framework_costs_is_what_the_table_says(limit_mb, target, free_ms, said_ms):
    model = read_model(DOCS.parent / "examples" / "llama2_70b.json")
    problem = Problem(model=model, stages=8, micro_batches=64, memory_limit_mb=limit_mb, target=target)
    outcome = with_cost_of_target(plan_pipeline(problem), time_limit_s=5)
    assert outcome.status is Status.OPTIMAL
    assert outcome.makespan_ms == pytest.approx(said_ms, abs=0.5)
    assert outcome.without_target is not None
    assert outcome.without_target.makespan_ms == pytest.approx(free_ms, abs=0.5)
    assert outcome.without_target.lower_bound_ms == pytest.approx(free_ms, abs=0.5)


def test_the_table_of_costs_has_every_framework():
    assert sorted(target for _, target, _, _ in _costs()) == sorted([*TARGETS] * 3)
