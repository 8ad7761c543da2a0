"""The page on accuracy shows what the runs that are kept come to."""

import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from sapp_ppb.schedules import build_schedule
from tests.cli.conftest import environment

ROOT = Path(__file__).parent.parent
RUNS = sorted((ROOT / "tests" / "data" / "runs").glob("*.json"))
PAGE = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def table():
    command = [sys.executable, "benchmarks/accuracy.py", "--stored"]
    ran = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True, timeout=300
    )
    return ran.stdout


def test_the_page_shows_the_table_of_the_runs_that_are_kept(table):
    assert f"<!-- made by `make accuracy` -->\n{table}<!-- end" in PAGE


def test_the_readme_quotes_what_the_table_comes_to(table):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    figures = [
        line for line in table.splitlines() if line.startswith("Calibrated") or "configurations" in line
    ]
    assert "```text\n" + "\n".join(figures) + "\n```" in readme


def test_one_chunk_a_stage_and_interleaved_are_within_what_is_promised(table):
    # The promise that `make test-torch` keeps: 1.00 to 1.15 times the simulated time.
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if "|" in line]
    ratio = rows[0].index("ratio")
    kinds = ("1f1b-", "gpipe-", "interleaved-2", "interleaved-3", "interleaved-4")
    promised = [float(row[ratio]) for row in rows if row[0].startswith(kinds)]
    assert len(promised) >= 12
    assert all(1.0 <= each <= 1.15 for each in promised)


def test_there_are_at_least_twelve_configurations_with_two_and_four_processes():
    stages = [json.loads(path.read_text(encoding="utf-8"))["stages"] for path in RUNS]
    assert len(stages) >= 12
    assert {2, 4} <= set(stages)


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_run_that_is_kept_is_whole(path):
    run = json.loads(path.read_text(encoding="utf-8"))
    assert (run["format"], run["version"]) == ("sapp-ppb-run", 1)
    sizes = (run["stages"], run["interleave"], run["micro_batches"])
    order = build_schedule(run["schedule"], *sizes, run["micro_batch_group"])
    assert [(op["stage"], op["op"]) for op in run["ops"]] == [
        (stage, str(op)) for stage, row in enumerate(order.rows) for op in row
    ]
    # A step is from its first op to the end of its last; of five the third is the median.
    assert min(op["start_ms"] for op in run["ops"]) == 0.0
    assert max(op["end_ms"] for op in run["ops"]) == run["step_ms"] == statistics.median(run["steps_ms"])
