"""Why nothing fits of what a framework can say, in any of its ways to say recompute."""

from collections.abc import Sequence
from dataclasses import replace

from sapp_ppb.errors import InputError
from sapp_ppb.plan import Shortage
from sapp_ppb.planner.shortage.infeasible import SHORTAGE_S, find_shortage, under_its_own_order
from sapp_ppb.planner.shortage.least_memory import least_memory_if_known
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets import Way, target_named

# Seconds for the plan that holds least of a way.
_LEAST_MEMORY_S = 5.0


def nothing_fits(ways: Sequence[Way]) -> bool:
    """Whether even what holds least does not fit: all of one type, or the lightest where places decide."""
    followers = [way for way in ways if follows_places(way)][:1]  # one stands for all of them
    return all(
        least_memory_if_known(way.problem, time_limit_s=_LEAST_MEMORY_S).rules_out(
            min(way.problem.limit_per_stage_mb)
        )
        for way in [*(way for way in ways if not follows_places(way)), *followers]
    )


def follows_places(way: Way) -> bool:
    """Whether recompute follows from where a layer stands in its cell."""
    return way.problem.fix is not None and way.problem.fix.places is not None


def shortage_of_ways(problem: Problem, ways: Sequence[Way]) -> Shortage:
    """
    Say why nothing fits, of the plans that the ways have.

    Parameters
    ----------
    problem
        What was asked, without what a way restricts.
    ways
        At least one.
    """
    shortage = find_shortage(ways[0].problem if len(ways) == 1 else problem, time_limit_s=SHORTAGE_S)
    if len(ways) > 1 and not shortage.proven:  # what holds least is in no way, and a way's own may be lighter
        shortage = _least_of_ways(shortage, [way for way in ways if not follows_places(way)])
    remedies = tuple(
        (change, value) for change, value in shortage.remedies if _is_open(problem, change, value)
    )
    return under_its_own_order(problem, replace(shortage, remedies=remedies))


def _least_of_ways(shortage: Shortage, ways: Sequence[Way]) -> Shortage:
    """Find the least limit that the plan of some way meets, which is not proven to be the least of all."""
    each = [find_shortage(way.problem, time_limit_s=SHORTAGE_S / len(ways)) for way in ways]
    least = min((shortage, *each), key=lambda found: found.needed_mb)
    return replace(least, proven=False)


def _is_open(problem: Problem, change: str, value: float | str) -> bool:
    """Whether a change is of what was asked for, and leaves what the target can say."""
    if change == "recompute":  # a way allows fewer types than the problem
        return problem.recompute is not None and problem.model.type_named(str(value)) not in problem.recompute
    if change == "fix":
        return problem.fix is not None
    if change != "schedule":
        return True
    try:
        changed = problem.changed(schedule=ScheduleName(str(value)), micro_batch_group=None)
    except InputError:
        return False
    return not target_named(problem.target or "").refuses(changed)
