"""A plan can be told layer by layer and read back."""

import pytest
from hypothesis import given

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.cell_types import cell_types, plan_from_types
from tests.strategies import plans

ALL_TYPES = {recompute: 100.0 - recompute for recompute in Recompute}
NONE, SELECTIVE, _, BOTH, FULL = Recompute


def problem_of(*counts, **sizes):
    layers = tuple(
        layer_from_times(
            name=f"kind{index}", kind=LayerKind.BODY, count=count, forward_ms=1, activation_mb=ALL_TYPES
        )
        for index, count in enumerate(counts)
    )
    sizes = {"stages": 2, "micro_batches": 4} | sizes
    return Problem(model=Model(name="tiny", layers=layers), **sizes)


def test_kinds_stand_one_after_the_other_and_the_most_recomputed_of_a_kind_first():
    plan = plan_from_matrices(
        problem_of(4, 3),
        {
            "kind0": {"none": [[1, 0]], "full": [[1, 1]], "selective": [[1, 0]]},
            "kind1": {"both": [[0, 2]], "none": [[0, 1]]},
        },
    )
    assert cell_types(plan) == (((FULL, SELECTIVE, NONE), (FULL, BOTH, BOTH, NONE)),)


def test_the_second_chunk_of_a_v_runs_back_from_the_last_stage():
    # zbv: the chain goes stage 0, 1, then 1, 0; cells 2 and 3 are chunk 1 of stages 1 and 0.
    problem = problem_of(4, 6, interleave=2, schedule=ScheduleName.ZBV, micro_batches=4)
    types = (((FULL,), (FULL,) * 2), ((NONE,) * 4, (NONE,) * 3))
    plan = plan_from_types(problem, types)
    assert plan.layers_per_cell.tolist() == [1, 2, 3, 4]
    # kind0 has 4 layers: one, two, and the first of cell 2
    assert plan.counts[0].sum(axis=0).tolist() == [1, 2, 1, 0]
    assert plan.counts[1].sum(axis=0).tolist() == [0, 0, 2, 4]
    assert cell_types(plan) == types


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ((((NONE,) * 3,),), r"2 stages \(got 1 chunks of 1 stages\)"),
        ((((NONE,), (NONE,)), ((NONE,), ())), r"for 1 chunks of 2 stages \(got 2 chunks of 2/2 stages\)"),
        ((((NONE,), (NONE,)),), "the configuration has 2 layers and the model 3 BODY layers"),
        ((((), (NONE,) * 3),), "stage 0 chunk 0 holds 0 layers of at least 1"),
    ],
)
def test_types_that_are_no_plan_are_refused(types, words):
    with pytest.raises(InputError, match=words):
        plan_from_types(problem_of(3), types)


@given(plans())
def test_a_plan_told_layer_by_layer_is_read_back(plan):
    assert plan_from_types(plan.problem, cell_types(plan)) == plan
