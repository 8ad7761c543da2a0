"""
What Colossal-AI can say of a plan.

``num_layers_per_stage`` gives every device its layers, and goes with one model chunk a
device: the stage manager wants as many numbers as devices, and reads one for every
chunk.  With several chunks the split is its own.  ``num_ckpt_layers_per_stage`` counts
the first layers of every cell that are recomputed as a whole.  Sources:
``colossalai/pipeline/stage_manager.py`` (``distribute_layers``, ``get_stage_index``),
``colossalai/shardformer/shard/grad_ckpt_config.py``,
``colossalai/booster/plugin/hybrid_parallel_plugin.py``.
"""

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.fix import Fix
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets.bare_cells import bare_fault, with_filled_cells
from sapp_ppb.targets.mindformers.target import can_say_cell
from sapp_ppb.targets.recompute_modes import with_types
from sapp_ppb.targets.strategies import strategy_faults
from sapp_ppb.targets.target import Target, Way

STYLES = {
    ScheduleName.ONE_F_ONE_B: "1f1b",
    ScheduleName.INTERLEAVED: "interleaved",
    ScheduleName.ZBV: "zbv",
}
TYPES = (Recompute.NONE, Recompute.FULL)


def default_layers(layers: int, cells: int) -> tuple[int, ...]:
    """
    Layers of every cell along the chain where no list is given: equal, the rest in the middle.

    Examples
    --------
    >>> default_layers(30, 4)  # 7 each, and 2 more from cell 4 // 2 - 2 // 2 = 1 on
    (7, 8, 8, 7)
    >>> default_layers(11, 4)  # 2 each, and 3 more from cell 2 - 1 on
    (2, 3, 3, 3)
    """
    share, rest = divmod(layers, cells)
    start = cells // 2 - rest // 2
    return tuple(share + (start <= cell < start + rest) for cell in range(cells))


def micro_batch_fault(style: str, stages: int, chunks: int, micro_batches: int) -> str | None:
    """
    Say why a style of Colossal-AI does not take so many micro-batches.

    Examples
    --------
    >>> micro_batch_fault("interleaved", 4, 3, 8)
    'num_microbatches must be a multiple of num_model_chunks, 3, for interleaved (got 8)'
    """
    if style != STYLES[ScheduleName.ONE_F_ONE_B] and micro_batches % stages:
        return f"num_microbatches must be a multiple of pp_size, {stages}, for {style} (got {micro_batches})"
    if style == STYLES[ScheduleName.INTERLEAVED] and micro_batches % chunks:
        return (
            f"num_microbatches must be a multiple of num_model_chunks, {chunks}, for {style} "
            f"(got {micro_batches})"
        )
    return None


def refuses(problem: Problem) -> tuple[str, ...]:
    """Say why Colossal-AI can run no plan of a problem."""
    faults = _order_faults(problem)
    if not faults and problem.interleave > 1:
        layers = default_layers(problem.model.body_count, problem.cells)
        faults += _bare(problem, layers)
    return tuple(faults)


def _order_faults(problem: Problem) -> list[str]:
    name, stages, chunks = problem.schedule_name, problem.stages, problem.interleave
    if name not in STYLES:
        names = ", ".join(known.value for known in STYLES)
        return [f"Colossal-AI has no schedule {name.value}; use one of {names}"]
    if stages == 1:
        return ["Colossal-AI runs no pipeline on one stage; use at least 2 stages"]
    if name is ScheduleName.INTERLEAVED and chunks == 1:
        return ["Colossal-AI's interleaved wants at least two chunks a stage; use 1f1b, or --interleave 2"]
    fault = micro_batch_fault(STYLES[name], stages, chunks, problem.micro_batches)
    if fault is not None:
        return [f"Colossal-AI: {fault}"]
    if problem.micro_batch_group not in (None, stages, "remainder-first"):
        return [f"Colossal-AI takes groups of {stages} micro-batches; give --micro-batch-group {stages}"]
    return []


def ways(problem: Problem) -> tuple[Way, ...]:
    """List the one way: none or full, full first in every cell, and its own split for several chunks."""
    try:
        problem = with_filled_cells(problem)
        if problem.interleave > 1:
            problem = _with_own_split(problem)
    except InputError:
        return ()
    return with_types(problem, TYPES)


def _with_own_split(problem: Problem) -> Problem:
    """
    Fix the split that Colossal-AI makes.

    Raises
    ------
    InputError
        If something else is fixed.
    """
    layers = default_layers(problem.model.body_count, problem.cells)
    fix = problem.fix
    if fix is not None and (fix.recompute is not None or fix.layers not in (None, layers)):
        raise InputError("fix", [f"Colossal-AI splits several chunks a stage as {list(layers)}"])
    return problem.changed(fix=Fix(layers=layers))


def unsaid(plan: Plan) -> tuple[str, ...]:
    """Say why Colossal-AI can not express a plan."""
    problem = plan.problem
    faults = [*_order_faults(problem), *strategy_faults(plan, "Colossal-AI")]
    others = [r.label for r in Recompute if r not in TYPES and plan.counts[:, r].any()]
    if others:
        faults.append(
            "a layer of Colossal-AI is recomputed as a whole or not at all; this plan has "
            + ", ".join(others)
        )
    elif not plan.strategies and not all(
        can_say_cell(plan.counts[:, :, cell]) for cell in range(problem.cells)
    ):
        faults.append(
            "num_ckpt_layers_per_stage counts the first layers of a cell, whatever their kind; this plan "
            "recomputes a layer behind one that it does not recompute"
        )
    layers = tuple(plan.layers_per_cell.tolist())
    own = default_layers(problem.model.body_count, problem.cells)
    if problem.interleave > 1 and layers != own:
        faults.append(
            "Colossal-AI takes no num_layers_per_stage with several model chunks, and splits "
            f"{problem.model.body_count} layers as {list(own)}; this plan has {list(layers)}"
        )
    return (*faults, *_bare(problem, layers))


def _bare(problem: Problem, layers: tuple[int, ...]) -> list[str]:
    fault = bare_fault(problem, layers, "a stage of Colossal-AI must hold parameters for its optimizer")
    return [fault] if fault else []


COLOSSALAI = Target(name="colossalai", title="Colossal-AI", refuses=refuses, ways=ways, unsaid=unsaid)
