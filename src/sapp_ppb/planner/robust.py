"""How plans hold when every layer takes a little more or less time than was measured."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.plan import Outcome, Plan
from sapp_ppb.planner.allowed import may_be
from sapp_ppb.planner.run import RUNNERS_UP
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import batched_makespans
from sapp_ppb.simulator.price import layer_tables, price, price_lists, price_rule
from sapp_ppb.simulator.timeline import stage_peaks

Floats = NDArray[np.float64]

DRAWS = 200
LARGEST_NOISE = 1.0
_HIGH = 95  # percentile
# Plans that are better by rounding alone are not.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class NoisyPlan:
    """
    What a plan takes when layers vary.

    Attributes
    ----------
    plan
        The plan.
    step_ms
        Step without noise: the makespan and what comes after.
    median_ms, p95_ms
        Median and 95th percentile over the draws.
    """

    plan: Plan
    step_ms: float
    median_ms: float
    p95_ms: float


@dataclass(frozen=True, kw_only=True)
class Robustness:
    """
    The plan chosen and its runners-up under the same draws.

    Attributes
    ----------
    noise
        Relative standard deviation of a layer's time.
    draws
        How many there were.
    plans
        The plan chosen, then the others, the fastest first.
    """

    noise: float
    draws: int
    plans: tuple[NoisyPlan, ...]

    @property
    def chosen(self) -> NoisyPlan:
        """The plan without noise best."""
        return self.plans[0]

    @property
    def best_at_p95(self) -> NoisyPlan:
        """Plan with the least 95th percentile; the one chosen unless another is really better."""
        best = min(self.plans, key=lambda each: each.p95_ms)
        return best if best.p95_ms < self.chosen.p95_ms * (1 - _ROUNDING) else self.chosen


def robustness(outcome: Outcome, noise: float, *, draws: int = DRAWS) -> Robustness:
    """
    Time the plan of an outcome, and up to 8 others, while every layer varies.

    In each draw the time of every single layer, HEAD and TAIL too, is multiplied by a factor
    of its own: log-normal, of mean 1 and relative standard deviation ``noise``.  Forward,
    backward and weight gradients of a layer share its factor, and all plans have the same
    draws.  What the model adds to ops and hops, and what stages do after their last op, does
    not vary.  The others are those met while planning and, where these are fewer, splits with
    one layer moved to the next cell.

    Parameters
    ----------
    outcome
        An answer with a plan; its seed is that of the draws.
    noise
        Relative standard deviation, 0 to 1.

    Raises
    ------
    InputError
        When the outcome has no plan, or the noise can not be.

    Examples
    --------
    >>> from sapp_ppb.costs import LayerKind, Model, layer_from_times
    >>> from sapp_ppb.planner import plan_pipeline
    >>> body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=4, forward_ms=1)
    >>> problem = Problem(model=Model(name="tiny", layers=(body,)), stages=2, micro_batches=4)
    >>> outcome = plan_pipeline(problem, time_limit_s=0.1)
    >>> robustness(outcome, 0.0).chosen.p95_ms  # (4 + 2 - 1) x 2 x 3, whatever is drawn
    30.0
    """
    if outcome.plan is None:
        raise InputError("noise", ["there is no plan to try, because none fits"])
    if not 0.0 <= noise <= LARGEST_NOISE:
        raise InputError("noise", [f"must be from 0 to {LARGEST_NOISE:.0%} (got {noise!r})"])
    factors = _factors(outcome.problem, noise, draws, outcome.seed)
    others = [_noisy(plan, factors) for plan in _others(outcome, outcome.plan)]
    ranked = sorted(others, key=lambda each: each.step_ms)
    return Robustness(noise=noise, draws=draws, plans=(_noisy(outcome.plan, factors), *ranked))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Factors:
    """
    Factors of the layers; each of shape (draws, layers).

    ``heads`` and ``tails`` have a column for every layer in file order, counts written out, and
    ``bodies`` one for every BODY layer along the chain.
    """

    heads: Floats
    bodies: Floats
    tails: Floats


def _factors(problem: Problem, noise: float, draws: int, seed: int) -> _Factors:
    spread = math.sqrt(math.log1p(noise**2))
    numbers = np.random.default_rng(seed)
    columns = [
        np.exp(
            spread * numbers.standard_normal((draws, sum(layer.count for layer in layers))) - spread**2 / 2
        )
        for layers in (problem.model.heads, problem.model.bodies, problem.model.tails)
    ]
    return _Factors(heads=columns[0], bodies=columns[1], tails=columns[2])


def _noisy(plan: Plan, factors: _Factors) -> NoisyPlan:
    problem, rule = plan.problem, price_rule(plan.problem)
    times_ms = np.concatenate([price(plan).times_ms[None], _drawn_times(plan, factors)])
    makespans = batched_makespans(problem, price_lists(rule, times_ms))
    return NoisyPlan(
        plan=plan,
        step_ms=float(makespans[0]),
        median_ms=float(np.median(makespans[1:])),
        p95_ms=float(np.percentile(makespans[1:], _HIGH)),
    )


def _drawn_times(plan: Plan, factors: _Factors) -> Floats:
    """F, B and W of every cell in every draw; shape (draws, 3, cells)."""
    model, tables = plan.problem.model, layer_tables(plan.problem)
    kind, recompute, cell = chain_of(plan)
    each = np.array([tables.forward_ms[kind], tables.backward_ms[kind, recompute], tables.weight_ms[kind]])
    of_cell = np.eye(plan.problem.cells)[cell]
    times_ms = np.einsum("dl,ql,lc->dqc", factors.bodies, each, of_cell, optimize=True)
    for layers, drawn, at in ((model.heads, factors.heads, 0), (model.tails, factors.tails, -1)):
        ends = [
            (x.forward_ms, x.backward_ms[Recompute.NONE], x.weight_ms) for x in layers for _ in range(x.count)
        ]
        times_ms[:, :, at] += drawn @ np.array(ends).reshape(-1, 3)
    return np.asarray(times_ms)


def chain_of(plan: Plan) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """
    Write a plan out layer by layer: entry, recompute type and cell of every BODY layer along the chain.

    Within a cell and an entry strategies come first, then the layers that recompute most.
    """
    rows = [
        (kind, recompute, cell)
        for kind in range(len(plan.counts))
        for cell in range(plan.problem.cells)
        for recompute in reversed(plan.problem.model.types)
        for _ in range(plan.counts[kind, recompute, cell])
    ]
    kind, recompute, cell = np.array(rows, dtype=np.int64).T
    return kind, recompute, cell


def _others(outcome: Outcome, plan: Plan) -> list[Plan]:
    """Runners-up of the search, and splits with one layer moved where these are fewer."""
    others = list(dict.fromkeys(each for each in outcome.runners_up if each != plan))[:RUNNERS_UP]
    wanted = RUNNERS_UP - len(others)
    if wanted == 0:
        return others
    near = [each for each in _neighbours(plan) if each not in others]
    if not near:
        return others
    prices = np.array([price(each).price_list(plan.problem) for each in near])
    order = np.argsort(batched_makespans(plan.problem, prices), kind="stable")
    return others + [near[at] for at in order[:wanted]]


def _neighbours(plan: Plan) -> Iterator[Plan]:
    """Plans that fit and are allowed, with one layer on the other side of a boundary."""
    for cell in range(plan.problem.cells - 1):
        for here, there in ((cell, cell + 1), (cell + 1, cell)):
            moved = _moved(plan, here, there)
            if moved is not None and _is_allowed(moved):
                yield moved


def _moved(plan: Plan, here: int, there: int) -> Plan | None:
    """Move the layer that stands next to a neighbouring cell, with the least recompute that one has there."""
    held = np.argwhere(plan.counts[:, :, here] > 0)
    if not len(held):
        return None
    kind = held[-1, 0] if there > here else held[0, 0]
    recompute = held[held[:, 0] == kind][0, 1]
    counts = plan.counts.copy()
    counts[kind, recompute, here] -= 1
    counts[kind, recompute, there] += 1
    try:
        return Plan(problem=plan.problem, counts=counts)
    except InputError:  # the cell may not be so empty
        return None


def _is_allowed(plan: Plan) -> bool:
    problem = plan.problem
    if not may_be(plan):
        return False
    peaks = zip(stage_peaks(problem, price(plan)), problem.limit_per_stage_mb, strict=True)
    return all(peak.memory_mb <= limit * (1 + _ROUNDING) for peak, limit in peaks)
