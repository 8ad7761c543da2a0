"""Recompute that holds for the whole model: one type or some, or one rule for all cells."""

from collections.abc import Iterable, Sequence

from sapp_ppb.costs import Recompute, RecomputeType
from sapp_ppb.errors import InputError
from sapp_ppb.fix import Fix, PlaceRule
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.targets.target import Way


def with_one_type(problem: Problem, recompute: RecomputeType, words: str) -> tuple[Way, ...]:
    """Problem in which every layer has one type; none where that can not be."""
    if problem.recompute is not None and recompute not in problem.recompute:
        return ()
    types = {recompute.label} - {Recompute.NONE.label}
    if problem.max_recompute_types is not None and len(types) > problem.max_recompute_types:
        return ()
    return _way(problem, words, recompute=(recompute,), max_recompute_types=None)


def with_types(problem: Problem, types: Sequence[Recompute], words: str = "") -> tuple[Way, ...]:
    """Problem in which layers have some types only; none where that can not be."""
    allowed = [r for r in types if problem.recompute is None or r in problem.recompute]
    known = {r for layer in problem.model.bodies for r in layer.considered}
    kept = tuple(r for r in allowed if r in known)
    return _way(problem, words, recompute=kept) if kept else ()


def with_rule(problem: Problem, rule: PlaceRule, words: str) -> tuple[Way, ...]:
    """Problem in which recompute follows from a layer's place; none where that can not be."""
    if problem.fix is not None and problem.fix.recompute is not None:
        return ()
    layers = None if problem.fix is None else problem.fix.layers
    return _way(problem, words, fix=Fix(layers=layers, places=rule))


def _way(problem: Problem, words: str, **changes: object) -> tuple[Way, ...]:
    try:
        return (Way(problem=problem.changed(**changes), words=words),)
    except InputError:  # a layer does not have the type
        return ()


def follows(plan: Plan, rules: Iterable[PlaceRule]) -> bool:
    """Whether the recompute of a plan is what one of some rules makes of its split."""
    return any(Fix(places=rule).allows(plan.counts) for rule in rules)


def only_type(plan: Plan) -> RecomputeType | None:
    """
    Type that all layers of a plan have; None when they differ.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> only_type(plan_from_matrices(problem, {"Dec": {"none": [[2, 2]]}}))
    <Recompute.NONE: 0>
    """
    used = [recompute for recompute in plan.problem.model.types if plan.counts[:, recompute].any()]
    return used[0] if len(used) == 1 else None


def most_in_a_cell(problem: Problem) -> int:
    """Most layers that any cell can hold."""
    if problem.fix is not None and problem.fix.layers is not None:
        return max(problem.fix.layers)
    least = [problem.least_layers(cell) for cell in range(problem.cells)]
    return problem.model.body_count - sum(least) + max(least)
