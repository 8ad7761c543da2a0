"""What is known of an answer, in words: the same on the terminal and on the page."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sapp_ppb.costs import Recompute, RecomputeType
from sapp_ppb.costs.cost import estimated_words
from sapp_ppb.plan import Bubble, Outcome, Plan, Shortage, Status, StoppedBy, WithoutTarget
from sapp_ppb.problem import Problem
from sapp_ppb.report.words import problem_text
from sapp_ppb.targets import target_named

if TYPE_CHECKING:
    from sapp_ppb.simulator import Timeline

_SHOWN_KINDS = 5
_SAME = 1e-6  # two makespans are the same within this share, as where a plan is called optimal
_STOPPED = {
    StoppedBy.PROOF: "nothing is left to find",
    StoppedBy.GAP: "the gap that was asked for is reached",
    StoppedBy.BUDGET: "the work that the time limit allows is done",
    StoppedBy.TIME: "the time limit passed; another run may find another plan",
    StoppedBy.INTERRUPT: "interrupted; this is the best plan until then",
}


def title_text(outcome: Outcome) -> str:
    """Say what was asked, on one line."""
    return problem_text(outcome.problem)


def summary_rows(outcome: Outcome, timeline: "Timeline", tokens: int | None = None) -> list[tuple[str, str]]:
    """
    Give the lines below the table of stages, as a name and its value.

    Parameters
    ----------
    tokens
        Tokens of a micro-batch; None leaves out what they come to a second.
    """
    planned = outcome.status is not Status.FEASIBLE or outcome.seconds > 0
    rows = [("makespan", f"{timeline.makespan_ms:,.1f} ms"), *_step_rows(timeline)]
    rows += _rates(timeline, tokens)
    if outcome.lower_bound_ms is not None:
        rows.append(("lower bound", f"{outcome.lower_bound_ms:,.1f} ms"))
        rows.append(("gap", _gap_text(outcome)))
    over = timeline.stages_over
    rows.append(("status", "exceeds the memory limit" if over else _status_text(outcome)))
    if planned:
        rows.append(("stopped by", f"{outcome.stopped_by.value}: {_STOPPED[outcome.stopped_by]}"))
    if outcome.without_target is not None:
        rows.append(("target", target_text(outcome, outcome.without_target)))
    if outcome.stage_order is not None:
        rows.append(("stage order", _order_text(outcome.stage_order)))
    rows.append(("bubble", bubble_text(timeline.bubble)))
    rows.append(("highest peak", _peak_text(timeline)))
    rows += _limit_rows(outcome.problem)
    if over:
        rows.append(("over limit", _over_text(timeline, over)))
    if planned:
        rows.append(("planned in", f"{outcome.seconds:.1f} s, seed {outcome.seed}"))
    return rows + estimate_rows(outcome.problem)


def estimate_rows(problem: Problem) -> list[tuple[str, str]]:
    """Say which costs are estimates, and what that means; nothing where none is marked as one."""
    words = estimated_words(problem.model.estimated)
    return [("estimate", f"{words}, not measured; measure before the plan is relied upon")] if words else []


def _step_rows(timeline: "Timeline") -> list[tuple[str, str]]:
    """Say the step with what comes after the last ops, where anything does."""
    problem = timeline.plan.problem
    if not problem.has_extra:
        return []
    last = max(range(problem.stages), key=lambda stage: timeline.extra_ms[stage][1])
    extra_ms = problem.extra_per_stage_ms[last]
    return [
        (
            "step",
            f"{timeline.step_ms:,.1f} ms with time outside the pipeline; stage {last} ends it, "
            f"{extra_ms:,.10g} ms after its last op",
        )
    ]


def _order_text(order: Sequence[int]) -> str:
    """
    Say which device each stage runs on.

    Examples
    --------
    >>> _order_text((2, 0, 1))
    '2 0 1: for each stage its device, a place in the speeds and limits as given'
    """
    return (
        f"{' '.join(map(str, order))}: for each stage its device, a place in the speeds and limits as given"
    )


def _rates(timeline: "Timeline", tokens: int | None) -> list[tuple[str, str]]:
    """Say what a micro-batch takes of the step, and how many tokens a second that is."""
    micro_batches = timeline.plan.problem.micro_batches
    rows = [("step time", f"{timeline.step_ms / micro_batches:,.1f} ms per micro-batch")]
    if tokens is not None:
        a_second = 1000 * tokens * micro_batches / timeline.step_ms
        rows.append(
            ("tokens", f"{a_second:,.0f} per second, {tokens:,} in each of {micro_batches} micro-batches")
        )
    return rows


def _limit_rows(problem: Problem) -> list[tuple[str, str]]:
    """Say the limit and its margin, when there is one; the table shows what is left."""
    if problem.memory_margin == 0.0 or problem.memory_limit_mb is None:
        return []
    margin = problem.memory_margin
    free = margin if isinstance(margin, str) else f"{limit_text(margin)} MB"
    limits = (
        problem.memory_limit_mb if isinstance(problem.memory_limit_mb, tuple) else (problem.memory_limit_mb,)
    )
    given = ", ".join(limit_text(limit) for limit in limits)
    return [("memory limit", f"{given} MB, of which a margin of {free} is kept free")]


def gap_words(outcome: Outcome) -> str:
    """
    Say how far the plan can be from the best one; rounded up, so that it is never more.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=3, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=3, micro_batches=4)
    >>> gap_words(Outcome(problem=problem, plan=None, status=Status.FEASIBLE, stopped_by=StoppedBy.BUDGET,
    ...                   makespan_ms=18.0, lower_bound_ms=17.9))  # 0.1 of 18 is 0.5556%
    'at most 0.56% from optimal'
    """
    if outcome.status is Status.OPTIMAL:
        return "proven optimal"
    if outcome.gap is None:
        return "nothing is proven of faster plans"
    return f"at most {_gap_text(outcome)} from optimal"


def _gap_text(outcome: Outcome) -> str:
    """Say the gap, rounded up; one within which a plan counts as optimal is none."""
    if outcome.gap is None:
        return ""
    return rounded_up(0.0 if outcome.status is Status.OPTIMAL else outcome.gap)


def share_text(used: float) -> str:
    """
    Say a share of a limit, rounded down, so that 100.0% means that nothing is left.

    Examples
    --------
    >>> share_text(0.9999), share_text(1.0)
    ('99.9%', '100.0%')
    """
    return f"{math.floor(1000 * used) / 1000:.1%}" if math.isfinite(used) else "over"


def _status_text(outcome: Outcome) -> str:
    if outcome.status is Status.OPTIMAL:
        return f"optimal: no plan {_among(outcome.problem)} is faster, to 1e-6 of the makespan"
    if outcome.lower_bound_ms is None:
        return "feasible: nothing is proven of faster plans"
    if (outcome.step_ms or 0.0) <= outcome.lower_bound_ms * (1 + _SAME):  # only timed, so not called optimal
        return "feasible: none can be faster than the lower bound, which this plan meets"
    return "feasible: a faster plan may exist, but none below the lower bound"


def target_text(outcome: Outcome, free: WithoutTarget) -> str:
    """Say what the target's limits cost; a percentage is rounded up."""
    makespan_ms = outcome.step_ms or 0.0
    title = target_named(outcome.problem.target or "").title
    if makespan_ms <= free.lower_bound_ms * (1 + _SAME):
        return f"what {title} can not say costs nothing: no plan at all is faster"
    most = f"at most {rounded_up(makespan_ms / free.lower_bound_ms - 1)}" if free.lower_bound_ms else ""
    if makespan_ms <= free.makespan_ms * (1 + _SAME):
        return f"no faster plan was found without {title}'s limits; they cost {most or 'an unknown share'}"
    cost = f"{title}'s limits cost {rounded_up(makespan_ms / free.makespan_ms - 1)}"
    is_proven = free.makespan_ms <= free.lower_bound_ms * (1 + _SAME)
    rest = "" if is_proven or not most else f", and {most}"
    return f"{cost}: without them a step takes {free.makespan_ms:,.1f} ms{rest}"


def rounded_up(share: float) -> str:
    """
    Say a gap or a cost as a percentage that is never less than it.

    Examples
    --------
    >>> rounded_up(0.00561)
    '0.57%'
    """
    return f"{math.ceil(round(share * 1e4, 6)) / 1e4:.2%}"


def _among(problem: Problem) -> str:
    """Say which plans a proof speaks of."""
    said = "" if problem.target is None else f"that {target_named(problem.target).title} can say "
    if problem.fix is None:
        return f"{said}within the limits"
    return f"{said}within the limits and with this {'recompute' if problem.fix.layers is None else 'split'}"


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


def limit_text(limit_mb: float) -> str:
    """
    Say a limit as it was given.

    Examples
    --------
    >>> limit_text(56000.0), limit_text(0.5)
    ('56,000', '0.5')
    """
    return f"{limit_mb:,.10g}"


def cell_text(plan: Plan, stage: int, chunk: int) -> str:
    """
    Say the layers of a cell, and how many of them are recomputed how or under which strategy.

    With several BODY kinds, but not too many to name, each is named; entries whose names differ
    by the number at their end alone, as in ``mamba.3``, are of one kind.
    """
    problem = plan.problem
    cell = problem.order.placement.cell_of(stage, chunk, problem.stages)
    counts = plan.counts[:, :, cell]
    types = problem.model.types
    kinds = [layer.family for layer in problem.model.bodies]
    if not 1 < len(set(kinds)) <= _SHOWN_KINDS:
        words = [counts_text(counts.sum(axis=0).tolist(), types)]
    else:
        of_kind = {kind: counts[[other == kind for other in kinds]].sum(axis=0) for kind in kinds}
        words = [
            f"{kind} {counts_text(row.tolist(), types)}" for kind, row in of_kind.items() if row.any()
        ] or ["0"]
    head = ["head"] if cell == 0 and problem.model.heads else []
    tail = ["tail"] if cell == problem.cells - 1 and problem.model.tails else []
    return " + ".join([*head, *words, *tail])


def counts_text(counts: Sequence[int], types: Sequence[RecomputeType] = tuple(Recompute)) -> str:
    """
    Say how many layers, and how many of them are recomputed or under a strategy.

    Examples
    --------
    >>> counts_text([1, 0, 0, 0, 2])
    '3 (2 full)'
    """
    recomputed = [f"{counts[r]} {r.label}" for r in reversed(types) if r is not Recompute.NONE and counts[r]]
    return f"{sum(counts)} ({', '.join(recomputed)})" if recomputed else str(sum(counts))


def baseline_rows(
    outcome: Outcome, timed: "Sequence[tuple[str, Timeline]]"
) -> list[tuple[str, str, str, str]]:
    """Name, step, ratio to the plan's and whether it fits, of every baseline."""
    best = outcome.step_ms or math.nan
    rows = [("this plan", f"{best:,.1f}", "1.000", "fits")]
    for name, timeline in timed:
        over = timeline.stages_over
        fits = f"over on {len(over)} of {outcome.problem.stages} stages" if over else "fits"
        rows.append((name, f"{timeline.step_ms:,.1f}", f"{timeline.step_ms / best:.3f}", fits))
    return rows


def shortage_rows(outcome: Outcome, shortage: Shortage) -> list[tuple[str, str]]:
    """Say where memory is short, and which single changes would do, as a name and its value."""
    return [
        ("short", _short_text(outcome.problem, shortage)),
        *_limit_rows(outcome.problem),
        *(("would do", _remedy_text(outcome.problem, shortage, *remedy)) for remedy in shortage.remedies),
        *estimate_rows(outcome.problem),
    ]


def _short_text(problem: Problem, shortage: Shortage) -> str:
    if problem.memory_limit_mb is None:
        return f"no memory, but words: {problem.target} has none for any choice of the types of these layers"
    if shortage.over_mb is None:
        return "where, and by how much, is not known"
    if shortage.stage is None:
        return f"some stage, by {shortage.over_mb:,.1f} MB at least; which could not be computed in time"
    limit = limit_text(problem.limit_per_stage_mb[shortage.stage])
    short = f"stage {shortage.stage}, by {shortage.over_mb:,.1f} MB over {limit} MB, at op {shortage.op}"
    return f"{short}, in the plan that exceeds it least of those found"


def _remedy_text(problem: Problem, shortage: Shortage, change: str, value: float | str) -> str:
    """Say one change as what to give on the command line; one that is not known as it stands."""
    if change == "memory_limit_mb" and not isinstance(value, str):
        least = math.ceil(value)  # rounded up, so that it does when it is given back
        smallest = ", which is the smallest that works, to 1%" if shortage.proven else ""
        return f"a limit of {least:,} MB on every stage (--memory-limit {least}){smallest}"
    if change == "recompute":
        types = ",".join([*(r.label for r in problem.recompute or ()), str(value)])
        return f"recompute {value} too (--recompute {types})"
    said = value if isinstance(value, str) else limit_text(value)
    return {
        "constant_memory_less_by_mb": f"{said} MB less of constant memory on every stage",
        "schedule": f"another schedule (--schedule {said})",
        "fix": "nothing kept of a given plan (leave out --fix)",
        "max_recompute_types": f"a mix of one more recompute type (--max-recompute-types {said})",
        "interleave": f"fewer chunks (--interleave {said})",
        "stages": f"one more stage (--stages {said})",
    }.get(change, f"{change.replace('_', ' ')}: {said}")
