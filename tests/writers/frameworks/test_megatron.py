"""Plans in Megatron-LM's flags: as lines to paste, and put into files that stay as they are otherwise."""

import difflib
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from sapp_ppb.errors import InputError
from sapp_ppb.readers.frameworks.megatron_config import read_megatron
from sapp_ppb.targets.cell_types import cell_types
from sapp_ppb.targets.megatron.layout import layout_of, parse_layout
from sapp_ppb.targets.megatron.recompute import RecomputeFlags
from sapp_ppb.writers.frameworks.megatron import megatron_flags, megatron_into, megatron_text
from tests.targets.megatron_cases import megatron_plans, model_of, plan_of_layout
from tests.targets.strict_layout import strict_cells

CONFIGS = Path(__file__).parents[2] / "data" / "configs" / "megatron"
DEEPSEEK = CONFIGS / "deepseekv3_proxy_pp4_model_config.yaml"
UNEVEN = CONFIGS / "uneven_pipeline_model_config.yaml"
BLOCK = RecomputeFlags(granularity="full", method="block", layers=2)
SELECTIVE = RecomputeFlags(granularity="selective")


PAGE = Path(__file__).parents[3] / "docs" / "frameworks" / "megatron.md"


def blocks(page):
    """Code blocks of a page, without their indent."""
    found = re.findall(r"^( *)```\w*\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.M | re.S)
    return [
        "".join(line.removeprefix(indent) for line in text.splitlines(keepends=True))
        for indent, text in found
    ]


def changes(before, after):
    """Lines that went and lines that came, without the rest."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def read_back(tmp_path, text, name="run.sh"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return read_megatron(path)


def test_the_flags_of_a_plan_one_on_a_line():
    plan = plan_of_layout("Et*7|t*9|t*9|t*7L", 4, flags=BLOCK)
    assert megatron_text(plan) == (
        "--pipeline-model-parallel-size 4 \\\n"
        '--pipeline-model-parallel-layout "Et*7|t*9|t*9|t*7L" \\\n'
        "--recompute-granularity full \\\n"
        "--recompute-method block \\\n"
        "--recompute-num-layers 2\n"
    )


@pytest.mark.parametrize(
    ("options", "group"),
    [({}, None), ({"micro_batch_group": 8}, "8"), ({"micro_batch_group": 4}, None),
     ({"micro_batch_group": "remainder-first"}, None)],
)  # fmt: skip
def test_the_group_is_given_where_it_is_not_the_number_of_stages(options, group):
    plan = plan_of_layout("Et|t|t|t|t|t|t|tL", 4, **options)
    assert megatron_flags(plan).get("microbatch-group-size-per-virtual-pipeline-stage") == group


def test_deepseek_v3_is_written_as_it_is_published():
    plan = plan_of_layout("Et*3|(tt|)*29,m|L", 16)
    assert megatron_flags(plan) == {
        "pipeline-model-parallel-size": "16",
        "pipeline-model-parallel-layout": "Et*3|(tt|)*29m|L",  # the page's, without its comma
    }


def test_a_plan_that_can_not_be_said_is_refused_with_the_reason():
    with pytest.raises(InputError, match="all MTP layers must stand in one cell"):
        megatron_text(plan_of_layout("Et|m||L", 2))
    with pytest.raises(InputError, match="all MTP layers must stand in one cell"):
        megatron_into("--num-layers 1", plan_of_layout("Et|m||L", 2), "run.sh")


@given(megatron_plans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_reads_back_as_the_plan(tmp_path, plan):
    config = read_back(tmp_path, megatron_text(plan))
    problem = plan.problem
    assert config.types == cell_types(plan)
    assert (config.stages, config.interleave) == (problem.stages, problem.interleave)
    assert (config.layers, config.mtp_layers) == (problem.model.body_count, problem.model.mtp_count)
    assert config.schedule is problem.schedule_name
    assert config.broken == ()
    group = config.micro_batch_group
    assert (group or problem.stages) == (
        problem.micro_batch_group if isinstance(problem.micro_batch_group, int) else problem.stages
    )
    strict_cells(
        megatron_flags(plan)["pipeline-model-parallel-layout"],
        stages=problem.stages,
        decoders=problem.model.body_count - problem.model.mtp_count,
        mtp=problem.model.mtp_count,
    )


def test_a_real_configuration_with_its_own_plan_stays_byte_for_byte():
    text = DEEPSEEK.read_text(encoding="utf-8")
    plan = plan_of_layout("Et*2|(tt|)*5t|tmL", 4)
    assert megatron_into(text, plan, str(DEEPSEEK)) == text


def test_another_plan_for_a_real_configuration_changes_only_its_keys(tmp_path):
    text = DEEPSEEK.read_text(encoding="utf-8")
    plan = plan_of_layout("Et*4|t*4|t*5|tmL", 4, flags=BLOCK)
    written = megatron_into(text, plan, str(DEEPSEEK))
    assert changes(text, written) == [
        "-  --pipeline-model-parallel-layout: Et*2|(tt|)*5t|tmL",
        "+  --pipeline-model-parallel-layout: Et*4|t*4|t*5|tmL",
        "+  --recompute-granularity: full",
        "+  --recompute-method: block",
        "+  --recompute-num-layers: 2",
    ]
    config = read_back(tmp_path, written, DEEPSEEK.name)
    assert config.types == cell_types(plan)
    assert (config.broken, config.layers) == ((), 15)


def test_a_layout_replaces_the_numbers_of_the_first_and_last_stage(tmp_path):
    text = UNEVEN.read_text(encoding="utf-8")
    plan = plan_of_layout("Et|ttt|t*4|t*4L", 4)
    written = megatron_into(text, plan, str(UNEVEN))
    assert changes(text, written) == [
        "+  --pipeline-model-parallel-layout: Et|ttt|t*4|t*4L".replace("ttt", "t*3"),
        "-  --decoder-first-pipeline-num-layers: 2",
        "-  --decoder-last-pipeline-num-layers: 2",
    ]
    assert read_back(tmp_path, written, UNEVEN.name).types == cell_types(plan)


@given(megatron_plans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_plan_put_into_a_file_reads_back(tmp_path, plan):
    model = plan.problem.model
    sizes = f"--num-layers {model.body_count - model.mtp_count} --mtp-num-layers {model.mtp_count}"
    script = f"""A=(
  {sizes} --seq-length 4096
  --pipeline-model-parallel-size $PP
)
torchrun pretrain_gpt.py ${{A[@]}} \\
  --num-virtual-stages-per-pipeline-rank 2 \\
  --recompute-granularity full --recompute-method uniform \\
  --recompute-num-layers 1
"""
    lines = "".join(
        f"  {flag}: {value}  # kept\n" for flag, value in zip(*[iter(sizes.split())] * 2, strict=True)
    )
    yaml = f"MODEL_ARGS:\n{lines}  --recompute-activations: true\n  --lr: 1e-5\n"
    for text, name in ((script, "run.sh"), (yaml, "model_config.yaml")):
        config = read_back(tmp_path, megatron_into(text, plan, name), name)
        assert config.types == cell_types(plan)
        assert (config.stages, config.layers) == (plan.problem.stages, model.body_count)
        assert config.broken == ()


TWO = plan_of_layout("Ett|ttL", 2)
FOUR_CHUNKS = plan_of_layout("Et|t|t|tL", 2, micro_batch_group=4, flags=SELECTIVE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # One line each, with the backslashes of a command
        (
            "run \\\n  --num-layers 4 \\\n  --pipeline-model-parallel-size $PP \\\n  --lr 1\n",
            "run \\\n  --num-layers 4 \\\n  --pipeline-model-parallel-size 2 \\\n"
            '  --pipeline-model-parallel-layout "Ett|ttL" \\\n  --lr 1\n',
        ),
        # The last line of a command
        (
            "run --num-layers 4 \\\n  --pipeline-model-parallel-size 4\necho done\n",
            "run --num-layers 4 \\\n  --pipeline-model-parallel-size 2 \\\n"
            '  --pipeline-model-parallel-layout "Ett|ttL"\necho done\n',
        ),
        # An array, with a blank at the end of a line
        (
            "A=(\n    --pipeline-model-parallel-size 2 \n)\n",
            'A=(\n    --pipeline-model-parallel-size 2 \n    --pipeline-model-parallel-layout "Ett|ttL"\n)\n',
        ),
        (
            "A=(\r\n\t--pipeline-model-parallel-size 2\r\n)\r\n",
            "A=(\r\n\t--pipeline-model-parallel-size 2\r\n"
            '\t--pipeline-model-parallel-layout "Ett|ttL"\r\n)\r\n',
        ),
        # In a string no quotes are needed, and none would be taken away
        (
            'O="\n --pipeline-model-parallel-size 4 \\\n --lr 1"\n',
            'O="\n --pipeline-model-parallel-size 2 \\\n'
            ' --pipeline-model-parallel-layout Ett|ttL \\\n --lr 1"\n',
        ),
        ("run --pipeline-model-parallel-size=4 --lr 1",
         'run --pipeline-model-parallel-size=2 --pipeline-model-parallel-layout="Ett|ttL" --lr 1'),
        ("run --pipeline_model_parallel_size 4",
         'run --pipeline_model_parallel_size 2 --pipeline_model_parallel_layout "Ett|ttL"'),
        # As the old value is written: quotes, backslashes, nothing
        ("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*3|tL' # c",
         "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Ett|ttL' # c"),
        (r"--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Et\*3\|tL",
         r"--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Ett\|ttL"),
        ("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Et*3|tL",
         "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Ett|ttL"),
        # A value that means the same stays
        ("P=2\nrun --pipeline-model-parallel-size $P --pipeline-model-parallel-layout 'E,t*2|t*2,L'",) * 2,
        # Windows' line ends
        ("run --num-layers 4 \\\r\n --pipeline-model-parallel-size 2 \\\r\n --lr 1\r\n",
         'run --num-layers 4 \\\r\n --pipeline-model-parallel-size 2 \\\r\n'
         ' --pipeline-model-parallel-layout "Ett|ttL" \\\r\n --lr 1\r\n'),
        # Behind the number of layers, where no number of stages is given
        ("run --num-layers 4 --lr 1",
         "run --num-layers 4 --pipeline-model-parallel-size 2 "
         '--pipeline-model-parallel-layout "Ett|ttL" --lr 1'),
    ],
)  # fmt: skip
def test_edits_of_scripts(before, after):
    assert megatron_into(before, TWO, "run.sh") == after


L = '--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout "Ett|ttL"'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"run {L} --decoder-first-pipeline-num-layers 2 --lr 1", f"run {L} --lr 1"),
        (f"run {L} --account-for-loss-in-pipeline-split $MORE", f"run {L} $MORE"),
        (f"run \\\n {L} \\\n --decoder-last-pipeline-num-layers 2 \\\n --lr 1", f"run \\\n {L} \\\n --lr 1"),
        # The line before must not go on into what follows the command
        (f"run \\\n {L} \\\n --decoder-last-pipeline-num-layers 2\necho", f"run \\\n {L}\necho"),
        (
            f"run \\\n {L} \\\n --decoder-first-pipeline-num-layers 2 \\\n"
            " --decoder-last-pipeline-num-layers 2\necho",
            f"run \\\n {L}\necho",
        ),
        (f"A=(\n {L}\n --recompute-activations  # old\n --lr 1\n)", f"A=(\n {L}\n --lr 1\n)"),
        (
            f"{L} --recompute-granularity selective --recompute-modules core_attn moe_act --lr 1",
            f"{L} --lr 1",
        ),
        (f"{L} --lr 1 --num-layers-per-virtual-pipeline-stage=1", f"{L} --lr 1"),
    ],
)
def test_flags_that_the_plan_replaces_are_taken_out_of_scripts(before, after):
    assert megatron_into(before, TWO, "run.sh") == after


def test_groups_and_selective_recompute_come_in_and_modules_stay():
    text = (
        "run --num-layers 4 --pipeline-model-parallel-size 2 --recompute-modules mlp --recompute-num-layers 1"
    )
    assert megatron_into(text, FOUR_CHUNKS, "run.sh") == (
        'run --num-layers 4 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout "Et|t|t|tL" '
        "--microbatch-group-size-per-virtual-pipeline-stage 4 --recompute-granularity selective "
        "--recompute-modules mlp"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('  --pipeline-model-parallel-layout: "Et*3|tL"  # old\n',
         '  --pipeline-model-parallel-layout: "Ett|ttL"  # old\n'),
        ("  --pipeline-model-parallel-layout: Et\\\\*3\\\\|tL\n",
         "  --pipeline-model-parallel-layout: Ett\\\\|ttL\n"),
        ("  --pipeline-model-parallel-layout: [[embedding, decoder], [loss]]\n",
         "  --pipeline-model-parallel-layout: Ett|ttL\n"),
        ("  --pipeline-model-parallel-layout:\n    - [embedding, decoder]\n    - [loss]\n  # next\n",
         "  --pipeline-model-parallel-layout:\n    Ett|ttL\n  # next\n"),
        ("  --pipeline-model-parallel-layout: [[embedding, decoder, decoder],\n"
         "    [decoder, decoder, loss]]\n",) * 2,
        ("  --pipeline-model-parallel-layout:\n", "  --pipeline-model-parallel-layout: Ett|ttL\n"),
        ("  --pipeline-model-parallel-layout: Ett|ttL\n  --recompute-method:\n",
         "  --pipeline-model-parallel-layout: Ett|ttL\n"),
        ("  --pipeline-model-parallel-layout: &l Et|L\n", "  --pipeline-model-parallel-layout: &l Ett|ttL\n"),
        ("  --x: &l Et|L\n  --pipeline-model-parallel-layout: *l\n",
         "  --x: &l Et|L\n  --pipeline-model-parallel-layout: Ett|ttL\n"),
        ("  --pipeline-model-parallel-layout: Ett|ttL\n  --recompute-method:\n    block  # old\n  --lr: 1\n",
         "  --pipeline-model-parallel-layout: Ett|ttL\n  --lr: 1\n"),
        ("  --pipeline-model-parallel-layout: |\n    Et|L\n  --lr: 1\n",
         "  --pipeline-model-parallel-layout: Ett|ttL\n  --lr: 1\n"),
    ],
)  # fmt: skip
def test_edits_of_yaml(before, after):
    head, tail = "A: 1\nMODEL_ARGS:\n  # first\n  --pipeline-model-parallel-size: 2\n", "  --fp8: true\nB: 2"
    assert megatron_into(head + before + tail, TWO, "model_config.yaml") == head + after + tail


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("MODEL_ARGS:\n  --num-layers: 4", "MODEL_ARGS:\n  --pipeline-model-parallel-size: 2\n"
         "  --pipeline-model-parallel-layout: Ett|ttL\n  --num-layers: 4"),
        ("MODEL_ARGS:\n  --pipeline-model-parallel-size: 4",
         "MODEL_ARGS:\n  --pipeline-model-parallel-size: 2\n  --pipeline-model-parallel-layout: Ett|ttL"),
        ("MODEL_ARGS:\r\n  --pipeline-model-parallel-size: 4\r\n", "MODEL_ARGS:\r\n"
         "  --pipeline-model-parallel-size: 2\r\n  --pipeline-model-parallel-layout: Ett|ttL\r\n"),
        ("\ufeffpipeline_model_parallel_size: 4\n",
         "\ufeffpipeline_model_parallel_size: 2\npipeline_model_parallel_layout: Ett|ttL\n"),
    ],
)  # fmt: skip
def test_lines_that_come_into_yaml(before, after):
    assert megatron_into(before, TWO, "model_config.yml") == after


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("--num-layers 8", "run.sh", "--num-layers is 8, and the plan's model has 4"),
        ("--num-layers 4 --mtp-num-layers 1", "run.sh", "--mtp-num-layers is 1, and the plan's model has 0"),
        ("--num-layers: 8\n", "c.yaml", "--num-layers is 8, and the plan's model has 4"),
        (
            "--num-layers 4 --hybrid-layer-pattern M",
            "run.sh",
            "decides the split or recompute in another way",
        ),
        ("if x; then\n--pipeline-model-parallel-size 2\nfi", "run.sh", "in a branch of the script"),
        ("if x; then\n--recompute-activations\nfi\n--num-layers 4", "run.sh", "in a branch of the script"),
        ("run --lr 1", "run.sh", "neither --pipeline-model-parallel-size nor --num-layers; paste the flags"),
        ("[1, 2]", "c.json", "is read and not edited; paste the flags"),
        ("MODEL_ARGS: {--num-layers: 4}\n", "c.yaml", "one on a line; paste the flags"),
        ("- --num-layers\n- 4\n", "c.yaml", "must be a mapping of flags"),
        ("", "c.yaml", "must be a mapping of flags"),
        ("a: [", "c.yaml", "the YAML is broken"),
        (
            "--pipeline-model-parallel-size: &p 4\n--x: *p\n",
            "c.yaml",
            "has the anchor &p, which other keys use",
        ),
    ],
)
def test_files_that_can_not_be_edited_safely_are_refused(text, name, words):
    with pytest.raises(InputError, match=words):
        megatron_into(text, TWO, name)


def test_a_model_with_mtp_needs_a_configuration_with_mtp():
    plan = plan_of_layout("Ett|tmL", 2)
    with pytest.raises(InputError, match="--mtp-num-layers is 0, and the plan's model has 1"):
        megatron_into("--num-layers 3 --pipeline-model-parallel-size 2", plan, "run.sh")


def test_yaml_that_refers_to_itself_is_no_crash():
    text = "--x: &a [*a]\n--pipeline-model-parallel-size: 2\n"
    written = megatron_into(text, TWO, "c.yaml")
    assert written == text + "--pipeline-model-parallel-layout: Ett|ttL\n"


def test_several_kinds_of_layers_are_one_row_of_decoders():
    plan = plan_of_layout("Ettt|tt|tmL", 3, model=model_of(2, 4, mtp=1), flags=BLOCK)
    assert layout_of(plan) == parse_layout(megatron_flags(plan)["pipeline-model-parallel-layout"])
    assert megatron_flags(plan)["recompute-num-layers"] == "2"


def test_the_page_shows_what_is_written():
    shown = blocks(PAGE)
    flags = next(block for block in shown if block.startswith("--pipeline"))
    plan = plan_of_layout(flags.split('"')[1], 16, flags=BLOCK)
    assert megatron_text(plan) == flags
    script = next(block for block in shown if block.startswith("MODEL_PARALLEL_ARGS"))
    edited = next(block for block in shown if block.startswith("-    --decoder"))
    assert changes(script, megatron_into(script, plan, "train.sh")) == edited.splitlines()
    yaml = next(block for block in shown if block.startswith("MODEL_ARGS"))
    before = "MODEL_ARGS:\n  --pipeline-model-parallel-size: 4\n"
    assert megatron_into(before, plan, "model_config.yaml").startswith(yaml)
