"""
What HyperParallel's PPOptimizer can say of a plan.

Its result lists the layers of every cell with a recompute type each, so any split and any
mixture of types can be said; its schedules are 1F1B, VPP and VPP with less memory.  Source:
``hyper_parallel/auto_parallel/sapp_ppb/pp_modeling/pp_structs.py`` and
``pp_balancer.py`` of mindspore-ai/hyper-parallel.
"""

from sapp_ppb.costs import Recompute
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.strategies import strategy_faults
from sapp_ppb.targets.target import Target, Way

SCHEDULES = (
    ScheduleName.ONE_F_ONE_B,
    ScheduleName.INTERLEAVED,
    ScheduleName.INTERLEAVED_LESS_MEMORY,
)
# Names of recompute types in its ``utils/recompute.py``; a type's number is its place here.
TYPE_NAMES = {
    Recompute.NONE: "NONE",
    Recompute.SELECTIVE: "SLCT",
    Recompute.COMM: "COMM",
    Recompute.BOTH: "BOTH",
    Recompute.FULL: "FULL",
}


def refuses(problem: Problem) -> tuple[str, ...]:
    """Say why PPOptimizer can express no plan of a problem."""
    name = problem.schedule_name
    if name not in SCHEDULES:
        names = ", ".join(known.value for known in SCHEDULES)
        return (f"HyperParallel's PPOptimizer has no schedule {name.value}; use one of {names}",)
    group, stages = problem.micro_batch_group, problem.stages
    whole = group == "remainder-first" and problem.micro_batches % stages == 0
    if problem.interleave > 1 and group not in (None, stages) and not whole:
        return ("a result of PPOptimizer has no field for micro-batch groups; leave --micro-batch-group out",)
    return ()


def ways(problem: Problem) -> tuple[Way, ...]:
    """Give the problem as it is: recompute is said layer by layer."""
    return (Way(problem=problem),)


def unsaid(plan: Plan) -> tuple[str, ...]:
    """Say why PPOptimizer can not express a plan."""
    return (*refuses(plan.problem), *strategy_faults(plan, "HyperParallel"))


HYPERPARALLEL = Target(name="hyperparallel", title="HyperParallel", refuses=refuses, ways=ways, unsaid=unsaid)
