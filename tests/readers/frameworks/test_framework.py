"""Whose a configuration is, by name and content."""

from pathlib import Path

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.readers.frameworks.framework import Framework, framework_of, is_plan_file, read_config

DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("path", sorted((DATA / "configs").glob("*/*.yaml")), ids=lambda path: path.name)
def test_real_yaml_files_are_told_apart(path):
    assert framework_of(path) == path.parent.name


@pytest.mark.parametrize("path", sorted((DATA / "configs").glob("*/*.toml")), ids=lambda path: path.name)
def test_toml_is_torchtitans(path):
    assert framework_of(path) is Framework.TORCHTITAN


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "a.yaml",
            "model:\n  # a comment\n\n  trainer: x\n  model_config:\n    num_layers: 4\n",
            "mindformers",
        ),
        ("a.yaml", "recompute_config:\n  recompute: true\n", "mindformers"),
        ("a.yaml", "MODEL_ARGS:\n  --num-layers: 4\n", "megatron"),
        ("run.sh", "torchrun x.py \\\n --pipeline-model-parallel-layout 'Et|tL'", "megatron"),
        ("args.txt", "--num-layers 8", "megatron"),
        ("args.json", '["--num-layers", "8"]', "megatron"),
        ("job.py", "anything", "torchtitan"),
        ("layers.csv", "index,name,stage,chunk,recompute\n", "csv"),
        ("layers.json", '{"format": "sapp-ppb-layers"}', "json"),
        ("layers.txt", '\ufeff{"version": 1, "format" : "sapp-ppb-layers"}', "json"),
    ],
)
def test_content_tells_whose_it_is(tmp_path, name, text, expected):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert framework_of(tmp_path / name) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("manual.yaml", "mine:\n  offset: 0\n  recompute: 0\n"),
        ("plan.json", '{"format": "sapp-ppb-plan", "model": "--num-layers 4"}'),
        ("model.json", '{"name": "m", "layers_description": []}'),
        ("order.csv", "0F0,0B0\n"),
        ("init.yaml", "pipeline_config:\n  offset: 0\nrecompute_config: {}\nmemory_usage: {}\n"),
        ("notes.txt", "the option --num-layers-in-words"),
    ],
)
def test_what_is_no_configuration_is_told_so(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert framework_of(tmp_path / name) is None
    with pytest.raises(InputError, match=r"is no configuration that is known|is a (plan|model) file"):
        read_config(tmp_path / name)


def test_a_function_of_a_python_file_is_torchtitans():
    assert framework_of("configs/job.py::debug") is Framework.TORCHTITAN


def test_what_can_not_be_read_is_nobodys(tmp_path):
    assert framework_of(tmp_path) is None
    assert framework_of(tmp_path / "none") is None
    assert not is_plan_file(tmp_path / "none")
    with pytest.raises(InputError, match="there is no such file"):
        read_config(tmp_path / "none")
    with pytest.raises(InputError, match="is a folder"):
        read_config(tmp_path)


def test_bytes_that_are_no_text_are_nobodys(tmp_path):
    (tmp_path / "x.yaml").write_bytes(bytes(range(256)) * 10)
    assert framework_of(tmp_path / "x.yaml") is None


def test_a_long_file_of_blank_lines_is_told_at_once(tmp_path):
    # A pattern that could match each line in two ways would take for ever.
    (tmp_path / "x.yaml").write_text("model:\n" + " \n" * 20_000, encoding="utf-8")
    assert framework_of(tmp_path / "x.yaml") is None


def test_the_name_that_is_given_counts(tmp_path):
    (tmp_path / "x.txt").write_text("--num-layers 8 --pipeline-model-parallel-size 2", encoding="utf-8")
    assert read_config(tmp_path / "x.txt", "megatron").target == "megatron"
    with pytest.raises(InputError, match="MindFormers YAML"):
        read_config(tmp_path / "x.txt", "mindformers")


def test_an_unknown_name_is_refused_with_those_that_exist(tmp_path):
    with pytest.raises(
        InputError,
        match="'fsdp' is unknown; one of mindformers, megatron, torchtitan, mindspeed, hyperparallel, c",
    ):
        read_config(tmp_path / "x", "fsdp")


@pytest.mark.parametrize(
    ("name", "text", "framework"),
    [
        ("train.py", "plugin = HybridParallelPlugin(pp_size=4)", "colossalai"),
        ("train.py", "kwargs = {'num_layers_per_stage': [1, 2]}", "colossalai"),
        ("plan.json", '{"num_layers_per_stage": [1, 2]}', "colossalai"),
        ("model.py", "from deepspeed.pipe import PipelineModule", "deepspeed"),
        ("model.py", "PARTS = [0, 4, 8]", "deepspeed"),
        ("plan.json", '{"PARTS": [0, 4, 8]}', "deepspeed"),
        ("job.py", "from torch.distributed.pipelining import SplitPoint", "pytorch"),
        ("job.py", "PIPELINE_STAGES = [(0, 0, 2)]", "pytorch"),
        ("plan.json", '{"split_spec": {"layers.2": "BEGINNING"}}', "pytorch"),
        # torchtitan builds on PyTorch's pipelining, and says its own name.
        (
            "job.py",
            "from torchtitan.config import X\nfrom torch.distributed.pipelining import y",
            "torchtitan",
        ),
        ("job.py", "config.parallelism.pipeline_parallel_degree = 2  # split_spec", "torchtitan"),
        ("plan.json", '{"layers": 3}', None),
    ],
)
def test_python_and_json_are_told_apart_by_their_names(tmp_path, name, text, framework):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert framework_of(tmp_path / name) == framework


@pytest.mark.parametrize("name", ["colossalai", "deepspeed", "pytorch"])
def test_layers_of_the_model_reach_the_readers_that_need_them(tmp_path, name):
    text = {
        "colossalai": "HybridParallelPlugin(pp_size=2)",
        "deepspeed": "PipelineModule(layers, num_stages=2, partition_method='uniform')",
        "pytorch": "split_spec = {'layers.2': SplitPoint.BEGINNING}\nScheduleGPipe(stage, n_microbatches=2)",
    }[name]
    (tmp_path / "job.py").write_text(text, encoding="utf-8")
    config = read_config(tmp_path / "job.py", name, layers=4)
    assert config.types is not None
    assert [len(cell) for cell in config.types[0]] == [2, 2]
