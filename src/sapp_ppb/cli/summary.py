"""What is known of an answer, in words: the lines below the table of stages."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sapp_ppb.plan import Bubble, Outcome, Shortage, Status, StoppedBy

if TYPE_CHECKING:
    from sapp_ppb.simulator import Timeline

_STOPPED = {
    StoppedBy.PROOF: "nothing is left to find",
    StoppedBy.GAP: "the gap that was asked for is reached",
    StoppedBy.BUDGET: "the work that the time limit allows is done",
    StoppedBy.TIME: "the time limit passed; another run may find another plan",
    StoppedBy.INTERRUPT: "interrupted; this is the best plan until then",
}


def title_text(outcome: Outcome) -> str:
    """Say what was asked, on one line."""
    problem = outcome.problem
    chunks = f" x {problem.interleave} chunks" if problem.interleave > 1 else ""
    group = f" (groups: {problem.micro_batch_group})" if problem.micro_batch_group is not None else ""
    return (
        f"{problem.model.name}: {problem.model.body_count} layers on {problem.stages} stages{chunks}, "
        f"{problem.micro_batches} micro-batches, {problem.schedule_name.value}{group}"
        + (f", for {problem.target}" if problem.target else "")
    )


def summary_rows(outcome: Outcome, timeline: "Timeline") -> list[tuple[str, str]]:
    """Give the lines below the table of stages, as a name and its value."""
    planned = outcome.status is not Status.FEASIBLE or outcome.seconds > 0
    rows = [("makespan", f"{timeline.makespan_ms:,.1f} ms")]
    if outcome.lower_bound_ms is not None:
        rows.append(("lower bound", f"{outcome.lower_bound_ms:,.1f} ms"))
        rows.append(("gap", _gap_text(outcome)))
    over = stages_over(timeline)
    rows.append(("status", "exceeds the memory limit" if over else _status_text(outcome)))
    if planned:
        rows.append(("stopped by", f"{outcome.stopped_by.value}: {_STOPPED[outcome.stopped_by]}"))
    rows.append(("bubble", bubble_text(timeline.bubble)))
    rows.append(("highest peak", _peak_text(timeline)))
    if over:
        rows.append(("over limit", _over_text(timeline, over)))
    if planned:
        rows.append(("planned in", f"{outcome.seconds:.1f} s, seed {outcome.seed}"))
    return rows


def _gap_text(outcome: Outcome) -> str:
    return f"{outcome.gap:.2%}" if outcome.gap is not None else ""


def _status_text(outcome: Outcome) -> str:
    if outcome.status is Status.OPTIMAL:
        return "optimal: no plan within the limits is faster, to 1e-6 of the makespan"
    if outcome.lower_bound_ms is None:
        return "feasible: nothing is proven of faster plans"
    return "feasible: a faster plan may exist, but none below the lower bound"


def bubble_text(bubble: Bubble) -> str:
    """
    Say the bubble and its parts, in shares of useful work.

    Examples
    --------
    >>> bubble_text(Bubble(fill_drain=0.25, imbalance=0.02, recompute=0.1, communication=0))
    '37.0% of useful work = fill and drain 25.0% + imbalance 2.0% + recompute 10.0% + communication 0.0%'
    """
    parts = (
        ("fill and drain", bubble.fill_drain),
        ("imbalance", bubble.imbalance),
        ("recompute", bubble.recompute),
        ("communication", bubble.communication),
    )
    said = " + ".join(f"{name} {_share(value)}" for name, value in parts)
    return f"{_share(bubble.total)} of useful work = {said}".replace("+ imbalance -", "- imbalance ")


def _share(value: float) -> str:
    # Rounding first, so that a tiny negative share is no "-0.0%".
    return f"{round(100 * value, 1) + 0.0:.1f}%"


def _peak_text(timeline: "Timeline") -> str:
    """Say which stage holds most."""
    limits, peaks = timeline.plan.problem.limit_per_stage_mb, timeline.peak_memory_mb
    stage = max(range(len(peaks)), key=peaks.__getitem__)
    text = f"{peaks[stage]:,.1f} MB on stage {stage}"
    return text if math.isinf(limits[stage]) else f"{text}, of {limit_text(limits[stage])} MB"


def _over_text(timeline: "Timeline", over: Sequence[int], shown: int = 8) -> str:
    """Say which stages have too little, and by how much."""
    limits, peaks = timeline.plan.problem.limit_per_stage_mb, timeline.peak_memory_mb
    words = [f"stage {stage} by {peaks[stage] - limits[stage]:,.1f} MB" for stage in over[:shown]]
    more = len(over) - shown
    return ", ".join(words) + (f" and {more} more stages" if more > 0 else "")


def stages_over(timeline: "Timeline") -> list[int]:
    """Stages that need more than their limit."""
    pairs = zip(timeline.peak_memory_mb, timeline.plan.problem.limit_per_stage_mb, strict=True)
    return [stage for stage, (peak, limit) in enumerate(pairs) if peak > limit * (1 + 1e-9)]


def limit_text(limit_mb: float) -> str:
    """
    Say a limit as it was given.

    Examples
    --------
    >>> limit_text(56000.0), limit_text(0.5)
    ('56,000', '0.5')
    """
    return f"{limit_mb:,.10g}"


def baseline_rows(
    outcome: Outcome, timed: "Sequence[tuple[str, Timeline]]"
) -> list[tuple[str, str, str, str]]:
    """Name, makespan, ratio to the plan's and whether it fits, of every baseline."""
    best = outcome.makespan_ms or math.nan
    rows = [("this plan", f"{best:,.1f}", "1.000", "fits")]
    for name, timeline in timed:
        over = stages_over(timeline)
        fits = f"over on {len(over)} of {outcome.problem.stages} stages" if over else "fits"
        rows.append((name, f"{timeline.makespan_ms:,.1f}", f"{timeline.makespan_ms / best:.3f}", fits))
    return rows


def shortage_rows(outcome: Outcome, shortage: Shortage) -> list[tuple[str, str]]:
    """Say where memory is short, and what would do, as a name and its value."""
    limit = limit_text(outcome.problem.limit_per_stage_mb[shortage.stage])
    # Rounded up, so that it does when it is given back.
    least = math.ceil(shortage.smallest_limit_mb)
    rows = [
        (
            "short",
            f"stage {shortage.stage}, by {shortage.over_mb:,.1f} MB over {limit} MB, at op {shortage.op}",
        ),
        ("would do", f"a limit of {least:,} MB on every stage (--memory-limit {least})"),
    ]
    return rows + [
        ("would do", f"{change.replace('_', ' ')}: {value if isinstance(value, str) else limit_text(value)}")
        for change, value in shortage.remedies
        if change != "memory_limit_mb"
    ]
