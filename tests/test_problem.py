"""What a problem fills in, and what it refuses, with the words a user reads."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import InputError, ScheduleError
from sapp_ppb.plan import Plan
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import Op, OpKind, OrderFile, ScheduleName, build_schedule
from sapp_ppb.simulator import simulate
from sapp_ppb.simulator.price import layer_tables


def model(count: int = 8, *, head: bool = False, tail: bool = False, constant_mb: float = 0.0) -> Model:
    """Build a model of ``count`` BODY layers."""
    layers = [layer_from_times(name="Dec", kind=LayerKind.BODY, count=count, forward_ms=1)]
    if head:
        layers.append(layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=1))
    if tail:
        layers.append(layer_from_times(name="Norm", kind=LayerKind.TAIL, forward_ms=1))
    return Model(name="small", layers=tuple(layers), constant_memory_mb=constant_mb)


def problem(**changes: Any) -> Problem:
    """Four stages, eight micro-batches and eight layers, except for what is changed."""
    given: dict[str, Any] = {"model": model(), "stages": 4, "micro_batches": 8}
    return Problem(**given | changes)


def test_without_a_schedule_one_chunk_means_1f1b_and_more_mean_interleaved() -> None:
    assert problem().schedule is ScheduleName.ONE_F_ONE_B
    assert problem(interleave=2).schedule is ScheduleName.INTERLEAVED
    assert problem(schedule=ScheduleName.GPIPE).schedule_name is ScheduleName.GPIPE


def test_a_schedule_that_is_left_out_equals_the_one_that_is_meant() -> None:
    assert problem() == problem(schedule=ScheduleName.ONE_F_ONE_B)
    assert hash(problem()) == hash(problem(schedule=ScheduleName.ONE_F_ONE_B))
    # Text is taken as the name it is.
    assert problem(schedule="1f1b").schedule is ScheduleName.ONE_F_ONE_B


def test_the_order_is_that_of_the_sizes() -> None:
    # 1F1B, S = 2, M = 2.
    assert problem(stages=2, micro_batches=2).order.to_csv() == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"


def test_there_are_stages_times_chunks_cells() -> None:
    assert problem(interleave=2).cells == 4 * 2


def test_constant_memory_is_the_models_unless_it_is_given() -> None:
    heavy = model(constant_mb=700)
    assert problem(model=heavy).constant_per_stage_mb == (700.0,) * 4
    # A given 0 is a value.
    assert problem(model=heavy, constant_memory_mb=0).constant_per_stage_mb == (0.0,) * 4
    assert problem(model=heavy, constant_memory_mb=(1, 2, 3, 4)).constant_per_stage_mb == (1, 2, 3, 4)
    assert problem(model=heavy) == problem(model=heavy, constant_memory_mb=700)


def test_no_memory_limit_is_an_infinite_one_and_one_number_holds_for_all_stages() -> None:
    assert problem().limit_per_stage_mb == (math.inf,) * 4
    assert problem(memory_limit_mb=56_000).limit_per_stage_mb == (56_000.0,) * 4
    assert problem(memory_limit_mb=[4, 3, 2, 1]).limit_per_stage_mb == (4, 3, 2, 1)


def test_a_margin_is_taken_off_every_limit() -> None:
    assert problem(memory_limit_mb=[400, 300, 200, 100], memory_margin=40).limit_per_stage_mb == (
        360,
        260,
        160,
        60,
    )
    shares = problem(memory_limit_mb=[400, 300, 200, 100], memory_margin="25%")
    assert shares.limit_per_stage_mb == (300, 225, 150, 75)
    assert shares.margin_per_stage_mb == (100, 75, 50, 25)
    assert problem().margin_per_stage_mb == (0.0,) * 4


def test_limit_for_is_the_other_way_round() -> None:
    # 75 % of 400 MB and 340 + 60 MB.
    assert problem(memory_limit_mb=100, memory_margin="25%").limit_for(300) == pytest.approx(400)
    assert problem(memory_limit_mb=100, memory_margin=60).limit_for(340) == 400


@pytest.mark.parametrize(
    ("margin", "words"),
    [
        ("100%", "from 0% to below 100% (got '100%')"),
        ("-1%", "from 0% to below 100% (got '-1%')"),
        ("nan%", "from 0% to below 100% (got 'nan%')"),
        ("5", "from 0% to below 100% (got '5')"),
        ("%", "from 0% to below 100% (got '%')"),
        (-1, "a number of at least 0 MB"),
        (math.nan, "a number of at least 0 MB"),
        (True, "a number of at least 0 MB"),
        (100, "memory-margin must be below the memory limit of 100 MB (got 100 MB)"),
    ],
)
def test_a_margin_that_can_not_be_is_refused(margin, words) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        problem(memory_limit_mb=[100, 200, 200, 200], memory_margin=margin)


def test_a_margin_needs_a_limit_to_be_kept_of() -> None:
    with pytest.raises(InputError, match="there is none; give --memory-limit"):
        problem(memory_margin="5%")


def with_types(**changes: Any) -> Problem:
    """Eight layers that can be NONE or FULL."""
    memory = {Recompute.NONE: 10, Recompute.FULL: 1}
    body = layer_from_times(name="Dec", kind=LayerKind.BODY, count=8, forward_ms=1, activation_mb=memory)
    head = layer_from_times(name="Emb", kind=LayerKind.HEAD, forward_ms=1)
    return problem(model=Model(name="small", layers=(head, body)), **changes)


def test_a_layer_considers_its_types_that_are_allowed() -> None:
    narrow = with_types(recompute=[Recompute.FULL, Recompute.COMM])
    head, body = narrow.model.layers
    assert narrow.considered(body) == (Recompute.FULL,)
    assert narrow.considered(head) == (Recompute.NONE,)  # which has no other
    assert layer_tables(narrow).considered.tolist() == [[False, False, False, False, True]]
    assert with_types().considered(body) == (Recompute.NONE, Recompute.FULL)


def test_all_types_are_no_restriction_and_their_order_does_not_matter() -> None:
    assert with_types(recompute=tuple(Recompute)) == with_types()
    backwards = with_types(recompute=(Recompute.FULL, Recompute.NONE, Recompute.FULL))
    assert backwards.recompute == (Recompute.NONE, Recompute.FULL)


def test_a_layer_that_is_left_without_a_type_is_refused() -> None:
    words = (
        "problem: layer 'Dec' can be none, full, and recompute allows only selective; "
        "allow one of the layer's types too, or give the memory of another type in the model file"
    )
    with pytest.raises(InputError, match=re.escape(words)):
        with_types(recompute=(Recompute.SELECTIVE,))


@pytest.mark.parametrize("wrong", [(), "full", ("full",), 4])
def test_types_that_are_none_are_refused(wrong) -> None:
    with pytest.raises(
        InputError, match="recompute must list at least one of none, selective, comm, both, full"
    ):
        with_types(recompute=wrong)


def test_a_plan_may_not_use_a_type_that_the_problem_forbids() -> None:
    counts = np.zeros((1, 5, 4), dtype=int)
    counts[0, Recompute.FULL] = 2
    Plan(problem=with_types(), counts=counts)
    with pytest.raises(
        InputError, match="Dec is recomputed as full, which the problem forbids: its recompute is none"
    ):
        Plan(problem=with_types(recompute=(Recompute.NONE,)), counts=counts)


@pytest.mark.parametrize("field", ["memory_limit_mb", "constant_memory_mb", "p2p_ms"])
def test_a_list_of_equal_numbers_is_that_number(field: str) -> None:
    listed = problem(**{field: [5.0] * 4})
    assert getattr(listed, field) == 5.0
    assert listed == problem(**{field: 5.0})
    assert hash(listed) == hash(problem(**{field: 5.0}))
    assert problem(**{field: [5.0]}) == problem(**{field: 5.0})


@pytest.mark.parametrize("field", ["memory_limit_mb", "constant_memory_mb", "p2p_ms"])
def test_a_list_becomes_a_tuple_so_that_a_problem_can_be_a_key(field: str) -> None:
    listed = problem(**{field: [1.0, 2.0, 3.0, 4.0]})
    assert getattr(listed, field) == (1.0, 2.0, 3.0, 4.0)
    assert {listed: 1}[problem(**{field: (1.0, 2.0, 3.0, 4.0)})] == 1


def test_sends_are_listed_by_edge_and_the_wrap_comes_last() -> None:
    assert problem(p2p_ms=0.5).hop_ms == (0.5,) * 4
    assert problem(p2p_ms=(1, 2, 3)).hop_ms == (1, 2, 3)
    assert problem(p2p_ms=(1, 2, 3, 4), interleave=2).hop_ms == (1, 2, 3, 4)
    assert problem(stages=1, p2p_ms=(1,)).hop_ms == (1.0,)


# Equal entries too: three edges say nothing of the fourth.
@pytest.mark.parametrize("p2p_ms", [(1, 2, 3), (1, 1, 1)])
def test_chunks_that_loop_need_the_wrap(p2p_ms) -> None:
    words = "p2p must list 4 edges, the last one from stage 3 back to stage 0 between chunks (got 3)"
    with pytest.raises(InputError, match=re.escape(words)):
        problem(p2p_ms=p2p_ms, interleave=2)


def test_two_stages_have_a_wrap_of_their_own_and_one_stage_has_no_edge() -> None:
    # Cells 0 1 2 3 on stages 0 1 0 1: the way from cell 1 to 2 is the wrap.
    assert problem(stages=2, interleave=2, p2p_ms=(1, 2)).hop_ms == (1, 2)
    assert problem(stages=1, interleave=2, p2p_ms=(1,)).hop_ms == (1.0,)


@pytest.mark.parametrize(
    ("field", "option", "least"),
    [
        ("stages", "stages", 1),
        ("micro_batches", "micro-batches", 1),
        ("interleave", "interleave", 1),
        ("min_layers_per_cell", "min-layers", 0),
    ],
)
@pytest.mark.parametrize("wrong", [-1, 1.5, 2.0, math.nan, math.inf, True, "4", None])
def test_a_size_that_is_no_whole_number_or_too_small_is_refused(field, option, least, wrong) -> None:
    if (field, wrong) == ("interleave", None):
        return  # the schedule's own number
    words = f"problem: {option} must be a whole number of at least {least} (got {wrong!r})"
    with pytest.raises(InputError, match=re.escape(words)):
        problem(**{field: wrong})


@pytest.mark.parametrize("field", ["stages", "micro_batches", "interleave"])
def test_no_stage_no_chunk_and_no_micro_batch_are_refused(field: str) -> None:
    with pytest.raises(InputError, match=r"must be a whole number of at least 1 \(got 0\)"):
        problem(**{field: 0})


def test_a_step_of_more_ops_than_can_be_held_is_refused_at_once() -> None:
    # 2 x 1,000 x 1 x 3,000 ops, F and B of each
    with pytest.raises(InputError, match="too large: 6,000,000 ops of 2,000,000 at most; plan with fewer"):
        problem(model=model(1000), stages=1000, micro_batches=3000)


@pytest.mark.parametrize(
    ("field", "option", "unit"),
    [
        ("memory_limit_mb", "memory-limit", "MB"),
        ("constant_memory_mb", "constant-memory", "MB"),
        ("p2p_ms", "p2p", "ms"),
        ("step_extra_ms", "step-extra", "ms"),
    ],
)
@pytest.mark.parametrize("wrong", [-1, -0.5, math.nan, math.inf, -math.inf, True, 1e16, "9"])
def test_a_quantity_that_is_no_usable_number_is_refused_alone_and_in_a_list(
    field, option, unit, wrong
) -> None:
    words = re.escape(f"problem: {option} must be a number of at least 0 {unit} (got {wrong!r})")
    with pytest.raises(InputError, match=words):
        problem(**{field: wrong})
    with pytest.raises(InputError, match=words):
        problem(**{field: (1.0, 2.0, 3.0, wrong)})


@pytest.mark.parametrize("wrong", [0, -1, 0.0009, 1001, math.nan, math.inf, True, "1"])
def test_a_speed_that_can_not_be_is_refused_alone_and_in_a_list(wrong) -> None:
    words = re.escape(
        f"stage-speed must be a number from 0.001 to 1,000, 1 for a device as measured (got {wrong!r})"
    )
    with pytest.raises(InputError, match=words):
        problem(stage_speed=wrong)
    with pytest.raises(InputError, match=words):
        problem(stage_speed=(1.0, 1.0, 1.0, wrong))


def test_a_speed_of_one_is_none_and_every_stage_has_its_own() -> None:
    assert problem(stage_speed=1) == problem(stage_speed=(1,) * 4) == problem()
    assert problem(stage_speed=0.5).speed_per_stage == (0.5,) * 4
    # zbv turns: cells 0 to 3 on stages 0 to 3, cells 4 to 7 on stages 3 to 0.
    turned = problem(stage_speed=(1, 2, 3, 4), schedule=ScheduleName.ZBV)
    assert turned.speed_per_cell == (1, 2, 3, 4, 4, 3, 2, 1)


def test_what_comes_after_the_last_op_is_a_number_or_one_a_stage() -> None:
    assert not problem().has_extra
    assert problem(step_extra_ms=2.0).extra_per_stage_ms == (2.0,) * 4
    assert problem(step_extra_ms=(0, 0, 1, 0)).has_extra


# Equal numbers too: two for four stages are a slip, whatever they say.
@pytest.mark.parametrize("values", [(1, 2), (1, 1), (), (5,) * 5])
def test_a_list_of_another_length_is_refused(values) -> None:
    def refusal(option: str, allowed: str) -> str:
        return re.escape(f"{option} must be one number or {allowed} of them (got {len(values)})")

    with pytest.raises(InputError, match=refusal("memory-limit", "4")):
        problem(memory_limit_mb=values)
    with pytest.raises(InputError, match=refusal("constant-memory", "4")):
        problem(constant_memory_mb=values)
    with pytest.raises(InputError, match=refusal("stage-speed", "4")):
        problem(stage_speed=values)
    with pytest.raises(InputError, match=refusal("step-extra", "4")):
        problem(step_extra_ms=values)
    with pytest.raises(InputError, match=refusal("p2p", "3 or 4")):
        problem(p2p_ms=values)


def test_a_list_has_no_right_length_where_there_are_no_stages() -> None:
    with pytest.raises(InputError) as caught:
        problem(stages=0, memory_limit_mb=(1, 2))
    assert caught.value.faults == ("stages must be a whole number of at least 1 (got 0)",)


def test_all_faults_are_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        problem(stages=0, micro_batches=-3, memory_limit_mb=-1, p2p_ms=math.nan)
    assert str(caught.value).splitlines() == [
        "problem: 4 faults",
        "  stages must be a whole number of at least 1 (got 0)",
        "  micro-batches must be a whole number of at least 1 (got -3)",
        "  memory-limit must be a number of at least 0 MB (got -1)",
        "  p2p must be a number of at least 0 ms (got nan)",
    ]


def test_too_few_layers_for_the_cells_are_refused_with_the_way_out() -> None:
    words = "7 BODY layers are too few for 4 stages x 2 chunks, which need 8; .* --min-layers 0"
    with pytest.raises(InputError, match=words):
        problem(model=model(7), interleave=2)
    assert problem(model=model(8), interleave=2).model.body_count == 8
    assert problem(model=model(1), interleave=2, min_layers_per_cell=0).cells == 8


def test_cells_with_a_head_or_a_tail_may_hold_no_layer() -> None:
    # Needs 1 for each of 4 cells, less 1 for the HEAD's and 1 for the TAIL's.
    for head, tail, needed in ((False, False, 4), (True, False, 3), (False, True, 3), (True, True, 2)):
        fits = problem(model=model(needed, head=head, tail=tail))
        assert sum(fits.least_layers(cell) for cell in range(4)) == needed
        with pytest.raises(InputError, match=f"{needed - 1} BODY layers are too few .* which need {needed};"):
            problem(model=model(needed - 1, head=head, tail=tail))


def test_the_least_layers_of_a_cell_are_those_asked_for_except_at_the_ends() -> None:
    ends = problem(model=model(12, head=True, tail=True), min_layers_per_cell=3)
    assert [ends.least_layers(cell) for cell in range(4)] == [0, 3, 3, 0]
    plain = problem(model=model(12), min_layers_per_cell=3)
    assert [plain.least_layers(cell) for cell in range(4)] == [3, 3, 3, 3]
    # A single cell holds both.
    one = problem(model=model(1, head=True, tail=True), stages=1, min_layers_per_cell=5)
    assert one.least_layers(0) == 0


def test_a_schedule_that_does_not_exist_for_the_sizes_is_refused() -> None:
    with pytest.raises(ScheduleError, match="1f1b: chunks must be 1"):
        problem(interleave=2, schedule=ScheduleName.ONE_F_ONE_B)
    with pytest.raises(ScheduleError, match="6 micro-batches are not a multiple of 4 stages"):
        problem(interleave=2, micro_batches=6)
    with pytest.raises(ScheduleError, match="takes no --micro-batch-group"):
        problem(micro_batch_group=4)
    with pytest.raises(ScheduleError, match="--micro-batch-group 3 does not work"):
        problem(interleave=2, micro_batch_group=3)


def test_an_unknown_schedule_is_refused_with_those_known() -> None:
    with pytest.raises(ScheduleError, match="schedule 'zigzag' is unknown; one of"):
        problem(schedule="zigzag")


def test_a_changed_problem_is_checked_again_and_has_its_own_order() -> None:
    # 1F1B with S = 2, M = 3 has 2 x 3 ops a stage.
    first = problem(stages=2, micro_batches=2)
    assert len(first.order.rows[0]) == 4
    assert len(replace(first, micro_batches=3).order.rows[0]) == 6
    with pytest.raises(InputError, match="micro-batches"):
        replace(first, micro_batches=0)


def test_problems_differ_in_anything_that_is_given() -> None:
    different = [
        problem(),
        problem(stages=2),
        problem(micro_batches=4),
        problem(interleave=2),
        problem(schedule=ScheduleName.GPIPE),
        problem(memory_limit_mb=1),
        problem(constant_memory_mb=1),
        problem(p2p_ms=1),
        problem(min_layers_per_cell=0),
        problem(target="mindformers"),
        problem(model=model(9)),
    ]
    assert len(set(different)) == len(different)


def test_chunks_that_are_not_given_are_the_schedules_own() -> None:
    assert problem(schedule=ScheduleName.ZBV, micro_batches=8).interleave == 2
    assert problem().interleave == 1
    with pytest.raises(ScheduleError, match=r"zbv: chunks must be 2 \(got 1\)"):
        problem(schedule=ScheduleName.ZBV, interleave=1)


def test_an_order_file_implies_the_custom_schedule() -> None:
    text = build_schedule("1f1b", 4, 1, 8).to_csv()
    given = problem(order_file=OrderFile(path="order.csv", text=text))
    assert given.schedule_name is ScheduleName.CUSTOM
    assert given.order.rows == problem().order.rows


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("overlap_factor", 1.5, r"overlap-factor must be from 0 to 1 \(got 1.5\)"),
        ("overlap_factor", -0.1, r"overlap-factor must be from 0 to 1 \(got -0.1\)"),
        ("overlap_factor", math.nan, r"overlap-factor must be from 0 to 1 \(got nan\)"),
        ("overlap_factor", True, r"overlap-factor must be from 0 to 1 \(got True\)"),
        ("p2p_mode", "late", r"p2p-mode must be one of async, blocking \(got 'late'\)"),
        ("flavour", "jax", r"flavour must be one of torch \(got 'jax'\)"),
        ("sequence_chunks", 0, r"sequence-chunks must be a whole number of at least 1 \(got 0\)"),
    ],
)
def test_a_way_of_running_that_does_not_exist_is_refused(field, value, words) -> None:
    with pytest.raises(InputError, match=words):
        problem(**{field: value})


def test_too_many_sequence_chunks_are_too_many_ops() -> None:
    # 2 x 4 x 8 x 10^6 ops.
    with pytest.raises(InputError, match="64,000,000 ops of 2,000,000 at most"):
        problem(schedule=ScheduleName.SEQ1F1B, sequence_chunks=10**6)


def test_the_automatic_order_is_made_for_the_problems_own_stages_and_memory() -> None:
    # Two layers a stage, each 5 MB and 10 MB for a micro-batch.
    body = layer_from_times(
        name="Dec",
        kind=LayerKind.BODY,
        count=8,
        forward_ms=1,
        parameter_mb=5,
        activation_mb={Recompute.NONE: 10},
    )
    sizes = {"model": Model(name="held", layers=(body,)), "schedule": ScheduleName.ZB_AUTO}
    # Without a limit as fast as can be: 8 x 3 x 2 of work and 3 x 2 of forwards before the last stage.
    assert makespan_of(problem(**sizes)) == 8 * 6 + 3 * 2
    # Room for two of a stage's 20 MB.
    narrow = problem(**sizes, memory_limit_mb=2 * 5 + 2 * 20 + 19)
    assert max(live(row) for row in narrow.order.rows) == 2
    assert replace(narrow).order is narrow.order  # built again, and the same


def test_the_automatic_order_is_made_for_the_speeds_of_the_stages() -> None:
    # 6 layers of 1 + 2 ms; speeds 1 and 0.5 share them 4 and 2, which take 4 ms forward on either.
    shared = problem(model=model(6), stages=2, schedule=ScheduleName.ZB_AUTO, stage_speed=(1, 0.5))
    assert shared._even_costs().forward_ms == (4, 4)
    assert shared._even_costs().input_ms == shared._even_costs().weight_ms == (4, 4)
    # The order of two equal stages, which 3 + 3 layers at speed 1 are.
    equal = problem(model=model(6), stages=2, schedule=ScheduleName.ZB_AUTO)
    assert shared.order.rows == equal.order.rows


def live(row: tuple[Op, ...]) -> int:
    """Most micro-batches alive, from F to W."""
    steps = [(op.kind is OpKind.F) - (op.kind is OpKind.W) for op in row]
    return max(sum(steps[: end + 1]) for end in range(len(steps)))


def makespan_of(given: Problem) -> float:
    """Makespan of equal cells."""
    counts = np.zeros((1, len(Recompute), given.cells), dtype=int)
    counts[0, Recompute.NONE] = given.model.body_count // given.cells
    return simulate(Plan(problem=given, counts=counts)).makespan_ms


def test_numbers_of_numpy_are_numbers() -> None:
    assert problem(memory_limit_mb=np.float64(5)) == problem(memory_limit_mb=5.0)
