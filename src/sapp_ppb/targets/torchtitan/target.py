"""
What torchtitan can say of a plan.

Modules go where ``module_fqns_per_model_part`` says.  Activation checkpointing is one
mode for the whole model: none, full, selective by ops, or full for every n-th layer
that a rank builds (releases whose configuration is TOML).  Source:
``torchtitan/distributed/pipeline_parallel.py`` and ``activation_checkpoint.py``.
"""

from sapp_ppb.costs import Recompute, RecomputeType
from sapp_ppb.errors import InputError
from sapp_ppb.fix import PlaceRule
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Placement, ScheduleName
from sapp_ppb.targets.recompute_modes import follows, most_in_a_cell, only_type, with_one_type, with_rule
from sapp_ppb.targets.strategies import strategy_faults
from sapp_ppb.targets.target import Target, Way

SCHEDULES = {
    ScheduleName.ONE_F_ONE_B: "1F1B",
    ScheduleName.GPIPE: "GPipe",
    ScheduleName.LOOPED_BFS: "LoopedBFS",
    ScheduleName.INTERLEAVED: "Interleaved1F1B",
    ScheduleName.INTERLEAVED_ZERO_BUBBLE: "InterleavedZeroBubble",
    ScheduleName.ZBV: "ZBVZeroBubble",
    ScheduleName.DUALPIPEV: "DualPipeV",
}
# Those that take micro-batches round by round.
_IN_ROUNDS = (ScheduleName.INTERLEAVED, ScheduleName.INTERLEAVED_ZERO_BUBBLE)
_MODES: dict[RecomputeType | None, str] = {
    Recompute.NONE: "none",
    Recompute.FULL: "full",
    Recompute.SELECTIVE: "selective",
}


def refuses(problem: Problem) -> tuple[str, ...]:
    """Say why torchtitan can run no plan of a problem."""
    name = problem.schedule_name
    if name is not ScheduleName.CUSTOM and name not in SCHEDULES:
        names = ", ".join(known.value for known in SCHEDULES)
        return (f"torchtitan has no schedule {name.value}; use one of {names}",)
    if problem.stages == 1:
        return ("torchtitan runs no pipeline on one stage; use at least 2 stages",)
    if problem.model.mtp_count:
        return ("torchtitan runs no layers of multi-token prediction in a pipeline; plan without them",)
    if problem.sequence_chunks > 1:
        return ("torchtitan does not cut micro-batches along the sequence; use --sequence-chunks 1",)
    if problem.order.placement is Placement.V and problem.interleave != 2:
        return ("torchtitan places exactly two chunks a stage on a V; use --interleave 2",)
    fault = micro_batch_fault(name, problem.stages, problem.micro_batches) or _group_fault(problem)
    return (fault,) if fault else ()


def micro_batch_fault(name: ScheduleName, stages: int, micro_batches: int) -> str | None:
    """
    Say why a schedule of torchtitan does not take so many micro-batches.

    Examples
    --------
    >>> micro_batch_fault(ScheduleName.INTERLEAVED, 4, 10)  # 10 // 4 = 2 rounds of 5
    >>> micro_batch_fault(ScheduleName.ONE_F_ONE_B, 4, 2)
    "torchtitan's 1F1B wants at least as many micro-batches as stages, 4 (got 2)"
    """
    if name is ScheduleName.ONE_F_ONE_B and micro_batches < stages:
        return (
            f"torchtitan's 1F1B wants at least as many micro-batches as stages, {stages} "
            f"(got {micro_batches})"
        )
    rounds = max(1, micro_batches // stages)
    if name in _IN_ROUNDS and micro_batches % rounds:
        return (
            f"torchtitan's {SCHEDULES[name]} cuts {micro_batches} micro-batches into {rounds} equal rounds, "
            "which leaves a rest; give a multiple"
        )
    return None


def round_size(stages: int, micro_batches: int) -> int:
    """Micro-batches that an interleaved schedule of torchtitan takes together."""
    return micro_batches // max(1, micro_batches // stages)


def _group_fault(problem: Problem) -> str | None:
    """Say which micro-batch group torchtitan takes, where a problem has another."""
    name, size = problem.schedule_name, round_size(problem.stages, problem.micro_batches)
    if name not in _IN_ROUNDS or problem.interleave == 1 or _group(problem) == size:
        return None
    return (
        f"torchtitan's {SCHEDULES[name]} takes groups of {size} micro-batches; give "
        f"--micro-batch-group {size}"
    )


def _group(problem: Problem) -> int | None:
    """Size of the groups that all micro-batches come in; None where they differ."""
    group, stages, micro_batches = problem.micro_batch_group, problem.stages, problem.micro_batches
    if group == "remainder-first":
        return stages if micro_batches % stages == 0 else None
    if group is not None:
        return int(group)
    zero_bubble = problem.schedule_name is ScheduleName.INTERLEAVED_ZERO_BUBBLE
    return round_size(stages, micro_batches) if zero_bubble else min(stages, micro_batches)


def every_rule(every: int) -> PlaceRule:
    """Give the rule of ``selective_ac_option = "n"`` with one chunk a stage."""
    return PlaceRule(recompute=Recompute.FULL, every=every)


def checkpoint_mode(plan: Plan) -> tuple[str, str | None] | None:
    """
    ``mode`` and ``selective_ac_option`` that say the recompute of a plan; None when nothing does.

    Every n-th layer is counted over the chunks of a stage, as torchtitan builds them.
    """
    kind = only_type(plan)
    if plan.strategies:
        return None
    if kind in _MODES:
        return _MODES[kind], "op" if kind is Recompute.SELECTIVE else None
    if only_full := not plan.counts[:, 1 : Recompute.FULL].any():
        for every in range(2, int(plan.layers_per_cell.sum()) + 1):
            if only_full and _is_every(plan, every):
                return "selective", str(every)
    return None


def _is_every(plan: Plan, every: int) -> bool:
    """Whether each stage recomputes its n-th layer, its 2n-th and so on."""
    if plan.problem.interleave == 1:
        return follows(plan, [every_rule(every)])
    layers, full = plan.counts.sum(axis=1), plan.counts[:, Recompute.FULL]
    for stage in range(plan.problem.stages):
        built = 0
        for cell in plan.problem.cells_of(stage):
            for k, number in enumerate(layers[:, cell].tolist()):
                if (built + number) // every - built // every != full[k, cell]:
                    return False
                built += number
    return True


def ways(problem: Problem) -> tuple[Way, ...]:
    """
    List the modes of activation checkpointing, each with the problem that it leaves.

    Every n-th layer is among them with one chunk a stage, and every cell has a module.

    Raises
    ------
    InputError
        If there are not layers enough for that.
    """
    problem = _with_modules(problem)
    found = (
        *with_one_type(problem, Recompute.FULL, 'mode = "full"'),
        *with_one_type(problem, Recompute.NONE, 'mode = "none"'),
        *with_one_type(problem, Recompute.SELECTIVE, 'mode = "selective", selective_ac_option = "op"'),
    )
    if problem.interleave > 1:
        return found
    return found + tuple(
        way
        for every in range(2, most_in_a_cell(problem) + 1)
        for way in with_rule(
            problem, every_rule(every), f'mode = "selective", selective_ac_option = "{every}"'
        )
    )


def _with_modules(problem: Problem) -> Problem:
    """Give every model part a module."""
    if problem.min_layers_per_cell > 0:
        return problem
    try:
        return problem.changed(min_layers_per_cell=1)
    except InputError as error:
        faults = [f"torchtitan wants a module in every model part: {fault}" for fault in error.faults]
        raise InputError("target", faults) from None


def unsaid(plan: Plan) -> tuple[str, ...]:
    """Say why torchtitan can not express a plan."""
    faults = [*refuses(plan.problem), *strategy_faults(plan, "torchtitan")]
    if not plan.strategies and checkpoint_mode(plan) is None:
        faults.append(
            "one mode of activation checkpointing holds for the whole model: none, full, selective for "
            "every layer, or full for every n-th layer; this plan needs more"
        )
    problem = plan.problem
    holds_other = {0: bool(problem.model.heads), problem.cells - 1: bool(problem.model.tails)}
    bare = [
        cell for cell in range(problem.cells) if plan.layers_per_cell[cell] == 0 and not holds_other.get(cell)
    ]
    if bare:
        cells = ", ".join(map(str, bare[:4]))
        faults.append(f"a model part must hold a module (got none in part {cells}); use --min-layers 1")
    return tuple(faults)


TORCHTITAN = Target(name="torchtitan", title="torchtitan", refuses=refuses, ways=ways, unsaid=unsaid)
