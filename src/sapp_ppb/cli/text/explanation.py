"""What limits a plan, in words: which resource would shorten the step, and by how much."""

from rich.text import Text

from sapp_ppb.cli.text.tables import pairs_table, rendered
from sapp_ppb.plan import Outcome
from sapp_ppb.planner import Explanation, Relaxed


def explanation_text(outcome: Outcome, explanation: Explanation) -> str:
    """Fill the part of the page that says what limits a plan."""
    return rendered(
        [Text(), Text("what limits this plan"), pairs_table(explanation_rows(outcome, explanation))]
    )


def explanation_rows(outcome: Outcome, explanation: Explanation) -> list[tuple[str, str]]:
    """Give each resource a name and what more of it would change."""
    whole = explanation.step_ms
    problem = outcome.problem
    unlimited = explanation.unlimited_memory
    memory = (
        "is no limit: none was given"
        if problem.memory_limit_mb is None
        else f"with unlimited memory {_relaxed_text(unlimited, whole)}"
    )
    cut, worked = explanation.divisible_ms, "makespan" if problem.has_extra else "step"
    return [
        ("memory", memory),
        ("recompute", f"if it took no time {_relaxed_text(explanation.free_recompute, whole)}"),
        (
            "size of layers",
            f"with unlimited memory and equal cells {cut:,.1f} ms, "
            f"{_change_text(cut, unlimited.step_ms)} than with unlimited memory alone",
        ),
        ("busiest stage", f"stage {explanation.busiest_stage} works {explanation.busy:.1%} of the {worked}"),
        (
            "fill and drain",
            f"{explanation.fill_drain:.1%} of useful work; more micro-batches (now {problem.micro_batches}) "
            "or more chunks make it less",
        ),
        ("most to gain", _advice(explanation)),
    ]


def _relaxed_text(relaxed: Relaxed, whole_ms: float) -> str:
    """
    Say a makespan that was found, and how much less it can be at most.

    Examples
    --------
    >>> _relaxed_text(Relaxed(step_ms=90.0, lower_bound_ms=80.0), 100.0)
    '90.0 ms, 10.0% less than now (at most 20.0% less)'
    """
    found = f"{relaxed.step_ms:,.1f} ms, {_change_text(relaxed.step_ms, whole_ms)} than now"
    most = 1 - relaxed.lower_bound_ms / whole_ms
    if relaxed.lower_bound_ms >= relaxed.step_ms * (1 - 1e-6):
        return f"{found} (proven)"
    return f"{found} (at most {most:.1%} less)" if relaxed.lower_bound_ms > 0 else found


def _change_text(after_ms: float, before_ms: float) -> str:
    less = 1 - after_ms / before_ms
    return f"{abs(less):.1%} {'less' if less >= 0 else 'more'}"


def _advice(explanation: Explanation) -> str:
    """
    Name the resource of which more would take most off the step, as far as plans were found.

    Filling and draining is left out: it is lost in the equal cells that the others
    are compared with, and only other sizes of the problem change it.
    """
    whole = explanation.step_ms
    unlimited = explanation.unlimited_memory.step_ms
    gains = {
        "more memory on every stage": 1 - unlimited / whole,
        "cheaper recompute": 1 - explanation.free_recompute.step_ms / whole,
        "smaller layers, or a split within layers": (unlimited - explanation.divisible_ms) / whole,
    }
    name, gain = max(gains.items(), key=lambda item: item[1])
    if gain < 0.001:
        return "nothing of these; only faster stages, more micro-batches or more chunks shorten the step"
    return f"{name}: {gain:.1%} of the step"
