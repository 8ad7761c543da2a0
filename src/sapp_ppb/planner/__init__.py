"""Which plan is best: search on the exact simulator, bounds, baselines, and why nothing fits."""

from sapp_ppb.planner.baselines import Baseline, baselines
from sapp_ppb.planner.planning import Progress, plan_pipeline

__all__ = ["Baseline", "Progress", "baselines", "needs_compiling", "plan_pipeline"]


def needs_compiling() -> bool:
    """Whether the next plan must first compile the search, which takes some 20 s once."""
    from sapp_ppb.planner.search_kernel import anneal
    from sapp_ppb.simulator.kernel import is_compiled

    return not is_compiled(anneal)
