"""A comparison as JSON: the problem as plan files say it, and a row for each plan."""

import json

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import simulate
from sapp_ppb.writers import comparison_to_json


def problem_of():
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=4,
        forward_ms=1,
        parameter_mb=1,
        activation_mb={Recompute.NONE: 10, Recompute.FULL: 1},
    )
    model = Model(name="tiny", layers=(body,))
    return Problem(model=model, stages=2, micro_batches=4, memory_limit_mb=30.0)


def test_the_text_is_this():
    problem = problem_of()
    even = simulate(plan_from_matrices(problem, {"Dec": {"none": [[2, 2]]}}))
    full = simulate(plan_from_matrices(problem, {"Dec": {"full": [[2, 2]]}}))
    document = json.loads(comparison_to_json(problem, [("planner", even), ("full", full)]))
    assert list(document) == ["problem", "rows"]
    assert document["problem"]["memory_limit_mb"] == 30
    first, second = document["rows"]
    # Equal stages take (M + S - 1)(f + b): 5 x (2 + 4) and, with a forward again, 5 x (2 + 6).
    assert (first["makespan_ms"], second["makespan_ms"], second["ratio"]) == (30.0, 40.0, 40 / 30)
    # Stage 0 holds 2 x 1 MB of parameters and two micro-batches of 2 x 10 MB: 42 of 30.
    assert (first["peak_memory_mb"], first["fits"], first["recomputed_layers"]) == ([42.0, 22.0], False, 0)
    assert (second["peak_memory_mb"], second["fits"], second["recomputed_layers"]) == ([6.0, 4.0], True, 4)
    # (S - 1) / M of useful work; recompute costs 2 stages x 10 ms of 4 x 12 ms.
    assert first["bubble"]["total"] == 0.25
    assert second["bubble"]["recompute"] == 2 * 10 / 48


def test_the_text_is_the_same_for_equal_rows_and_ends_in_a_line_end():
    problem = problem_of()
    rows = [("planner", None), ("even", simulate(plan_from_matrices(problem, {"Dec": {"none": [[2, 2]]}})))]
    text = comparison_to_json(problem, rows)
    assert text == comparison_to_json(problem, rows)
    assert text.endswith("}\n")
    assert json.loads(text)["rows"][1]["ratio"] is None
