"""Which plan is best: search on the exact simulator, bounds, baselines, and why nothing fits."""

from sapp_ppb.planner.baselines import Baseline, baselines
from sapp_ppb.planner.every_schedule import ScheduleChoice, plan_schedules, schedule_problems
from sapp_ppb.planner.explain import Explanation, Relaxed, explain
from sapp_ppb.planner.planning import plan_pipeline
from sapp_ppb.planner.restriction import target_restricts, with_cost_of_target
from sapp_ppb.planner.robust import NoisyPlan, Robustness, robustness
from sapp_ppb.planner.run import Progress
from sapp_ppb.planner.warm_up import needs_compiling

__all__ = [
    "Baseline",
    "Explanation",
    "NoisyPlan",
    "Progress",
    "Relaxed",
    "Robustness",
    "ScheduleChoice",
    "baselines",
    "explain",
    "needs_compiling",
    "plan_pipeline",
    "plan_schedules",
    "robustness",
    "schedule_problems",
    "target_restricts",
    "with_cost_of_target",
]
