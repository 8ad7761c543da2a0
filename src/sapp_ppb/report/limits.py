"""What limits a plan: where the time of the step goes, and which stages have no memory left."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf

import numpy as np

from sapp_ppb.report.critical_path import Waits
from sapp_ppb.report.words import EXTRA_NAME
from sapp_ppb.simulator import Timeline

# A stage this close to its limit has no room for a layer that is recomputed less.
_TIGHT = 0.01
_SHOWN_STAGES = 16


@dataclass(frozen=True, kw_only=True)
class Part:
    """
    A part of the makespan.

    Attributes
    ----------
    name
        What the time goes to.
    ms
        How much of the step, averaged over the stages; uneven cells may win some, a negative part.
    remedy
        What would make it less; empty for useful work.
    """

    name: str
    ms: float
    remedy: str = ""


def step_parts(timeline: Timeline) -> tuple[Part, ...]:
    """
    Split the makespan into useful work and what the bubble is made of.

    Returns
    -------
    tuple
        Useful work first; the parts add up to the makespan.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import plan_from_matrices
    >>> from sapp_ppb.problem import Problem
    >>> from sapp_ppb.simulator import simulate
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=3, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=3, micro_batches=4)
    >>> parts = step_parts(simulate(plan_from_matrices(problem, {"Dec": {"none": [[1, 1, 1]]}})))
    >>> [(part.name, round(part.ms, 9)) for part in parts[:2]]  # 4 x 3 and (3 - 1) x 3 of 18 ms
    [('useful work', 12.0), ('fill and drain', 6.0)]
    """
    bubble, problem = timeline.bubble, timeline.plan.problem
    useful_ms = timeline.makespan_ms / (1 + bubble.total)
    return (
        Part(name="useful work", ms=useful_ms),
        Part(
            name="fill and drain",
            ms=bubble.fill_drain * useful_ms,
            remedy=f"more micro-batches (now {problem.micro_batches}), more chunks a stage "
            f"(now {problem.interleave}) or fewer stages (now {problem.stages}) make it less",
        ),
        Part(
            name="imbalance",
            ms=bubble.imbalance * useful_ms,
            remedy="smaller layers, or a lighter HEAD or TAIL, could be spread more evenly",
        ),
        Part(
            name="recompute",
            ms=bubble.recompute * useful_ms,
            remedy="more memory, or a recompute type that takes less time, makes it less",
        ),
        Part(
            name="communication",
            ms=bubble.communication * useful_ms,
            remedy="a faster link between stages makes it less",
        ),
    )


def limit_rows(timeline: Timeline, waits: Waits) -> list[tuple[str, str]]:
    """Say what limits a plan, each a name and a sentence without a full stop."""
    makespan_ms, busy_ms = timeline.makespan_ms, timeline.busy_ms
    busiest, whole = int(busy_ms.argmax()), "makespan" if timeline.extra_ms else "step"
    largest = max(step_parts(timeline)[1:], key=lambda part: part.ms)
    lost = (
        f"{largest.name}: {largest.ms:,.1f} ms, {largest.ms / makespan_ms:.1%} of the {whole}; "
        f"{largest.remedy}"
        if largest.ms > 1e-9 * makespan_ms
        else "nothing is lost: every stage does useful work from the first op to the last"
    )
    return [
        ("most is lost to", lost),
        (
            "busiest stage",
            f"stage {busiest} works {busy_ms[busiest]:,.1f} ms, {busy_ms[busiest] / makespan_ms:.1%} of the "
            f"{whole}; the stages work {busy_ms.mean() / makespan_ms:.1%} of it on average",
        ),
        ("longest path", _path_text(timeline, waits)),
        *_extra_rows(timeline),
        ("memory", _memory_text(timeline)),
    ]


def _extra_rows(timeline: Timeline) -> list[tuple[str, str]]:
    """Say what time outside the pipeline adds, where there is any."""
    if not timeline.extra_ms:
        return []
    added_ms = timeline.step_ms - timeline.makespan_ms
    said = f"adds {added_ms:,.1f} ms, {added_ms / timeline.step_ms:.1%} of the step with it"
    return [(EXTRA_NAME, said if added_ms > 1e-9 * timeline.step_ms else "adds nothing: it is hidden")]


def _path_text(timeline: Timeline, waits: Waits) -> str:
    """Say on which stage the longest path is longest."""
    on_stage = [0.0] * timeline.plan.problem.stages
    ends = [len(row) for row in timeline.start_ms]
    stage, first = 0, 0
    for at in sorted(waits.path.tolist()):
        while at >= first + ends[stage]:
            first += ends[stage]
            stage += 1
        on_stage[stage] += float(timeline.end_ms[stage][at - first] - timeline.start_ms[stage][at - first])
    most = max(range(len(on_stage)), key=on_stage.__getitem__)
    # Where something is done after the last ops, a path need not end with the makespan.
    whole_ms = float(np.concatenate(timeline.end_ms)[waits.path[-1]])
    sending = whole_ms - sum(on_stage)
    hops = f", {sending:,.1f} ms of it sending" if sending > 1e-6 * whole_ms else ""
    return (
        f"{len(waits.path):,} ops that wait for one another make the step as long as it is; "
        f"{on_stage[most] / whole_ms:.1%} of that time is on stage {most}{hops}"
    )


def _memory_text(timeline: Timeline) -> str:
    """Say which stages have no memory left."""
    limits, peaks = timeline.plan.problem.limit_per_stage_mb, timeline.peak_memory_mb
    if all(map(isinf, limits)):
        return "is no limit: none was given"
    if timeline.stages_over:
        return f"exceeds the limit on {_stages(timeline.stages_over)}"
    tight = [stage for stage, peak in enumerate(peaks) if peak >= limits[stage] * (1 - _TIGHT)]
    if tight:
        return f"{_stages(tight)} of {len(peaks)} are within {_TIGHT:.0%} of their limit"
    fullest = max(range(len(peaks)), key=lambda stage: peaks[stage] / limits[stage])
    return (
        f"no stage is within {_TIGHT:.0%} of its limit; the fullest is stage {fullest}, "
        f"with {peaks[fullest]:,.1f} MB of {limits[fullest]:,.10g} MB"
    )


def _stages(stages: Sequence[int]) -> str:
    """
    Count and name stages.

    Examples
    --------
    >>> _stages([0, 3])
    '2 stages (0, 3)'
    """
    named = ", ".join(map(str, stages[:_SHOWN_STAGES]))
    more = len(stages) - _SHOWN_STAGES
    rest = f" and {more} more" if more > 0 else ""
    return f"{len(stages)} stage{'s' if len(stages) > 1 else ''} ({named}{rest})"
