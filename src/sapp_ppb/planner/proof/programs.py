"""Which linear programs bound a problem with several chunks."""

from collections.abc import Iterator
from typing import Any

from sapp_ppb.planner.alike import MOST_GROUPS, Grouped, joined_equal, joined_near, may_join
from sapp_ppb.planner.proof.count_program import CountProgram
from sapp_ppb.planner.proof.pattern_program import PatternProgram
from sapp_ppb.planner.proof.patterns import TooManyPatternsError, list_patterns
from sapp_ppb.planner.proof.tree import Program
from sapp_ppb.problem import Problem

# Entries beyond which patterns are soon too many, and what may be spent on finding that out, as a share.
_MOST_ENTRIES, _LITTLE = 8, 0.2
# Cells beyond which counts prove more in the same time than patterns do.
_MOST_CELLS = 64


def programs_for(
    problem: Problem, cutoff_ms: float, deadline: float, *, tell_apart: bool
) -> Iterator[tuple[Program[Any, Any], float]]:
    """
    Give the programs that are worth branching on, one after the other; a bound of any is one.

    Patterns of the problem itself prove most, where they can be listed.  Elsewhere neighbours
    of about equal costs are joined first, and then a program over counts tells them apart,
    which gains more where they differ much.

    Parameters
    ----------
    cutoff_ms
        Makespan of the best plan known.
    deadline
        Time of ``time.monotonic`` at which to give patterns up.
    tell_apart
        Whether there is time for a program over the counts of all entries.

    Yields
    ------
    tuple
        A program, and the share of the work left that is worth spending on it.
    """
    equal = joined_equal(problem)
    entries = len(equal.problem.model.bodies)
    exact = _over_patterns(equal, cutoff_ms, deadline, 1.0 if entries <= _MOST_ENTRIES else _LITTLE)
    if exact is not None:
        yield exact, 1.0
        return
    if entries > MOST_GROUPS and may_join(problem):
        near = joined_near(problem)
        program = _over_patterns(near, cutoff_ms, deadline) or CountProgram(near.problem, cutoff_ms, near)
        yield program, 0.5 if tell_apart else 1.0
    if tell_apart:
        yield CountProgram(equal.problem, cutoff_ms), 1.0


def _over_patterns(
    grouped: Grouped, cutoff_ms: float, deadline: float, share: float = 1.0
) -> PatternProgram | None:
    """Program over the patterns of a problem; None where they are too many."""
    if grouped.problem.cells > _MOST_CELLS:
        return None
    try:
        patterns = list_patterns(grouped.problem, cutoff_ms, deadline, share)
    except TooManyPatternsError:
        return None
    return PatternProgram(grouped.problem, patterns, cutoff_ms, grouped)
