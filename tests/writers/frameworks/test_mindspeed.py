"""Plans in MindSpeed's flags: as lines to paste, and put into files that stay as they are otherwise."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.readers.frameworks.mindspeed_config import read_mindspeed
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.cell_types import cell_types
from sapp_ppb.targets.megatron.recompute import RecomputeFlags
from sapp_ppb.writers.frameworks.mindspeed import mindspeed_flags, mindspeed_into, mindspeed_text
from tests.targets.megatron_cases import model_of, plan_of_layout
from tests.targets.mindspeed_cases import counts_of, mindspeed_plans


def read_back(tmp_path, text, name="run.sh"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return read_mindspeed(path)


def plan_on_a_v(cells):
    problem = Problem(
        model=model_of(sum(cells)),
        stages=len(cells) // 2,
        micro_batches=len(cells),
        schedule=ScheduleName.DUALPIPEV,
        min_layers_per_cell=0,
    )
    return Plan(problem=problem, counts=counts_of(problem, cells, 0, [0] * len(cells)))


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        # One chunk a stage, a layer on each
        (plan_of_layout("Ett|tttL", 2), {"num-layers": "5", "num-layer-list": "2,3"}),
        # An empty cell, and an MTP layer that is not on the last stage: only a layout says them
        (plan_of_layout("E|tttL", 2), {"num-layers": "3", "pipeline-model-parallel-layout": "E|t*3L"}),
        (
            plan_of_layout("Et|m|L", 3),
            {"num-layers": "1", "pipeline-model-parallel-layout": "Et|m|L", "mtp-num-layers": "1"},
        ),
        (plan_of_layout("EtL", 1), {"num-layers": "1", "pipeline-model-parallel-layout": "EtL"}),
        # Eight layers in four cells: 8 / 4 = 2 is what Megatron-LM is told
        (
            plan_of_layout("Et|tt|tt|tttL", 2),
            {
                "num-layers": "8",
                "num-layers-per-virtual-pipeline-stage": "2",
                "pipeline-num-transformer-layers": "[[1,2],[2,3]]",
            },
        ),
        # Seven layers do not divide by four cells
        (
            plan_of_layout("Et|tt|tt|ttL", 2),
            {"num-layers": "7", "pipeline-model-parallel-layout": "Et|tt|tt|ttL"},
        ),
        # Four cells of three places; cell 1 lacks its third, place 3 + 2 = 5, cell 3 its last two, 10 and 11
        (
            plan_on_a_v([3, 2, 3, 1]),
            {"num-layers": "12", "schedules-method": "dualpipev", "noop-layers": "5,10,11"},
        ),
        (plan_on_a_v([2, 2, 2, 2]), {"num-layers": "8", "schedules-method": "dualpipev"}),
    ],
)
def test_the_first_words_that_can_say_the_split_are_taken(plan, said):
    found = mindspeed_flags(plan)
    assert found.pop("pipeline-model-parallel-size") == str(plan.problem.stages)
    assert found == said


@given(mindspeed_plans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_reads_back_as_the_plan(tmp_path, plan):
    config, problem = read_back(tmp_path, mindspeed_text(plan)), plan.problem
    assert config.types == cell_types(plan)
    assert (config.target, config.broken) == ("mindspeed", ())
    assert (config.stages, config.interleave) == (problem.stages, problem.interleave)
    assert (config.layers, config.mtp_layers) == (problem.model.body_count, problem.model.mtp_count)
    assert config.schedule is problem.schedule_name


SCRIPT = """GPT_ARGS="
    --num-layers {layers} \\
    --mtp-num-layers {mtp} \\
    --pipeline-model-parallel-size $PP \\
    --noop-layers 0,1 \\
    --enable-recompute-layers-per-pp-rank \\
    --recompute-granularity full \\
    --recompute-method block \\
    --recompute-num-layers 2 \\
    --bf16
"
torchrun --nproc_per_node 8 pretrain_gpt.py $GPT_ARGS --swap-optimizer
"""


@given(mindspeed_plans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_plan_put_into_a_file_reads_back(tmp_path, plan):
    model = plan.problem.model
    layers = model.body_count - model.mtp_count
    script = SCRIPT.format(layers=layers + 2, mtp=model.mtp_count)  # two places are empty
    yaml = (
        f"MODEL_ARGS:\n  --num-layers: {layers}  # kept\n  --mtp-num-layers: {model.mtp_count}\n"
        "  --num-layer-list: 1,2\n  --enable-recompute-layers-per-pp-rank: true\n  --lr: 1e-5\n"
    )
    for text, name in ((script, "run.sh"), (yaml, "args.yaml")):
        config = read_back(tmp_path, mindspeed_into(text, plan, name), name)
        assert config.types == cell_types(plan)
        assert (config.stages, config.layers) == (plan.problem.stages, model.body_count)
        assert config.broken == ()
        assert config.schedule in (plan.problem.schedule_name, ScheduleName.ONE_F_ONE_B)


@pytest.mark.parametrize(
    "old",
    [
        "",
        "  --pipeline-num-transformer-layers: [[1,2],[2,3]]\n",
        "  --pipeline-num-transformer-layers: '[[1,2],[2,3]]'\n",
        "  --pipeline-num-transformer-layers:\n    - [1, 2]\n    - [2, 3]\n",
    ],
)
@pytest.mark.parametrize("layout", ["Ett|tt|tt|ttL", "Ett|tt|t|tttL"])
def test_rows_in_yaml_are_text(tmp_path, old, layout):
    text, plan = f"MODEL_ARGS:\n  --num-layers: 8\n{old}  --lr: 1e-5\n", plan_of_layout(layout, 2)
    written = mindspeed_into(text, plan, "args.yaml")
    config = read_back(tmp_path, written, "args.yaml")
    assert (config.types, config.broken) == (cell_types(plan), ())
    assert mindspeed_into(written, plan, "args.yaml") == written
    assert written.endswith("  --lr: 1e-5\n")


def test_the_page_shows_what_is_written(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "frameworks" / "mindspeed.md").read_text(encoding="utf-8")
    flags = next(block for block in re.findall(r"```\n(.*?)```", page, re.S) if "--num-layer-list" in block)
    config = read_back(tmp_path, flags)
    assert ([len(cell) for cell in config.types[0]], config.broken) == (
        [4, 5, 5, 5, 5, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 5],
        (),
    )
    assert {cell.count(Recompute.FULL) for cell in config.types[0]} == {2}


def test_only_the_flags_of_the_plan_change():
    plan = plan_of_layout("Ett|tttL", 2, flags=RecomputeFlags(granularity="full", method="block", layers=1))
    written = mindspeed_into(SCRIPT.format(layers=7, mtp=0), plan, "run.sh")
    assert written == SCRIPT.format(layers=5, mtp=0).replace(
        "$PP \\\n", "2 \\\n    --num-layer-list 2,3 \\\n"
    ).replace("    --noop-layers 0,1 \\\n    --enable-recompute-layers-per-pp-rank \\\n", "").replace(
        "--recompute-num-layers 2", "--recompute-num-layers 1"
    )
    assert mindspeed_into(written, plan, "run.sh") == written


def test_a_switch_is_added_without_a_value():
    plan = plan_of_layout(
        "Ett|tt|tt|ttL", 2, flags=RecomputeFlags(granularity="full", method="block", layers=1, per_rank=True)
    )
    assert mindspeed_text(plan).endswith(
        "--recompute-num-layers 1 \\\n--enable-recompute-layers-per-pp-rank\n"
    )
    assert mindspeed_into("run --num-layers 8 --lr 1", plan, "run.sh") == (
        "run --num-layers 8 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 "
        '--pipeline-num-transformer-layers "[[2,2]*2]" --recompute-granularity full --recompute-method block '
        "--recompute-num-layers 1 --enable-recompute-layers-per-pp-rank --lr 1"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("run --num-layers 9 --noop-layers 0,1", "is 9, and the plan's model with 2 empty places has 7"),
        ("run --num-layers 5 --mtp-num-layers 1", "--mtp-num-layers is 1, and the plan's model has 0"),
        ("run --num-layers 5 --automated-pipeline", "--automated-pipeline decides the split"),
        ("run --num-layers 5 --recompute-in-bubble", "--recompute-in-bubble decides the split or recompute"),
    ],
)
def test_files_that_can_not_take_the_plan_are_refused(text, said):
    with pytest.raises(InputError, match=said):
        mindspeed_into(text, plan_of_layout("Ett|tttL", 2), "run.sh")


def test_a_plan_that_can_not_be_said_is_refused_with_the_reason():
    with pytest.raises(InputError, match="all MTP layers must stand in one cell"):
        mindspeed_text(plan_of_layout("Et|m||L", 2))
