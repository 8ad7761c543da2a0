"""Any stages, chunks, micro-batches and schedule: they run, or are refused before anything is planned."""

from itertools import product

import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError, ScheduleError
from sapp_ppb.plan import Status
from sapp_ppb.planner import plan_pipeline
from sapp_ppb.planner.baselines import baselines
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import P2PMode, ScheduleName
from sapp_ppb.simulator import simulate
from tests.reference import reference

# An order of one's own comes in a file and has its own sizes; tests/schedules/test_custom.py has those.
NAMES = [name for name in ScheduleName if name is not ScheduleName.CUSTOM]


def model_of(count):
    """Layers of 1 ms forward and 2 backward, with a head and a tail."""
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=count,
        forward_ms=1,
        activation_mb={Recompute.NONE: 10, Recompute.FULL: 1},
    )
    head = layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=0.5)
    tail = layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=0.25)
    return Model(name="sized", layers=(head, body, tail))


@pytest.mark.parametrize("mode", P2PMode)
@pytest.mark.parametrize("name", NAMES)
def test_sizes_run_or_are_refused_with_the_number_that_is_wrong(name, mode):
    ran, refused = 0, []
    for stages, chunks, micro_batches in product(range(1, 5), range(1, 4), range(1, 10)):
        model = model_of(stages * chunks + 1)
        try:
            problem = Problem(
                model=model,
                stages=stages,
                interleave=chunks,
                micro_batches=micro_batches,
                schedule=name,
                sequence_chunks=2 if name is ScheduleName.SEQ1F1B else 1,
                p2p_ms=0.5,
                p2p_mode=mode,
            )
            even = baselines(problem)[0].plan
        except (InputError, ScheduleError) as error:
            refused.append((str(error), (stages, chunks, micro_batches)))
            continue
        makespan_ms = simulate(even).makespan_ms
        ran += 1
        # No micro-batch is through in less than its forwards and input gradients, 1 + 1 ms a layer, and
        # the stages together do no more than a stage's worth at a time.
        assert makespan_ms >= 2 * (model.body_count + 0.75) / problem.sequence_chunks
        assert makespan_ms >= 3 * micro_batches * (model.body_count + 0.75) / stages - 1e-9
        if (stages, micro_batches) in ((3, 7), (4, 4)):
            assert reference(even).makespan_ms == pytest.approx(makespan_ms)
    assert ran >= 20  # those of dualpipev, two chunks and M of 2S or more: 8 + 6 + 4 + 2
    for message, sizes in refused:
        # A refusal names one of the sizes that were given, and nothing went wrong inside.
        assert any(f"{size}" in message for size in sizes), message
        assert "bug" not in message


def test_less_memory_takes_every_multiple_of_the_stages_and_refuses_every_remainder():
    # 2 to 8 stages, 2 to 4 chunks, S to 5S micro-batches: with a remainder every single order dead-locks.
    remainders = 0
    for stages, chunks in product(range(2, 9), range(2, 5)):
        model = model_of(stages * chunks)
        for micro_batches in range(stages, 5 * stages + 1):

            def problem(stages=stages, chunks=chunks, micro_batches=micro_batches, model=model):
                return Problem(
                    model=model,
                    stages=stages,
                    interleave=chunks,
                    micro_batches=micro_batches,
                    schedule=ScheduleName.INTERLEAVED_LESS_MEMORY,
                )

            if micro_batches % stages == 0:
                assert len(problem().order.rows) == stages
                continue
            remainders += 1
            below = micro_batches - micro_batches % stages
            with pytest.raises(ScheduleError, match=f"use {below} or {below + stages} micro-batches"):
                problem()
    assert remainders == 336


@pytest.mark.parametrize("chunks", [1, 2, 3])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_as_many_micro_batches_as_stages_are_planned(size, chunks):
    problem = Problem(
        model=model_of(2 * size * chunks),
        stages=size,
        interleave=chunks,
        micro_batches=size,
        memory_limit_mb=200,
    )
    outcome = plan_pipeline(problem, time_limit_s=0.1)
    assert outcome.plan is not None
    assert reference(outcome.plan).makespan_ms == pytest.approx(outcome.makespan_ms)


@pytest.mark.parametrize("micro_batches", [4080, 4089])
def test_thousands_of_micro_batches_take_the_time_of_the_formula(micro_batches):
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1)
    problem = Problem(model=Model(name="long", layers=(body,)), stages=8, micro_batches=micro_batches)
    # (M + S - 1)(f + b)
    assert simulate(baselines(problem)[0].plan).makespan_ms == (micro_batches + 7) * 3


@pytest.mark.parametrize("name", NAMES)
def test_one_stage_sends_nothing_and_waits_for_nothing(name):
    for chunks, micro_batches in product(range(1, 4), (1, 2, 3, 5)):
        try:
            problem = Problem(
                model=model_of(6),
                stages=1,
                interleave=chunks,
                micro_batches=micro_batches,
                schedule=name,
                sequence_chunks=3 if name is ScheduleName.SEQ1F1B else 1,
                p2p_ms=7.0,
            )
        except ScheduleError:
            continue
        timeline = simulate(baselines(problem)[0].plan)
        assert timeline.makespan_ms == pytest.approx(micro_batches * 6.75 * 3)
        for part in ("total", "communication", "fill_drain", "imbalance"):
            assert getattr(timeline.bubble, part) == pytest.approx(0, abs=1e-9)


def test_chunks_are_never_chosen_that_have_no_layers():
    # 7 layers on 4 stages: 2 chunks would need 8 cells, or 6 where head and tail have two of them.
    bare = Model(
        name="bare", layers=(layer_from_times(name="Dec", kind=LayerKind.BODY, count=7, forward_ms=1),)
    )
    for count, stages, chunks in product(range(1, 13), range(1, 5), range(1, 5)):
        model = Model(
            name="bare",
            layers=(layer_from_times(name="Dec", kind=LayerKind.BODY, count=count, forward_ms=1),),
        )
        if count >= stages * chunks:
            assert Problem(model=model, stages=stages, interleave=chunks, micro_batches=stages)
        else:
            with pytest.raises(InputError, match="BODY layers are too few for"):
                Problem(model=model, stages=stages, interleave=chunks, micro_batches=stages)
    assert plan_pipeline(Problem(model=bare, stages=4, micro_batches=4)).status is Status.OPTIMAL
