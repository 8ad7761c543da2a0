"""docs/schedules.md against the package: every drawing, every number and every name."""

import re
import sys
from pathlib import Path

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator import simulate

TEXT = (Path(__file__).parents[1] / "docs" / "schedules.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
MODULES = {"1f1b": "one_f_one_b"}
# A row such as "| seq1f1b, V = 2, k = 2 | 26.25 | 9.4 % | 3, 2.5, 2, 1.5 |".
MEASURED = re.findall(
    r"^\| ([a-z0-9-]+)((?:, \w+ =? ?[\d.]+)*) \| ([\d.]+) \| ([\d.]+) % \| (.*) \|$", TEXT, re.MULTILINE
)


def test_every_schedule_has_a_section_and_a_row():
    names = [name.value for name in ScheduleName]
    assert [name for name in SECTIONS if name != "Options"] == names
    assert re.findall(r"^\| \[`(.+?)`\]\(#\1\)", TEXT, re.MULTILINE) == names
    # Custom has no order of its own; the others have at least one row of numbers.
    assert {row[0] for row in MEASURED} == set(names) - {"custom"}


@pytest.mark.parametrize("name", ScheduleName)
def test_the_drawing_is_that_of_the_schedules_own_file(name):
    module = sys.modules["sapp_ppb.schedules." + MODULES.get(name, name.replace("-", "_"))]
    own = [line.strip() for line in (module.__doc__ or "").splitlines() if line.startswith("    stage ")]
    block = re.search(r"```text\n(.*?)```", SECTIONS[name], re.DOTALL)
    assert block is not None
    assert block[1].splitlines() == own


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row[0] + row[1])
def test_the_numbers_are_what_the_simulator_says(row):
    name, options, makespan, bubble, live = row
    given = dict(re.findall(r", (\w+) =? ?([\d.]+)", options))
    chunks = int(given.get("V", 2 if name in ("zbv", "dualpipev") else 1))
    layer = layer_from_times(
        name="part",
        kind=LayerKind.BODY,
        count=4 * chunks,
        forward_ms=1 / chunks,
        activation_mb={Recompute.NONE: 1 / chunks},
    )
    problem = Problem(
        model=Model(name="unit", layers=(layer,)),
        stages=4,
        interleave=chunks,
        micro_batches=8,
        schedule=ScheduleName(name),
        sequence_chunks=int(given.get("k", 1)),
        overlap_factor=float(given.get("overlap", 0)),
    )
    timeline = simulate(plan_from_matrices(problem, {"part": {"none": [[1] * 4] * chunks}}))
    assert f"{timeline.makespan_ms:g}" == makespan
    assert f"{100 * timeline.bubble.total:.1f}" == bubble
    assert ", ".join(f"{mb:g}" for mb in timeline.peak_memory_mb) == live
