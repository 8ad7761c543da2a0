"""How long a step took, out of the timelines of its ranks."""

from collections.abc import Iterable, Sequence
from statistics import median

from sapp_ppb.costs.measured import OpSpan, OpTrace
from sapp_ppb.errors import InputError
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Op
from sapp_ppb.simulator import MeasuredStep, TracedRun

_MOST_SHOWN = 5


def measured_step(run: TracedRun) -> MeasuredStep:
    """
    Time the steps of a run: from the first op of a trace to its last, on the rank that takes longest.

    Every rank is timed by its own clock, and stage 0, which begins first and in most
    schedules ends last, must be among them.  Of several steps the first, in which things are
    still set up, is left out, and the median of the others is taken.

    Raises
    ------
    InputError
        When a trace does not hold every op of its stages equally often, or stage 0 is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.plan import Plan
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=1, micro_batches=1)
    >>> plan = Plan(problem=problem, counts=np.eye(5, 1, dtype=int)[None])
    >>> ops = (OpSpan(0, "F", 0, 7.0, 8.0), OpSpan(0, "B", 0, 8.5, 10.5))
    >>> trace = OpTrace(source="rank0.json", times_ms={}, spans=ops)
    >>> measured_step(TracedRun(name="run", plan=plan, traces=(trace,))).step_ms  # 7 to 10.5
    3.5
    """
    problem = run.plan.problem
    if problem.sequence_chunks > 1:
        raise InputError(run.name, ["traces do not name sequence chunks; give the step in a CSV instead"])
    lengths, stages = [], set()
    for trace in run.traces:
        there, lasts_ms = _steps(trace, problem)
        stages |= there
        lengths.append(lasts_ms)
    if 0 not in stages:
        fault = "has no trace of stage 0, which begins the step; add it"
        raise InputError(run.name, [fault])
    steps = {len(each) for each in lengths}
    if len(steps) > 1:
        numbers = ", ".join(map(str, sorted(steps)))
        raise InputError(run.name, [f"has traces of {numbers} steps; give traces of the same steps"])
    longest = [max(of_step) for of_step in zip(*lengths, strict=True)]
    return MeasuredStep(name=run.name, plan=run.plan, step_ms=median(longest[1:] or longest))


def _steps(trace: OpTrace, problem: Problem) -> tuple[set[int], list[float]]:
    """Stages of a trace, and how long each of its steps takes, milliseconds."""
    rows = problem.order.rows
    found: dict[tuple[int, str, int], list[OpSpan]] = {}
    for span in trace.spans:
        found.setdefault((span.cell, span.kind, span.micro_batch), []).append(span)
    stages = {stage for stage in range(problem.stages) if any(_key(op) in found for op in rows[stage])}
    wanted = {_key(op) for stage in stages for op in rows[stage]}
    faults = [
        *_differing(wanted - set(found), "are missing"),
        *_differing(set(found) - wanted, "are in no such plan"),
    ]
    times = {len(spans) for spans in found.values()}
    if not faults and len(times) > 1:
        faults = [f"has some ops {min(times)} and some {max(times)} times; trace whole steps"]
    if faults:
        raise InputError(
            trace.source, [f"{fault}; is the plan beside it the one that ran?" for fault in faults]
        )
    ordered = [sorted(spans, key=lambda span: span.start_ms) for spans in found.values()]
    return stages, [_extent(of_step) for of_step in zip(*ordered, strict=True)]


def _key(op: Op) -> tuple[int, str, int]:
    return op.cell, op.kind.name, op.micro_batch


def _differing(ops: set[tuple[int, str, int]], what: str) -> Sequence[str]:
    if not ops:
        return ()
    names = [f"{cell}{kind}{micro_batch}" for cell, kind, micro_batch in sorted(ops)]
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return (f"ops {', '.join(names[:_MOST_SHOWN])}{more} {what}",)


def _extent(spans: Iterable[OpSpan]) -> float:
    spans = list(spans)
    return max(span.end_ms for span in spans) - min(span.start_ms for span in spans)
