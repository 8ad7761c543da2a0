"""Why nothing fits: the stage, the op, the MB, and the limit that would do."""

from sapp_ppb.errors import NoPlanFoundError
from sapp_ppb.plan import Shortage
from sapp_ppb.planner.least_memory import least_memory
from sapp_ppb.problem import Problem
from sapp_ppb.simulator.price import price
from sapp_ppb.simulator.timeline import stage_peaks


def find_shortage(problem: Problem, *, time_limit_s: float) -> Shortage:
    """
    Explain an infeasible problem by the plan that exceeds its limits least.

    Raises
    ------
    NoPlanFoundError
        When that plan was not found in the time given.
    SolverError
        When the solver fails.
    """
    least = least_memory(problem, time_limit_s=time_limit_s)
    if least.plan is None:
        raise NoPlanFoundError(
            "no plan fits, and why could not be computed in time; try a higher --time-limit"
        )
    peaks = stage_peaks(problem, price(least.plan))
    limits = problem.limit_per_stage_mb
    over = [peak.memory_mb - limit for peak, limit in zip(peaks, limits, strict=True)]
    stage = over.index(max(over))
    smallest = _smallest_limit(problem, max(over), time_limit_s)
    return Shortage(
        stage=stage,
        op=str(peaks[stage].op),
        over_mb=over[stage],
        smallest_limit_mb=smallest,
        remedies=(("memory_limit_mb", smallest),),
    )


def _smallest_limit(problem: Problem, over_mb: float, time_limit_s: float) -> float:
    """Smallest single limit for all stages that some plan meets, by the plan that meets it."""
    if isinstance(problem.memory_limit_mb, float | int):
        return problem.memory_limit_mb + over_mb
    least = least_memory(problem, one_limit=True, time_limit_s=time_limit_s)
    if least.plan is None:
        raise NoPlanFoundError(
            "no plan fits, and why could not be computed in time; try a higher --time-limit"
        )
    return max(peak.memory_mb for peak in stage_peaks(problem, price(least.plan)))
