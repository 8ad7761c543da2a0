"""A problem with longer times or with more memory, which is the same one in other units."""

from dataclasses import replace

from sapp_ppb.costs.per_stage import PerStage
from sapp_ppb.problem import Problem


def with_times(problem: Problem, factor: float) -> Problem:
    """Give the problem with all its times so many times as long."""
    model = problem.model
    layers = tuple(
        replace(
            layer,
            forward_ms=factor * layer.forward_ms,
            backward_ms=tuple(factor * ms for ms in layer.backward_ms),
            weight_grad_ms=None if layer.weight_grad_ms is None else factor * layer.weight_grad_ms,
        )
        for layer in model.layers
    )
    model = replace(
        model, layers=layers, op_overhead_ms=factor * model.op_overhead_ms, hop_ms=factor * model.hop_ms
    )
    return replace(
        problem,
        model=model,
        p2p_ms=times(problem.p2p_ms, factor),
        step_extra_ms=times(problem.step_extra_ms, factor),
    )


def times(value: PerStage, factor: float) -> PerStage:
    """Multiply a number, or one for each stage."""
    return tuple(factor * each for each in value) if isinstance(value, tuple) else factor * value


def with_memory(problem: Problem, factor: float) -> Problem:
    """Give the problem with all its memory, and its limits, so many times as large."""
    model, limit = problem.model, problem.memory_limit_mb
    layers = tuple(
        replace(
            layer,
            parameter_mb=factor * layer.parameter_mb,
            activation_mb=tuple(None if mb is None else factor * mb for mb in layer.activation_mb),
            transient_mb=factor * layer.transient_mb,
        )
        for layer in model.layers
    )
    return replace(
        problem,
        model=replace(model, layers=layers, constant_memory_mb=factor * model.constant_memory_mb),
        memory_limit_mb=None if limit is None else times(limit, factor),
        constant_memory_mb=times(problem.constant_memory_mb or 0.0, factor),
    )
