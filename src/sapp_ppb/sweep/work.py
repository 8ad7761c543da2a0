"""What a worker does with one candidate; it never raises, so that one bad problem costs one row."""

import multiprocessing
import os
import signal
import threading
import time
from dataclasses import dataclass
from functools import cache

from sapp_ppb.errors import NoPlanFoundError, PpbError
from sapp_ppb.plan import StoppedBy
from sapp_ppb.sweep.answer import Answer, RowStatus, answer_of
from sapp_ppb.sweep.candidate import Candidate

# Workers share cores, caches and memory with one another.  A plan that the clock stopped can not be
# repeated, and a table of such would not be the same elsewhere.
_PATIENCE = 4.0
_LOOK_EVERY_S = 0.5  # how soon a worker finds that its parent was killed


@dataclass(frozen=True, kw_only=True)
class Effort:
    """
    How hard each problem is tried, as of ``plan_pipeline``.

    Attributes
    ----------
    time_limit_s
        Seconds for each problem.
    gap
        Stop a problem this close to its optimum.
    seed
        The same seed gives the same plans.

    Raises
    ------
    InputError
        With all faults at once.
    """

    time_limit_s: float = 10.0
    gap: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what the planner would, before any worker meets it."""
        from sapp_ppb.planner.planning import check_options

        check_options(self.time_limit_s, self.gap, self.seed)


def answer_for(candidate: Candidate, effort: Effort) -> Answer:
    """
    Plan one candidate on one core.

    Returns
    -------
    Answer
        Without a plan its ``reason`` says why, a fault of the planner included.

    Raises
    ------
    KeyboardInterrupt
        When it was interrupted in this process: half an answer would be none to keep.
    """
    from sapp_ppb.planner import plan_pipeline

    follow_the_parent()
    try:
        outcome = plan_pipeline(
            candidate.problem,
            time_limit_s=effort.time_limit_s,
            gap=effort.gap,
            seed=effort.seed,
            patience=_PATIENCE,
        )
    except NoPlanFoundError as error:
        return Answer(status=RowStatus.NOT_FOUND, reason=str(error), seed=effort.seed)
    except PpbError as error:
        return Answer(status=RowStatus.FAILED, reason=_one_line(str(error)), seed=effort.seed)
    except Exception as error:  # a fault of ours, or no memory left: said in the row, and the sweep goes on
        reason = f"{type(error).__name__}: {error}"
        return Answer(status=RowStatus.FAILED, reason=_one_line(reason), seed=effort.seed)
    if outcome.stopped_by is StoppedBy.INTERRUPT:
        raise KeyboardInterrupt
    return answer_of(outcome)


def bound_for(candidate: Candidate) -> float:
    """
    Milliseconds below which no plan can be; 0 where none can be computed, and planning will say why.

    Infinite when it shows that nothing fits.
    """
    from sapp_ppb.planner.proof.bounds import lower_bound

    follow_the_parent()
    try:
        return float(lower_bound(candidate.problem))
    except Exception:  # a bound only saves time
        return 0.0


def follow_the_parent() -> None:
    """
    Leave it to the parent when a worker process ends: at once when the parent is killed, not at Ctrl-C.

    A worker gets an interrupt together with its parent, which then ends it; one that answered
    itself would print about it.
    """
    if multiprocessing.parent_process() is None:
        return
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_the_parent()


@cache
def _end_with_the_parent() -> None:
    """Start, once in a process, a thread that ends it as soon as its parent is another one."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _one_line(text: str) -> str:
    return " ".join(text.split())
