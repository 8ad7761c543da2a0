"""
Time and memory of the largest problems, phase by phase, and how they grow.

Every case runs in a process of its own, so that its peak is its own, and no order is known yet.
"""

import json
import math
import random
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from sapp_ppb import Model, Problem, plan_pipeline
from sapp_ppb.costs import LayerKind, Recompute, layer_from_times
from sapp_ppb.planner.proof.bounds import lower_bound
from sapp_ppb.planner.proof.patterns import TooManyPatternsError, list_patterns
from sapp_ppb.planner.search.annealing import Search
from sapp_ppb.planner.search.budget import number_of_ops
from sapp_ppb.planner.warm_up import compile_kernels
from sapp_ppb.schedules import ScheduleName, build_schedule
from sapp_ppb.simulator.graph import graph_of

TIME_LIMIT_S = 10.0
# Layers, share by which the costs of each are apart from the usual at most, stages, chunks,
# micro-batches, fewest layers of a cell.
CASES = {
    "S64 V4 M512, 128 layers": (128, 0.0, 64, 4, 512, 0),
    "S64 V4 M512, 192 layers": (192, 0.0, 64, 4, 512, 0),
    "S64 V4 M512, 200 layers": (200, 0.0, 64, 4, 512, 0),
    "S8 V1 M64, 61 kinds": (61, 0.5, 8, 1, 64, 1),
    "S8 V2 M64, 61 kinds": (61, 0.5, 8, 2, 64, 1),
    "S16 V2 M32, 61 kinds": (61, 0.5, 16, 2, 32, 1),
    "S8 V2 M64, 61 measured": (61, 0.05, 8, 2, 64, 1),
    "S16 V2 M32, 61 measured": (61, 0.05, 16, 2, 32, 1),
    "S16 V1 M64, 500 layers": (500, 0.0, 16, 1, 64, 1),
    "S16 V2 M64, 500 layers": (500, 0.0, 16, 2, 64, 1),
    "S64 V1 M256, 500 layers": (500, 0.0, 64, 1, 256, 1),
    "S16 V1 M64, 500 kinds": (500, 0.5, 16, 1, 64, 1),
    "S16 V2 M64, 500 kinds": (500, 0.5, 16, 2, 64, 1),
}
# Stages, chunks and micro-batches of orders, each four times as long as the one before.
ORDERS = ((16, 2, 64), (32, 2, 128), (32, 4, 256), (64, 4, 512))


def large_problem(layers, spread, stages, chunks, micro_batches, least):
    """Give layers, alike or each with costs of its own, a limit that makes some of them recompute."""
    draw = random.Random(1)
    full = {Recompute.FULL: 4.0}
    bodies = [
        layer_from_times(
            name=f"L{number}",
            kind=LayerKind.BODY,
            count=1 if spread else layers,
            forward_ms=10.0 * draw.uniform(1 - spread, 1 + spread),
            parameter_mb=300.0,
            activation_mb={Recompute.NONE: 60.0 * draw.uniform(1 - spread / 1.5, 1 + spread / 1.5)} | full
            if spread
            else {Recompute.NONE: 60.0, Recompute.SELECTIVE: 40.0} | full,
        )
        for number in range(layers if spread else 1)
    ]
    head = layer_from_times(name="embedding", kind=LayerKind.HEAD, forward_ms=5.0, parameter_mb=500.0)
    tail = layer_from_times(name="output", kind=LayerKind.TAIL, forward_ms=12.0, parameter_mb=500.0)
    a_stage = layers / stages
    return Problem(
        model=Model(name="large", layers=(head, *bodies, tail)),
        stages=stages,
        interleave=chunks,
        micro_batches=micro_batches,
        memory_limit_mb=500.0 + a_stage * (300.0 + 0.55 * 60.0 * stages),
        min_layers_per_cell=least,
    )


def timed(action):
    """Give what an action gives, and its seconds."""
    start = time.perf_counter()
    given = action()
    return given, time.perf_counter() - start


def figures(name, seconds):
    """Seconds of each phase of a case, and what came of it."""
    compile_kernels()
    problem, order_s = timed(lambda: large_problem(*CASES[name]))  # which builds and judges its order
    _, graph_s = timed(lambda: graph_of(problem))
    _, bound_s = timed(lambda: lower_bound(problem, time.monotonic() + seconds))
    outcome, plan_s = timed(lambda: plan_pipeline(problem, time_limit_s=seconds))
    peak_mb = most_memory_mb()
    search = Search(problem, 0)
    moves = min(200_000, int(2e10 / number_of_ops(problem)))
    _, search_s = timed(lambda: list(search.run(moves)))
    return {
        "ops": number_of_ops(problem),
        "order_s": order_s,
        "graph_s": graph_s,
        "bound_s": bound_s,
        "plan_s": plan_s,
        "peak_mb": peak_mb,
        "moves_a_second": moves / search_s,
        "patterns": patterns_of(problem, outcome.makespan_ms),
        "gap": outcome.gap,
        "status": str(outcome.status),
    }


def most_memory_mb():
    """Give the most memory that this process held."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says begins with what the parent holds
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS counts in bytes


def patterns_of(problem, makespan_ms):
    """Patterns of the stage that has most; None where they are not listed, or too many."""
    if problem.interleave == 1:
        return None
    try:
        listed = list_patterns(problem, makespan_ms, time.monotonic() + TIME_LIMIT_S)
    except TooManyPatternsError:
        return math.inf
    return max(len(each.layers) for each in listed)


def in_a_process(*words):
    """Give what this file prints for some words."""
    command = [sys.executable, __file__, *words]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def scale_table():
    """Rows of the table, its head first, as they are measured."""
    yield (
        f"| problem | ops | order, s | graph, s | first bound, s | plan -t {TIME_LIMIT_S:g}, s | of it "
        "| peak, MB | moves a second | most patterns a stage | gap | status |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for name in CASES:
        found = in_a_process(name)
        most = found["patterns"]
        patterns = "" if most is None else "too many" if math.isinf(most) else f"{most:,}"
        yield (
            f"| {name} | {found['ops']:,} | {found['order_s']:.2f} | {found['graph_s']:.2f} "
            f"| {found['bound_s']:.2f} | {found['plan_s']:.1f} | {found['plan_s'] / TIME_LIMIT_S:.2f} "
            f"| {found['peak_mb']:,.0f} | {found['moves_a_second']:,.0f} | {patterns} "
            f"| {100 * found['gap']:.2f} % | {found['status']} |"
        )


def growth_table():
    """Rows of how long orders take to be built, each four times as long as the one before."""
    yield "| order | ops | built in, ms | ns an op |"
    yield "|---|---|---|---|"
    for sizes in ORDERS:
        ops, seconds = in_a_process(*map(str, sizes))
        yield (
            "| interleaved S{} V{} M{} ".format(*sizes)
            + f"| {ops:,} | {1e3 * seconds:,.0f} | {1e9 * seconds / ops:,.0f} |"
        )


def order_figures(*sizes):
    """Give the ops of an order, and the seconds that building it takes."""
    order, seconds = timed(lambda: build_schedule(ScheduleName.INTERLEAVED, *sizes))
    return sum(map(len, order.rows)), seconds


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(json.dumps(figures(sys.argv[1], TIME_LIMIT_S)))
    elif len(sys.argv) == 4:
        print(json.dumps(order_figures(*map(int, sys.argv[1:]))))
    else:
        for line in (*growth_table(), "", *scale_table()):
            print(line, flush=True)
