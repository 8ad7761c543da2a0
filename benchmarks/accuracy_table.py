"""The table of docs/accuracy.md: what runs took, and what the simulator says of them."""

import statistics
from functools import cached_property

import numpy as np

from sapp_ppb import Model, Plan, Problem, simulate
from sapp_ppb.costs import LayerKind, Recompute, layer_from_times
from sapp_ppb.schedules import Flavour, P2PMode, ScheduleName
from sapp_ppb.simulator.graph import op_graph
from sapp_ppb.simulator.price import price


def plan_of_run(run):
    """
    Plan that a run document stands for: a cell's work is one layer of its own.

    Parameters
    ----------
    run
        A "sapp-ppb-run" document; docs/accuracy.md says what it holds.
    """
    times = zip(run["forward_ms"], run["backward_ms"], run["weight_ms"], strict=True)
    layers = [
        layer_from_times(
            name=f"cell {cell}",
            kind=LayerKind.BODY,
            forward_ms=forward,
            backward_ms=backward,
            weight_grad_ms=weight,
        )
        for cell, (forward, backward, weight) in enumerate(times)
    ]
    problem = Problem(
        model=Model(name="run", layers=tuple(layers)),
        stages=run["stages"],
        interleave=run["interleave"],
        micro_batches=run["micro_batches"],
        schedule=ScheduleName(run["schedule"]),
        micro_batch_group=run["micro_batch_group"],
        p2p_mode=P2PMode(run["p2p_mode"]),
        flavour=None if run["flavour"] is None else Flavour(run["flavour"]),
    )
    counts = np.zeros((problem.cells, len(Recompute), problem.cells), dtype=np.int64)
    counts[:, Recompute.NONE] = np.eye(problem.cells, dtype=np.int64)
    return Plan(problem=problem, counts=counts)


class Row:
    """
    A run beside what the simulator says of it.

    Attributes
    ----------
    simulated_ms
        Makespan, milliseconds.
    ratio, shortest
        Measured over simulated time, of the median step and of the shortest.
    """

    def __init__(self, name, run):
        self.name, self.run, self.plan = name, run, plan_of_run(run)
        self.simulated_ms = simulate(self.plan).makespan_ms
        self.ratio = run["step_ms"] / self.simulated_ms
        self.shortest = min(run["steps_ms"]) / self.simulated_ms

    @cached_property
    def lateness_ms(self):
        """What each op took beyond its time, and how long after what it waits for it began; (2, ops)."""
        graph = op_graph(self.plan.problem)
        prices = price(self.plan).price_list(self.plan.problem)[graph.price]
        start, end = np.empty_like(prices), np.empty_like(prices)
        # The ops of a run stand stage by stage, as those of ``first`` do.
        start[graph.first] = [op["start_ms"] for op in self.run["ops"]]
        end[graph.first] = [op["end_ms"] for op in self.run["ops"]]
        ended = np.append(end, 0.0)  # -1 stands for nothing to wait for
        ready = np.maximum(ended[graph.before], ended[graph.giver])
        return np.array([end - start - prices, start - ready])


# Heading of each column, and what stands in it.
COLUMNS = (
    ("run", lambda row: row.name),
    ("S", lambda row: row.run["stages"]),
    ("V", lambda row: row.run["interleave"]),
    ("M", lambda row: row.run["micro_batches"]),
    ("layers a cell", lambda row: " ".join(map(str, row.run["layers_per_cell"]))),
    ("simulated, ms", lambda row: f"{row.simulated_ms:,.1f}"),
    ("measured, ms", lambda row: f"{row.run['step_ms']:,.1f}"),
    ("ratio", lambda row: f"{row.ratio:.3f}"),
    ("ratio of the shortest step", lambda row: f"{row.shortest:.3f}"),
)


def table(runs):
    """
    Lines of the table, and what they come to.

    Parameters
    ----------
    runs
        Documents by name.
    """
    rows = [Row(name, run) for name, run in runs.items()]
    ratios = [row.ratio for row in rows]
    longer, later = np.median(np.hstack([row.lateness_ms for row in rows]), axis=1)
    return [
        line(heading for heading, _ in COLUMNS),
        line("---" for _ in COLUMNS),
        *(line(write(row) for _, write in COLUMNS) for row in rows),
        "",
        f"{len(rows)} configurations: median ratio {statistics.median(ratios):.3f}, "
        f"smallest {min(ratios):.3f}, largest {max(ratios):.3f}.",
        "",
        f"In the median, an op took {longer:.2f} ms longer than its time, and began {later:.2f} ms after all",
        "that it waits for had ended.",
    ]


def line(cells):
    """One line of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"
