"""What a worker does with one candidate; it never raises, so that one bad problem costs one row."""

import multiprocessing
import signal
import threading
from dataclasses import dataclass

from sapp_ppb.errors import NoPlanFoundError, PpbError
from sapp_ppb.plan import StoppedBy
from sapp_ppb.sweep.answer import Answer, RowStatus, answer_of
from sapp_ppb.sweep.candidate import Candidate

# Workers share cores, caches and memory with one another.  A plan that the clock stopped can not be
# repeated, and a table of such would not be the same elsewhere.
_PATIENCE = 4.0


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

    leave_interrupts_to_the_parent()
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
    from sapp_ppb.planner.bounds import lower_bound

    leave_interrupts_to_the_parent()
    try:
        return float(lower_bound(candidate.problem))
    except Exception:  # a bound only saves time
        return 0.0


def leave_interrupts_to_the_parent() -> None:
    """
    Ignore Ctrl-C in a worker process, which gets it together with its parent.

    The parent then ends its workers; one that answered an interrupt itself would print about it.
    """
    is_worker = multiprocessing.parent_process() is not None
    if is_worker and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _one_line(text: str) -> str:
    return " ".join(text.split())
