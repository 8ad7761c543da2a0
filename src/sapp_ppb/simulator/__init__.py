"""How long and how much: exact times and peaks of a plan under its schedule."""

from sapp_ppb.simulator.besides import Besides, Counted
from sapp_ppb.simulator.memory import LiveRows, live_rows
from sapp_ppb.simulator.observed import MeasuredStep, ObservedRun, TracedRun
from sapp_ppb.simulator.retime import retime, timed
from sapp_ppb.simulator.timeline import Peak, Timeline, batched_makespans, simulate

__all__ = [
    "Besides",
    "Counted",
    "LiveRows",
    "MeasuredStep",
    "ObservedRun",
    "Peak",
    "Timeline",
    "TracedRun",
    "batched_makespans",
    "live_rows",
    "retime",
    "simulate",
    "timed",
]
