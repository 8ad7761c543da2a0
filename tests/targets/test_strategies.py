"""No framework has words for strategies: plans with one are refused, whatever else they hold."""

import pytest

from sapp_ppb.costs import LayerKind, LayerStrategy, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.targets import TARGETS, cell_types, plan_from_types, silent_cells, target_named
from sapp_ppb.targets.megatron.target import recompute_words
from sapp_ppb.targets.torchtitan.target import checkpoint_mode
from sapp_ppb.writers import mindformers_lists, mindformers_lists_text
from sapp_ppb.writers.frameworks.megatron import megatron_text
from sapp_ppb.writers.frameworks.torchtitan import torchtitan_text

SWAP = LayerStrategy(name="swap", backward_ms=3, activation_mb=1)
MEMORY = {recompute: 100.0 - recompute for recompute in Recompute}


def plan_of(matrices, **changes):
    count = sum(sum(map(sum, matrix)) for matrix in matrices.values())
    body = layer_from_times(
        name="Dec", kind=LayerKind.BODY, count=count, forward_ms=1, activation_mb=MEMORY, strategies=[SWAP]
    )
    sizes = {"stages": 2, "micro_batches": 4, "interleave": len(next(iter(matrices.values())))}
    problem = Problem(model=Model(name="tiny", layers=(body,)), **sizes | changes)
    return plan_from_matrices(problem, {"Dec": matrices})


# What the frameworks would say of the other layers: nothing, all of them, the first ones, every second one.
PLANS = [
    {"swap": [[2, 2]]},
    {"none": [[2, 1]], "swap": [[0, 1]]},
    {"full": [[2, 1]], "swap": [[0, 1]]},
    {"full": [[1, 1]], "swap": [[1, 1]]},
    {"full": [[1, 1], [1, 1]], "swap": [[1, 1], [1, 1]]},
]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("matrices", PLANS)
def test_a_plan_with_a_strategy_is_refused_by_its_name(name, matrices):
    target, plan = target_named(name), plan_of(matrices)
    layers = sum(map(sum, matrices["swap"]))
    said = f"{target.title} has no setting for 'swap', which {layers} layers are under; plan with --target"
    assert said in target.unsaid(plan)


@pytest.mark.parametrize("matrices", PLANS)
def test_no_flag_and_no_mode_means_a_plan_with_a_strategy(matrices):
    plan = plan_of(matrices)
    assert recompute_words(plan) is None
    assert checkpoint_mode(plan) is None
    assert silent_cells(plan)


@pytest.mark.parametrize("name", TARGETS)
def test_a_model_with_a_strategy_that_no_layer_is_under_is_said(name):
    for matrices in ({"none": [[2, 2]]}, {"full": [[2, 2]]}):
        assert target_named(name).unsaid(plan_of(matrices)) == ()


def test_the_writers_refuse_it():
    plan = plan_of({"none": [[1, 1]], "swap": [[1, 1]]})
    with pytest.raises(InputError, match="Megatron-LM has no setting for 'swap'"):
        megatron_text(plan)
    with pytest.raises(InputError, match="torchtitan has no setting for 'swap'"):
        torchtitan_text(plan)
    text = mindformers_lists_text(mindformers_lists(plan))
    assert text == (
        "offset: [[0, 0]]\n"
        "# no recompute lists: MindFormers has none for swap\n"
        "# plan with --target mindformers, which leaves it out\n"
    )


def test_a_plan_for_a_framework_can_not_hold_one():
    with pytest.raises(
        InputError, match="Dec is under the strategy swap, for which the target megatron has no words"
    ):
        plan_of({"none": [[1, 1]], "swap": [[1, 1]]}, target="megatron")


def test_layers_one_by_one_keep_their_strategy():
    plan = plan_of({"none": [[1, 0]], "full": [[1, 0]], "swap": [[1, 3]]})
    assert [[r.label for r in cell] for cell in cell_types(plan)[0]] == [
        ["swap", "full", "none"],
        ["swap"] * 3,
    ]
    assert plan_from_types(plan.problem, cell_types(plan)) == plan
