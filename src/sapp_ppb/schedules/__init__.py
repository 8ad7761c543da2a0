"""
In which order: schedules of ops on pipeline stages, their text form and their judge.

This room knows stages, chunks, micro-batches and the group size only; what an
op costs is no business of its order, but for ``zb-auto``, which is handed costs.
"""

from sapp_ppb.schedules.check import check_schedule
from sapp_ppb.schedules.custom import OrderFile, custom
from sapp_ppb.schedules.dualpipev import dualpipev
from sapp_ppb.schedules.execution import Flavour, P2PMode
from sapp_ppb.schedules.gpipe import gpipe
from sapp_ppb.schedules.interleaved import MicroBatchGroup, interleaved
from sapp_ppb.schedules.interleaved_less_memory import interleaved_less_memory
from sapp_ppb.schedules.interleaved_zero_bubble import interleaved_zero_bubble
from sapp_ppb.schedules.looped_bfs import looped_bfs
from sapp_ppb.schedules.one_f_one_b import one_f_one_b
from sapp_ppb.schedules.op import Op, OpKind, Placement, Schedule
from sapp_ppb.schedules.parse import parse_csv
from sapp_ppb.schedules.registry import (
    MOST_CELLS,
    ScheduleName,
    build_schedule,
    default_name,
    ops_fault,
    usual_chunks,
)
from sapp_ppb.schedules.seq1f1b import seq1f1b
from sapp_ppb.schedules.zb_auto import StageCosts, zb_auto
from sapp_ppb.schedules.zbv import zbv

__all__ = [
    "MOST_CELLS",
    "Flavour",
    "MicroBatchGroup",
    "Op",
    "OpKind",
    "OrderFile",
    "P2PMode",
    "Placement",
    "Schedule",
    "ScheduleName",
    "StageCosts",
    "build_schedule",
    "check_schedule",
    "custom",
    "default_name",
    "dualpipev",
    "gpipe",
    "interleaved",
    "interleaved_less_memory",
    "interleaved_zero_bubble",
    "looped_bfs",
    "one_f_one_b",
    "ops_fault",
    "parse_csv",
    "seq1f1b",
    "usual_chunks",
    "zb_auto",
    "zbv",
]
