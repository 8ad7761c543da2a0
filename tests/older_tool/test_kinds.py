"""Several kinds of layers, each with types of its own: all of them count, in plans and in lists."""

from itertools import combinations

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.planner.baselines import baselines
from sapp_ppb.problem import Problem
from sapp_ppb.readers.older.manual_plan import read_manual_plans
from sapp_ppb.simulator import simulate
from tests.reference import reference

NONE, SELECTIVE, COMM, BOTH, FULL = Recompute
ALL = dict(zip(Recompute, (100.0, 80.0, 60.0, 40.0, 10.0), strict=True))


def kind_of(name, count, forward_ms, types):
    return layer_from_times(
        name=name,
        kind=LayerKind.BODY,
        count=count,
        forward_ms=forward_ms,
        parameter_mb=20,
        activation_mb={r: ALL[r] for r in types},
    )


def model_of(*kinds):
    return Model(name="kinds", layers=kinds)


# Counts of each kind, fewer of some than there are cells, as 3 dense layers before 58 with experts.
@pytest.mark.parametrize("counts", [(3, 58), (1, 1, 30), (2, 9, 2, 9), (1, 6, 1)])
def test_a_cell_needs_a_layer_of_any_kind_and_not_one_of_each(counts):
    kinds = [
        kind_of(f"kind{at}", count, 1 + at / 2, [NONE, FULL] if at % 2 else [NONE, SELECTIVE])
        for at, count in enumerate(counts)
    ]
    model = model_of(*kinds)
    problem = Problem(model=model, stages=4, interleave=2, micro_batches=8, memory_limit_mb=5000)
    outcome = plan_pipeline(problem, time_limit_s=0.1)
    assert outcome.plan is not None
    assert outcome.plan.counts.sum(axis=(1, 2)).tolist() == list(counts)  # every layer of every kind
    assert outcome.plan.layers_per_cell.min() >= 1
    # A kind uses the types that it gives, whatever the others give.
    for kind, layers in zip(kinds, outcome.plan.counts, strict=True):
        assert {Recompute(r) for r in np.flatnonzero(layers.sum(axis=1)).tolist()} <= set(kind.considered)


@pytest.mark.parametrize("slower", range(3))
def test_the_time_and_memory_of_every_kind_are_counted(slower):
    def makespan_and_peaks(factor):
        kinds = [kind_of(f"kind{at}", 4, 3 * (factor if at == slower else 1), [NONE]) for at in range(3)]
        plan = baselines(Problem(model=model_of(*kinds), stages=3, micro_batches=6))[0].plan
        timeline = simulate(plan)
        assert timeline.makespan_ms == pytest.approx(reference(plan).makespan_ms)
        assert timeline.peak_memory_mb == pytest.approx(reference(plan).peak_mb)
        return timeline.makespan_ms

    # A kind a stage, 4 x 9 ms a micro-batch: 8 turns of 36 ms.  With one twice as slow, the longest way is
    # once through the chain, 144 ms, five more backwards of its stage, and the forwards between those,
    # M - S + s of them in 1F1B.
    assert makespan_and_peaks(1) == 8 * 36
    assert makespan_and_peaks(2) == 144 + 5 * 48 + (6 - 3 + slower) * 24


def test_lists_count_the_first_layers_of_a_cell_whatever_their_kind(tmp_path):
    path = tmp_path / "manual.yaml"
    # Two chunks of two stages: 2 layers each, one more in the first.  3 dense layers fill cell 0.
    path.write_text("a: {offset: [[1, 0], [0, 0]], recompute: [[3, 1], [0, 2]], interleave_num: 2}")
    model = model_of(kind_of("dense", 4, 1, ALL), kind_of("moe", 5, 2, ALL))
    (a,) = read_manual_plans(path, Problem(model=model, stages=2, interleave=2, micro_batches=4))
    # Cells 0 to 3 hold 3, 2, 2, 2 layers; cell 1 the last dense one, which is its first, and one moe.
    assert a.plan.counts[0, FULL].tolist() == [3, 1, 0, 0]
    assert a.plan.counts[0, NONE].tolist() == [0, 0, 0, 0]
    assert a.plan.counts[1, NONE].tolist() == [0, 1, 2, 0]
    assert a.plan.counts[1, FULL].tolist() == [0, 0, 0, 2]
    assert simulate(a.plan).makespan_ms == pytest.approx(reference(a.plan).makespan_ms)


LISTS = {
    SELECTIVE: "select_recompute: [2, 0]",
    COMM: "select_comm_recompute: [2, 0]",
    BOTH: "select_recompute: [2, 0], select_comm_recompute: [2, 0]",
    FULL: "recompute: [2, 0]",
}


@pytest.mark.parametrize("given", [types for n in range(5) for types in combinations(LISTS, n)], ids=str)
@pytest.mark.parametrize("wanted", LISTS)
def test_a_list_that_means_a_type_without_memory_is_refused_and_any_other_is_timed(given, wanted, tmp_path):
    path = tmp_path / "manual.yaml"
    path.write_text(f"a: {{offset: 0, {LISTS[wanted]}}}")
    model = model_of(kind_of("Dec", 8, 1, [NONE, *given]))
    problem = Problem(model=model, stages=2, micro_batches=4)
    if wanted in given:
        (a,) = read_manual_plans(path, problem)
        assert a.plan.counts[0, wanted].tolist() == [2, 0]
        assert simulate(a.plan).peak_memory_mb == pytest.approx(reference(a.plan).peak_mb)
    else:
        with pytest.raises(InputError, match=rf"a \(line 1\) is no plan: .*{wanted.label}"):
            read_manual_plans(path, problem)


@pytest.mark.parametrize("types", [t for n in range(1, 6) for t in combinations(Recompute, n)], ids=str)
def test_a_model_is_planned_with_whatever_memory_it_gives(types):
    # Every set of the five memories, that of no recompute missing included.
    problem = Problem(model=model_of(kind_of("Dec", 6, 1, types)), stages=2, micro_batches=3)
    light, heavy = (max(simulate(found.plan).peak_memory_mb) for found in baselines(problem)[:2])
    for limit_mb in (None, light, (light + heavy) / 2, heavy):
        limited = Problem(model=problem.model, stages=2, micro_batches=3, memory_limit_mb=limit_mb)
        outcome = plan_pipeline(limited, time_limit_s=0.2)
        assert outcome.plan is not None
        used = {Recompute(r) for r in np.flatnonzero(outcome.plan.counts.sum(axis=(0, 2))).tolist()}
        assert used <= set(types)
