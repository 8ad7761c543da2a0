"""
Speed and quality on this machine: ``make bench``.

Speeds are ratios taken in one run, because machines differ; quality is the
makespan, the proven bound and the gap of each case within its time.
"""

import argparse
import datetime
import platform
import time
from itertools import chain
from pathlib import Path

from cases import CASES, Case
from orders import table
from scale import growth_table, scale_table

from sapp_ppb import plan_pipeline, simulate
from sapp_ppb.planner.warm_up import compile_kernels

RESULTS = Path(__file__).with_name("results.md")


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
    lines = []
    for line in () if options.only else chain(table(), [""], growth_table(), [""], scale_table()):
        lines.append(line)
        print(line, flush=True)
    head = [
        "",
        "| case | -t, s | makespan, ms | bound, ms | gap | status | best after, s | done after, s | wanted |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += head
    print("\n".join(head), flush=True)
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
