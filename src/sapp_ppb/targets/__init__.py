"""What a framework can say: one file a framework, and the rules that a plan must obey for it."""

from sapp_ppb.targets.cell_types import cell_types, plan_from_types
from sapp_ppb.targets.config import BrokenRule, CellTypes, PipelineConfig
from sapp_ppb.targets.mindformers.target import can_say_cell, mixed_cells, silent_cells
from sapp_ppb.targets.registry import TARGETS, is_nested, target_named
from sapp_ppb.targets.target import Target, Way

__all__ = [
    "TARGETS",
    "BrokenRule",
    "CellTypes",
    "PipelineConfig",
    "Target",
    "Way",
    "can_say_cell",
    "cell_types",
    "is_nested",
    "mixed_cells",
    "plan_from_types",
    "silent_cells",
    "target_named",
]
