"""What the planner says of a drawn problem and of its neighbours, each asked once."""

from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any

from sapp_ppb.errors import InputError, NoPlanFoundError
from sapp_ppb.plan import Outcome, Plan, StoppedBy
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from tests.laws.drawing import Drawn
from tests.laws.units import times

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

    def rng(self, what: str) -> Random:
        """Draw what is asked besides from the number too."""
        return Random(f"{what} of {self.drawn.number}")

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
        drawn = self.drawn
        try:
            return plan_pipeline(problem, time_limit_s=drawn.seconds, warm_start=warm_start, **drawn.options)
        except NoPlanFoundError:
            return None


def is_repeatable(outcome: Outcome | None) -> bool:
    """Whether the clock had no part in an answer."""
    return outcome is not None and outcome.stopped_by is not StoppedBy.TIME and outcome.seconds < _UNHURRIED_S


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
    rng = asked.rng("neighbours")
    for way in rng.sample(ways, len(ways)):
        try:
            pair = way(rng, asked.problem)
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
    return problem, problem.changed(memory_limit_mb=times(limit, factor))


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


def changed_by(problem: Problem, change: str, value: float | str) -> Problem:
    """Give the problem with a single change, as a shortage names it."""
    given: dict[str, Any] = {change: value}
    if change == "constant_memory_less_by_mb":
        less = float(value)
        given = {"constant_memory_mb": tuple(max(0.0, mb - less) for mb in problem.constant_per_stage_mb)}
    elif change == "fix":
        given = {"fix": None}
    elif change == "recompute":
        given = {"recompute": (*(problem.recompute or ()), problem.model.type_named(str(value)))}
    elif change == "schedule":
        given = {"schedule": ScheduleName(str(value)), "micro_batch_group": None}
    elif change == "interleave" and value == 1:
        given = {"interleave": 1, "schedule": None, "micro_batch_group": None}
    elif change == "stages":
        given |= {"p2p_ms": 0.0, "stage_speed": None, "step_extra_ms": 0.0}
    return replace(problem, **given)
