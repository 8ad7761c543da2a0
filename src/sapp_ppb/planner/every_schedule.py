"""Which schedule is best for a problem: plan every one that its sizes allow."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sapp_ppb.errors import InputError, NoPlanFoundError, ScheduleError
from sapp_ppb.plan import Outcome, Status, StoppedBy
from sapp_ppb.planner.planning import plan_pipeline
from sapp_ppb.planner.run import Watch
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName

# Chunks to try where their number is open.
_CHUNKS = (1, 2)
# Share of the time for a first plan under every schedule; the rest goes to the best few of them.
_FIRST, _BEST = 0.4, 3


@dataclass(frozen=True, kw_only=True)
class ScheduleChoice:
    """
    What one schedule comes to.

    Attributes
    ----------
    problem
        The problem under the schedule.
    outcome
        The planner's answer; None when no plan was found in time.
    """

    problem: Problem
    outcome: Outcome | None

    @property
    def step_ms(self) -> float:
        """Step of the plan, its makespan and what comes after; infinite without a plan."""
        step = None if self.outcome is None else self.outcome.step_ms
        return float("inf") if step is None else step


def schedule_problems(problem: Problem, chunks: int | None) -> list[Problem]:
    """
    List the same problem under every schedule that takes its sizes, each order once.

    Custom orders are left out; ``seq1f1b`` is tried where the problem has sequence chunks.

    Parameters
    ----------
    chunks
        V; None tries one and two chunks.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> [each.schedule_name.value for each in schedule_problems(problem, 1)]
    ['gpipe', '1f1b', 'looped-bfs', 'interleaved-zero-bubble', 'zb-auto']
    """
    found: list[Problem] = []
    for name in ScheduleName:
        if name is ScheduleName.CUSTOM or (name is ScheduleName.SEQ1F1B and problem.sequence_chunks == 1):
            continue
        for interleave in _CHUNKS if chunks is None else (chunks,):
            pieces = problem.sequence_chunks if name is ScheduleName.SEQ1F1B else 1
            try:
                changed = replace(problem, schedule=name, interleave=interleave, sequence_chunks=pieces)
            except (InputError, ScheduleError):
                continue
            if all(changed.order.rows != other.order.rows for other in found):
                found.append(changed)
    return found


def plan_schedules(
    problems: Sequence[Problem],
    *,
    time_limit_s: float = 10.0,
    gap: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    watch: Watch | None = None,
) -> list[ScheduleChoice]:
    """
    Plan every problem for a short time, then the most promising again for longer.

    Parameters
    ----------
    problems
        At least one, as ``schedule_problems`` gives them.
    time_limit_s
        For all of them together.
    gap, seed, threads, watch
        As of ``plan_pipeline``.

    Returns
    -------
    list
        One choice a problem, the fastest plan first, those without a plan last.

    Raises
    ------
    InputError
        As ``plan_pipeline`` does.
    """
    options: dict[str, Any] = {"gap": gap, "seed": seed, "threads": threads, "watch": watch}
    choices: list[ScheduleChoice] = []
    try:
        _try_all(problems, choices, time_limit_s, options)
    except KeyboardInterrupt:
        choices.sort(key=_step_ms)
        if not choices or choices[0].outcome is None or choices[0].outcome.plan is None:
            raise
        best = replace(
            choices[0].outcome, stopped_by=StoppedBy.INTERRUPT
        )  # the choice is not made to its end
        choices[0] = replace(choices[0], outcome=best)
    return choices


def _try_all(
    problems: Sequence[Problem], choices: list[ScheduleChoice], time_limit_s: float, options: dict[str, Any]
) -> None:
    """Fill a list with the choices, the fastest first; an interrupt that the planner met is passed on."""
    for problem in problems:
        choices.append(_choice(problem, _FIRST * time_limit_s / len(problems), options))
        _pass_on_interrupt(choices[-1])
    choices.sort(key=_step_ms)
    for place in _worth_more(choices):
        again = _choice(choices[place].problem, (1 - _FIRST) * time_limit_s / _BEST, options)
        if again.step_ms <= choices[place].step_ms or choices[place].outcome is None:
            choices[place] = again
        _pass_on_interrupt(again)
    choices.sort(key=_step_ms)


def _step_ms(choice: ScheduleChoice) -> float:
    return choice.step_ms


def _choice(problem: Problem, time_limit_s: float, options: dict[str, Any]) -> ScheduleChoice:
    try:
        outcome = plan_pipeline(problem, time_limit_s=time_limit_s, **options)
    except NoPlanFoundError:
        return ScheduleChoice(problem=problem, outcome=None)
    return ScheduleChoice(problem=problem, outcome=outcome)


def _pass_on_interrupt(choice: ScheduleChoice) -> None:
    if choice.outcome is not None and choice.outcome.stopped_by is StoppedBy.INTERRUPT:
        raise KeyboardInterrupt


def _worth_more(choices: Sequence[ScheduleChoice]) -> list[int]:
    """Places of the choices that may still be the fastest: none whose bound is above the best plan."""
    best_ms = min(choice.step_ms for choice in choices)

    def may_win(choice: ScheduleChoice) -> bool:
        outcome = choice.outcome
        if outcome is None:
            return True
        return outcome.status is Status.FEASIBLE and (outcome.lower_bound_ms or 0.0) < best_ms

    return [place for place, choice in enumerate(choices) if may_win(choice)][:_BEST]
