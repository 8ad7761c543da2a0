"""What is written for torchtitan is what it would run, and a file keeps everything else."""

import difflib
import tomllib
from pathlib import Path

import pytest
from hypothesis import given

from sapp_ppb.errors import InputError
from sapp_ppb.plan import plan_from_matrices
from sapp_ppb.readers.frameworks.torchtitan_config import read_torchtitan
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.cell_types import plan_from_types
from sapp_ppb.targets.torchtitan.target import TORCHTITAN, checkpoint_mode
from sapp_ppb.writers.frameworks.torchtitan import torchtitan_into, torchtitan_text
from tests.pages import DOCS, shown
from tests.torchtitan_plans import problem_of, torchtitan_plans, with_mode

CONFIGS = Path(__file__).parents[2] / "data" / "configs" / "torchtitan"
PAGE = DOCS / "frameworks" / "torchtitan.md"
REAL = ("debug_model.toml", "deepseek_v3_671b.toml")


def plan_of(mode="none", every=2):
    """Four parts on two ranks, of 2, 1, 1 and 2 layers."""
    problem = problem_of([6], stages=2, interleave=2, micro_batches=4, schedule=ScheduleName.INTERLEAVED)
    plan = plan_from_matrices(problem, {"body0": {"none": [[2, 1], [1, 2]]}})
    return with_mode(plan, mode, every)


def text_of(name):
    with (CONFIGS / name).open(encoding="utf-8", newline="") as file:
        return file.read()


def changed_lines(before, after):
    """Lines that went and lines that came."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))[2:]
    return [line[1:] for line in lines if line[0] == "-"], [line[1:] for line in lines if line[0] == "+"]


def assert_same(config, plan):
    problem = plan.problem
    assert (config.broken, config.unknown) == ((), ())
    assert (config.stages, config.interleave) == (problem.stages, problem.interleave)
    assert (config.micro_batches, config.schedule) == (problem.micro_batches, problem.schedule_name)
    assert config.order_file == problem.order_file
    assert config.layers == problem.model.body_count
    group = problem.micro_batch_group
    assert config.micro_batch_group in (group, None)
    if config.micro_batch_group is None:
        assert group in (None, min(problem.stages, problem.micro_batches))
    assert plan_from_types(problem, config.types) == plan


def test_the_python_snippet_says_the_same_in_statements():
    assert torchtitan_text(plan_of("selective"), python=True) == (
        "config.parallelism.pipeline_parallel_degree = 2\n"
        'config.parallelism.pipeline_parallel_schedule = "Interleaved1F1B"\n'
        "config.parallelism.module_fqns_per_model_part = [\n"
        '    ["tok_embeddings", "layers.0", "layers.1"],\n'
        '    ["layers.2"],\n'
        '    ["layers.3"],\n'
        '    ["layers.4", "layers.5", "norm", "output"],\n'
        "]\n"
        "config.parallelism.pipeline_parallel_microbatch_size = 1\n"
        "config.training.local_batch_size = 4  # micro-batches x pipeline_parallel_microbatch_size\n"
        "config.activation_checkpoint = SelectiveAC.Config()\n"
    )


def test_the_page_shows_what_is_written():
    toml, python = torchtitan_text(plan_of("full")), torchtitan_text(plan_of("full"), python=True)
    assert toml in shown(PAGE, "toml")
    assert python in shown(PAGE, "python")


@given(torchtitan_plans())
def test_toml_that_is_written_is_read_as_the_same_plan(tmp_path_factory, plan):
    assert TORCHTITAN.unsaid(plan) == ()
    folder = tmp_path_factory.mktemp("toml")
    if plan.problem.order_file:
        (folder / "order.csv").write_text(plan.problem.order_file.text)
    (folder / "job.toml").write_text(torchtitan_text(plan))
    assert_same(read_torchtitan(folder / "job.toml"), plan)


@given(torchtitan_plans())
def test_python_that_is_written_is_read_as_the_same_plan(tmp_path_factory, plan):
    folder = tmp_path_factory.mktemp("python")
    if plan.problem.order_file:
        (folder / "order.csv").write_text(plan.problem.order_file.text)
    body = torchtitan_text(plan, python=True).replace("\n", "\n    ")
    (folder / "job.py").write_text(f"def job():\n    config = base()\n    {body}\n    return config\n")
    assert_same(read_torchtitan(folder / "job.py"), plan)


@pytest.mark.parametrize("name", REAL)
@given(plan=torchtitan_plans())
def test_a_real_file_is_read_back_as_the_plan_and_keeps_all_else(tmp_path_factory, name, plan):
    folder = tmp_path_factory.mktemp("real")
    if plan.problem.order_file:
        (folder / "order.csv").write_text(plan.problem.order_file.text)
    before = text_of(name)
    after = torchtitan_into(before, plan, name)
    (folder / name).write_bytes(after.encode())
    assert_same(read_torchtitan(folder / name), plan)
    went, came = changed_lines(before, after)
    keys = ("local_batch_size =", "pipeline_parallel_", "mode =", "selective_ac_option =")
    assert all(line.startswith(keys) for line in went)
    assert all(line.startswith((*keys, "module_fqns_per_model_part = [", "    [", "]")) for line in came)
    # Writing the same once more changes nothing.
    assert torchtitan_into(after, plan, name) == after


def test_only_the_keys_of_the_plan_change_in_a_real_file():
    went, came = changed_lines(text_of(REAL[1]), torchtitan_into(text_of(REAL[1]), plan_of("full"), "671b"))
    comment = '  # ["none", "selective", "full"]'
    assert went == ["pipeline_parallel_degree = 1", f'mode = "selective"{comment}']
    # The batch of 4 samples already makes 4 micro-batches, and the schedule is the file's.
    assert came == [
        "pipeline_parallel_degree = 2",
        "module_fqns_per_model_part = [",
        '    ["tok_embeddings", "layers.0", "layers.1"],',
        '    ["layers.2"],',
        '    ["layers.3"],',
        '    ["layers.4", "layers.5", "norm", "output"],',
        "]",
        f'mode = "full"{comment}',
    ]


def test_a_micro_batch_keeps_its_size_and_other_modules_their_ends():
    text = """# mine
[parallelism]
pipeline_parallel_microbatch_size = 3
pipeline_parallel_layers_per_stage = 2
pipeline_parallel_schedule_csv = "old.csv"
module_fqns_per_model_part = [
  ['vision_encoder', 'tok_embeddings', 'layers.0'],  # eyes
  ['layers.1', 'norm', 'lm_head', 'hc_head'],
]  # two parts
[training]
local_batch_size = 6
"""
    edited = torchtitan_into(text, plan_of(), "job.toml")
    tables = tomllib.loads(edited)
    assert tables["training"]["local_batch_size"] == 12  # 4 micro-batches of 3
    assert tables["parallelism"]["pipeline_parallel_schedule_csv"] == ""
    assert "pipeline_parallel_layers_per_stage" not in tables["parallelism"]
    parts = tables["parallelism"]["module_fqns_per_model_part"]
    assert parts[0] == ["vision_encoder", "tok_embeddings", "layers.0", "layers.1"]
    assert parts[3] == ["layers.4", "layers.5", "norm", "lm_head", "hc_head"]
    assert edited.startswith("# mine\n[parallelism]\npipeline_parallel_microbatch_size = 3\n")
    assert "]  # two parts\n" in edited


@pytest.mark.parametrize("text", ["", "# nothing", "[training]\nseed = 1", "parallelism = {}\n"])
def test_tables_that_are_missing_are_added(text):
    tables = tomllib.loads(torchtitan_into(text, plan_of(), "job.toml"))
    assert tables["activation_checkpoint"] == {"mode": "none"}
    assert tables["parallelism"]["pipeline_parallel_degree"] == 2
    assert tables["training"]["local_batch_size"] == 4


def test_line_ends_and_the_byte_order_mark_stay():
    edited = torchtitan_into("\ufeff[training]\r\nseed = 1\r\n", plan_of(), "job.toml")
    assert edited.startswith("\ufeff[training]\r\nseed = 1\r\n")
    assert "\n" not in edited.replace("\r\n", "")


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("a = 1", "config_registry.py", "Python is not edited"),
        ("a = 1", "registry.py::llama", "Python is not edited"),
        ("[parallelism", "job.toml", "the TOML is broken at line 1"),
        ("parallelism = 3\ntraining = []", "job.toml", "(?s)parallelism must be a table.*training must be"),
        ("[experimental]\npipeline_parallel_degree = 2", "job.toml", "has no module_fqns_per_model_part"),
        ("[parallelism]\npipeline_parallel_split_points = []", "job.toml", "move to a newer one"),
        ("[parallelism]\npipeline_parallel_microbatch_size = 0", "job.toml", r"at least 1 \(got 0\)"),
        (
            '[parallelism]\nmodule_fqns_per_model_part = [["layers.0"], ["eye"], ["norm"]]',
            "job.toml",
            "part 1 holds 'eye', and the plan does not say where that goes",
        ),
    ],
)
def test_what_can_not_be_edited_is_refused(text, where, words):
    with pytest.raises(InputError, match=words):
        torchtitan_into(text, plan_of(), where)


def test_a_plan_that_torchtitan_can_not_say_is_refused_with_the_reason():
    problem = problem_of([4], stages=2, micro_batches=4)
    plan = plan_from_matrices(problem, {"body0": {"none": [[1, 2]], "full": [[1, 0]]}})
    assert checkpoint_mode(plan) is None
    for write in (torchtitan_text, lambda plan: torchtitan_into("", plan, "job.toml")):
        with pytest.raises(InputError, match="one mode of activation checkpointing holds for the whole"):
            write(plan)
