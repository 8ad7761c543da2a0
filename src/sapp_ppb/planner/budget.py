"""How much work a time limit buys: fixed before the run, so that a seed has one answer."""

from dataclasses import dataclass

from sapp_ppb.problem import Problem

# Seconds of one move on a slow core: its own work, then a share for every op that
# may be timed and every layer that is copied.  Twice what a current core takes.
_MOVE_S = 8e-6
_PER_OP_S = 2.6e-9
_PER_LAYER_S = 1e-8
# Share of the time limit that the work is sized to, and the seconds, or share, of
# it that go to the search where branch and bound can follow.
_USED = 0.85
_SEARCHED_S = 6.0
_SEARCHED, _SEARCHED_LONG = 0.15, 0.7
# Ops from which a step is long: linear programs of that many cells prove little in minutes.
_LONG = 60_000
# Units of linear programming (simplex iterations times rows) done in a second.
_WORK_A_SECOND = 2_200_000


@dataclass(frozen=True, kw_only=True)
class Budget:
    """
    Work that may be done.

    Attributes
    ----------
    moves
        Moves of the search.
    work
        Units of linear programming for branch and bound.
    time_limit_s
        When the clock stops the run all the same.
    """

    moves: int
    work: int
    time_limit_s: float


def number_of_ops(problem: Problem) -> int:
    """Ops of all stages together."""
    return sum(len(row) for row in problem.order.rows)


def budget_for(problem: Problem, time_limit_s: float) -> Budget:
    """
    Turn seconds into moves.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=100, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=10, micro_batches=100)
    >>> budget_for(problem, 10.0).moves  # 8.5 s of 8 + 2000 ops x 0.0026 + 100 layers x 0.01 us
    598591
    """
    ops = number_of_ops(problem)
    move_s = _MOVE_S + _PER_OP_S * ops + _PER_LAYER_S * problem.model.body_count
    seconds = _USED * time_limit_s
    searched = seconds
    if problem.interleave > 1:
        share = _SEARCHED_LONG if ops >= _LONG else _SEARCHED
        searched = max(min(seconds / 2, _SEARCHED_S), share * seconds)
    return Budget(
        moves=max(100, int(searched / move_s)),
        work=int((seconds - searched) * _WORK_A_SECOND),
        time_limit_s=time_limit_s,
    )
