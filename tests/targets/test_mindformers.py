"""What MindFormers can say, and what its lists would turn into another plan."""

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan, plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.targets import TARGETS, is_nested, mixed_cells, silent_cells

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


def test_only_mindformers_forbids_mixing():
    assert TARGETS == ("mindformers", "megatron", "torchtitan")
    assert [is_nested(target) for target in (None, *TARGETS)] == [False, True, False, False]


def test_an_unknown_target_is_refused_with_those_that_exist():
    with pytest.raises(InputError, match="'megatron2' is unknown; one of mindformers, megatron, torchtitan"):
        is_nested("megatron2")


def test_a_plan_of_one_type_everywhere_can_always_be_said():
    for recompute in Recompute:
        plan = plan_of({recompute.label: [[2, 3]]})
        assert isinstance(plan, Plan)
        assert silent_cells(plan) == []
