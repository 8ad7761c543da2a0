"""
What Megatron-LM can say of a plan.

Layers go where its layout string says, empty cells included.  Recompute is one setting
for the whole model: none; full by blocks, which is the first N layers of every chunk
and leaves layers of multi-token prediction alone; full for every layer; or selective,
the modules of one list in every layer.  Source: ``megatron/training/arguments.py``,
``megatron/core/transformer/transformer_block.py``, ``multi_token_prediction.py``.
"""

from sapp_ppb.costs import Recompute
from sapp_ppb.fix import PlaceRule
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.megatron.split import group_rules, interleave_rules
from sapp_ppb.targets.recompute_modes import follows, most_in_a_cell, only_type, with_one_type, with_rule
from sapp_ppb.targets.strategies import strategy_faults
from sapp_ppb.targets.target import Target, Way

SCHEDULES = (ScheduleName.ONE_F_ONE_B, ScheduleName.INTERLEAVED)
FULL_WORDS = "--recompute-granularity full"


def refuses(problem: Problem) -> tuple[str, ...]:
    """Say why Megatron-LM can run no plan of a problem."""
    faults = []
    if problem.schedule_name not in SCHEDULES:
        names = " or ".join(name.value for name in SCHEDULES)
        faults.append(f"Megatron-LM has no schedule {problem.schedule_name.value}; use {names}")
    elif problem.schedule_name is ScheduleName.INTERLEAVED:
        faults += group_faults(problem)
    return tuple(faults)


def group_faults(problem: Problem) -> list[str]:
    """Rules of the interleaved schedule and of ``microbatch_group_size_per_vp_stage``."""
    stages, micro_batches, group = problem.stages, problem.micro_batches, problem.micro_batch_group
    if group == "remainder-first" and micro_batches % stages:
        return ["Megatron-LM takes no remainder first; give --micro-batch-group a number"]
    size = stages if group in (None, "remainder-first") else int(group)
    rules = [
        *interleave_rules(stages, problem.interleave, overlap_p2p=True),
        *group_rules(stages, micro_batches, size),
    ]
    return [f"Megatron-LM's {rule}" for rule in rules]


def block_rule(problem: Problem, layers: int) -> PlaceRule:
    """Give the rule of ``--recompute-method block --recompute-num-layers N``."""
    mtp_entries = sum(layer.is_mtp for layer in problem.model.bodies)
    return PlaceRule(recompute=Recompute.FULL, first=layers, entries_left=mtp_entries)


def recompute_words(plan: Plan) -> str | None:
    """
    Say the recompute of a plan in flags; empty for none, and None when there are no such flags.

    Of block sizes that mean the same the smallest is named.
    """
    kind = only_type(plan)
    if kind is Recompute.NONE:
        return ""
    if kind is Recompute.SELECTIVE:
        return "--recompute-granularity selective"
    if kind is Recompute.FULL:
        return f"{FULL_WORDS} --recompute-method uniform --recompute-num-layers 1"
    per_cell = plan.counts[:, Recompute.FULL].sum(axis=0)
    layers = int(per_cell.max())
    if layers and follows(plan, [block_rule(plan.problem, layers)]):
        return f"{FULL_WORDS} --recompute-method block --recompute-num-layers {layers}"
    return None


def ways(problem: Problem) -> tuple[Way, ...]:
    """List the settings of recompute that Megatron-LM has, each with the problem that it leaves."""
    most = most_in_a_cell(problem)
    found = (
        *with_one_type(problem, Recompute.FULL, f"{FULL_WORDS} --recompute-method uniform"),
        *with_one_type(problem, Recompute.NONE, "no recompute"),
        *with_one_type(problem, Recompute.SELECTIVE, "--recompute-granularity selective"),
    )
    blocks = (
        way
        for layers in range(1, most + 1)
        for way in with_rule(
            problem,
            block_rule(problem, layers),
            f"{FULL_WORDS} --recompute-method block --recompute-num-layers {layers}",
        )
    )
    return (*found, *blocks)


def unsaid(plan: Plan) -> tuple[str, ...]:
    """Say why Megatron-LM can not express a plan."""
    faults = [*refuses(plan.problem), *strategy_faults(plan, "Megatron-LM")]
    if not plan.strategies and recompute_words(plan) is None:
        faults.append(
            "one recompute setting holds for the whole model: full for the first N layers of every chunk, "
            "the same N everywhere, full or selective for every layer, or none; this plan needs more"
        )
    return (*faults, *mtp_faults(plan))


def mtp_faults(plan: Plan) -> list[str]:
    """All layers of multi-token prediction stand in one cell, in the last chunk of its stage."""
    entries = [k for k, layer in enumerate(plan.problem.model.bodies) if layer.is_mtp]
    cells = sorted({int(cell) for cell in plan.counts[entries].sum(axis=(0, 1)).nonzero()[0]})
    if not cells:
        return []
    if len(cells) > 1 or cells[0] // plan.problem.stages != plan.problem.interleave - 1:
        return ["all MTP layers must stand in one cell, in the last chunk of its stage"]
    return []


MEGATRON = Target(name="megatron", title="Megatron-LM", refuses=refuses, ways=ways, unsaid=unsaid)
