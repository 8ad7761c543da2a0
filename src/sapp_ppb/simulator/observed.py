"""Runs that were measured: what ran, and what each stage held at most, or how long a step took."""

from collections.abc import Mapping
from dataclasses import dataclass

from sapp_ppb.costs.measured import OpTrace
from sapp_ppb.plan import Plan


@dataclass(frozen=True, kw_only=True, eq=False)
class ObservedRun:
    """
    A run, or a dry run, with its plan and its peaks.

    Attributes
    ----------
    plan
        What ran.  Of its problem only the sizes, the schedule and the names and counts of
        layers are used: costs need not be known.
    peak_mb
        Peak of each stage that was measured, MB.
    """

    plan: Plan
    peak_mb: Mapping[int, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredStep:
    """
    A step that was run and timed.

    Attributes
    ----------
    name
        What to call it: the file that it comes from.
    plan
        What ran; the times of its problem's model are those of the layers alone.
    step_ms
        First op to last, milliseconds.
    """

    name: str
    plan: Plan
    step_ms: float


@dataclass(frozen=True, kw_only=True, eq=False)
class TracedRun:
    """
    A run of which there are timelines.

    Attributes
    ----------
    name
        What to call it: the folder that it comes from.
    plan
        What ran.
    traces
        Ops of its ranks; each trace has a clock of its own.
    """

    name: str
    plan: Plan
    traces: tuple[OpTrace, ...]
