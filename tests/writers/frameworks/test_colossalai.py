"""What is written for Colossal-AI is what it would run, and a script keeps everything else."""

import pytest
from hypothesis import given

from sapp_ppb.errors import InputError
from sapp_ppb.readers.frameworks.colossalai_config import read_colossalai
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.cell_types import plan_from_types
from sapp_ppb.targets.colossalai import COLOSSALAI
from sapp_ppb.writers.frameworks.colossalai import colossalai_into, colossalai_text
from tests.pages import DOCS, shown
from tests.parts_plans import FULL, NONE, SELECTIVE, colossalai_plans, plan_along

PAGE = DOCS / "frameworks" / "colossalai.md"
# The keywords of a benchmark of Colossal-AI (examples/language/llama/benchmark.py), with other numbers.
SCRIPT = """# mine
plugin = HybridParallelPlugin(
    tp_size=args.tp,  # of the command line
    pp_size=args.pp,
    num_microbatches = 2,
    gradient_checkpoint_config=PipelineGradientCheckpointConfig(
        num_ckpt_layers_per_stage=[19, 19, 19, 13],
    ),
    num_layers_per_stage=[19, 20,
                          20, 21],  # four stages
)
"""


def small_plan():
    cells = [[FULL, FULL, NONE], [FULL, NONE], [NONE, NONE], [NONE]]
    return plan_along([8], cells, stages=4, micro_batches=8)


def assert_same(config, plan):
    problem = plan.problem
    assert (config.broken, config.unknown) == ((), ())
    assert (config.stages, config.interleave) == (problem.stages, problem.interleave)
    assert (config.micro_batches, config.schedule) == (problem.micro_batches, problem.schedule_name)
    assert config.layers == problem.model.body_count
    assert plan_from_types(problem, config.types) == plan


@given(colossalai_plans())
def test_what_is_written_is_read_as_the_same_plan(tmp_path_factory, plan):
    assert COLOSSALAI.unsaid(plan) == ()
    path = tmp_path_factory.mktemp("colossalai") / "plan.py"
    path.write_text(colossalai_text(plan))
    assert_same(read_colossalai(path, plan.problem.model.body_count), plan)
    if plan.problem.interleave == 1:  # the list alone says the layers
        assert_same(read_colossalai(path), plan)


@given(colossalai_plans())
def test_a_script_says_the_plan_and_keeps_the_rest(tmp_path_factory, plan):
    text = (
        SCRIPT if plan.problem.interleave == 1 else SCRIPT.replace("    num_layers_per_stage=[19, 20,\n", "")
    )
    text = (
        text
        if plan.problem.interleave == 1
        else text.replace("                          20, 21],  # four stages\n", "")
    )
    text = text.replace("tp_size=args.tp,", "tp_size=args.tp, scheduler_nodes=nodes,")
    path = tmp_path_factory.mktemp("colossalai") / "train.py"
    after = colossalai_into(text, plan, "train.py")
    path.write_text(after)
    assert_same(read_colossalai(path, plan.problem.model.body_count), plan)
    assert colossalai_into(after, plan, "train.py") == after
    assert after.startswith("# mine\n")


def test_only_the_keywords_of_the_plan_change():
    # 8 layers as 3, 2, 2, 1, of which the first 2 and the first 1 are recomputed; what lacks comes first.
    assert colossalai_into(SCRIPT, small_plan(), "train.py") == (
        """# mine
plugin = HybridParallelPlugin(
    pp_style="1f1b", num_model_chunks=1, tp_size=args.tp,  # of the command line
    pp_size=4,
    num_microbatches = 8,
    gradient_checkpoint_config=PipelineGradientCheckpointConfig(
        num_ckpt_layers_per_stage=[2, 1, 0, 0],
    ),
    num_layers_per_stage=[3, 2, 2, 1],  # four stages
)
"""
    )


def test_checkpointing_is_added_where_there_is_none():
    text = "plugin = HybridParallelPlugin(tp_size=2)\n"
    after = colossalai_into(text, small_plan(), "train.py")
    assert "PipelineGradientCheckpointConfig(num_ckpt_layers_per_stage=[2, 1, 0, 0]), tp_size=2)" in after


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plugin = (", "the Python is broken at line 1"),
        ("x = 1\n", "gives pp_size, pp_style, .* nowhere; leave it out, and paste the snippet"),
        ("HybridParallelPlugin(a=1)\nHybridParallelPlugin(a=2)", "nowhere"),
        (
            "HybridParallelPlugin(pp_size=1)\nHybridParallelPlugin(pp_size=2)",
            "pp_size is given more than once",
        ),
    ],
)
def test_what_can_not_be_edited_is_refused(text, words):
    with pytest.raises(InputError, match=words):
        colossalai_into(text, small_plan(), "train.py")


def test_zbv_names_the_nodes_of_its_order_and_a_checkpoint_without_reentry():
    plan = plan_along([4], [[FULL]] + [[NONE]] * 3, stages=2, schedule=ScheduleName.ZBV)
    text = colossalai_text(plan)
    assert "scheduler_nodes=scheduler_nodes," in text
    # Chunk 0 stands on stages 0 and 1, chunk 1 on stages 1 and 0: the chain's first cell is the first number.
    assert "num_ckpt_layers_per_stage=[1, 0, 0, 0]" in text
    assert "'use_reentrant': False" in text
    assert "num_layers_per_stage=[1" not in text.replace("ckpt_layers_per_stage", "")


def test_a_plan_that_can_not_be_said_is_refused_with_the_reason():
    plan = plan_along([2], [[SELECTIVE], [NONE]], stages=2)
    for write in (colossalai_text, lambda plan: colossalai_into(SCRIPT, plan, "train.py")):
        with pytest.raises(InputError, match="as a whole or not at all; this plan has selective"):
            write(plan)


def test_the_page_shows_what_is_written():
    assert colossalai_text(small_plan()) in shown(PAGE, "python")
