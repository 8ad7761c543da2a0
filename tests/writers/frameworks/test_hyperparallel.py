"""Results in the fields of PPOptimizer, and the YAML that it is given."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings

from sapp_ppb.errors import InputError
from sapp_ppb.plan import Outcome, Shortage, Status, StoppedBy
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from sapp_ppb.readers.frameworks.hyperparallel_config import read_hyperparallel
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator import simulate
from sapp_ppb.targets.cell_types import cell_types
from sapp_ppb.targets.hyperparallel.target import HYPERPARALLEL
from sapp_ppb.writers.frameworks.hyperparallel import (
    hyperparallel_into,
    hyperparallel_outcome_text,
    hyperparallel_text,
    hyperparallel_timed_text,
    pp_config_text,
)
from tests.strategies import plans
from tests.targets.megatron_cases import model_of, plan_of_layout

# Fields of PPStrategyResult: those of PPBOutput, which it extends, and its own.
FIELDS = {
    "stage_partition",
    "layer_offset",
    "is_feasible",
    "infeasibility_details",
    "is_successful",
    "simulator_end_time",
    "simulator_bubbles",
    "simulator_peak_memory",
    "simulation_status",
    "simulation_error",
    "num_of_interleave",
    "pp_degree",
    "micro_batch_num",
    "vpp_less_memory",
    "pipeline_bubble",
}


def read_back(tmp_path, text, name="result.json"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_hyperparallel(path)


@given(plans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much])
def test_what_is_written_reads_back_as_the_plan(tmp_path, plan):
    assume(not HYPERPARALLEL.unsaid(plan))
    text, problem = hyperparallel_text(plan), plan.problem
    assert set(json.loads(text)) == FIELDS
    config = read_back(tmp_path, text)
    assert config.types == cell_types(plan)
    assert (config.broken, config.unknown, config.notes) == ((), (), ())
    assert (config.stages, config.interleave) == (problem.stages, problem.interleave)
    assert (config.micro_batches, config.layers) == (problem.micro_batches, problem.model.body_count)
    if problem.interleave > 1:
        assert config.schedule is problem.schedule_name


def test_layers_of_two_chunks_in_the_order_of_the_chain():
    result = json.loads(hyperparallel_text(plan_of_layout("Et|tt|t|L", 2)))
    # Entry v S + s is chunk v of stage s; 0 is the HEAD, 5 the TAIL; 4 // 4 = 1 layer everywhere.
    assert result["stage_partition"] == [[[0, 0], [1, 0]], [[2, 0], [3, 0]], [[4, 0]], [[5, 0]]]
    assert result["layer_offset"] == {"dec0": [[0, 1], [0, -1]]}
    assert (result["pp_degree"], result["num_of_interleave"], result["micro_batch_num"]) == (2, 2, 32)
    assert (result["simulation_status"], result["pipeline_bubble"]) == ("not_run", None)


def test_a_timeline_fills_the_fields_of_the_simulator(tmp_path):
    plan = plan_of_layout("Et|tL", 2, micro_batches=4)
    text = hyperparallel_timed_text(simulate(plan))
    result = json.loads(text)
    # Two equal stages of 1 + 2 ms: (4 + 2 - 1) x 3 = 15 ms, a bubble of (2 - 1) / 4.
    assert result["simulator_end_time"] == 15.0
    assert result["simulator_bubbles"] == pytest.approx({"real": 0.25, "ideal": 0.25, "imba": 0, "comm": 0})
    assert result["pipeline_bubble"] == pytest.approx(0.25)
    # Stage 0 holds 2 micro-batches of 100 MB, stage 1 one.
    assert result["simulator_peak_memory"] == [200.0, 100.0]
    (note,) = read_back(tmp_path, text).notes
    assert note == (
        "its own simulation took 15.0 ms a step, a bubble of 25.0% of useful work, and held 200 MB at most"
    )


def test_an_answer_of_the_planner_is_a_result():
    problem = Problem(model=model_of(4), stages=2, micro_batches=4, memory_limit_mb=1000.0)
    outcome = plan_pipeline(problem)
    assert outcome.plan is not None
    assert hyperparallel_outcome_text(outcome) == hyperparallel_timed_text(simulate(outcome.plan))


def test_an_answer_that_nothing_fits_is_a_result_without_layers(tmp_path):
    problem = Problem(model=model_of(4), stages=2, micro_batches=4, memory_limit_mb=1.0)
    outcome = Outcome(
        problem=problem,
        plan=None,
        status=Status.INFEASIBLE,
        stopped_by=StoppedBy.PROOF,
        shortage=Shortage(stage=0, op="0F1", over_mb=39.0, smallest_limit_mb=40.0),
    )
    text = hyperparallel_outcome_text(outcome)
    result = json.loads(text)
    assert set(result) == FIELDS
    assert (result["is_feasible"], result["stage_partition"]) == (False, [])
    assert result["infeasibility_details"]["smallest_limit_mb"] == 40.0
    config = read_back(tmp_path, text)
    assert config.types is None
    assert config.unknown == (
        "is_feasible is false, and there is no partition: no plan fits the memory limit",
    )


def test_a_plan_that_can_not_be_said_is_refused_with_the_reason():
    problem = Problem(model=model_of(4), stages=2, micro_batches=4, schedule=ScheduleName.GPIPE)
    plan = plan_pipeline(problem).plan
    assert plan is not None
    for write in (hyperparallel_text, lambda plan: hyperparallel_timed_text(simulate(plan))):
        with pytest.raises(InputError, match="has no schedule gpipe"):
            write(plan)


def test_the_inputs_of_a_problem_read_back(tmp_path):
    problem = Problem(
        model=model_of(8),
        stages=2,
        interleave=2,
        micro_batches=4,
        schedule=ScheduleName.INTERLEAVED_LESS_MEMORY,
        memory_limit_mb=56000.0,
        constant_memory_mb=500.0,
        p2p_ms=0.5,
    )
    config = read_back(tmp_path, pp_config_text(problem), "pp.yaml")
    assert (config.stages, config.interleave, config.micro_batches, config.layers) == (2, 2, 4, 8)
    assert (config.schedule, config.memory_limit_mb) == (ScheduleName.INTERLEAVED_LESS_MEMORY, 56000.0)
    assert (config.broken, config.types) == ((), None)
    assert config.notes == ("give --constant-memory 500 --p2p 0.5 for its constant_memory and sim_comm_time",)
    assert "'sapp-ppb plan MODEL.json -s 2 -i 2 -mb 4 -mem 56000' finds one" in config.unknown[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"memory_limit_mb": None}, "needs one memory limit"),
        ({"memory_limit_mb": (1000.0, 2000.0)}, "needs one memory limit"),
        ({"memory_limit_mb": 1000.5}, "needs one memory limit"),
        ({"constant_memory_mb": (1.0, 2.0)}, "takes one constant memory"),
        ({"schedule": ScheduleName.GPIPE}, "has no schedule gpipe"),
    ],
)
def test_problems_that_it_can_not_be_given(changes, said):
    given_fields = {"model": model_of(4), "stages": 2, "micro_batches": 4, "memory_limit_mb": 1000.0}
    with pytest.raises(InputError, match=said):
        pp_config_text(Problem(**given_fields | changes))


INPUTS = """# PP2
pipeline_config:
  pipeline_num: 8   # stages
  num_layer: 4
  micro_batch_num: 8
  memory_limit: 80000
"""


def test_sizes_are_edited_and_nothing_else():
    plan = plan_of_layout("Ett|ttL", 2)
    assert hyperparallel_into(INPUTS, plan, "pp.yaml") == INPUTS.replace(": 8   #", ": 2   #").replace(
        "micro_batch_num: 8", "micro_batch_num: 32"
    )
    chunks = hyperparallel_into(INPUTS, plan_of_layout("Et|t|t|tL", 2), "pp.yaml")
    assert chunks.endswith("memory_limit: 80000\n  num_of_interleave: 2\n")


@pytest.mark.parametrize(
    ("name", "plan", "said"),
    [
        ("pp.yaml", plan_of_layout("Ett|tttL", 2), "num_layer is 4, and the plan's model has 5"),
        ("result.json", plan_of_layout("Ett|ttL", 2), "a result is written whole"),
    ],
)
def test_files_that_can_not_take_a_plan(name, plan, said):
    with pytest.raises(InputError, match=said):
        hyperparallel_into(INPUTS, plan, name)


def test_the_page_shows_the_inputs_that_are_written():
    page = (Path(__file__).parents[3] / "docs" / "frameworks" / "hyperparallel.md").read_text(
        encoding="utf-8"
    )
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.S)
    problem = Problem(model=model_of(96), stages=16, micro_batches=32, memory_limit_mb=56000.0)
    assert pp_config_text(problem) == shown
    assert all(f"`{field}`" in page for field in FIELDS - {"is_successful", "simulation_error"})
