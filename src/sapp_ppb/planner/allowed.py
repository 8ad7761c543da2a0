"""Whether a plan is one that was asked for, its memory apart."""

from sapp_ppb.plan import Plan
from sapp_ppb.targets import target_named


def may_be(plan: Plan) -> bool:
    """Whether a plan keeps what its problem fixes, and its target can say it."""
    if not plan.keeps_fix:
        return False
    target = plan.problem.target
    return target is None or not target_named(target).unsaid(plan)
