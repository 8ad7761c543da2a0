"""
What torchtitan can say of a plan.

Modules go where ``module_fqns_per_model_part`` says.  Activation checkpointing is one
mode for the whole model: none, full, selective by ops, or full for every n-th layer
that a rank builds (releases whose configuration is TOML).  Source:
``torchtitan/distributed/pipeline_parallel.py`` and ``activation_checkpoint.py``.
"""

from sapp_ppb.costs import Recompute
from sapp_ppb.fix import PlaceRule
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.recompute_modes import follows, most_in_a_cell, only_type, with_one_type, with_rule
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
_MODES = {Recompute.NONE: "none", Recompute.FULL: "full", Recompute.SELECTIVE: "selective"}


def refuses(problem: Problem) -> tuple[str, ...]:
    """Say why torchtitan can run no plan of a problem."""
    name, stages, micro_batches = problem.schedule_name, problem.stages, problem.micro_batches
    if name is not ScheduleName.CUSTOM and name not in SCHEDULES:
        names = ", ".join(known.value for known in SCHEDULES)
        return (f"torchtitan has no schedule {name.value}; use one of {names}",)
    if problem.min_layers_per_cell == 0:
        return ("torchtitan wants a module in every model part; use --min-layers 1",)
    if name is ScheduleName.ONE_F_ONE_B and micro_batches < stages:
        return (
            f"torchtitan's 1F1B wants at least as many micro-batches as stages, {stages} "
            f"(got {micro_batches})",
        )
    rounds = max(1, micro_batches // stages)
    if name is ScheduleName.INTERLEAVED and micro_batches % rounds:
        return (
            f"torchtitan's Interleaved1F1B cuts {micro_batches} micro-batches into {rounds} equal rounds, "
            "which leaves a rest; give a multiple",
        )
    if name is ScheduleName.INTERLEAVED and _group(problem) != micro_batches // rounds:
        return (
            f"torchtitan's Interleaved1F1B takes groups of {micro_batches // rounds} micro-batches; give "
            f"--micro-batch-group {micro_batches // rounds}",
        )
    return ()


def _group(problem: Problem) -> int | None:
    """Size of the groups that all micro-batches come in; None where they differ."""
    group = problem.micro_batch_group
    if group == "remainder-first":
        return problem.stages if problem.micro_batches % problem.stages == 0 else None
    return problem.stages if group is None else int(group)


def every_rule(every: int) -> PlaceRule:
    """Give the rule of ``selective_ac_option = "n"`` with one chunk a stage."""
    return PlaceRule(recompute=Recompute.FULL, every=every)


def checkpoint_mode(plan: Plan) -> tuple[str, str | None] | None:
    """
    ``mode`` and ``selective_ac_option`` that say the recompute of a plan; None when nothing does.

    Every n-th layer is counted over the chunks of a stage, as torchtitan builds them.
    """
    kind = only_type(plan)
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

    Every n-th layer is among them with one chunk a stage.
    """
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


def unsaid(plan: Plan) -> tuple[str, ...]:
    """Say why torchtitan can not express a plan."""
    faults = list(refuses(plan.problem))
    if checkpoint_mode(plan) is None:
        faults.append(
            "one mode of activation checkpointing holds for the whole model: none, full, selective for "
            "every layer, or full for every n-th layer; this plan needs more"
        )
    problem = plan.problem
    bare = [
        cell
        for cell in range(problem.cells)
        if plan.layers_per_cell[cell] == 0 and cell not in (0, problem.cells - 1)
    ]
    if bare:
        cells = ", ".join(map(str, bare[:4]))
        faults.append(f"a model part must hold a module (got none in part {cells}); use --min-layers 1")
    return tuple(faults)


TORCHTITAN = Target(name="torchtitan", title="torchtitan", refuses=refuses, ways=ways, unsaid=unsaid)
