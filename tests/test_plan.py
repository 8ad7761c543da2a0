"""What a plan derives from its counts, and which counts are no plan."""

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Outcome, Plan, Status, StoppedBy, plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Placement, parse_csv
from tests.strategies import plans, with_order

BOTH_TYPES = {Recompute.NONE: 10.0, Recompute.FULL: 1.0}


def problem(*counts: int, ends: bool = False, **sizes: Any) -> Problem:
    """Two stages, two micro-batches, and a BODY kind A, B, ... for each count, with NONE and FULL."""
    layers = [
        layer_from_times(name=name, kind=LayerKind.BODY, count=count, forward_ms=1, activation_mb=BOTH_TYPES)
        for name, count in zip("ABC", counts, strict=False)
    ]
    if ends:
        layers.insert(0, layer_from_times(name="Head", kind=LayerKind.HEAD, forward_ms=1))
        layers.append(layer_from_times(name="Tail", kind=LayerKind.TAIL, forward_ms=1))
    model = Model(name="small", layers=tuple(layers))
    given: dict[str, Any] = {"model": model, "stages": 2, "micro_batches": 2}
    return Problem(**given | sizes)


def plan(given: Problem, **matrices: list[list[int]]) -> Plan:
    """Plan without recompute from [chunk][stage] matrices by layer."""
    return plan_from_matrices(given, {name: {"none": matrix} for name, matrix in matrices.items()})


# 13 layers on S = 2, V = 2: cell 0 (stage 0 chunk 0) 3, cell 1 (stage 1 chunk 0) 5, cell 2 (stage 0
# chunk 1) 1, cell 3 (stage 1 chunk 1) 4.  13 div 4 = 3, so the offset is 0, 2, -2, 1.
UNEVEN = [[3, 5], [1, 4]]


def uneven() -> Plan:
    return plan(problem(13, interleave=2), A=UNEVEN)


def test_counts_run_along_the_chain_and_matrices_by_chunk_and_stage() -> None:
    assert uneven().counts[0, Recompute.NONE].tolist() == [3, 5, 1, 4]
    assert uneven().layers_per_cell.tolist() == [3, 5, 1, 4]
    assert uneven().per_chunk_and_stage([10, 11, 12, 13]).tolist() == [[10, 11], [12, 13]]


def test_the_offset_is_what_each_cell_has_beyond_an_even_share() -> None:
    assert uneven().offset.tolist() == [[0, 2], [-2, 1]]


@given(plans())
def test_the_offset_adds_up_to_the_layers_that_can_not_be_shared_evenly(plan):
    # MindFormers demands sum(offset) = N mod (S x V).
    assert plan.offset.sum() == plan.problem.model.body_count % plan.problem.cells
    assert plan.offset.shape == (plan.problem.interleave, plan.problem.stages)


@given(plans())
def test_every_layer_is_in_one_cell(plan):
    assert plan.layers_per_cell.sum() == plan.problem.model.body_count
    assert plan.per_chunk_and_stage(plan.layers_per_cell).sum() == plan.problem.model.body_count


def test_on_a_v_the_second_chunk_descends_the_stages() -> None:
    # Cells 0 1 2 3 on stages 0 1 1 0: chunk 1 of stage 0 is cell 3 = 2 x 2 - 1 - 0.
    order = parse_csv("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", Placement.V)
    turned = with_order(problem(10, interleave=2, micro_batches=1), order)
    vee = plan(turned, A=[[1, 2], [4, 3]])
    assert vee.counts[0, Recompute.NONE].tolist() == [1, 2, 3, 4]
    # 10 div 4 = 2
    assert vee.offset.tolist() == [[-1, 0], [2, 1]]


def test_recomputed_layers_are_all_but_those_of_none() -> None:
    mixed = plan_from_matrices(problem(5), {"A": {"none": [[1, 1]], "full": [[1, 2]]}})
    assert mixed.recomputed_layers == 1 + 2
    assert uneven().recomputed_layers == 0


def test_equal_plans_are_equal_and_have_one_hash() -> None:
    assert uneven() == uneven()
    assert len({uneven(), uneven()}) == 1
    assert uneven() != plan(problem(13, interleave=2), A=[[5, 3], [1, 4]])
    # The same counts under another number of micro-batches answer another problem.
    assert uneven() != plan(problem(13, interleave=2, micro_batches=4), A=UNEVEN)
    assert uneven() != "a plan"


def test_the_counts_can_not_be_changed_from_outside() -> None:
    counts = np.zeros((1, 5, 2), dtype=int)
    counts[0, Recompute.NONE] = 1
    made = Plan(problem=problem(2), counts=counts)
    counts[0, Recompute.NONE] = 7
    assert made.layers_per_cell.tolist() == [1, 1]
    with pytest.raises(ValueError, match="read-only"):
        made.counts[0, 0, 0] = 3


def test_counts_of_another_shape_are_refused() -> None:
    with pytest.raises(
        InputError, match=re.escape("plan: counts must have the shape (1, 5, 2) (got (1, 5, 3))")
    ):
        Plan(problem=problem(2), counts=np.ones((1, 5, 3), dtype=int))


@pytest.mark.parametrize(
    ("value", "kind"),
    [(1.5, "float64"), (1.0, "float64"), (math.nan, "float64"), (math.inf, "float64"), (True, "bool")],
)
def test_counts_that_are_no_whole_numbers_are_refused_and_not_cut_down(value, kind) -> None:
    counts: Any = np.full((1, 5, 2), value)
    with pytest.raises(InputError, match=re.escape(f"plan: counts must be whole numbers (got {kind})")):
        Plan(problem=problem(2), counts=counts)


def test_negative_counts_are_refused() -> None:
    counts = np.zeros((1, 5, 2), dtype=int)
    counts[0, Recompute.NONE] = (3, -1)
    with pytest.raises(InputError, match="plan: counts must be at least 0"):
        Plan(problem=problem(2), counts=counts)


def test_wrong_totals_are_refused_for_every_layer() -> None:
    with pytest.raises(InputError) as caught:
        plan(problem(4, 3), A=[[3, 0]], B=[[0, 4]])
    assert caught.value.faults == (
        "A must have 4 layers in all (got 3)",
        "B must have 3 layers in all (got 4)",
    )


def test_a_layer_that_is_left_out_has_no_layers_at_all() -> None:
    with pytest.raises(InputError, match=re.escape("B must have 3 layers in all (got 0)")):
        plan(problem(4, 3), A=[[2, 2]])


def test_a_type_without_activation_memory_in_the_model_is_refused() -> None:
    words = "A is recomputed as selective, for which the model gives no activation memory"
    with pytest.raises(InputError, match=words):
        plan_from_matrices(problem(4), {"A": {"none": [[2, 1]], "selective": [[0, 1]]}})


def test_a_kind_before_one_that_comes_earlier_is_refused() -> None:
    # Cells 0 to 3 are stages 0 1 0 1: B in cell 1, with A still in cell 2.
    with pytest.raises(InputError, match="B stands in stage 1 chunk 0, before layers that come earlier"):
        plan(problem(3, 3, interleave=2), A=[[2, 0], [1, 0]], B=[[0, 1], [0, 2]])


def test_two_kinds_may_share_the_cell_where_they_meet() -> None:
    shared = plan(problem(3, 3, interleave=2), A=[[2, 1], [0, 0]], B=[[0, 1], [1, 1]])
    assert shared.layers_per_cell.tolist() == [2, 2, 1, 1]


def test_a_third_kind_may_not_stand_before_the_first_even_if_the_second_is_elsewhere() -> None:
    with pytest.raises(InputError, match="C stands in stage 0 chunk 0, before layers that come earlier"):
        plan(problem(2, 1, 1), A=[[1, 1]], B=[[0, 1]], C=[[1, 0]])


def test_a_cell_with_too_few_layers_is_refused_with_the_way_out() -> None:
    words = "stage 0 chunk 1 holds 1 layers of at least 2; allow fewer with --min-layers"
    with pytest.raises(InputError, match=words):
        plan(problem(13, interleave=2, min_layers_per_cell=2), A=UNEVEN)
    assert plan(problem(2, min_layers_per_cell=0), A=[[2, 0]]).layers_per_cell.tolist() == [2, 0]


def test_the_cells_of_head_and_tail_may_be_empty_and_no_others() -> None:
    three = problem(2, ends=True, stages=3)
    assert plan(three, A=[[0, 2, 0]]).layers_per_cell.tolist() == [0, 2, 0]
    with pytest.raises(InputError, match="stage 1 chunk 0 holds 0 layers of at least 1"):
        plan(three, A=[[1, 0, 1]])


def test_faults_of_different_sorts_are_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        plan_from_matrices(problem(4, 2), {"A": {"comm": [[0, 3]]}, "B": {"none": [[0, 2]]}})
    assert caught.value.faults == (
        "A must have 4 layers in all (got 3)",
        "A is recomputed as comm, for which the model gives no activation memory",
        "stage 0 chunk 0 holds 0 layers of at least 1; allow fewer with --min-layers",
    )


def test_of_many_faults_the_first_twenty_are_said() -> None:
    # 30 cells, all layers in the first: 29 are too empty.
    crowded = problem(30, stages=30)
    with pytest.raises(InputError) as caught:
        plan(crowded, A=[[30, *[0] * 29]])
    assert len(caught.value.faults) == 21
    assert caught.value.faults[-1] == "and 9 more"


def test_an_unknown_layer_and_an_unknown_type_are_refused_with_those_known() -> None:
    with pytest.raises(InputError, match="layer 'Z' is unknown; the model's BODY layers are A, B"):
        plan(problem(1, 1), Z=[[1, 1]])
    with pytest.raises(InputError, match="'fulll' is unknown; one of none, selective, comm, both, full"):
        plan_from_matrices(problem(2), {"A": {"fulll": [[1, 1]]}})


@pytest.mark.parametrize("matrix", [[[1, 1], [0, 0]], [[1, 1, 0]], [[2]], [[]], []])
def test_a_matrix_of_another_shape_is_refused(matrix) -> None:
    with pytest.raises(InputError, match="A none must have 1 rows of 2 counts"):
        plan(problem(2), A=matrix)


@pytest.mark.parametrize("wrong", [1.5, 1.0, math.nan, math.inf, True, "1", None, -1, 10**30])
def test_a_matrix_of_anything_but_whole_numbers_is_refused(wrong) -> None:
    with pytest.raises(InputError, match=r"plan: A none must hold whole numbers from 0 to 1000000 \(got "):
        plan(problem(2), A=[[1, wrong]])


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    matrix: Any = np.array([[1, 1]])
    assert plan(problem(2), A=matrix).layers_per_cell.tolist() == [1, 1]


def test_the_gap_is_the_share_of_the_makespan_that_is_not_proven_necessary() -> None:
    given = uneven().problem

    def outcome(**known: Any) -> Outcome:
        return Outcome(problem=given, plan=None, status=Status.FEASIBLE, stopped_by=StoppedBy.BUDGET, **known)

    # (200 - 150) / 200
    assert outcome(makespan_ms=200.0, lower_bound_ms=150.0).gap == 0.25
    # A bound that rounding put above the plan leaves no gap.
    assert outcome(makespan_ms=200.0, lower_bound_ms=200.0000001).gap == 0.0
    assert outcome().gap is None
    assert outcome(makespan_ms=0.0, lower_bound_ms=0.0).gap == 0.0  # of layers that take no time
