"""How time and memory grow with the size of one problem: the tables of docs/performance.md."""

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from sapp_ppb import Model, Problem, plan_pipeline, simulate
from sapp_ppb.costs import LayerKind, Recompute, layer_from_times
from sapp_ppb.planner.proof.bounds import lower_bound
from sapp_ppb.planner.proof.patterns import TooManyPatternsError, list_patterns
from sapp_ppb.planner.search.annealing import Search
from sapp_ppb.planner.warm_up import compile_kernels
from sapp_ppb.schedules import ScheduleName, build_schedule
from sapp_ppb.simulator.graph import build_graph, graph_of
from sapp_ppb.writers import plan_to_json

# What is timed, in this order; "search" and "proof" take turns.
_PHASES = ("order", "graph", "bound", "start", "search", "proof", "document")
# Share of its activations without recomputation that a stage has room for.
_TIGHT = 0.55
_PARAMETER_MB, _ACTIVATION_MB = 300, 60


@dataclass(frozen=True, kw_only=True)
class Large:
    """A problem of many layers, stages or micro-batches; ``distinct`` layers all cost something else."""

    layers: int
    stages: int
    interleave: int
    micro_batches: int
    distinct: bool = False
    min_layers: int = 1

    @property
    def name(self) -> str:
        """Sizes in one line."""
        kind = "distinct layers" if self.distinct else "equal layers"
        return f"{self.layers} {kind}, S{self.stages} V{self.interleave} M{self.micro_batches}"

    def problem(self) -> Problem:
        """Build the problem; a stage must recompute about half of its layers."""
        body = (
            _distinct(self.layers) if self.distinct else (_layer("Dec", self.layers, 10.0, _ACTIVATION_MB),)
        )
        head = layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=5, parameter_mb=500)
        tail = layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=12, parameter_mb=500)
        of_stage = self.layers / self.stages
        return Problem(
            model=Model(name="large", layers=(head, *body, tail)),
            stages=self.stages,
            interleave=self.interleave,
            micro_batches=self.micro_batches,
            memory_limit_mb=500 + of_stage * (_PARAMETER_MB + _ACTIVATION_MB * self.stages * _TIGHT),
            min_layers_per_cell=self.min_layers,
        )


def _layer(name, count, forward_ms, activation_mb):
    memory = {Recompute.NONE: activation_mb, Recompute.SELECTIVE: 0.65 * activation_mb, Recompute.FULL: 4}
    return layer_from_times(
        name=name,
        kind=LayerKind.BODY,
        count=count,
        forward_ms=forward_ms,
        parameter_mb=_PARAMETER_MB,
        activation_mb=memory,
    )


def _distinct(layers):
    numbers = np.random.default_rng(1)
    drawn = numbers.uniform((5, 40), (15, 80), (layers, 2)).tolist()
    return tuple(_layer(f"Dec{k}", 1, *costs) for k, costs in enumerate(drawn))


CASES = (
    Large(layers=128, stages=64, interleave=4, micro_batches=512, min_layers=0),
    Large(layers=192, stages=64, interleave=4, micro_batches=512, min_layers=0),
    Large(layers=200, stages=64, interleave=4, micro_batches=512, min_layers=0),
    Large(layers=61, stages=8, interleave=1, micro_batches=64, distinct=True),
    Large(layers=61, stages=8, interleave=2, micro_batches=64, distinct=True),
    Large(layers=61, stages=16, interleave=2, micro_batches=32, distinct=True),
    Large(layers=500, stages=16, interleave=1, micro_batches=64),
    Large(layers=500, stages=16, interleave=2, micro_batches=64),
    Large(layers=500, stages=64, interleave=1, micro_batches=256),
    Large(layers=500, stages=16, interleave=1, micro_batches=64, distinct=True),
    Large(layers=500, stages=16, interleave=2, micro_batches=64, distinct=True),
)
# Stages, chunks and micro-batches of orders, each with four times the ops of the one before.
ORDERS = ((16, 2, 64), (32, 2, 128), (64, 4, 128), (64, 4, 512))
# Layers, stages, chunks, micro-batches, and whether the layers differ.
SEARCHES = (
    (32, 4, 1, 16, False),
    (80, 8, 2, 64, False),
    (61, 8, 2, 64, True),
    (500, 16, 2, 64, False),
    (500, 16, 2, 64, True),
    (128, 32, 2, 512, False),
    (200, 64, 4, 512, False),
)
PATTERNS = ((32, 8, 2, 16), (64, 8, 2, 16), (128, 8, 2, 16), (32, 8, 3, 16), (64, 8, 3, 16), (64, 8, 4, 16))


def peak_mb():
    """Most memory that this process has held since it was started."""
    status = Path("/proc/self/status")
    if status.exists():  # the figure of getrusage begins with that of the process that started this one
        return int(status.read_text(encoding="ascii").split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2  # macOS counts bytes


class _Phases:
    """Seconds of each phase."""

    def __init__(self, first):
        self.seconds, self._name, self._since = {}, first, time.perf_counter()

    def begin(self, name):
        """End one phase and begin another, or go on with it."""
        now = time.perf_counter()
        self.seconds[self._name] = self.seconds.get(self._name, 0.0) + now - self._since
        self._name, self._since = name, now


def planned(case, seconds):
    """Row of a case; to be run in a process of its own, whose memory is then the case's."""
    compile_kernels()
    phases = _Phases("order")
    problem = case.problem()
    phases.begin("graph")
    graph_of(problem)
    phases.begin("bound")
    lower_bound(problem)
    before_mb, start = peak_mb(), time.perf_counter()
    phases.begin("start")
    outcome = plan_pipeline(problem, time_limit_s=seconds, watch=lambda told: phases.begin(told.phase))
    taken = time.perf_counter() - start
    phases.begin("document")
    plan_to_json(outcome)
    phases.begin("end")
    assert simulate(outcome.plan).fits_memory  # noqa: S101  a bench that lies is worse than none
    cells = [f"{phases.seconds.get(name, 0.0):.2f}" for name in _PHASES]
    return (
        f"| {case.name} | {seconds:g} | {' | '.join(cells)} | {taken:.1f} | {taken / seconds:.2f} "
        f"| {100 * outcome.gap:.2f} % | {outcome.stopped_by} | {before_mb:,.0f} | {peak_mb():,.0f} |"
    )


def case_rows(seconds):
    """Phases of every large case, a process each."""
    yield (
        f"| problem | -t, s | {', s | '.join(_PHASES)}, s | planned in, s | of -t | gap | stopped by "
        "| peak before planning, MB | peak, MB |"
    )
    yield "|---|" + (len(_PHASES) + 7) * "---|"
    for limit in seconds:
        for case in CASES:
            yield alone(planned, case, limit)


def alone(task, *arguments):
    """Do a task in a process of its own, in which nothing is cached."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as own:
        return own.submit(task, *arguments).result()


def order_rows():
    """Seconds to build and to sort orders of more and more ops."""
    yield "| order | ops | built in, ms | sorted in, ms | ns an op |"
    yield "|---|---|---|---|---|"
    for sizes in ORDERS:
        yield alone(order_row, *sizes)


def order_row(stages, chunks, micro_batches):
    """Time one order."""
    compile_kernels()
    start = time.perf_counter()
    order = build_schedule(ScheduleName.INTERLEAVED, stages, chunks, micro_batches)
    built = time.perf_counter() - start
    build_graph(order)
    sorted_in = time.perf_counter() - start - built
    ops = sum(map(len, order.rows))
    return (
        f"| interleaved S{stages} V{chunks} M{micro_batches} | {ops:,} | {1e3 * built:,.0f} "
        f"| {1e3 * sorted_in:,.0f} | {1e9 * (built + sorted_in) / ops:,.0f} |"
    )


def search_rows(moves=20_000):
    """Count the moves of the search in a second."""
    yield "| problem | ops | cells | kinds of layers | moves a second |"
    yield "|---|---|---|---|---|"
    for layers, stages, chunks, micro_batches, distinct in SEARCHES:
        case = Large(
            layers=layers,
            stages=stages,
            interleave=chunks,
            micro_batches=micro_batches,
            distinct=distinct,
            min_layers=int(layers >= stages * chunks),
        )
        problem = case.problem()
        search = Search(problem, seed=0)
        start = time.perf_counter()
        for _ in search.run(moves):
            pass
        rate = moves / (time.perf_counter() - start)
        ops = sum(map(len, problem.order.rows))
        yield f"| {case.name} | {ops:,} | {problem.cells} | {len(problem.model.bodies)} | {rate:,.0f} |"


def pattern_rows():
    """Count the patterns that a device may hold within 1 % of a plan that was found in a second."""
    yield "| problem | patterns a device, most | listed in, s |"
    yield "|---|---|---|"
    for layers, stages, chunks, micro_batches in PATTERNS:
        case = Large(layers=layers, stages=stages, interleave=chunks, micro_batches=micro_batches)
        problem = case.problem()
        outcome = plan_pipeline(problem, time_limit_s=1.0)
        start = time.perf_counter()
        try:
            most = max(len(each.layers) for each in list_patterns(problem, 1.01 * outcome.step_ms))
            said = f"{most:,}"
        except TooManyPatternsError:
            said = "too many"
        yield f"| {case.name} | {said} | {time.perf_counter() - start:.2f} |"


def tables(seconds=(10.0, 30.0)):
    """All tables, row by row."""
    for rows in (order_rows(), search_rows(), pattern_rows(), case_rows(seconds)):
        yield ""
        yield from rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-t", nargs="*", type=float, default=[10.0, 30.0], help="time limits of the cases")
    compile_kernels()
    for line in tables(parser.parse_args().t):
        print(line, flush=True)
