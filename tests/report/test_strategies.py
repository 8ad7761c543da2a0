"""Strategies in pictures, on the page and in tables: their names are told, and closed to what is foreign."""

import json

import pytest

from sapp_ppb.cli.text.comparison import comparison_text
from sapp_ppb.cli.text.noise import split_text
from sapp_ppb.cli.text.tables import outcome_text
from sapp_ppb.costs import LayerKind, LayerStrategy, Model, Recompute, layer_from_times
from sapp_ppb.plan import Outcome, Plan, Status, StoppedBy, plan_from_matrices
from sapp_ppb.planner.robust import NoisyPlan, chain_of
from sapp_ppb.problem import Problem
from sapp_ppb.report.page import page_text
from sapp_ppb.report.reasons import Why, find_reasons
from sapp_ppb.report.stages_picture import draw_stages
from sapp_ppb.report.summary import cell_text
from sapp_ppb.report.timeline_picture import draw_timeline
from sapp_ppb.report.words import added_text
from sapp_ppb.simulator import simulate
from sapp_ppb.writers.comparison_file import comparison_to_json

HOSTILE = "<b>&$x_{1}$ [red]"


def plan_of(name: str = "swap", matrices: dict[str, list[list[int]]] | None = None, **changes) -> Plan:
    """Four layers on two stages; the first has one that is recomputed and one under a strategy."""
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=4,
        forward_ms=10,
        activation_mb={Recompute.NONE: 60, Recompute.FULL: 5},
        strategies=[LayerStrategy(name=name, backward_ms=22, activation_mb=15)],
    )
    problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4, **changes)
    given = matrices or {"none": [[0, 2]], "full": [[1, 0]], name: [[1, 0]]}
    return plan_from_matrices(problem, {"Dec": given})


def outcome_of(plan: Plan) -> Outcome:
    return Outcome(
        problem=plan.problem,
        plan=plan,
        status=Status.FEASIBLE,
        stopped_by=StoppedBy.BUDGET,
        makespan_ms=simulate(plan).makespan_ms,
        lower_bound_ms=1.0,
    )


def test_a_cell_names_its_strategies_beside_its_recompute():
    assert cell_text(plan_of(), 0, 0) == "2 (1 swap, 1 full)"
    assert cell_text(plan_of(), 1, 0) == "2"


@pytest.mark.parametrize(
    ("matrices", "expected"),
    [
        ({"none": [[2, 2]]}, "recompute"),
        ({"full": [[2, 2]]}, "recompute"),
        ({"none": [[1, 2]], "swap": [[1, 0]]}, "swap"),
        ({"full": [[1, 2]], "swap": [[1, 0]]}, "recompute, swap"),
    ],
)
def test_what_makes_backwards_longer_has_its_own_name(matrices, expected):
    assert added_text([plan_of(matrices=matrices)]) == expected


def test_the_printed_page_names_it():
    plan = plan_of()
    text = outcome_text(outcome_of(plan), simulate(plan), drawn=True)
    assert "2 (1 swap, 1 full)" in text
    assert "r recompute, swap" in text
    assert "MindFormers has none for swap" in text


def test_the_table_of_a_comparison_counts_both_apart():
    plan = plan_of()
    rows = [("mine", simulate(plan)), ("other", simulate(plan_of(matrices={"full": [[2, 2]]})))]
    lines = comparison_text(outcome_of(plan), rows).splitlines()
    assert next(line for line in lines if line.startswith("mine")).endswith("1 + 1 swap")
    assert next(line for line in lines if line.startswith("other")).endswith(" 4")
    mine, other = json.loads(comparison_to_json(plan.problem, rows))["rows"]
    assert (mine["recomputed_layers"], mine["strategy_layers"]) == (1, {"swap": 1})
    assert "strategy_layers" not in other


def test_the_line_of_a_noisy_plan_counts_both_apart():
    noisy = NoisyPlan(plan=plan_of(), step_ms=1, median_ms=1, p95_ms=1)
    assert split_text(noisy) == "2 2, 1 recomputed, 1 swap"


def test_a_plan_layer_by_layer_has_its_strategies_first():
    kind, recompute, cell = chain_of(plan_of())
    assert (kind.tolist(), recompute.tolist(), cell.tolist()) == ([0] * 4, [5, 4, 0, 0], [0, 0, 1, 1])


def test_a_reason_weighs_a_strategy_by_its_time():
    # 2 x (5 + 15) = 40 MB on stage 0.  The recomputed layer (30 ms) could be swapped (22 ms), 2 x (15 + 15);
    # the swapped one could only be left alone (20 ms), 2 x (5 + 60).
    full, swap = find_reasons(plan_of(memory_limit_mb=130))
    assert (full.recompute.label, full.less and full.less.label, full.needed_mb) == ("full", "swap", 60.0)
    assert (swap.recompute.label, swap.less, swap.needed_mb) == ("swap", Recompute.NONE, 130.0)
    assert {full.why, swap.why} == {Why.NOTHING}
    assert find_reasons(plan_of(memory_limit_mb=129))[1].why is Why.MEMORY


def test_pictures_name_it(tmp_path):
    timeline = simulate(plan_of())
    for draw in (draw_timeline, draw_stages):
        path = tmp_path / f"{draw.__name__}.svg"
        draw(timeline, path)
        assert "recompute, swap" in path.read_text(encoding="utf-8")


def test_the_page_counts_and_names_it():
    plan = plan_of()
    text = page_text(outcome_of(plan), simulate(plan))
    assert "<li><b class=''>1 of 4</b> <span>layers recomputed</span></li>" in text
    assert "<li><b class=''>1</b> <span>layers under swap</span></li>" in text
    assert "recompute, swap</li>" in text
    assert "2 of 4 layers are recomputed or under <bdi>swap</bdi>" in text


def test_a_hostile_name_stays_text(tmp_path):
    plan = plan_of(HOSTILE)
    timeline = simulate(plan)
    text = page_text(outcome_of(plan), timeline)
    assert "<b>&$x" not in text
    assert "&lt;b&gt;&amp;$x_{1}$ [red]" in text
    assert HOSTILE in outcome_text(outcome_of(plan), timeline)
    assert f"1 + 1 {HOSTILE}" in comparison_text(outcome_of(plan), [("mine", timeline)])
    draw_timeline(timeline, tmp_path / "timeline.png")
