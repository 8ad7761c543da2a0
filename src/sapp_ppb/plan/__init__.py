"""Plan: what is decided; Outcome: what is known of it."""

from sapp_ppb.plan.matrices import counts_from_matrices, plan_from_matrices
from sapp_ppb.plan.outcome import Bubble, Outcome, Shortage, Status, StoppedBy, WithoutTarget
from sapp_ppb.plan.plan import Counts, Plan, refuse_other_cells

# What a plan file says of itself, for those who read it and those who write it.
PLAN_FORMAT = "sapp-ppb-plan"
PLAN_VERSION = 1

__all__ = [
    "PLAN_FORMAT",
    "PLAN_VERSION",
    "Bubble",
    "Counts",
    "Outcome",
    "Plan",
    "Shortage",
    "Status",
    "StoppedBy",
    "WithoutTarget",
    "counts_from_matrices",
    "plan_from_matrices",
    "refuse_other_cells",
]
