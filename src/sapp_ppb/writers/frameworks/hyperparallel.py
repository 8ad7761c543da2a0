"""
A plan in the fields of HyperParallel's ``PPStrategyResult``, and what PPOptimizer is given.

Recompute types are numbers, as ``json.dumps(dataclasses.asdict(result))`` writes them, so
that ``PPStrategyResult(**json.load(file))`` is the result again.
"""

import json
from collections.abc import Mapping

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Outcome, Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.simulator import Timeline
from sapp_ppb.targets.cell_types import cell_types
from sapp_ppb.targets.hyperparallel.target import refuses, unsaid
from sapp_ppb.writers.frameworks.yaml_edit import YamlEdit

_SECTION = "pipeline_config"
_NOT_RUN = {
    "simulator_end_time": 0.0,
    "simulator_bubbles": {},
    "simulator_peak_memory": [],
    "simulation_status": "not_run",
    "simulation_error": None,
}


def hyperparallel_text(plan: Plan) -> str:
    """
    Write a plan as a result whose simulation was not run.

    Layer 0 is the HEAD and the last number the TAIL, whatever layers they stand for; within
    a cell the most recomputed layers of a kind come first.

    Raises
    ------
    InputError
        Where PPOptimizer can not say the plan, with the reasons.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> memory = {Recompute.NONE: 600, Recompute.FULL: 40}
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=3, forward_ms=1, activation_mb=memory)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> plan = plan_from_matrices(problem, {"Dec": {"none": [[1, 1]], "full": [[1, 0]]}})
    >>> result = json.loads(hyperparallel_text(plan))  # layers 0 and 4 are HEAD and TAIL, 4 is FULL
    >>> result["stage_partition"], result["layer_offset"]  # 3 // 2 = 1, so that stage 0 has one more
    ([[[0, 0], [1, 4], [2, 0]], [[3, 0], [4, 0]]], {'Dec': [[1, 0]]})
    """
    return _document(plan, _NOT_RUN, None)


def hyperparallel_timed_text(timeline: Timeline) -> str:
    """
    Write a plan as a result with what the simulator says of it.

    Raises
    ------
    InputError
        Where PPOptimizer can not say the plan, with the reasons.
    """
    bubble = timeline.bubble
    parts = {
        "real": bubble.total,
        "ideal": bubble.fill_drain,
        "imba": bubble.imbalance,
        "comm": bubble.communication,
    }
    if bubble.recompute > 0:
        parts["recompute"] = bubble.recompute
    said = {
        "simulator_end_time": timeline.makespan_ms,
        "simulator_bubbles": parts,
        "simulator_peak_memory": list(timeline.peak_memory_mb),
        "simulation_status": "success",
        "simulation_error": None,
    }
    return _document(timeline.plan, said, bubble.total)


def hyperparallel_outcome_text(outcome: Outcome) -> str:
    """
    Write an answer of the planner as a result, one that nothing fits included.

    Raises
    ------
    InputError
        Where PPOptimizer can not say the plan, or has no such schedule.
    """
    if outcome.plan is not None:
        from sapp_ppb.simulator import simulate

        return hyperparallel_timed_text(simulate(outcome.plan))
    if faults := refuses(outcome.problem):
        raise InputError("plan", faults)
    shortage = outcome.shortage
    details: dict[str, object] = {"reason": "no plan fits the memory limit"}
    if shortage is not None:
        details |= {"stage": shortage.stage, "over_mb": shortage.over_mb}
        details |= {"smallest_limit_mb": shortage.smallest_limit_mb}
    fields = {
        "stage_partition": [],
        "layer_offset": {},
        "is_feasible": False,
        "infeasibility_details": details,
        "is_successful": False,
    }
    return _text(fields | _NOT_RUN | _sizes(outcome.problem) | {"pipeline_bubble": None})


def _document(plan: Plan, simulated: Mapping[str, object], bubble: float | None) -> str:
    if faults := unsaid(plan):
        raise InputError("plan", faults)
    fields = {
        "stage_partition": _partition(plan),
        "layer_offset": _offsets(plan),
        "is_feasible": True,
        "infeasibility_details": {},
        "is_successful": True,
    }
    return _text(fields | dict(simulated) | _sizes(plan.problem) | {"pipeline_bubble": bubble})


def _sizes(problem: Problem) -> dict[str, object]:
    return {
        "num_of_interleave": problem.interleave,
        "pp_degree": problem.stages,
        "micro_batch_num": problem.micro_batches,
        "vpp_less_memory": problem.schedule_name is ScheduleName.INTERLEAVED_LESS_MEMORY,
    }


def _partition(plan: Plan) -> list[list[list[int]]]:
    """List number and type of every layer, for each cell along the chain."""
    cells = [[int(recompute) for recompute in cell] for row in cell_types(plan) for cell in row]
    cells[0].insert(0, int(Recompute.NONE))
    cells[-1].append(int(Recompute.NONE))
    number = iter(range(sum(map(len, cells))))
    return [[[next(number), recompute] for recompute in cell] for cell in cells]


def _offsets(plan: Plan) -> dict[str, list[list[int]]]:
    """Layers of each entry in each cell, less those of an even split rounded down."""
    problem, by_entry = plan.problem, plan.counts.sum(axis=1)
    return {
        layer.name: [
            [int(by_entry[k, cell]) - layer.count // problem.cells for cell in row] for row in problem.cell_at
        ]
        for k, layer in enumerate(problem.model.bodies)
    }


def _text(fields: Mapping[str, object]) -> str:
    """JSON with a line for each field, and for each cell of the partition."""
    lines = []
    for key, value in fields.items():
        if key == "stage_partition" and isinstance(value, list) and value:
            cells = ",\n".join(f"    {_json(cell)}" for cell in value)
            lines.append(f'  "{key}": [\n{cells}\n  ]')
        else:
            lines.append(f'  "{key}": {_json(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def pp_config_text(problem: Problem) -> str:
    """
    Write the YAML that PPOptimizer takes for a problem; its layers are the model file.

    Raises
    ------
    InputError
        Where PPOptimizer has no such schedule, or limits that differ by stage or are no
        whole MB.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1)
    >>> model = Model(name="tiny", layers=(body,))
    >>> print(pp_config_text(Problem(model=model, stages=4, micro_batches=8, memory_limit_mb=56000)), end="")
    pipeline_config:
      pipeline_num: 4
      num_layer: 8
      micro_batch_num: 8
      num_of_interleave: 1
      vpp_less_memory: false
      memory_limit: 56000
      constant_memory: 0
      sim_comm_time: 0.0
    """
    faults = list(refuses(problem))
    limit_mb, constant_mb = _one(problem.memory_limit_mb), _one(problem.constant_memory_mb)
    hop_ms = _one(problem.p2p_ms)
    if limit_mb is None or limit_mb != int(limit_mb) or limit_mb < 1:
        faults.append(
            "PPOptimizer needs one memory limit for all stages, a whole number of MB; give --memory-limit"
        )
    if constant_mb is None or constant_mb != int(constant_mb):
        faults.append("PPOptimizer takes one constant memory for all stages, a whole number of MB")
    if hop_ms is None:
        faults.append("PPOptimizer takes one time for all hops")
    if faults or limit_mb is None or constant_mb is None:
        raise InputError("plan", faults)
    settings = {
        "pipeline_num": problem.stages,
        "num_layer": problem.model.body_count,
        "micro_batch_num": problem.micro_batches,
        "num_of_interleave": problem.interleave,
        "vpp_less_memory": problem.schedule_name is ScheduleName.INTERLEAVED_LESS_MEMORY,
        "memory_limit": int(limit_mb),
        "constant_memory": int(constant_mb),
        "sim_comm_time": hop_ms,
    }
    return f"{_SECTION}:\n" + "".join(f"  {key}: {_json(value)}\n" for key, value in settings.items())


def _one(value: float | tuple[float, ...] | None) -> float | None:
    """Give the number that a value is for all stages; None where they differ, or there is none."""
    if isinstance(value, tuple):
        return value[0] if value and len(set(value)) == 1 else None
    return value


def hyperparallel_into(text: str, plan: Plan, where: str) -> str:
    """
    Put the sizes and the schedule of a plan into the YAML that PPOptimizer is given.

    The split has no place there, since PPOptimizer finds its own; limits and costs stay.

    Raises
    ------
    InputError
        Where PPOptimizer can not say the plan, the file is a result or for another number of
        layers, or it can not be edited.
    """
    if faults := unsaid(plan):
        raise InputError("plan", faults)
    if where.lower().endswith(".json"):
        raise InputError(where, ["a result is written whole; write it with --output"])
    edit, problem = YamlEdit(text, where), plan.problem
    layers = edit.value(f"{_SECTION}.num_layer")
    if layers is not None and layers != problem.model.body_count:
        fault = f"{_SECTION}.num_layer is {layers}, and the plan's model has {problem.model.body_count}"
        raise InputError(where, [f"{fault}; give the file of that model"])
    sizes = _sizes(problem)
    settings = {"pipeline_num": sizes["pp_degree"], "micro_batch_num": sizes["micro_batch_num"]}
    for key, default in (("num_of_interleave", 1), ("vpp_less_memory", False)):
        if edit.value(f"{_SECTION}.{key}") is not None or sizes[key] != default:
            settings[key] = sizes[key]
    for key, value in settings.items():
        edit.set(f"{_SECTION}.{key}", value)
    return edit.result()
