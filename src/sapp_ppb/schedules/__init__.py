"""
In which order: schedules of ops on pipeline stages, their text form and their judge.

This room knows stages, chunks, micro-batches and the group size only; what an
op costs is no business of its order.
"""

from sapp_ppb.schedules.check import check_schedule
from sapp_ppb.schedules.gpipe import gpipe
from sapp_ppb.schedules.interleaved import MicroBatchGroup, interleaved
from sapp_ppb.schedules.interleaved_less_memory import interleaved_less_memory
from sapp_ppb.schedules.one_f_one_b import one_f_one_b
from sapp_ppb.schedules.op import Op, OpKind, Placement, Schedule
from sapp_ppb.schedules.parse import parse_csv
from sapp_ppb.schedules.registry import ScheduleName, build_schedule, default_name, ops_fault

__all__ = [
    "MicroBatchGroup",
    "Op",
    "OpKind",
    "Placement",
    "Schedule",
    "ScheduleName",
    "build_schedule",
    "check_schedule",
    "default_name",
    "gpipe",
    "interleaved",
    "interleaved_less_memory",
    "one_f_one_b",
    "ops_fault",
    "parse_csv",
]
