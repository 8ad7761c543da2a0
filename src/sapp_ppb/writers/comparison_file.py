"""A comparison of plans as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sapp_ppb.problem import Problem
from sapp_ppb.writers.plan_file import bubble_object, json_text, problem_object

if TYPE_CHECKING:
    from sapp_ppb.simulator import Timeline


def comparison_to_json(problem: Problem, rows: "Sequence[tuple[str, Timeline | None]]") -> str:
    """
    Text of a comparison: the problem as a plan file says it, and a row for each plan.

    Parameters
    ----------
    problem
        What was asked.
    rows
        Name and timeline of each plan, the planner's first; None where there is no plan.

    Returns
    -------
    str
        JSON, with a line end at its end.  ``ratio`` is the step over the first row's, and
        ``step_ms`` is there where a row has something after the last ops;
        ``peak_memory_mb`` has S numbers; what a row without a plan can not say is null.
        ``strategy_layers`` is there where a plan uses strategies, a number for each name.
        ``interleave`` and ``schedule`` say what the row ran with.
    """
    best = rows[0][1].step_ms if rows and rows[0][1] is not None else None
    document: dict[str, object] = {
        "problem": problem_object(problem),
        "rows": [_row(name, timeline, best) for name, timeline in rows],
    }
    return json_text(document) + "\n"


def _row(name: str, timeline: "Timeline | None", best_ms: float | None) -> dict[str, object]:
    if timeline is None:
        unknown = ("makespan_ms", "ratio", "bubble", "peak_memory_mb")
        return {"name": name, **dict.fromkeys(unknown), "fits": False, "recomputed_layers": None}
    problem = timeline.plan.problem
    return {
        "name": name,
        "makespan_ms": float(timeline.makespan_ms),
        **({"step_ms": float(timeline.step_ms)} if problem.has_extra else {}),
        "ratio": float(timeline.step_ms / best_ms) if best_ms else None,
        "bubble": bubble_object(timeline.bubble),
        "peak_memory_mb": [float(mb) for mb in timeline.peak_memory_mb],
        "fits": timeline.fits_memory,
        "recomputed_layers": timeline.plan.recomputed_layers,
        **({"strategy_layers": strategies} if (strategies := timeline.plan.strategy_layers) else {}),
        "interleave": problem.interleave,
        "schedule": problem.schedule_name.value,
    }
