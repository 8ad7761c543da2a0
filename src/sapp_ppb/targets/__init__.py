"""What a framework can say: one file a framework, and the rules that a plan must obey for it."""

from sapp_ppb.targets.mindformers import mixed_cells, silent_cells
from sapp_ppb.targets.registry import TARGETS, may_mix_selective_and_comm

__all__ = ["TARGETS", "may_mix_selective_and_comm", "mixed_cells", "silent_cells"]
