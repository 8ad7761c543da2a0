"""MindFormers' lists: which layers each counts, and when they are not given."""

from hypothesis import given

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.writers import mindformers_lists, mindformers_lists_text
from tests.strategies import plans

ALL_TYPES = {recompute: 100.0 - recompute for recompute in Recompute}


def plan_of(matrices, *, count, interleave=1):
    body = layer_from_times(
        name="Dec", kind=LayerKind.BODY, count=count, forward_ms=1, activation_mb=ALL_TYPES
    )
    problem = Problem(
        model=Model(name="tiny", layers=(body,)), stages=2, interleave=interleave, micro_batches=4
    )
    return plan_from_matrices(problem, {"Dec": matrices})


def test_each_list_counts_the_types_that_it_means():
    plan = plan_of(
        {
            "none": [[1, 0], [0, 1]],
            "selective": [[2, 0], [0, 0]],
            "comm": [[0, 3], [0, 0]],
            "both": [[1, 0], [1, 0]],
            "full": [[1, 1], [2, 0]],
        },
        count=13,
        interleave=2,
    )
    lists = mindformers_lists(plan)
    assert lists.offset == ((2, 1), (0, -2))  # cells hold 5, 4, 3 and 1; 13 div 4 = 3
    assert lists.recompute == ((1, 1), (2, 0))  # FULL
    assert lists.select_recompute == ((4, 1), (3, 0))  # SELECTIVE + BOTH + FULL
    assert lists.select_comm_recompute == ((2, 4), (3, 0))  # COMM + BOTH + FULL
    assert (lists.silent, lists.mixed) == ((), ())


def test_the_text_has_a_row_for_each_chunk():
    plan = plan_of({"none": [[1, 1], [1, 0]], "full": [[0, 0], [0, 1]]}, count=4, interleave=2)
    assert mindformers_lists_text(mindformers_lists(plan)) == (
        "offset: [[0, 0],\n"
        "         [0, 0]]\n"
        "recompute: [[0, 0],\n"
        "            [0, 1]]\n"
        "select_recompute: [[0, 0],\n"
        "                   [0, 1]]\n"
        "select_comm_recompute: [[0, 0],\n"
        "                        [0, 1]]\n"
    )


def test_a_cell_that_mixes_is_named_and_its_lists_are_not_given():
    lists = mindformers_lists(plan_of({"selective": [[1, 2]], "comm": [[0, 1]]}, count=4))
    assert (lists.recompute, lists.select_recompute, lists.select_comm_recompute) == (None, None, None)
    text = mindformers_lists_text(lists)
    assert text.startswith("offset: [[-1, 1]]\n# no recompute lists")
    assert "SELECTIVE beside COMM in stage 1 chunk 0" in text
    assert "--target mindformers" in text


def test_a_plan_for_mindformers_that_kinds_make_impossible_is_not_told_to_change_its_target():
    first, second = (
        layer_from_times(name=name, kind=LayerKind.BODY, count=2, forward_ms=1, activation_mb=ALL_TYPES)
        for name in ("Dense", "Moe")
    )
    problem = Problem(model=Model(name="two", layers=(first, second)), stages=2, micro_batches=4)
    matrices = {"Dense": {"none": [[2, 0]]}, "Moe": {"full": [[1, 1]]}}
    text = mindformers_lists_text(mindformers_lists(plan_from_matrices(problem, matrices)))
    assert "of another kind before it in stage 0 chunk 0" in text
    assert "--target" not in text


@given(plans())
def test_the_offsets_add_up_and_the_lists_mean_the_plan(plan):
    lists, problem = mindformers_lists(plan), plan.problem
    assert sum(map(sum, lists.offset)) == problem.model.body_count % problem.cells
    if lists.recompute is None or lists.select_recompute is None or lists.select_comm_recompute is None:
        assert lists.silent
        assert lists.strategies == tuple(plan.strategy_layers)
        return
    assert not plan.strategies
    per_type = plan.counts.sum(axis=0)
    for chunk in range(problem.interleave):
        for stage in range(problem.stages):
            cell = problem.order.placement.cell_of(stage, chunk, problem.stages)
            full = lists.recompute[chunk][stage]
            select = lists.select_recompute[chunk][stage] - full
            comm = lists.select_comm_recompute[chunk][stage] - full
            # A layer that both lists count runs BOTH.
            both = min(select, comm)
            assert [select - both, comm - both, both, full] == per_type[1:5, cell].tolist()
