"""What does planning change?  Draws an even split with full recompute, and the plan, on one axis of time."""

import sys
from pathlib import Path

from sapp_ppb import Problem, plan_pipeline, read_model, simulate
from sapp_ppb.planner import baselines
from sapp_ppb.report.timeline_picture import draw_comparison

picture = sys.argv[1] if len(sys.argv) > 1 else "before_and_after.png"
problem = Problem(
    model=read_model(Path(__file__).parent / "llama2_70b.json"),
    stages=8,
    micro_batches=16,
    memory_limit_mb=50_000,
)
outcome = plan_pipeline(problem, time_limit_s=5)
before = next(simulate(one.plan) for one in baselines(problem) if one.name == "even split, full recompute")
after = simulate(outcome.plan)
draw_comparison({"even split, full recompute": before, "planned": after}, picture, force=True)
print(f"{before.makespan_ms:,.0f} ms before, {after.makespan_ms:,.0f} ms after: {picture}")
