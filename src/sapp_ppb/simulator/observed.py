"""A run whose peaks were measured: what ran, and what each stage held at most."""

from collections.abc import Mapping
from dataclasses import dataclass

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
