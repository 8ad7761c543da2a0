"""What a picture says in words."""

import math
from collections.abc import Iterable, Sequence

from sapp_ppb.costs.cost import estimated_words
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import P2PMode
from sapp_ppb.simulator import Timeline

EXTRA_NAME = "outside the pipeline"


def problem_text(problem: Problem) -> str:
    """
    Say what was asked, on one line, and whether any cost is only estimated.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1)
    >>> problem_text(Problem(model=Model(name="m", layers=(body,)), stages=4, interleave=2, micro_batches=8))
    'm: 8 layers on 4 stages x 2 chunks, 8 micro-batches, interleaved'
    """
    chunks = f" x {problem.interleave} chunks" if problem.interleave > 1 else ""
    group = f" (groups: {problem.micro_batch_group})" if problem.micro_batch_group is not None else ""
    target = f", for {problem.target}" if problem.target else ""
    modes = "".join(f", {words}" for words in _mode_words(problem))
    return (
        f"{problem.model.name}: {problem.model.body_count} layers on {problem.stages} stages{chunks}, "
        f"{problem.micro_batches} micro-batches, {problem.schedule_name.value}{group}{modes}{target}"
        f"{estimate_text(problem)}"
    )


def estimate_text(problem: Problem) -> str:
    """Say which costs are estimates, behind a semicolon; nothing where none is marked as one."""
    words = estimated_words(problem.model.estimated)
    return f"; {words}" if words else ""


def _mode_words(problem: Problem) -> list[str]:
    """Say what is not usual about how the order is run."""
    words = [f"{problem.sequence_chunks} sequence chunks"] if problem.sequence_chunks > 1 else []
    words += [f"{problem.p2p_mode.value} sends"] if problem.p2p_mode is not P2PMode.ASYNC else []
    words += [f"overlap {problem.overlap_factor:g}"] if problem.overlap_factor > 0.0 else []
    words += [f"as {problem.flavour.value} runs it"] if problem.flavour is not None else []
    words += [f"speeds {_range_text(problem.speed_per_stage)}"] if problem.stage_speed is not None else []
    return words + (
        [f"{_range_text(problem.extra_per_stage_ms)} ms after the last op"] if problem.has_extra else []
    )


def _range_text(values: Sequence[float]) -> str:
    """
    Say one number, or from which to which several are.

    Examples
    --------
    >>> _range_text((1.0, 0.8, 1.0)), _range_text((0.5, 0.5))
    ('0.8 to 1', '0.5')
    """
    ends = dict.fromkeys((min(values), max(values)))
    return " to ".join(f"{value:,.10g}" for value in ends)


def added_text(plans: Iterable[Plan]) -> str:
    """
    Say what makes backwards longer: recompute, or the strategies in use by their names.

    Examples
    --------
    >>> added_text([])
    'recompute'
    """
    plans = list(plans)
    strategies = list(dict.fromkeys(name for plan in plans for name in plan.strategy_layers))
    recomputed = not strategies or any(plan.recomputed_layers for plan in plans)
    return ", ".join([*(["recompute"] if recomputed else []), *strategies])


def step_text(timeline: Timeline) -> str:
    """Say how long a step takes, and how much of it is lost."""
    step = f"step {timeline.step_ms:,.1f} ms, " if timeline.plan.problem.has_extra else ""
    return f"{step}makespan {timeline.makespan_ms:,.1f} ms, bubble {timeline.bubble.total:.1%} of useful work"


def step_word(problem: Problem) -> str:
    """Name what plans are compared by: the makespan, or the step where something comes after it."""
    return "step" if problem.has_extra else "makespan"


def memory_text(timeline: Timeline) -> str:
    """Say which stage holds most, and which have too little."""
    peaks = timeline.peak_memory_mb
    stage = max(range(len(peaks)), key=peaks.__getitem__)
    limit_mb = timeline.plan.problem.limit_per_stage_mb[stage]
    of_limit = f" of {limit_mb:,.10g} MB" if math.isfinite(limit_mb) else ""
    too_little = f", {over_text(timeline)}" if timeline.stages_over else ""
    return f"highest peak {peaks[stage]:,.1f}{of_limit or ' MB'} on stage {stage}{too_little}"


def over_text(timeline: Timeline) -> str:
    """Say on how many stages a plan exceeds the memory limit."""
    return f"over the limit on {len(timeline.stages_over)} of {len(timeline.peak_memory_mb)} stages"


def peak_text(peak_mb: float, limit_mb: float, *, over: bool) -> str:
    """
    Say a peak, and how much of the limit it is.

    Examples
    --------
    >>> peak_text(900.0, 1000.0, over=False), peak_text(1100.0, 1000.0, over=True)
    ('900 MB, 90.0%', '1,100 MB, over by 100')
    """
    if over:
        return f"{peak_mb:,.0f} MB, over by {peak_mb - limit_mb:,.0f}"
    if not math.isfinite(limit_mb) or limit_mb <= 0:
        return f"{peak_mb:,.0f} MB"
    # Rounded down, so that 100.0% means that nothing is left.
    return f"{peak_mb:,.0f} MB, {math.floor(1000 * peak_mb / limit_mb) / 1000:.1%}"


def time_text(time_ms: float) -> str:
    """
    Say a length of time with the digits that matter.

    Examples
    --------
    >>> time_text(2240.4), time_text(0.01234)
    ('2,240 ms', '0.0123 ms')
    """
    return f"{time_ms:,.0f} ms" if time_ms >= 100 else f"{time_ms:.3g} ms"
