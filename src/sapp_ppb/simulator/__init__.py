"""How long and how much: exact times and peaks of a plan under its schedule."""

from sapp_ppb.simulator.retime import retime, timed
from sapp_ppb.simulator.timeline import Peak, Timeline, batched_makespans, simulate

__all__ = ["Peak", "Timeline", "batched_makespans", "retime", "simulate", "timed"]
