"""What can not be planned of a problem, a sentence each."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sapp_ppb.costs import Model, Recompute, RecomputeType, Strategy
from sapp_ppb.costs.checks import shown
from sapp_ppb.costs.margin import margin_faults
from sapp_ppb.costs.per_stage import per_stage_faults, speed_faults, spread
from sapp_ppb.schedules import Flavour, P2PMode, ScheduleName, ops_fault

if TYPE_CHECKING:
    from sapp_ppb.problem.problem import Problem


def field_faults(problem: "Problem") -> list[str]:
    """Faults of single fields."""
    return [
        *_size_faults(problem),
        *_quantity_faults(problem),
        *_mode_faults(problem),
        *_recompute_faults(problem.recompute, problem.model),
    ]


def joint_faults(problem: "Problem") -> list[str]:
    """Faults that fields have together, once each is right on its own."""
    return [
        *_chain_faults(problem),
        *_margin_faults(problem),
        *_type_faults(problem),
        *_working_set_faults(problem),
        *_fix_faults(problem),
    ]


def order_faults(problem: "Problem") -> list[str]:
    """Find what only the order shows; ScheduleError when there is none."""
    faults, order = [], problem.order
    if len(problem.hop_ms) < problem.edges:
        faults.append(
            f"p2p must list {problem.edges} edges, the last one from stage {problem.stages - 1} back to "
            f"stage 0 between chunks (got {len(problem.hop_ms)})"
        )
    if problem.overlap_factor > 0.0 and not order.pairs:
        faults.append(
            f"overlap-factor is for schedules with overlapped pairs, and {order.name} has none; "
            f"leave it out or use {ScheduleName.DUALPIPEV.value}"
        )
    if not order.splits_backward:
        return faults
    return faults + [
        f"{order.name} splits the backward, and layer {shown(layer.name)} does not let it: {fault}; "
        "give weight_grad_time in the model file"
        for layer in problem.model.layers
        if (fault := layer.split_fault(problem.considered(layer)))
    ]


def _size_faults(problem: "Problem") -> list[str]:
    faults = [
        f"{option} must be a whole number of at least {least} (got {value!r})"
        for option, value, least in (
            ("stages", problem.stages, 1),
            ("micro-batches", problem.micro_batches, 1),
            ("interleave", problem.interleave, 1),
            ("min-layers", problem.min_layers_per_cell, 0),
            ("sequence-chunks", problem.sequence_chunks, 1),
        )
        if isinstance(value, bool) or not isinstance(value, int) or value < least
    ]
    most = problem.max_recompute_types
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 0):
        faults.append(f"max-recompute-types must be a whole number of at least 0 (got {most!r})")
    if faults:
        return faults
    too_many = ops_fault(problem.stages, problem.interleave, problem.micro_batches * problem.sequence_chunks)
    return [too_many] if too_many else []


def _quantity_faults(problem: "Problem") -> list[str]:
    whole = isinstance(problem.stages, int) and problem.stages >= 1
    # Without a usable number of stages there is no length that a list should have.
    stages = (problem.stages,) if whole else ()
    edges = (max(problem.stages - 1, 1), problem.stages) if whole else ()
    return [
        *per_stage_faults("memory-limit", problem.memory_limit_mb, stages, "MB"),
        *per_stage_faults("constant-memory", problem.constant_memory_mb, stages, "MB"),
        *per_stage_faults("p2p", problem.p2p_ms, edges, "ms"),
        *per_stage_faults("step-extra", problem.step_extra_ms, stages, "ms"),
        *speed_faults(problem.stage_speed, stages),
        *margin_faults(problem.memory_margin),
    ]


def _mode_faults(problem: "Problem") -> list[str]:
    factor, modes, flavours = problem.overlap_factor, ", ".join(P2PMode), ", ".join(Flavour)
    usable = isinstance(factor, int | float) and not isinstance(factor, bool)
    checks = (
        (usable and 0 <= factor <= 1, f"overlap-factor must be from 0 to 1 (got {shown(factor)})"),
        (
            isinstance(problem.p2p_mode, P2PMode),
            f"p2p-mode must be one of {modes} (got {shown(problem.p2p_mode)})",
        ),
        (
            problem.flavour is None or isinstance(problem.flavour, Flavour),
            f"flavour must be one of {flavours} (got {shown(problem.flavour)})",
        ),
    )
    return [fault for right, fault in checks if not right]


def _margin_faults(problem: "Problem") -> list[str]:
    if problem.memory_margin == 0.0:
        return []
    if problem.memory_limit_mb is None:
        return ["memory-margin is kept free of a memory limit, and there is none; give --memory-limit"]
    least = min(spread(problem.memory_limit_mb, problem.stages))
    if isinstance(problem.memory_margin, str) or problem.memory_margin < least:
        return []
    return [
        f"memory-margin must be below the memory limit of {least:,.10g} MB "
        f"(got {problem.memory_margin:,.10g} MB)"
    ]


def _type_faults(problem: "Problem") -> list[str]:
    return [
        f"layer {shown(layer.name)} can be {_labels(layer.considered)}, and {_allowing(problem)}; "
        "allow one of the layer's types too, or give the memory of another type in the model file"
        for layer in problem.model.bodies
        if not problem.considered(layer)
    ]


def _allowing(problem: "Problem") -> str:
    """Say what leaves a layer without a type."""
    silent = (
        ""
        if problem.target is None or len(problem.model.types) == len(Recompute)
        else (
            f"the target {problem.target} has no words for {_labels(problem.model.types[len(Recompute) :])}"
        )
    )
    allowed = "" if problem.recompute is None else f"recompute allows only {_labels(problem.recompute)}"
    return " and ".join(filter(None, (allowed, silent)))


def _working_set_faults(problem: "Problem") -> list[str]:
    if not problem.recompute_working_set:
        return []
    return [
        f"recompute-working-set needs the activation memory of {shown(layer.name)} under none, which is "
        "what it holds again; give it in the model file"
        for layer in problem.model.bodies
        if Recompute.NONE not in layer.considered
    ]


def _fix_faults(problem: "Problem") -> list[str]:
    """Faults of what is fixed; only called once the sizes are known to be right."""
    if problem.fix is None:
        return []
    faults = problem.fix.faults(problem.model, problem.stages, problem.interleave)
    if faults:
        return faults
    least = [problem.least_layers(cell) for cell in range(problem.cells)]
    considered = [problem.considered(layer) for layer in problem.model.bodies]
    return [
        *(problem.fix.size_faults(least) if problem.fix.layers is not None else []),
        *problem.fix.recompute_faults(problem.model, considered, problem.max_recompute_types),
    ]


def _chain_faults(problem: "Problem") -> list[str]:
    needed = sum(problem.least_layers(cell) for cell in range(problem.cells))
    if problem.model.body_count >= needed:
        return []
    return [
        f"{problem.model.body_count} BODY layers are too few for {problem.stages} stages x "
        f"{problem.interleave} chunks, which need {needed}; "
        "use fewer stages or chunks, or allow empty cells with --min-layers 0"
    ]


def _recompute_faults(recompute: object, model: Model) -> list[str]:
    if recompute is None:
        return []
    types = frozenset(model.types)
    if (
        isinstance(recompute, Sequence)
        and recompute
        and all(isinstance(r, Recompute | Strategy) and r in types for r in recompute)
    ):
        return []
    return [f"recompute must list at least one of {_labels(model.types)} (got {shown(recompute)})"]


def _labels(types: Iterable[RecomputeType]) -> str:
    return ", ".join(r.label for r in types)
