"""
What a timeline looks like: pictures, and the trace that timeline viewers open.

The pictures are imported from their own files, so that only they load matplotlib.
"""

import logging

from sapp_ppb.report.blocks import Blocks, messages, timeline_blocks
from sapp_ppb.report.memory_curve import StageMemory, memory_curve
from sapp_ppb.report.trace import trace_events, write_trace

__all__ = [
    "Blocks",
    "StageMemory",
    "memory_curve",
    "messages",
    "timeline_blocks",
    "trace_events",
    "write_trace",
]

# Where no folder of the user can be written, matplotlib warns of the cache that it keeps elsewhere, which
# nobody who asked for a plan can mend; that it builds the cache is still said, by another logger.
logging.getLogger("matplotlib").addFilter(lambda record: record.levelno >= logging.ERROR)
