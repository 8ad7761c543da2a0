"""
What DeepSpeed can say of a plan.

``PipelineModule`` cuts a list of ``LayerSpec`` at boundaries, its ``parts``, one stage a
device, and runs 1F1B (``TrainSchedule``).  ``activation_checkpoint_interval`` is one
number for all stages: 0 recomputes nothing, 1 every layer.  Larger numbers recompute
every layer too, in groups that keep one input each.  Sources:
``deepspeed/runtime/pipe/module.py``, ``deepspeed/runtime/pipe/schedule.py``.
"""

from sapp_ppb.costs import Recompute, RecomputeType
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.bare_cells import bare_fault, with_filled_cells
from sapp_ppb.targets.recompute_modes import only_type, with_one_type
from sapp_ppb.targets.strategies import strategy_faults
from sapp_ppb.targets.target import Target, Way

INTERVALS: dict[RecomputeType, int] = {Recompute.NONE: 0, Recompute.FULL: 1}


def refuses(problem: Problem) -> tuple[str, ...]:
    """Say why DeepSpeed can run no plan of a problem."""
    if problem.interleave > 1:
        return ("DeepSpeed's PipelineModule runs one chunk a stage; use --interleave 1",)
    if problem.schedule_name is not ScheduleName.ONE_F_ONE_B:
        return (f"DeepSpeed has no schedule {problem.schedule_name.value}; use 1f1b",)
    return ()


def parts_of(plan: Plan) -> list[int]:
    """
    Boundaries of the stages in the list of all layers, those of HEAD and TAIL among them.

    Returns
    -------
    list
        Shape (S + 1,): stage s holds entries ``parts[s]`` to ``parts[s + 1] - 1``.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> layers = (layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=1),
    ...           layer_from_times(name="Dec", kind=LayerKind.BODY, count=5, forward_ms=1),
    ...           layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=1))
    >>> problem = Problem(model=Model(name="tiny", layers=layers), stages=2, micro_batches=4)
    >>> parts_of(plan_from_matrices(problem, {"Dec": {"none": [[2, 3]]}}))
    [0, 3, 7]
    """
    heads, tails = entries_beside(plan.problem)
    parts = [0]
    for number in plan.layers_per_cell.tolist():
        parts.append(parts[-1] + number)
    return [0, *(part + heads for part in parts[1:-1]), parts[-1] + heads + tails]


def entries_beside(problem: Problem) -> tuple[int, int]:
    """Entries of the list before the BODY layers and behind them: one for each layer of HEAD and TAIL."""
    model = problem.model
    return sum(layer.count for layer in model.heads), sum(layer.count for layer in model.tails)


def ways(problem: Problem) -> tuple[Way, ...]:
    """List the intervals of activation checkpointing, each with the problem that it leaves."""
    try:
        problem = with_filled_cells(problem)
    except InputError:
        return ()
    return tuple(
        way
        for recompute, interval in INTERVALS.items()
        for way in with_one_type(problem, recompute, f"activation_checkpoint_interval={interval}")
    )


def unsaid(plan: Plan) -> tuple[str, ...]:
    """Say why DeepSpeed can not express a plan."""
    faults = [*refuses(plan.problem), *strategy_faults(plan, "DeepSpeed")]
    if not plan.strategies and only_type(plan) not in INTERVALS:
        faults.append(
            "one activation_checkpoint_interval holds for all stages: no layer is recomputed, or every one "
            "in full; this plan needs more"
        )
    rule = "a stage of DeepSpeed must hold parameters for its optimizer"
    bare = bare_fault(plan.problem, plan.layers_per_cell.tolist(), rule)
    return (*faults, *([bare] if bare else []))


DEEPSPEED = Target(name="deepspeed", title="DeepSpeed", refuses=refuses, ways=ways, unsaid=unsaid)
