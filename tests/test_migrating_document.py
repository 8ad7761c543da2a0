"""docs/migrating.md and docs/comparison.md: flags are refused as they say, and numbers are ours."""

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sapp_ppb.cli.main import app
from sapp_ppb.costs import Recompute
from sapp_ppb.estimation import fit_memory, with_memory
from sapp_ppb.plan import Plan
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from sapp_ppb.readers import read_model
from sapp_ppb.readers.older.init_yaml import read_init
from sapp_ppb.readers.older.manual_plan import read_manual_plans
from sapp_ppb.simulator import simulate
from tests.cli.verbs import OPTIONS

ROOT = Path(__file__).parent.parent
SAPP = ROOT / "tests" / "data" / "sapp"
PAGES = {
    name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("migrating.md", "comparison.md")
}
MIGRATING = PAGES["migrating.md"]
# Old flag, its long name or nothing, what there is instead.
FLAGS = re.findall(r"^\| `(-\w+)` \|(?: `(--\w+)`)? \| (.*) \|$", MIGRATING, re.MULTILINE)


def test_every_planner_has_a_source():
    rows = [
        row for row in re.findall(r"^\| .*$", PAGES["comparison.md"], re.MULTILINE)[2:] if "(this)" not in row
    ]
    assert len(rows) == 15
    for row in rows:
        assert re.search(r"\]\(https://", row), row


def test_the_table_of_flags_is_that_of_the_older_tool():
    # Its own argument parsers, those of MindFormers' toolkit and of HyperParallel together.
    shorts = "s mb i mem mc t o m lf lm dual sc seq naive manual init guide auto train cm mf dump O exec"
    assert sorted(short for short, _, _ in FLAGS) == sorted(f"-{name}" for name in shorts.split())
    assert len({long for _, long, _ in FLAGS if long}) == 20


@pytest.mark.parametrize(("short", "long", "here"), FLAGS, ids=[short for short, _, _ in FLAGS])
def test_every_flag_of_the_older_tool_is_read_or_refused_with_what_the_page_says(short, long, here):
    known = {flag: flags for flags in OPTIONS["plan"].values() for flag in flags}
    if short in known:
        assert f"`{short}`, `{known[short][0]}`" in here  # the same letter, and its long name
    for old in {short, long} - {"", *known}:
        for words in ([old, "1"], [f"{old}=1"], ["plan", "model.json", old, "1"], ["simulate", old]):
            result = CliRunner().invoke(app, words)
            assert (result.exit_code, result.stdout) == (2, "")
            assert result.stderr.startswith(f"error: {old} is a flag of the older tool: ")
            # The name that it has now, where it has one.
            new = re.findall(
                r"--[a-z][a-z0-9-]+|dryrun-guide|costs (?:init|dryrun)|\bcheck\b|\bcompare\b", here
            )
            assert not new or any(name in result.stderr for name in new)


def solved(name, model, **sizes):
    problem = Problem(model=model, stages=16, micro_batches=16, **sizes)
    (plan,) = read_manual_plans(SAPP / name, problem)
    return plan.plan


def stand_in(plan: Plan) -> float:
    """Price a plan as the older tool's program does: all layers, and M - 2 times the longest stage."""
    layer = plan.problem.model.bodies[0]
    backward = np.array([ms or 0.0 for ms in layer.backward_ms])
    cells = layer.forward_ms * plan.layers_per_cell + np.einsum("lrc,r->c", plan.counts, backward)
    ends = np.zeros(len(cells))
    for at, kind in ((0, plan.problem.model.heads), (-1, plan.problem.model.tails)):
        ends[at] = sum(layer.count * (layer.forward_ms + layer.backward_ms[Recompute.NONE]) for layer in kind)
    return float(cells.sum() + (plan.problem.micro_batches - 2) * (cells + ends).max())


def test_the_older_tools_own_plan_and_the_shortest_one_are_worth_what_the_page_says():
    model = read_model(SAPP / "test.json")
    theirs = solved("solved_test.yaml", model, memory_limit_mb=53_000)
    # Its test expects 36,870 with times that are a third: forward and backward together.
    assert simulate(theirs).makespan_ms == 3 * 36_870
    outcome = plan_pipeline(theirs.problem)
    assert outcome.plan is not None
    assert outcome.status == "optimal"
    assert outcome.makespan_ms == 107_460
    assert round(1 - 107_460 / 110_610, 3) == 0.028
    # 96 x 540 + 11 x 180 = 53,820 and 14 x 7 x 540.
    assert stand_in(theirs) == 53_820 + 52_920 == 106_740
    # 96 x 540 + 19 x 180 = 55,260 and 14 x (7 x 540 + 4 x 180).
    assert stand_in(outcome.plan) == 55_260 + 63_000 == 118_260
    assert outcome.plan.recomputed_layers - theirs.recomputed_layers == 8
    for number in ("36,870", "110,610", "107,460", "106,740", "118,260", "2.8 %"):
        assert number in MIGRATING


@pytest.mark.slow
def test_the_planner_is_as_fast_beside_the_published_plan_as_the_page_says(monkeypatch):
    # The clock stands still: work is bounded by its budget alone, however busy the machine is.
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    model = read_model(ROOT / "examples" / "demo.json")
    init = read_init(SAPP / "init_readme.yaml")
    model = with_memory(model, fit_memory(init.runs))
    plan = solved(
        "published_readme.yaml",
        model,
        interleave=3,
        memory_limit_mb=56_000,
        schedule="interleaved-less-memory",
    )
    timeline = simulate(plan)
    assert timeline.fits_memory
    assert timeline.makespan_ms == pytest.approx(42_360.3, abs=0.05)
    outcome = plan_pipeline(plan.problem, time_limit_s=3)
    assert outcome.makespan_ms is not None
    assert outcome.makespan_ms == pytest.approx(41_538, rel=0.001)
    assert round(1 - 41_538 / 42_360.3, 3) == 0.019


@pytest.mark.parametrize("name", ["mem_pp4.yaml", "mem.yaml"])
def test_memory_is_what_the_table_says(name):
    ((older, here),) = re.findall(rf"\| `{name}` \| older \|(.*)\|\n\| \| here \|(.*)\|", MIGRATING)
    estimate = fit_memory(read_init(SAPP / name).runs)
    activation = estimate.activation_mb["BODY"]
    found = [
        estimate.constant_mb,
        estimate.parameter_mb["BODY"],
        *(activation.get(recompute) for recompute in Recompute),
        estimate.head_mb,
        estimate.tail_mb,
    ]
    cells = [cell.strip() for cell in here.split("|")]
    assert cells == ["" if mb is None else f"{mb:,.1f}" for mb in found]
    # Columns of the older tool's tests, github.com/mindspore-lab/mindformers, test_compute_memory.py.
    expected = {
        "mem_pp4.yaml": ["not told", "400", "743", "", "", "", "131", "1,459", "3,329"],
        "mem.yaml": ["-1,896", "2,141", "852", "767", "535", "511", "", "4,245", "1,203"],
    }
    assert [cell.strip() for cell in older.split("|")] == expected[name]
