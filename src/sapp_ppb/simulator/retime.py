"""What is known of a plan file once the simulator has timed its plan anew."""

import warnings
from dataclasses import replace

from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.plan import Outcome, Status
from sapp_ppb.simulator.timeline import Timeline, simulate

_SAME = 1e-9  # two times are equal within this share


def retime(outcome: Outcome, where: str) -> tuple[Timeline, Outcome]:
    """
    Time the plan of an outcome that was read from a file.

    The file's bound is kept only when its makespan is met: otherwise the costs have
    changed since, and the bound says nothing of them.

    Raises
    ------
    InputError
        When the file holds no plan.
    """
    if outcome.plan is None or outcome.makespan_ms is None:
        raise InputError(
            where, ["holds no plan to time, because none fits; plan with a higher --memory-limit"]
        )
    timeline = simulate(outcome.plan)
    met = abs(timeline.makespan_ms - outcome.makespan_ms) <= _SAME * timeline.makespan_ms
    if not met:
        warnings.warn(
            f"{where}: says {outcome.makespan_ms:,.1f} ms, the simulator {timeline.makespan_ms:,.1f} ms; "
            "the model is another, so the file's bound is left out",
            FileNote,
            stacklevel=2,
        )
    return timeline, replace(
        outcome,
        status=Status.FEASIBLE,
        makespan_ms=timeline.makespan_ms,
        lower_bound_ms=outcome.lower_bound_ms if met else None,
        peak_memory_mb=timeline.peak_memory_mb,
        bubble=timeline.bubble,
    )
