"""What MindFormers can say, and what its lists would turn into another plan."""

from dataclasses import replace

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan, plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.targets import TARGETS, is_nested, mixed_cells, silent_cells
from sapp_ppb.targets.mindformers.target import MINDFORMERS

ALL_TYPES = {recompute: 100.0 - recompute for recompute in Recompute}


def plan_of(*kinds, stages=2, interleave=1):
    """Plan of BODY kinds, each given as its matrices by type name."""
    layers = tuple(
        layer_from_times(
            name=f"kind{index}",
            kind=LayerKind.BODY,
            count=int(sum(np.sum(matrix) for matrix in matrices.values())),
            forward_ms=1,
            activation_mb=ALL_TYPES,
        )
        for index, matrices in enumerate(kinds)
    )
    problem = Problem(
        model=Model(name="tiny", layers=layers), stages=stages, interleave=interleave, micro_batches=4
    )
    return plan_from_matrices(problem, {f"kind{index}": matrices for index, matrices in enumerate(kinds)})


def test_selective_beside_comm_is_mixed_and_can_not_be_said():
    plan = plan_of({"selective": [[1, 1]], "comm": [[0, 1]]})
    assert mixed_cells(plan) == silent_cells(plan) == [(0, 1)]


def test_selective_in_one_cell_and_comm_in_another_can_be_said():
    plan = plan_of({"selective": [[2, 0]], "comm": [[0, 2]], "none": [[1, 1]]})
    assert mixed_cells(plan) == silent_cells(plan) == []


@pytest.mark.parametrize("other", ["none", "both", "full"])
@pytest.mark.parametrize("one", ["selective", "comm"])
def test_every_other_pair_can_be_said(one, other):
    assert silent_cells(plan_of({one: [[1, 2]], other: [[2, 1]]})) == []


def test_cells_are_named_by_chunk_and_stage_in_the_order_of_the_chain():
    plan = plan_of(
        {"selective": [[1, 0], [0, 1]], "comm": [[1, 0], [0, 1]], "none": [[0, 1], [1, 0]]}, interleave=2
    )
    assert mixed_cells(plan) == [(0, 0), (1, 1)]


def test_a_second_kind_recomputed_behind_a_first_that_is_not_can_not_be_said():
    # The list says "the first one layer", which is of the first kind.
    plan = plan_of({"none": [[1, 0]]}, {"full": [[1, 1]]})
    assert (mixed_cells(plan), silent_cells(plan)) == ([], [(0, 0)])


def test_a_first_kind_recomputed_before_a_second_that_is_not_can_be_said():
    assert silent_cells(plan_of({"full": [[1, 0]]}, {"none": [[1, 1]]})) == []


def test_only_those_that_count_first_layers_forbid_mixing():
    nested = {target for target in TARGETS if is_nested(target)}
    assert nested == {"mindformers", "colossalai"}
    assert not is_nested(None)


def test_an_unknown_target_is_refused_with_those_that_exist():
    with pytest.raises(InputError, match="'megatron2' is unknown; one of mindformers, megatron, torchtitan"):
        is_nested("megatron2")


def test_a_plan_of_one_type_everywhere_can_always_be_said():
    for recompute in Recompute:
        plan = plan_of({recompute.label: [[2, 3]]})
        assert isinstance(plan, Plan)
        assert silent_cells(plan) == []


def sized(schedule=None, *, layers=8, **sizes):
    """Problem of one kind of layers."""
    body = layer_from_times(
        name="Dec", kind=LayerKind.BODY, count=layers, forward_ms=1, activation_mb=ALL_TYPES
    )
    sizes = {"stages": 2, "micro_batches": 4} | sizes
    return Problem(model=Model(name="tiny", layers=(body,)), schedule=schedule, **sizes)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (sized("looped-bfs", interleave=2), None),
        (sized(micro_batches=2), None),
        (sized(micro_batches=1), "at least as many micro-batches as stages, 2 (got 1)"),
        (sized(interleave=2, micro_batches=5, micro_batch_group="remainder-first"), None),
        (sized(interleave=2, micro_batch_group=2), None),
        (sized(interleave=2, micro_batches=6, micro_batch_group=3), "in groups of 2, what is left over in"),
        (
            sized(interleave=2, micro_batches=5, micro_batch_group=3),
            "give --micro-batch-group remainder-first",
        ),
        (
            sized("dualpipev", micro_batches=4),
            "MindFormers has no schedule dualpipev; use one of 1f1b, gpipe",
        ),
        (sized(min_layers_per_cell=0), None),
        (
            sized(stages=4, layers=3, min_layers_per_cell=0),
            "wants a layer in every cell: 3 BODY layers are too",
        ),
    ],
)
def test_what_mindformers_refuses_of_a_problem(problem, words):
    faults = MINDFORMERS.refuses(problem)
    assert len(faults) == (words is not None)
    assert words is None or words in faults[0]


class TestEmptyCells:
    def test_planning_is_kept_to_cells_with_layers(self):
        (way,) = MINDFORMERS.ways(sized(min_layers_per_cell=0))
        assert way.problem == sized()
        full = sized()
        assert MINDFORMERS.ways(full)[0].problem is full

    def test_under_zero_bubble_v_planning_is_kept_from_an_empty_end_beside_a_tail(self):
        # Row 1 of the offset is by stage, so the end of the chain is not its last entry: it is checked like
        # a cell in the middle.
        tail = layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=1)
        full = sized("zbv")
        problem = full.changed(model=replace(full.model, layers=(*full.model.layers, tail)))
        (way,) = MINDFORMERS.ways(problem)
        assert [problem.least_layers(cell) for cell in range(4)] == [1, 1, 1, 0]
        assert [way.problem.least_layers(cell) for cell in range(4)] == [1, 1, 1, 1]
        few = problem.changed(
            model=replace(problem.model, layers=(replace(full.model.layers[0], count=3), tail))
        )
        (fault,) = MINDFORMERS.refuses(few)
        assert "MindFormers wants a layer in every cell: 3 BODY layers are too few" in fault

    def test_a_problem_that_allows_them_may_have_a_plan_without(self):
        problem = sized(min_layers_per_cell=0)
        assert MINDFORMERS.unsaid(plan_from_matrices(problem, {"Dec": {"none": [[4, 4]]}})) == ()

    def test_only_the_first_and_the_last_may_be_empty(self):
        problem = sized(stages=4, min_layers_per_cell=0)
        assert MINDFORMERS.unsaid(plan_from_matrices(problem, {"Dec": {"none": [[0, 4, 4, 0]]}})) == ()
        (fault,) = MINDFORMERS.unsaid(plan_from_matrices(problem, {"Dec": {"none": [[8, 0, 0, 0]]}}))
        assert fault == (
            "only stage 0 chunk 0 and stage 3 chunk 0 may be without layers, and so are stage 1 chunk 0, "
            "stage 2 chunk 0; plan with --min-layers 1"
        )

    def test_under_zero_bubble_v_the_end_of_the_chain_may_not(self):
        problem = sized("zbv", min_layers_per_cell=0)
        (fault,) = MINDFORMERS.unsaid(plan_from_matrices(problem, {"Dec": {"none": [[3, 3], [0, 2]]}}))
        assert "and so is stage 0 chunk 1" in fault
        assert MINDFORMERS.unsaid(plan_from_matrices(problem, {"Dec": {"none": [[3, 3], [2, 0]]}})) == ()


class TestMultiTokenPrediction:
    @staticmethod
    def faults(ordinary, mtp):
        first = layer_from_times(
            name="Dec", kind=LayerKind.BODY, count=4, forward_ms=1, activation_mb=ALL_TYPES
        )
        model = Model(name="m", layers=(first, replace(first, name="Mtp", count=2, is_mtp=True)))
        problem = Problem(model=model, stages=2, micro_batches=4)
        return MINDFORMERS.unsaid(plan_from_matrices(problem, {"Dec": ordinary, "Mtp": mtp}))

    def test_it_runs_as_the_layer_before_it(self):
        assert self.faults({"full": [[2, 2]]}, {"full": [[0, 2]]}) == ()
        assert self.faults({"full": [[2, 1]], "none": [[0, 1]]}, {"none": [[0, 2]]}) == ()
        assert self.faults({"full": [[3, 0]], "none": [[1, 0]]}, {"none": [[0, 2]]}) == ()
        assert self.faults({"full": [[2, 2]]}, {"none": [[0, 2]]}) == (
            "MTP layers run as the layer before them does, full; this plan runs them as none",
        )

    def test_it_stands_in_the_last_cell(self):
        assert self.faults({"none": [[4, 0]]}, {"none": [[1, 1]]}) == (
            "all MTP layers must stand in the last cell of the chain",
        )
