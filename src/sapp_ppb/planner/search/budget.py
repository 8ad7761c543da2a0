"""How much work a time limit buys: fixed before the run, so that a seed has one answer."""

from dataclasses import dataclass

from sapp_ppb.planner.alike import MOST_GROUPS, may_join
from sapp_ppb.problem import Problem

# Seconds of one move: its own work, then a share for every op that may be timed, every layer
# that is copied and every entry that a stage can hold.  Somewhat more than a current core takes.
_MOVE_S = 6e-6
_PER_OP_S = 0.6e-9
_PER_LAYER_S = 1e-8
_PER_ENTRY_S = 1.2e-7
# Ops that lie in a core's cache together, and what each further one takes besides; entries of which a
# cell seldom holds more, and what each further one saves.
_NEAR_OPS, _PER_FAR_OP_S = 132_000, 0.3e-9
_NEAR_ENTRIES, _PER_FAR_ENTRY_S = 16, 0.7e-7
# How late the clock stops a run that takes longer than it was sized to: a share of the limit, and at
# least so many seconds.  What comes after the stop stays within 10 % of a limit of 10 s and more.
_LATE, _LATER_S = 0.06, 0.7
# Share of the time limit that the work is sized to, and the seconds, or share, of
# it that go to the search where branch and bound can follow.
_USED = 0.85
_SEARCHED_S = 6.0
_SEARCHED, _SEARCHED_LONG = 0.15, 0.7
# Ops from which a step is long: linear programs of that many cells prove little in minutes.
_LONG = 60_000
# Entries times cells from which they are so wide that they prove nothing within the limit: at least, and
# for every second of it.
_WIDE, _WIDER_A_SECOND = 1_500, 150
# Times its share that the first program may take, which has most of the bound, and where a step is long;
# the clock is its brake.
_FIRST, _FIRST_LONG = 10, 3
# Units of linear programming (simplex iterations times rows) done in a second, at most, and where
# there are many cells, as rows of a large program are longer: so many by the number of cells.
_WORK_A_SECOND, _WORK_OF_CELLS = 4_500_000, 384_000_000


@dataclass(frozen=True, kw_only=True)
class Budget:
    """
    Work that may be done.

    Attributes
    ----------
    moves
        Moves of the search.
    work
        Units of linear programming for branch and bound; 0 where there is to be none.
    tell_apart
        Whether a program may have columns for every entry in every cell.
    first_work
        Units that its first program alone may take where that is more.
    stop_s
        When the clock stops the run all the same.
    """

    moves: int
    work: int
    tell_apart: bool
    first_work: int
    stop_s: float


def number_of_ops(problem: Problem) -> int:
    """Ops of all stages together."""
    return sum(map(len, problem.order.rows))


def budget_for(problem: Problem, time_limit_s: float, patience: float = 1.0) -> Budget:
    """
    Turn seconds into moves.

    Parameters
    ----------
    patience
        How many times as late as usual the clock stops the run.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=100, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=10, micro_batches=100)
    >>> budget_for(problem, 10.0).moves  # 8.5 s of 6 + 2000 ops x 0.0006 + 100 x 0.01 + 1 x 0.12 us
    1021634
    """
    ops = number_of_ops(problem)
    model = problem.model
    move_s = _MOVE_S + _PER_OP_S * ops + _PER_LAYER_S * model.body_count + _PER_ENTRY_S * len(model.bodies)
    move_s += _PER_FAR_OP_S * max(ops - _NEAR_OPS, 0)
    move_s -= _PER_FAR_ENTRY_S * max(len(model.bodies) - _NEAR_ENTRIES, 0)
    seconds = _USED * time_limit_s
    searched, is_long = seconds, ops >= _LONG
    most_columns = max(_WIDE, _WIDER_A_SECOND * time_limit_s)
    tell_apart = len(model.bodies) * problem.cells < most_columns
    joined = MOST_GROUPS * problem.cells < most_columns and may_join(problem)
    if problem.interleave > 1 and (tell_apart or joined):
        share = _SEARCHED_LONG if is_long else _SEARCHED
        searched = max(min(seconds / 2, _SEARCHED_S), share * seconds)
    work = int((seconds - searched) * min(_WORK_A_SECOND, _WORK_OF_CELLS / problem.cells))
    return Budget(
        moves=max(100, int(searched / move_s)),
        work=work,
        tell_apart=tell_apart,
        first_work=(_FIRST_LONG if is_long else _FIRST) * work,
        stop_s=patience * (time_limit_s + max(_LATE * time_limit_s, _LATER_S)),
    )
