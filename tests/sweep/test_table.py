"""The table as CSV and JSON."""

import csv
import io
import json
from dataclasses import replace

import pytest

from sapp_ppb.costs import LayerStrategy
from sapp_ppb.sweep import list_candidates, outcome, sweep, to_csv
from sapp_ppb.sweep.row import skipped_row
from sapp_ppb.sweep.table import COLUMNS, counts, to_json
from tests.sweep.conftest import GRID, MODEL


@pytest.fixture(scope="module")
def rows():
    """Plans, one of them without recompute, one that fits nowhere, and a combination that is skipped."""
    grid = replace(GRID, stages=(2, 3), interleave=(1,), memory_limits_mb=(300.0, 1200.0, None))
    candidates, skipped = list_candidates(MODEL, grid)
    known = {"model": "tiny", "devices": 8, "global_batch": 16}
    found = sweep(candidates, workers=1, time_limit_s=1.0)
    return [*found.rows, *(skipped_row(each, known) for each in skipped)]


def test_every_row_has_every_column(rows):
    read = list(csv.DictReader(io.StringIO(to_csv(rows))))
    assert len(read) == len(rows) == 4
    assert all(tuple(row) == COLUMNS for row in read)
    assert [row["status"] for row in read] == ["optimal", "optimal", "infeasible", "skipped"]
    # Nothing is recomputed within 1,200 MB: without a limit the plan is the same, and comes second as given.
    assert [row["memory_limit_mb"] for row in read] == ["1200", "", "300", ""]
    assert read[0]["makespan_ms"] == read[1]["makespan_ms"]
    assert (read[0]["recomputed_layers"], read[0]["strategy_layers"]) == ("0", "0")
    assert [row["pareto"] for row in read] == ["true", "true", "false", "false"]


def test_layers_under_a_strategy_are_counted_apart():
    # Stage 0 holds 150 + 100 n MB, and 4 x 60 MB for every layer that is not swapped: above 400 MB with any.
    swap = LayerStrategy(name="swap", backward_ms=20, activation_mb=0)
    layers = (MODEL.layers[0], MODEL.layers[1].offering([swap]), MODEL.layers[2])
    grid = replace(GRID, stages=(4,), interleave=(1,), memory_limits_mb=(400.0,))
    candidates, _ = list_candidates(replace(MODEL, layers=layers), grid)
    row = sweep(candidates, workers=1, time_limit_s=1.0).rows[0]
    plan = outcome(row).plan
    assert plan is not None
    assert (row.cells["recomputed_layers"], row.cells["strategy_layers"]) == (
        plan.recomputed_layers,
        plan.strategy_layers["swap"],
    )


def test_numbers_of_a_csv_are_those_of_the_rows_to_the_last_digit(rows):
    for read, row in zip(csv.DictReader(io.StringIO(to_csv(rows))), rows, strict=True):
        for name in ("makespan_ms", "ms_per_sample", "lower_bound_ms", "gap", "bubble", "seconds"):
            value = row.cells[name]
            assert (float(read[name]) if read[name] else None) == value, name
        peaks = [float(mb) for mb in read["peaks_mb"].split()]
        assert peaks == list(row.answer.peak_memory_mb)


def test_what_is_no_plan_has_its_reason_and_no_numbers(rows):
    infeasible, skipped = rows[-2:]
    assert infeasible.cells["reason"].startswith("no plan fits")
    assert skipped.cells["reason"] == "8 devices do not divide into pipelines of 3 stages"
    for row in (infeasible, skipped):
        assert all(row.cells[name] is None for name in ("makespan_ms", "gap", "peak_memory_mb", "peaks_mb"))
    assert (skipped.cells["stages"], skipped.cells["interleave"]) == (3, None)


def test_json_has_the_same_rows_and_counts_them(rows):
    document = json.loads(to_json(rows))
    assert document["counts"] == counts(rows) == {"optimal": 2, "infeasible": 1, "skipped": 1}
    assert [tuple(row) for row in document["rows"]] == [COLUMNS] * 4
    assert document["rows"][0]["peaks_mb"] == list(rows[0].answer.peak_memory_mb)


def test_limits_by_stage_are_one_cell():
    grid = replace(GRID, stages=(2,), interleave=(1,), memory_limits_mb=((1100.0, 900.0),))
    candidates, _ = list_candidates(MODEL, grid)
    found = sweep(candidates, workers=1, time_limit_s=1.0)
    (read,) = csv.DictReader(io.StringIO(to_csv(found.rows)))
    assert read["memory_limit_mb"] == "1100 900"
    assert json.loads(to_json(found.rows))["rows"][0]["memory_limit_mb"] == [1100, 900]
