"""Results and inputs of HyperParallel's PPOptimizer: what they say, what they break, what is no such file."""

import json

import pytest

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.readers.frameworks.framework import Framework, framework_of, read_config
from sapp_ppb.readers.frameworks.hyperparallel_config import read_hyperparallel
from sapp_ppb.schedules import ScheduleName

# As json.dumps(dataclasses.asdict(result)) has it, for 10 layers on 4 stages of 2, 3, 3, 2.
PARTITION = [
    [[0, 0], [1, 0], [2, 4]],
    [[3, 0], [4, 1], [5, 2]],
    [[6, 3], [7, 0], [8, 0]],
    [[9, 0], [10, 0], [11, 0]],
]
RESULT = {
    "stage_partition": PARTITION,
    "layer_offset": {"Dec": [[0, 1, 1, 0]]},
    "is_feasible": True,
    "infeasibility_details": {},
    "is_successful": True,
    "num_of_interleave": 1,
    "pp_degree": 4,
    "micro_batch_num": 8,
    "vpp_less_memory": False,
    "pipeline_bubble": None,
}
INPUTS = """pipeline_config:
  pipeline_num: 8
  num_layer: 32
  micro_batch_num: 8
  num_of_interleave: 1
  vpp_less_memory: false
  optimization_level: 1
  memory_limit: 80000
  constant_memory: 500
  enable_simulation: true
  sim_comm_time: 0.1
"""


def result(tmp_path, **changes):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(RESULT | changes), encoding="utf-8")
    return path


def test_a_result_is_a_plan(tmp_path):
    path = result(tmp_path)
    config = read_hyperparallel(path)
    none, slct, comm, both, full = Recompute
    assert config.types == (((none, full), (none, slct, comm), (both, none, none), (none, none)),)
    assert (config.stages, config.micro_batches, config.layers) == (4, 8, 10)
    assert config.schedule is ScheduleName.ONE_F_ONE_B
    assert (config.broken, config.unknown) == ((), ())
    assert framework_of(path) is Framework.HYPERPARALLEL
    assert read_config(path) == config


def test_types_may_be_named(tmp_path):
    names = ["NONE", "SLCT", "COMM", "BOTH", "FULL"]
    cells = [[[number, names[kind]] for number, kind in cell] for cell in PARTITION]
    named = read_hyperparallel(result(tmp_path, stage_partition=cells))
    assert named == read_hyperparallel(result(tmp_path))


def test_chunks_of_a_stage(tmp_path):
    config = read_hyperparallel(
        result(tmp_path, pp_degree=2, num_of_interleave=2, vpp_less_memory=True, layer_offset={})
    )
    assert config.types is not None
    assert [[len(cell) for cell in row] for row in config.types] == [[2, 3], [3, 2]]
    assert config.schedule is ScheduleName.INTERLEAVED_LESS_MEMORY


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pp_degree": 3}, "must have num_of_interleave x pp_degree, 1 x 3, entries (got 4)"),
        ({"layer_offset": {"Dec": [[1, 1, 1, 0]]}}, "other layers in stage 0 chunk 0"),
        # Groups that PPOptimizer spreads over all stages, one after the other, are in no chain.
        (
            {"pp_degree": 2, "stage_partition": [[[0, 0], [1, 0], [3, 0]], [[2, 0], [4, 0], [5, 0]]]},
            "must follow one another along the cells (got 3 where 2 should be)",
        ),
    ],
)
def test_broken_variants_name_the_rule(tmp_path, changes, said):
    (rule,) = read_hyperparallel(result(tmp_path, **changes)).broken
    assert said in str(rule)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pp_degree": 0}, "pp_degree must be a whole number from 1 to 1000000 (got 0)"),
        ({"pp_degree": True}, "pp_degree must be a whole number"),
        ({"micro_batch_num": 1.5}, "micro_batch_num must be a whole number"),
        ({"vpp_less_memory": "no"}, "vpp_less_memory must be true or false (got 'no')"),
        ({"stage_partition": 3}, "stage_partition must be a list of lists of layers (got 3)"),
        ({"stage_partition": [[[0, 5]]]}, "stage_partition[0][0] must be a layer's number and its type"),
        ({"stage_partition": [[[0, "full"]]]}, "0 to 4 or one of NONE, SLCT, COMM, BOTH, FULL"),
        ({"stage_partition": [[[0, True]]]}, "stage_partition[0][0] must be"),
        ({"stage_partition": [[[0]]]}, "stage_partition[0][0] must be"),
        ({"layer_offset": {"Dec": [1]}}, "layer_offset must give lists of lists of whole numbers"),
        ({"simulator_end_time": float("nan")}, "simulator_end_time must be a finite number"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path, changes, said):
    with pytest.raises(InputError) as refused:
        read_hyperparallel(result(tmp_path, **changes))
    assert any(said in fault for fault in refused.value.faults)


def test_all_faults_come_at_once(tmp_path):
    with pytest.raises(InputError) as refused:
        read_hyperparallel(result(tmp_path, pp_degree=-1, micro_batch_num=None, is_feasible=2))
    assert len(refused.value.faults) == 3


def test_what_its_simulator_said_is_noted(tmp_path):
    failed = read_hyperparallel(result(tmp_path, simulation_status="failed", simulation_error="8 < 16"))
    assert failed.notes == ("its own simulation failed: '8 < 16'",)


def test_inputs_say_sizes_and_no_split(tmp_path):
    path = tmp_path / "pp.yaml"
    path.write_text(INPUTS, encoding="utf-8")
    config = read_config(path)
    assert config.target == "hyperparallel"
    assert (config.stages, config.micro_batches, config.layers) == (8, 8, 32)
    assert (config.memory_limit_mb, config.types, config.broken) == (80000.0, None, ())
    assert config.notes == ("give --constant-memory 500 --p2p 0.1 for its constant_memory and sim_comm_time",)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("pipeline_num: 8", "pipeline_num: 0", "pipeline_num (line 2): must be a whole number from 1"),
        ("pipeline_num: 8", "pipeline_num: 1.9", "must be a whole number from 1"),
        ("pipeline_num: 8\n", "\n", "pipeline_num: must be given"),
        ("micro_batch_num: 8\n", "\n", "micro_batch_num: must be given"),
        ("num_of_interleave: 1", "num_of_interleave: 0", "num_of_interleave (line 5): must be"),
        ("vpp_less_memory: false", "vpp_less_memory: maybe", "must be true or false (got 'maybe')"),
        ("optimization_level: 1", "optimization_level: 3", "must be 0, 1 or 2 (got 3)"),
        ("memory_limit: 80000", "memory_limit: 0", "must be above 0 MB"),
        ("memory_limit: 80000", "memory_limit: -1", "must be a whole number from 0"),
        ("sim_comm_time: 0.1", "sim_comm_time: -0.1", "must be a finite number of milliseconds"),
        ("sim_comm_time: 0.1", "sim_comm_time: true", "must be a finite number of milliseconds"),
    ],
)
def test_broken_inputs_name_the_rule(tmp_path, old, new, said):
    assert old in INPUTS
    path = tmp_path / "pp.yaml"
    path.write_text(INPUTS.replace(old, new), encoding="utf-8")
    (rule,) = read_hyperparallel(path).broken
    assert said in str(rule)


def test_words_for_bools_are_those_of_ppoptimizer(tmp_path):
    path = tmp_path / "pp.yaml"
    path.write_text(INPUTS.replace("less_memory: false", "less_memory: 1").replace("leave: 1", "leave: 2"))
    assert read_hyperparallel(path).schedule is ScheduleName.INTERLEAVED_LESS_MEMORY


@pytest.mark.parametrize("text", ["a: 1", "- 1", "pipeline_config: 3"])
def test_other_yamls_are_refused(tmp_path, text):
    path = tmp_path / "pp.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="must be a mapping with pipeline_config"):
        read_hyperparallel(path)


def test_the_yaml_of_the_older_tool_is_left_to_its_reader(tmp_path):
    path = tmp_path / "init.yaml"
    path.write_text("pipeline_config:\n  pipeline_num: 2\ntime_config:\n  head: 1\n", encoding="utf-8")
    assert framework_of(path) is None
