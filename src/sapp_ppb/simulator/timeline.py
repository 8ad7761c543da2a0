"""simulate(): when every op of a plan runs, what every stage holds, and what is lost."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.plan import Bubble, Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Op
from sapp_ppb.simulator.graph import PLAIN_OPS, Graph, graph_of
from sapp_ppb.simulator.memory import LiveRows, problem_rows
from sapp_ppb.simulator.path_kernel import longest_path, longest_paths
from sapp_ppb.simulator.price import OVERHEAD, CellCosts, price, price_lists, price_rule, without_recompute

Floats = NDArray[np.float64]

# Memory is compared with its limit as times are compared: within this share.
_SLACK = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Peak:
    """Where a stage holds most: MB, and the op that it runs then."""

    memory_mb: float
    op: Op


@dataclass(frozen=True, kw_only=True, eq=False)
class Timeline:
    """
    What the simulator says of a plan.

    Attributes
    ----------
    plan
        The plan that was timed.
    makespan_ms
        First op to last, milliseconds.
    step_ms
        Until every stage has done what it does after its last op too: the makespan where
        there is no such thing.
    start_ms, end_ms
        For each stage, the times of its ops in the order in which it runs them; the ops
        of an overlapped pair have the same.
    peaks
        The most that each stage holds; shape (S,).
    """

    plan: Plan
    makespan_ms: float
    step_ms: float
    start_ms: tuple[Floats, ...]
    end_ms: tuple[Floats, ...]
    peaks: tuple[Peak, ...]

    @property
    def peak_memory_mb(self) -> tuple[float, ...]:
        """MB that each stage holds at most; shape (S,)."""
        return tuple(peak.memory_mb for peak in self.peaks)

    @property
    def busy_ms(self) -> Floats:
        """Time that each stage works, an overlapped pair counted once; shape (S,)."""
        times = np.array(
            [float((end - start).sum()) for start, end in zip(self.start_ms, self.end_ms, strict=True)]
        )
        if self.plan.problem.overlap_factor > 0.0:
            for stage, (start, end) in enumerate(zip(self.start_ms, self.end_ms, strict=True)):
                pairs = list(self.plan.problem.order.pairs_of(stage))
                times[stage] -= float((end[pairs] - start[pairs]).sum())
        return times

    @property
    def extra_ms(self) -> tuple[tuple[float, float], ...]:
        """When each stage begins and ends what it does after its last op; shape (S, 2), or empty."""
        problem = self.plan.problem
        if not problem.has_extra:
            return ()
        lasts = zip(self.end_ms, problem.extra_per_stage_ms, strict=True)
        return tuple((float(end[-1]), float(end[-1]) + extra) for end, extra in lasts)

    @property
    def fits_memory(self) -> bool:
        """Whether every peak is within its limit, to a relative 1e-9."""
        return not self.stages_over

    @property
    def stages_over(self) -> tuple[int, ...]:
        """Stages whose peak is above their limit by more than a relative 1e-9, ascending."""
        pairs = zip(self.peak_memory_mb, self.plan.problem.limit_per_stage_mb, strict=True)
        return tuple(stage for stage, (peak, limit) in enumerate(pairs) if peak > limit * (1 + _SLACK))

    @cached_property
    def bubble(self) -> Bubble:
        """
        Split idle time over its causes, as shares of useful work.

        Each part is what the makespan loses when one cause after the other is taken
        away: recompute, communication with the overhead of every op, then the difference
        between cells.  Where stages differ in speed, useful work counts at their mean speed,
        and cells that do not differ take the same time.  What stages do after their last op
        is left out.
        """
        problem = self.plan.problem
        stages, free = problem.stages, without_recompute(self.plan)
        useful = _useful_ms(problem, free)
        ideal = _makespan(problem, free, besides=True)
        local = _makespan(problem, free, besides=False)
        equal = _makespan(problem, _levelled(problem, free), besides=False)
        return Bubble(
            recompute=stages * (self.makespan_ms - ideal) / useful,
            communication=stages * (ideal - local) / useful,
            imbalance=stages * (local - equal) / useful,
            fill_drain=(stages * equal - useful) / useful,
        )


def simulate(plan: Plan) -> Timeline:
    """
    Time every op of a plan, and find the peak of every stage.

    An op starts once the op before it on its stage has ended and its input has
    arrived, so its start is the longest path that leads to it.

    Returns
    -------
    Timeline
        Times in milliseconds from the first op on; peaks in MB.

    Notes
    -----
    Linear in ops.  With equal cells and free sends 1F1B takes (M + S - 1)(f + b) [1]_.

    References
    ----------
    .. [1] Narayanan et al., SC 2021, arXiv:2104.04473, section 2.2.1.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=3, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=3, micro_batches=4)
    >>> one_each = np.zeros((1, 5, 3), dtype=int)
    >>> one_each[0, 0] = 1
    >>> simulate(Plan(problem=problem, counts=one_each)).makespan_ms  # (4 + 3 - 1) * (1 + 2)
    18.0
    """
    problem, costs = plan.problem, price(plan)
    graph = graph_of(problem)
    durations = costs.price_list(problem)
    ends = _run(graph, durations, hop_times(problem, graph))
    starts = ends - durations[graph.price]
    rows = [slice(a, b) for a, b in zip(graph.row_start, graph.row_start[1:], strict=False)]
    return Timeline(
        plan=plan,
        makespan_ms=float(_of_ops(graph, ends).max()),
        step_ms=float(ends.max()),
        start_ms=tuple(starts[graph.first[row]] for row in rows),
        end_ms=tuple(ends[graph.last[row]] for row in rows),
        peaks=stage_peaks(problem, costs),
    )


def batched_makespans(problem: Problem, lists: Floats) -> Floats:
    """
    Time the steps of many price lists under one problem's order, compiled.

    A step is the makespan, and where stages do something after their last op, that too.

    Parameters
    ----------
    lists
        Durations in milliseconds; shape (lists, kinds x cells), as CellCosts.price_list gives them.

    Returns
    -------
    ndarray
        Milliseconds; shape (lists,).
    """
    graph = graph_of(problem)
    makespans, ends = np.empty(len(lists)), np.empty(len(graph.price))
    hop_ms = hop_times(problem, graph)
    longest_paths(graph.before, graph.price, graph.giver, hop_ms, lists, ends, makespans)
    return makespans


def stage_peaks(problem: Problem, costs: CellCosts) -> tuple[Peak, ...]:
    """
    Find the most that each stage holds, at every prefix of its order.

    Returns
    -------
    tuple
        One peak a stage; shape (S,).
    """
    rows = problem_rows(problem)
    return tuple(stage_peak(problem, costs, stage, live) for stage, live in enumerate(rows))


def stage_peak(problem: Problem, costs: CellCosts, stage: int, live: LiveRows) -> Peak:
    """Find the most that one stage, whose live rows are given, holds, and the op at which it first does."""
    cells = problem.cells_of(stage)
    held = problem.constant_per_stage_mb[stage] + costs.parameter_mb[cells].sum()
    totals = held + live.totals(costs.activation_mb[cells], costs.again_mb[cells])
    highest = float(totals.max())
    # Of rows that tie, the one that the stage reaches first.
    op = min(int(at) for at, total in zip(live.ops, totals, strict=True) if total == highest)
    return Peak(memory_mb=highest, op=problem.order.rows[stage][op])


def hop_times(problem: Problem, graph: Graph) -> Floats:
    """Milliseconds that each op's input takes to arrive; shape (ops,)."""
    # Edge -1 means that nothing is sent.
    return np.array([*problem.hop_ms, 0.0])[graph.edge]


def _makespan(problem: Problem, costs: CellCosts, *, besides: bool) -> float:
    """Makespan with, or without, what comes besides the layers: hops, and the overhead of every op."""
    graph = graph_of(problem)
    times = hop_times(problem, graph)
    durations = costs.price_list(problem)
    if not besides:
        rule, times = price_rule(problem), np.zeros_like(times)
        rule[:, :, OVERHEAD] = 0.0
        durations = price_lists(rule, costs.times_ms[None])[0]
    return float(_of_ops(graph, _run(graph, durations, times)).max())


def _of_ops(graph: Graph, ends_ms: Floats) -> Floats:
    """Without the nodes of what stages do after their last op, which are the last ones."""
    return ends_ms[: len(ends_ms) - graph.extra]


def _useful_ms(problem: Problem, costs: CellCosts) -> float:
    """Work of a step at the mean speed, milliseconds; overlapped pairs at their overlapped length."""
    return _useful_work(problem, costs) * problem.stages / sum(problem.speed_per_stage)


def _useful_work(problem: Problem, costs: CellCosts) -> float:
    forward, backward = costs.forward_ms, costs.backward_ms
    work = problem.micro_batches * float(forward.sum() + backward.sum())
    if problem.overlap_factor == 0.0:
        return work
    order, saved = problem.order, 0.0
    for stage, row in enumerate(order.rows):
        for at in order.pairs_of(stage):
            saved += min(forward[row[at].cell], backward[row[at + 1].cell])
    return work - problem.overlap_factor * saved / problem.sequence_chunks


def _levelled(problem: Problem, costs: CellCosts) -> CellCosts:
    """Spread work over all cells, HEAD and TAIL too, so that each takes the same time."""
    speeds = np.array(problem.speed_per_cell)
    shares = speeds / speeds.mean()
    return replace(
        costs,
        forward_ms=shares * costs.forward_ms.mean(),
        backward_ms=shares * costs.backward_ms.mean(),
        weight_ms=shares * costs.weight_ms.mean(),
    )


def _run(graph: Graph, durations: Floats, hop_ms: Floats) -> Floats:
    """End of every node; shape (nodes,)."""
    columns = (graph.before, graph.price, graph.giver, hop_ms, durations, np.empty(len(graph.price)))
    if len(graph.price) > PLAIN_OPS:
        longest_path(*columns)
        return columns[-1]
    # Lists are several times faster than arrays for one element at a time.
    lists = [column.tolist() for column in columns]
    longest_path.python(*lists)
    return np.array(lists[-1])
