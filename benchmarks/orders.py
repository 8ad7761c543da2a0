"""How fast orders are built and timed, and how much slower the plain reference of the tests is."""

import sys
import time
from pathlib import Path

import numpy as np

from sapp_ppb import Model, Problem
from sapp_ppb.costs import LayerKind, Recompute, layer_from_times
from sapp_ppb.plan import Plan
from sapp_ppb.schedules import ScheduleName, build_schedule, check_schedule
from sapp_ppb.simulator import batched_makespans
from sapp_ppb.simulator.graph import graph_of
from sapp_ppb.simulator.path_kernel import longest_path
from sapp_ppb.simulator.price import price
from sapp_ppb.simulator.timeline import hop_times

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests' reference is in no package
from tests.reference import reference

# Every schedule on 16 stages and 64 micro-batches, and a very large one.
SIZES = (
    (ScheduleName.GPIPE, 16, 1, 64, {}),
    (ScheduleName.ONE_F_ONE_B, 16, 1, 64, {}),
    (ScheduleName.INTERLEAVED, 16, 2, 64, {}),
    (ScheduleName.INTERLEAVED_LESS_MEMORY, 16, 2, 64, {}),
    (ScheduleName.LOOPED_BFS, 16, 2, 64, {}),
    (ScheduleName.INTERLEAVED_ZERO_BUBBLE, 16, 2, 64, {}),
    (ScheduleName.ZBV, 16, 2, 64, {}),
    (ScheduleName.DUALPIPEV, 16, 2, 64, {"overlap_factor": 0.5}),
    (ScheduleName.SEQ1F1B, 16, 1, 64, {"sequence_chunks": 2}),
    (ScheduleName.ZB_AUTO, 16, 1, 64, {}),
    (ScheduleName.INTERLEAVED, 64, 4, 512, {}),
)
# The reference looks at every stage for every op: beyond this many ops it takes minutes.
_MOST_REFERENCE_OPS = 10_000


def best_of(runs, action):
    """Shortest of some runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def even_plan(name, stages, chunks, micro_batches, more):
    """One layer a cell."""
    body = layer_from_times(name="body", kind=LayerKind.BODY, count=stages * chunks, forward_ms=1)
    problem = Problem(
        model=Model(name="even", layers=(body,)),
        stages=stages,
        interleave=chunks,
        micro_batches=micro_batches,
        schedule=name,
        p2p_ms=0.01,
        **more,
    )
    counts = np.zeros((1, len(Recompute), problem.cells), dtype=np.int64)
    counts[0, Recompute.NONE] = 1
    return Plan(problem=problem, counts=counts)


def row(name, stages, chunks, micro_batches, more):
    """One row of the table."""
    extra = {key: value for key, value in more.items() if key == "sequence_chunks"}
    start = time.perf_counter()
    order = build_schedule(name, stages, chunks, micro_batches, **extra)
    built = time.perf_counter() - start
    checked = best_of(1, lambda: check_schedule(order))
    plan = even_plan(name, stages, chunks, micro_batches, more)
    problem, ops = plan.problem, sum(map(len, order.rows))
    lists = np.tile(price(plan).price_list(problem), (max(1, 200_000 // ops), 1))
    batched_makespans(problem, lists)
    compiled = best_of(5, lambda: batched_makespans(problem, lists)) / len(lists)
    graph = graph_of(problem)
    columns = (graph.before, graph.price, graph.giver, hop_times(problem, graph), lists[0])
    plain_lists = [column.tolist() for column in columns]
    plain = best_of(2, lambda: longest_path.python(*plain_lists, [0.0] * len(graph.price)))
    slow = best_of(1, lambda: reference(plan)) if ops <= _MOST_REFERENCE_OPS else None
    sizes = f"S{stages} V{chunks} M{micro_batches}"
    return (
        f"| {name.value} {sizes} | {ops:,} | {1e3 * built:,.0f} | {1e3 * checked:,.0f} "
        f"| {1e6 * compiled:,.1f} | {ops / compiled / 1e6:,.0f} | {plain / compiled:,.0f} "
        f"| {'' if slow is None else f'{slow / compiled:,.0f}'} |"
    )


def table():
    """Rows of the table, its head first, as they are measured."""
    yield (
        "| order | ops | built in, ms | checked in, ms | timed in, us | million ops a second "
        "| x faster than the same pass in plain Python | x faster than the tests' reference |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for sizes in SIZES:
        yield row(*sizes)


if __name__ == "__main__":
    for line in table():
        print(line, flush=True)
