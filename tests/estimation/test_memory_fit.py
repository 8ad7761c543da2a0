"""Peaks are divided as the simulator adds them up, and what they do not tell is named."""

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import Cost, LayerKind, LayerStrategy, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError
from sapp_ppb.estimation import dryrun_guide, fit_memory, model_of_times, with_memory
from sapp_ppb.estimation.dryrun_guide import WELL_CONDITIONED
from sapp_ppb.plan import Plan, plan_from_matrices
from sapp_ppb.problem import Problem
from sapp_ppb.readers.older.init_yaml import read_init
from sapp_ppb.simulator import ObservedRun, simulate
from sapp_ppb.targets import silent_cells
from tests.strategies import random_plan

DATA = Path(__file__).parents[1] / "data" / "sapp"
MEMORY = {
    Recompute.NONE: 860.0,
    Recompute.SELECTIVE: 730.0,
    Recompute.COMM: 520.0,
    Recompute.BOTH: 436.0,
    Recompute.FULL: 32.0,
}


def model_of(count, types=tuple(Recompute)):
    body = layer_from_times(
        name="BODY",
        kind=LayerKind.BODY,
        count=count,
        forward_ms=10,
        parameter_mb=1860.5,
        activation_mb={r: MEMORY[r] for r in types},
    )
    head = layer_from_times(name="HEAD", kind=LayerKind.HEAD, forward_ms=1, parameter_mb=6380)
    tail = layer_from_times(name="TAIL", kind=LayerKind.TAIL, forward_ms=2, parameter_mb=3200.25)
    return Model(name="known", layers=(head, body, tail), constant_memory_mb=2500)


def observed(plan):
    """Peaks that the simulator gives a plan."""
    return ObservedRun(plan=plan, peak_mb=dict(enumerate(simulate(plan).peak_memory_mb)))


def under(plan, model):
    """Plan of a guide, over the model that is known."""
    problem = Problem(model=model, stages=plan.problem.stages, micro_batches=plan.problem.micro_batches)
    return Plan(problem=problem, counts=plan.counts)


@pytest.mark.parametrize(
    ("stages", "layers", "types"),
    [
        (16, 96, [Recompute.FULL]),
        (16, 96, list(Recompute)[1:]),
        (8, 61, [Recompute.SELECTIVE, Recompute.FULL]),
        (4, 80, list(Recompute)[1:]),
        (4, 9, [Recompute.FULL]),
        (3, 12, []),
    ],
)
def test_the_runs_of_the_guide_tell_every_memory_of_a_model(stages, layers, types):
    guide = dryrun_guide(stages, layers, types)
    assert guide.condition <= WELL_CONDITIONED
    model = model_of(layers)
    runs = [observed(under(plan, model)) for plan in guide.plans]
    found = with_memory(model_of_times("known", layers, head_ms=1, body_ms=10, tail_ms=2), fit_memory(runs))
    assert found.constant_memory_mb == pytest.approx(2500, rel=1e-6)
    head, body, tail = found.layers
    assert (head.parameter_mb, tail.parameter_mb) == pytest.approx((6380, 3200.25), rel=1e-6)
    assert body.parameter_mb == pytest.approx(1860.5, rel=1e-6)
    told = {r: body.activation_mb[r] for r in Recompute if body.activation_mb[r] is not None}
    assert told == pytest.approx({r: MEMORY[r] for r in (Recompute.NONE, *types)}, rel=1e-6)


@pytest.mark.parametrize(("stages", "layers"), [(2, 9), (5, 40), (16, 61)])
def test_every_run_of_the_guide_is_legal_for_mindformers(stages, layers):
    if stages == 2:
        # Every stage is an end: the constant can not be told from head and tail.
        with pytest.raises(InputError, match="no 8 rounds of 2 stages and 9 layers tell all unknowns"):
            dryrun_guide(stages, layers, [Recompute.FULL])
        return
    for plan in dryrun_guide(stages, layers, list(Recompute)[1:]).plans:
        assert silent_cells(plan) == []
        assert plan.offset.sum() == layers % stages
        assert plan.layers_per_cell.min() >= 1


def test_the_guide_is_the_same_every_time():
    first, second = (dryrun_guide(8, 50, [Recompute.FULL]) for _ in range(2))
    assert [plan.counts.tolist() for plan in first.plans] == [plan.counts.tolist() for plan in second.plans]


@pytest.mark.parametrize(("stages", "layers"), [(1, 5), (4, 4), (0, 3)])
def test_too_few_stages_or_layers_have_no_guide(stages, layers):
    with pytest.raises(InputError, match="needs at least 2 stages, and one layer more than stages"):
        dryrun_guide(stages, layers, [])


@given(st.integers(0, 2**32 - 1))
def test_interleaved_runs_are_told_by_the_rows_of_their_schedule(seed):
    # Two chunks and few micro-batches: which row is the peak depends on the plan.
    rng = Random(seed)
    model = model_of(30, (Recompute.NONE, Recompute.FULL))
    problem = Problem(model=model, stages=5, interleave=2, micro_batches=rng.choice([5, 10]))
    runs = [observed(random_plan(rng, problem)) for _ in range(4)]
    estimate = fit_memory(runs)
    most = max(max(run.peak_mb.values()) for run in runs)
    assert np.abs(estimate.fit.residuals).max() <= 1e-6 * most
    assert estimate.parameter_mb["BODY"] == pytest.approx(1860.5, rel=1e-5)
    assert estimate.activation_mb["BODY"] == pytest.approx(
        {Recompute.NONE: 860.0, Recompute.FULL: 32.0}, rel=1e-4, abs=0.01
    )


def test_equal_stages_do_not_tell_the_constant_from_the_parameters():
    problem = Problem(model=model_of(12), stages=4, micro_batches=4)
    run = observed(plan_from_matrices(problem, {"BODY": {"none": [[3, 3, 3, 3]]}}))
    with pytest.raises(InputError) as caught:
        fit_memory([run])
    (fault,) = caught.value.faults
    # The live micro-batches 4, 3, 2 and 1 tell the activations, and then head and tail.
    assert fault.startswith("4 peaks do not tell apart constant and parameters BODY; measure another run")
    assert "dryrun-guide says which" in fault


def test_a_constant_that_is_known_is_taken_off():
    problem = Problem(model=model_of(15), stages=5, micro_batches=5)
    run = observed(plan_from_matrices(problem, {"BODY": {"none": [[3, 3, 3, 3, 3]]}}))
    estimate = fit_memory([run], constant_mb=2500)
    assert estimate.parameter_mb["BODY"] == pytest.approx(1860.5)
    assert estimate.constant_mb == 2500


def test_several_kinds_of_layers_are_told_apart():
    kinds = tuple(
        layer_from_times(
            name=name,
            kind=LayerKind.BODY,
            count=count,
            forward_ms=1,
            parameter_mb=mb,
            activation_mb={Recompute.NONE: act},
        )
        for name, count, mb, act in (("Dense", 7, 100, 10), ("Moe", 11, 300, 25))
    )
    problem = Problem(model=Model(name="two", layers=kinds), stages=6, micro_batches=6)
    splits = [([2, 3, 2, 0, 0, 0], [0, 0, 1, 3, 4, 3]), ([4, 1, 2, 0, 0, 0], [0, 0, 0, 5, 2, 4])]
    runs = [
        observed(plan_from_matrices(problem, {"Dense": {"none": [dense]}, "Moe": {"none": [moe]}}))
        for dense, moe in splits
    ]
    estimate = fit_memory(runs)
    assert estimate.parameter_mb == pytest.approx({"Dense": 100, "Moe": 300}, rel=1e-6)
    assert estimate.activation_mb["Moe"][Recompute.NONE] == pytest.approx(25, rel=1e-6)


def test_no_peaks_are_refused():
    problem = Problem(model=model_of(12), stages=4, micro_batches=4)
    plan = plan_from_matrices(problem, {"BODY": {"none": [[3, 3, 3, 3]]}})
    with pytest.raises(InputError, match="none was given"):
        fit_memory([ObservedRun(plan=plan, peak_mb={})])


class TestOlderToolsOwn:
    def test_one_round(self):
        # Eight peaks and eight unknowns; without a bound the constant is negative, so with it the
        # peaks are rebuilt within 225 MB of some 20,000 to 80,000, and no memory is below 0.
        estimate = fit_memory(read_init(DATA / "mem.yaml").runs)
        assert estimate.fit.values.min() >= 0
        assert np.abs(estimate.fit.residuals).max() == pytest.approx(224.8, abs=0.1)
        assert estimate.constant_mb == 0.0
        activation = list(estimate.activation_mb["BODY"].values())
        assert activation == sorted(activation, reverse=True)  # more recompute holds less

    def test_sixteen_stages_of_a_published_dry_run(self):
        # Published dry runs, 16 peaks of 20,463 to 146,986 MB for 8 unknowns.  The residual tells how many
        # micro-batches are live: S - s, as for M of S or more, and not the 8 of the timelines in that readme.
        estimate = fit_memory(read_init(DATA / "init_readme.yaml").runs)
        assert np.abs(estimate.fit.residuals).max() == pytest.approx(1279.1, abs=0.1)
        assert estimate.fit.half_width is not None
        assert estimate.activation_mb["BODY"][Recompute.NONE] == pytest.approx(1002.9, abs=0.1)
        assert estimate.fit.half_width.max() < 2000
        other = fit_memory(read_init(DATA / "init_readme.yaml", 8).runs)
        assert np.abs(other.fit.residuals).max() > 8000

    def test_two_rounds_with_the_head_of_the_first(self):
        # Six peaks and six unknowns, exactly: stage 0 of round 1 holds 20 layers, one of them FULL,
        # and four micro-batches are live:
        # 955.34 + 504.45 + 20 x 400.61 + 4 (19 x 743.46 + 131.78) = 66,502 MB as measured.
        estimate = fit_memory(read_init(DATA / "mem_pp4.yaml").runs)
        assert np.abs(estimate.fit.residuals).max() < 1e-6
        activation = estimate.activation_mb["BODY"]
        rebuilt = (
            estimate.constant_mb
            + estimate.head_mb
            + 20 * estimate.parameter_mb["BODY"]
            + 4 * (19 * activation[Recompute.NONE] + activation[Recompute.FULL])
        )
        assert rebuilt == pytest.approx(66502)


def test_memory_without_a_layer_to_hold_it_is_refused():
    estimate = fit_memory(read_init(DATA / "mem_pp4.yaml").runs)
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=80, forward_ms=1)
    with pytest.raises(InputError, match=r"has no HEAD to give 504.4 MB to"):
        with_memory(Model(name="bare", layers=(body,)), estimate)


def test_memory_that_was_measured_is_no_estimate_any_more():
    guide = dryrun_guide(4, 9, [Recompute.FULL])
    runs = [observed(under(plan, model_of(9))) for plan in guide.plans]
    times = model_of_times("known", 9, head_ms=1, body_ms=10, tail_ms=2)
    guessed = tuple(replace(layer, estimated=frozenset(Cost)) for layer in times.layers)
    found = with_memory(replace(times, layers=guessed), fit_memory(runs))
    assert found.estimated == {Cost.FORWARD, Cost.BACKWARD, Cost.WEIGHT_GRAD}


def test_runs_under_a_strategy_are_refused_by_its_name():
    swap = LayerStrategy(name="swap", backward_ms=21, activation_mb=9)
    model = replace(
        model_of(4),
        layers=tuple(
            layer.offering([swap]) if layer.kind is LayerKind.BODY else layer for layer in model_of(4).layers
        ),
    )
    plan = plan_from_matrices(
        Problem(model=model, stages=2, micro_batches=2), {"BODY": {"none": [[2, 1]], "swap": [[0, 1]]}}
    )
    with pytest.raises(InputError, match="layers ran under swap, whose memory is not told apart"):
        fit_memory([ObservedRun(plan=plan, peak_mb={0: 1.0, 1: 1.0})])


def test_measured_memory_leaves_that_of_strategies_as_it_is_given():
    model = model_of(12)
    swap = LayerStrategy(name="swap", backward_ms=21, activation_mb=9)
    bodies = {layer: layer.offering([swap]) for layer in model.bodies}
    times = replace(model, layers=tuple(bodies.get(layer, layer) for layer in model.layers))
    problem = Problem(model=model, stages=5, micro_batches=5)
    runs = [
        ObservedRun(plan=plan, peak_mb=dict(enumerate(simulate(plan).peak_memory_mb)))
        for plan in (
            plan_from_matrices(problem, {"BODY": {"none": [row]}})
            for row in ([2, 3, 2, 3, 2], [3, 2, 3, 2, 2])
        )
    ]
    (layer,) = with_memory(times, fit_memory(runs, constant_mb=model.constant_memory_mb)).bodies
    assert layer.activation_mb[5] == 9.0
    assert layer.activation_mb[Recompute.NONE] == pytest.approx(860.0)
