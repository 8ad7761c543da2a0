"""Many problems: which there are, planned side by side here or on a cluster, and their table."""

from sapp_ppb.sweep.answer import Answer, RowStatus
from sapp_ppb.sweep.candidate import Candidate
from sapp_ppb.sweep.grid import Grid, Skipped, list_candidates
from sapp_ppb.sweep.row import Row
from sapp_ppb.sweep.run import Sweep, SweepProgress, outcome, sweep
from sapp_ppb.sweep.table import to_csv

__all__ = [
    "Answer",
    "Candidate",
    "Grid",
    "Row",
    "RowStatus",
    "Skipped",
    "Sweep",
    "SweepProgress",
    "list_candidates",
    "outcome",
    "sweep",
    "to_csv",
]
