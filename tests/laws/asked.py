"""What the planner says of a drawn problem and of its neighbours, each asked once."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any

from sapp_ppb.costs import Layer, Model
from sapp_ppb.costs.per_stage import PerStage
from sapp_ppb.errors import InputError, NoPlanFoundError
from sapp_ppb.plan import Outcome, Plan, Status, StoppedBy
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from tests.laws.drawing import Drawn

# Of a run that takes longer, parts may have been cut short by the clock, which no seed repeats.
_UNHURRIED_S = 0.7


@dataclass(kw_only=True)
class Asked:
    """
    A drawn problem, with answers as they are asked for.

    Attributes
    ----------
    drawn
        The problem and its options.
    outcome
        What the planner says of it; None when it found no plan, and could not say that there is none.
    """

    drawn: Drawn
    rng: Random = field(init=False)

    def __post_init__(self) -> None:
        """Draw what is asked besides from the number too."""
        self.rng = Random(f"asked of {self.drawn.number}")

    @property
    def problem(self) -> Problem:
        """The problem as it was drawn."""
        return self.drawn.problem

    @cached_property
    def outcome(self) -> Outcome | None:
        """Answer to the problem."""
        return self.answer(self.problem)

    @cached_property
    def neighbours(self) -> "Neighbours | None":
        """The problem and one that is easier in one thing, with their answers; None where there is none."""
        return neighbours(self)

    def answer(self, problem: Problem, warm_start: Plan | None = None) -> Outcome | None:
        """Ask the planner, with the options drawn; None when it found no plan in time."""
        options: dict[str, Any] = {"seed": self.drawn.seed, "reorder_stages": self.drawn.reorder_stages}
        try:
            return plan_pipeline(
                problem, time_limit_s=self.drawn.seconds, warm_start=warm_start, **options
            )
        except NoPlanFoundError:
            return None


def is_repeatable(outcome: Outcome | None) -> bool:
    """Whether the clock had no part in an answer."""
    return (
        outcome is not None and outcome.stopped_by is not StoppedBy.TIME and outcome.seconds < _UNHURRIED_S
    )


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Two problems of which the second allows every plan of the first, and their answers."""

    what: str
    harder: Problem
    easier: Problem
    of_harder: Outcome | None
    of_easier: Outcome | None


def neighbours(asked: Asked) -> Neighbours | None:
    """Loosen or tighten the problem in one thing."""
    ways = [_higher_limit, _one_more_type, _one_type_less, _more_types_mixed]
    for way in asked.rng.sample(ways, len(ways)):
        try:
            pair = way(asked.rng, asked.problem)
            if pair is None:
                continue
            harder, easier = pair
            return Neighbours(
                what=way.__name__,
                harder=harder,
                easier=easier,
                of_harder=asked.outcome if harder is asked.problem else asked.answer(harder),
                of_easier=asked.outcome if easier is asked.problem else asked.answer(easier),
            )
        except InputError:  # there is no such problem
            continue
    return None


def _higher_limit(rng: Random, problem: Problem) -> tuple[Problem, Problem] | None:
    limit = problem.memory_limit_mb
    if limit is None:
        return None
    factor = rng.choice([1.01, 1.2, 2.0, None])
    if factor is None:
        return problem, problem.changed(memory_limit_mb=None, memory_margin=0.0)
    return problem, problem.changed(memory_limit_mb=_times(limit, factor))


def _one_more_type(rng: Random, problem: Problem) -> tuple[Problem, Problem] | None:
    more = [r for r in problem.model.types if problem.recompute is not None and r not in problem.recompute]
    if not more:
        return None
    return problem, problem.changed(recompute=(*(problem.recompute or ()), rng.choice(more)))


def _one_type_less(rng: Random, problem: Problem) -> tuple[Problem, Problem] | None:
    used = sorted({r for layer in problem.model.bodies for r in problem.considered(layer)})
    left_out = rng.choice(used)
    left = tuple(r for r in problem.recompute or problem.model.types if r != left_out)
    return (problem.changed(recompute=left), problem) if left else None


def _more_types_mixed(rng: Random, problem: Problem) -> tuple[Problem, Problem] | None:
    most = problem.max_recompute_types
    return None if most is None else (problem, problem.changed(max_recompute_types=most + 1))


def doubled(problem: Problem) -> Problem:
    """Give the problem with all its times twice as long."""
    model = problem.model
    twice = replace(
        model,
        layers=tuple(_doubled(layer) for layer in model.layers),
        op_overhead_ms=2 * model.op_overhead_ms,
        hop_ms=2 * model.hop_ms,
    )
    return replace(
        problem,
        model=twice,
        p2p_ms=_times(problem.p2p_ms, 2),
        step_extra_ms=_times(problem.step_extra_ms, 2),
    )


def _doubled(layer: Layer) -> Layer:
    weight_ms = layer.weight_grad_ms
    return replace(
        layer,
        forward_ms=2 * layer.forward_ms,
        backward_ms=tuple(2 * ms for ms in layer.backward_ms),
        weight_grad_ms=None if weight_ms is None else 2 * weight_ms,
    )


def _times(value: PerStage, factor: float) -> PerStage:
    return tuple(factor * each for each in value) if isinstance(value, tuple) else factor * value
