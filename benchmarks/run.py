"""
Speed and quality on this machine: ``make bench``.

Speeds are ratios taken in one run, because machines differ; quality is the
makespan, the proven bound and the gap of each case within its time.
"""

import argparse
import datetime
import platform
import time
from pathlib import Path

import numpy as np
from cases import CASES, Case

from sapp_ppb import plan_pipeline, simulate
from sapp_ppb.planner.warm_up import compile_kernels
from sapp_ppb.simulator import batched_makespans
from sapp_ppb.simulator.graph import build_graph
from sapp_ppb.simulator.path_kernel import longest_path
from sapp_ppb.simulator.price import price
from sapp_ppb.simulator.timeline import hop_times

RESULTS = Path(__file__).with_name("results.md")


def best_of(runs, action):
    """Shortest of some runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def simulator_speed():
    """One evaluation of S16 V2 M32, compiled, against the same pass in plain Python."""
    case = next(case for case in CASES if case.name == "llama2_70b S16 V2 M32 56,000 MB")
    problem = case.problem()
    costs = price(plan_pipeline(problem, time_limit_s=0.1).plan)
    lists = np.tile(costs.price_list(), (1000, 1))
    batched_makespans(problem, lists)
    compiled = best_of(5, lambda: batched_makespans(problem, lists)) / len(lists)
    graph = build_graph(problem.order)
    columns = [graph.stage, graph.price, graph.giver, hop_times(problem, graph), costs.price_list()]
    columns = [column.tolist() for column in columns]
    free_at, ends = [0.0] * problem.stages, [0.0] * len(graph.price)
    plain = best_of(5, lambda: longest_path.python(*columns, free_at, ends))
    return (
        f"one evaluation of {len(graph.price):,} ops: {compiled * 1e6:.1f} us compiled, "
        f"{plain / compiled:.0f} x faster than the same pass in plain Python"
    )


def row(case: Case, seed: int) -> str:
    """Plan a case and write its row of the table."""
    best = {"ms": None, "at": 0.0}

    def watch(progress):
        if progress.best_ms is not None and progress.best_ms != best["ms"]:
            best.update(ms=progress.best_ms, at=progress.seconds)

    start = time.perf_counter()
    outcome = plan_pipeline(case.problem(), time_limit_s=case.seconds, seed=seed, watch=watch)
    seconds = time.perf_counter() - start
    assert simulate(outcome.plan).fits_memory  # noqa: S101  a bench that lies is worse than none
    return (
        f"| {case.name} | {case.seconds:g} | {outcome.makespan_ms:,.2f} | {outcome.lower_bound_ms:,.2f} "
        f"| {100 * outcome.gap:.3f} % | {outcome.status} | {best['at']:.1f} | {seconds:.1f} | {case.wanted} |"
    )


def main():
    """Print the table; keep it when asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results.md")
    options = parser.parse_args()
    compile_kernels()
    lines = [
        simulator_speed(),
        "",
        "| case | -t, s | makespan, ms | bound, ms | gap | status | best after, s | done after, s | wanted |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for case in CASES:
        if options.only in case.name:
            lines.append(row(case, options.seed))
            print(lines[-1], flush=True)
    if options.keep:
        today = datetime.datetime.now(tz=datetime.UTC).date()
        command = (
            f"`make bench` ({today}, {platform.machine()}, Python {platform.python_version()}, one core)"
        )
        RESULTS.write_text("\n".join([f"# Results of {command}", "", *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
