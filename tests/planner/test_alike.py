"""Neighbours joined to one entry: no plan gets slower or larger, and nothing more is promised than holds."""

from dataclasses import replace

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.fix import Fix, PlaceRule
from sapp_ppb.plan import Plan
from sapp_ppb.planner.alike import joined_equal, joined_near
from sapp_ppb.problem import Problem
from sapp_ppb.simulator import simulate
from sapp_ppb.simulator.price import price, splits_backward
from tests.planner.cases import Case, cases


def body(name, count=1, forward_ms=10.0, none_mb=60.0, parameter_mb=300.0):
    return layer_from_times(
        name=name,
        kind=LayerKind.BODY,
        count=count,
        forward_ms=forward_ms,
        parameter_mb=parameter_mb,
        activation_mb={Recompute.NONE: none_mb, Recompute.FULL: 4.0},
    )


def problem_of(*bodies, **more):
    model = Model(name="chain", layers=bodies)
    return Problem(model=model, **{"stages": 2, "interleave": 2, "micro_batches": 4} | more)


def test_equal_neighbours_become_one_entry_and_others_stay():
    problem = problem_of(body("a", 2), body("b"), body("c", forward_ms=11), body("d"), body("e"))
    grouped = joined_equal(problem)
    assert grouped.starts == (0, 2, 3, 5)
    assert [layer.count for layer in grouped.problem.model.bodies] == [3, 1, 2]
    assert grouped.is_exact


@pytest.mark.parametrize(
    "other",
    [
        body("b", forward_ms=10.1),
        body("b", none_mb=61),
        body("b", parameter_mb=301),
        replace(body("b"), weight_grad_ms=9),
        replace(body("b"), is_mtp=True),
    ],
)
def test_whatever_a_plan_can_feel_keeps_neighbours_apart(other):
    assert joined_equal(problem_of(body("a", 5), other)).starts == (0, 1, 2)


def test_nothing_is_joined_where_recompute_is_fixed_by_entry():
    problem = problem_of(body("a", 4), body("b", 4))
    kept = problem.changed(fix=Fix(recompute=(((0,) * 4,) * 5,) * 2))
    assert joined_equal(kept).problem is kept
    assert joined_near(kept).problem is kept


def test_nothing_is_joined_where_some_layers_hold_nothing():
    """A layer without activation memory chooses no type, and one of least costs would."""
    nothing = layer_from_times(name="b", kind=LayerKind.BODY, forward_ms=10, parameter_mb=300)
    problem = problem_of(body("a", 5), nothing)
    assert joined_near(problem, most=1).problem is problem


@pytest.mark.parametrize("join", [joined_equal, joined_near, lambda problem: joined_near(problem, most=1)])
def test_entries_that_a_rule_of_places_never_picks_stay_apart_and_are_counted_anew(join):
    """They were counted as before among fewer groups, so that the rule picked nothing of the others."""
    rule = PlaceRule(recompute=Recompute.FULL, first=2, entries_left=2)
    bodies = [body(name) for name in "abcde"]
    grouped = join(problem_of(*bodies, fix=Fix(places=rule)))
    assert grouped.starts == (0, 3, 5)  # a b c | d e, though all cost the same
    assert grouped.problem.fix.places == replace(rule, entries_left=1)
    # a and b in cell 0, c in cell 1, d in cell 2, e in cell 3: the rule picks the first two of each but d, e.
    by_entry = np.array([[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    plan = Plan(problem=grouped.source, counts=rule.counts(by_entry))
    assert plan.counts[:, Recompute.FULL].sum() == 3
    assert shadow(grouped, plan).keeps_fix


def test_about_equal_neighbours_take_the_least_of_each_cost():
    near = joined_near(
        problem_of(body("a", 3, 10, 62), body("b", 2, 10.2, 60), body("c", 3, 10.1, 61)), most=2
    )
    (layer,) = near.problem.model.bodies  # a second entry would leave out hardly less
    assert (layer.count, layer.forward_ms, layer.activation_mb[Recompute.NONE]) == (8, 10.0, 60.0)
    assert not near.is_exact
    # Forwards beyond 10 ms: 0 0 0 | 0.2 0.2 | 0.1 0.1 0.1; four in a row that have least: 0 0 0 0.2.
    assert near.least_surplus_ms(5)[0, 0] == pytest.approx([0, 0, 0, 0, 0.2, 0.4])
    assert near.total_ms[0] == pytest.approx(3 * 10 + 2 * 10.2 + 3 * 10.1)


def test_kinds_that_differ_much_stay_apart():
    near = joined_near(problem_of(body("a", 4, 10), body("b", 4, 30), body("c", 4, 30.1)), most=2)
    assert near.starts == (0, 1, 3)


def test_layers_of_a_group_go_back_to_entries_with_those_recomputed_first():
    grouped = joined_equal(problem_of(body("a", 2), body("b", 4)))
    counts = np.zeros((1, 5, 4), dtype=np.int64)
    counts[0, Recompute.NONE] = [1, 1, 1, 1]
    counts[0, Recompute.FULL] = [0, 1, 0, 1]
    spread = grouped.spread(counts)
    # Along the chain: none | full none | none | full none; the first two layers are a's.
    assert spread[0, Recompute.NONE].tolist() == [1, 0, 0, 0]
    assert spread[0, Recompute.FULL].tolist() == [0, 1, 0, 0]
    assert spread[1, Recompute.NONE].tolist() == [0, 1, 1, 1]
    assert spread[1, Recompute.FULL].tolist() == [0, 0, 0, 1]


def shadow(grouped, plan):
    """Give the plan of the groups that has the same layers and types in every cell."""
    counts = np.add.reduceat(plan.counts, grouped.starts[:-1], axis=0)
    return Plan(problem=grouped.problem, counts=counts)


def sampled_plans(case: Case, number=6):
    return [case.plans.plan(int(case.rng.randrange(len(case.plans.makespan_ms)))) for _ in range(number)]


@pytest.mark.parametrize("most", [1, 2])
def test_no_plan_is_slower_or_larger_when_neighbours_are_joined(most):
    joined = 0
    for case in cases(120):
        near = joined_near(case.problem, most)
        if near.is_exact:
            continue
        joined += 1
        for plan in sampled_plans(case):
            own, other = simulate(plan), simulate(shadow(near, plan))
            assert other.step_ms <= own.step_ms * (1 + 1e-12), case.seed
            peaks = zip(other.peak_memory_mb, own.peak_memory_mb, strict=True)
            assert all(less <= more * (1 + 1e-12) for less, more in peaks), case.seed
            times, least = price(plan).times_ms, price(shadow(near, plan)).times_ms
            # What cells take, beyond least costs, is no less than what is given back.
            layers = np.add.reduceat(plan.counts, near.starts[:-1], axis=0).sum(axis=1)
            given = near.least_surplus_ms(int(layers.max()))
            for cell in range(case.problem.cells):
                least[:, cell] += sum(given[:, k, layers[k, cell]] for k in range(len(layers)))
            parts = 3 if splits_backward(case.problem) else 2  # W counts nowhere else
            assert (least[:parts] <= times[:parts] * (1 + 1e-12) + 1e-9).all(), case.seed
            assert (near.total_ms[:parts] <= times[:parts].sum(axis=1) * (1 + 1e-12)).all(), case.seed
    assert joined > 5
