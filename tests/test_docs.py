"""Documents and figures of docs/frameworks.md are those of the tool, and the reference is current."""

import json
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from sapp_ppb import Problem, Recompute, plan_pipeline, read_model
from sapp_ppb.plan import Status
from sapp_ppb.planner import with_cost_of_target
from sapp_ppb.readers import read_plan
from sapp_ppb.readers.models.model_entry import LAYER_KEYS, TOP_KEYS
from sapp_ppb.readers.plans.plan_entry import (
    BUBBLE_KEYS,
    FIX_KEYS,
    ORDER_KEYS,
    OUTCOME_KEYS,
    PLACES_KEYS,
    PROBLEM_KEYS,
    REMEDY_KEYS,
    SHORTAGE_KEYS,
    WITHOUT_TARGET_KEYS,
)
from sapp_ppb.readers.plans.plan_entry import TOP_KEYS as TOP
from sapp_ppb.targets import TARGETS, PipelineConfig, target_named
from sapp_ppb.writers import plan_to_json
from sapp_ppb.writers.check_file import Checked, check_to_json
from tests.cli.verbs import OPTIONS
from tests.pages import shown

DOCS = Path(__file__).parent.parent / "docs"


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
    outcome = with_cost_of_target(
        plan_pipeline(problem, time_limit_s=60), time_limit_s=60
    )  # each proven in a second
    assert outcome.status is Status.OPTIMAL
    assert outcome.makespan_ms == pytest.approx(said_ms, abs=0.5)
    assert outcome.without_target is not None
    assert outcome.without_target.makespan_ms == pytest.approx(free_ms, abs=0.5)
    assert outcome.without_target.lower_bound_ms == pytest.approx(free_ms, abs=0.5)


def test_the_table_of_costs_has_every_framework():
    assert sorted(target for _, target, _, _ in _costs()) == sorted([*TARGETS] * 3)


@pytest.fixture(scope="module")
def reference():
    """Import what makes the reference, which is no part of the package."""
    spec = spec_from_file_location("make_reference", DOCS / "site" / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


def test_the_reference_of_commands_is_current(reference):
    shown = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    assert reference.commands_page() == shown, "run `make reference`"


def test_the_reference_of_python_is_current(reference):
    pages = {
        page.name: page.read_text(encoding="utf-8") for page in (DOCS / "reference" / "api").glob("*.md")
    }
    assert reference.api_pages() == pages, "run `make reference`"


def test_the_reference_has_every_option(reference):
    text = reference.commands_page()
    for verb, options in OPTIONS.items():
        section = text.split(f"## sapp-ppb {verb}\n")[1].split("\n## ")[0]
        for flags in options.values():
            assert all(f"`{flag}`" in section for flag in flags if flag not in ("--help", "-h")), verb


@pytest.mark.parametrize(
    ("page", "keys"),
    [
        ("model-file.md", {*LAYER_KEYS, *TOP_KEYS}),
        ("plan-file.md", {*TOP, *PROBLEM_KEYS, *FIX_KEYS, *PLACES_KEYS, *ORDER_KEYS, *OUTCOME_KEYS}),
        ("plan-file.md", {*BUBBLE_KEYS, *SHORTAGE_KEYS, *REMEDY_KEYS, *WITHOUT_TARGET_KEYS}),
    ],
)
def test_a_page_of_a_file_names_every_key(page, keys):
    text = (DOCS / "reference" / page).read_text(encoding="utf-8")
    assert [key for key in sorted(keys) if f"`{key}`" not in text] == []


def test_the_files_that_are_shown_are_read(tmp_path):
    model, plan = (tmp_path / name for name in ("model.json", "plan.json"))
    (shown_model,) = shown(DOCS / "reference" / "model-file.md", "json")
    (shown_plan,) = shown(DOCS / "reference" / "plan-file.md", "json")
    model.write_text(shown_model, encoding="utf-8")
    plan.write_text(shown_plan.replace('"layers"', '"tiny"'), encoding="utf-8")
    outcome = read_plan(plan, read_model(model))
    assert outcome.plan is not None
    # The model of the page has no constant memory in the tutorial, whose plan this is.
    assert outcome.plan.layers_per_cell.tolist() == [8, 9, 9, 6]
    assert plan_to_json(outcome) == plan.read_text(encoding="utf-8")


def test_shares_of_recompute_types_are_those_of_the_table():
    text = (DOCS / "reference" / "model-file.md").read_text(encoding="utf-8")
    for recompute in Recompute:
        cells = (recompute.memory_key, recompute.time_key, recompute.coefficient_key)
        row = " | ".join(f"`{key}`" for key in cells)
        assert f"| `{recompute.label}` | {row} | {recompute.default_coefficient:g} |" in text


def test_restrictions_cost_what_the_page_on_planning_says():
    text = (DOCS / "planning.md").read_text(encoding="utf-8")
    model = read_model(DOCS.parent / "examples" / "llama2_70b.json")
    for words, given in (
        ("none", {}),
        ("`--max-recompute-types 1`", {"max_recompute_types": 1}),
        ("`--recompute none,full`", {"recompute": (Recompute.NONE, Recompute.FULL)}),
    ):
        problem = Problem(model=model, stages=8, micro_batches=64, memory_limit_mb=50_000, **given)
        outcome = plan_pipeline(problem, time_limit_s=5)
        assert outcome.status is Status.OPTIMAL
        assert outcome.makespan_ms is not None
        longer = f"{100 * (outcome.makespan_ms / 285_968 - 1):.1f} %" if given else ""
        assert f"| {words} | {outcome.makespan_ms:,.0f} | {longer}" in text


def test_the_menu_has_every_page():
    menu = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1]
    named = set(re.findall(r"([\w/-]+\.md)$", menu, re.MULTILINE))
    assert named - {"CHANGELOG.md", "benchmarks/results.md"} == {
        page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")
    }
