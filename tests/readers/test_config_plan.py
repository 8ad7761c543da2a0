"""The plan that a configuration runs, with the model of its user."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import LayerKind, Model, Recompute, layer_from_times
from sapp_ppb.errors import FileNote, InputError, ScheduleError
from sapp_ppb.readers.config_plan import missing_for_price, plan_of_config, still_unknown
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets import BrokenRule, PipelineConfig, cell_types
from tests.strategies import plans

NONE, SELECTIVE, FULL = Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL
MEMORY = {NONE: 60, FULL: 4}


def model_of(*bodies, tail=False):
    """Model of BODY kinds, each a count and whether it is of multi-token prediction."""
    layers = [
        layer_from_times(
            name=f"body{k}",
            kind=LayerKind.BODY,
            count=count,
            forward_ms=1,
            activation_mb=MEMORY,
            is_mtp=is_mtp,
        )
        for k, (count, is_mtp) in enumerate(bodies)
    ]
    ends = [layer_from_times(name="Out", kind=LayerKind.TAIL, forward_ms=1)] if tail else []
    return Model(name="tiny", layers=(*layers, *ends))


CONFIG = PipelineConfig(
    target="megatron",
    where="run.sh",
    stages=2,
    interleave=1,
    micro_batches=4,
    schedule=ScheduleName.ONE_F_ONE_B,
    layers=5,
    types=(((FULL, NONE, NONE), (FULL, NONE)),),
)


@given(plans(), st.booleans())
def test_the_types_of_any_plan_make_the_plan_again(plan, with_group):
    problem = plan.problem
    config = PipelineConfig(
        target="csv",
        where="layers.csv",
        stages=problem.stages,
        interleave=problem.interleave,
        micro_batches=problem.micro_batches,
        schedule=problem.schedule_name,
        micro_batch_group=problem.micro_batch_group,
        layers=problem.model.body_count if with_group else None,
        types=cell_types(plan),
    )
    again = plan_of_config(config, problem.model)
    assert np.array_equal(again.counts, plan.counts)
    assert again.problem.order == problem.order
    assert again.problem.target is None
    assert again.problem.recompute is None


def test_layers_go_to_the_kinds_of_the_model_along_the_chain():
    plan = plan_of_config(CONFIG, model_of((2, False), (3, False)))
    assert plan.counts[0].T.tolist() == [[1, 0, 0, 0, 1], [0, 0, 0, 0, 0]]
    assert plan.counts[1].T.tolist() == [[1, 0, 0, 0, 0], [1, 0, 0, 0, 1]]


def test_cells_that_are_not_empty_are_held_to_hold_a_layer():
    # torchtitan wants that of a problem.
    assert plan_of_config(CONFIG, model_of((5, False))).problem.min_layers_per_cell == 1
    empty = replace(CONFIG, types=(((NONE,) * 5, ()),))
    assert plan_of_config(empty, model_of((5, False))).problem.min_layers_per_cell == 0
    given = {"min_layers_per_cell": 0}
    assert plan_of_config(CONFIG, model_of((5, False)), given).problem.min_layers_per_cell == 0


def test_what_is_given_counts_before_the_file():
    config = replace(CONFIG, memory_limit_mb=1000.0)
    assert plan_of_config(config, model_of((5, False))).problem.memory_limit_mb == 1000.0
    given = {"memory_limit_mb": 500.0, "micro_batches": 9, "p2p_ms": 2.0}
    problem = plan_of_config(config, model_of((5, False)), given).problem
    assert (problem.memory_limit_mb, problem.micro_batches, problem.p2p_ms) == (500.0, 9, 2.0)


def test_another_schedule_leaves_the_files_group_behind():
    cells = ((NONE,), (NONE,))
    config = replace(
        CONFIG,
        interleave=2,
        micro_batches=6,
        schedule=ScheduleName.INTERLEAVED,
        micro_batch_group=3,
        types=(cells, cells),
        layers=4,
    )
    model = model_of((4, False))
    assert plan_of_config(config, model).problem.micro_batch_group == 3
    problem = plan_of_config(config, model, {"schedule": ScheduleName.LOOPED_BFS}).problem
    assert (problem.schedule_name, problem.micro_batch_group) == (ScheduleName.LOOPED_BFS, None)


def test_torchtitans_group_follows_from_the_micro_batches_that_are_given():
    cells = ((NONE,), (NONE,))
    config = replace(
        CONFIG,
        target="torchtitan",
        interleave=2,
        micro_batches=4,
        layers=4,
        types=(cells, cells),
        schedule=ScheduleName.INTERLEAVED,
    )
    # 3 micro-batches on 2 stages: 3 // 2 = 1 round of 3.
    assert plan_of_config(config, model_of((4, False)), {"micro_batches": 3}).problem.micro_batch_group == 3


def test_pieces_of_the_sequence_are_the_files_unless_the_schedule_is_another():
    config = replace(CONFIG, schedule=ScheduleName.SEQ1F1B, sequence_chunks=4)
    model = model_of((5, False))
    assert plan_of_config(config, model).problem.sequence_chunks == 4
    assert plan_of_config(config, model, {"schedule": ScheduleName.GPIPE}).problem.sequence_chunks == 1


def test_multi_token_prediction_can_be_part_of_the_models_tail():
    config = replace(CONFIG, mtp_layers=1)
    plan = plan_of_config(config, model_of((4, False), tail=True))
    assert plan.layers_per_cell.tolist() == [3, 1]
    assert plan.counts[0, FULL].tolist() == [1, 1]


def test_multi_token_prediction_leaves_a_cell_empty_that_held_nothing_else():
    config = replace(CONFIG, mtp_layers=2)
    assert plan_of_config(config, model_of((3, False), tail=True)).layers_per_cell.tolist() == [3, 0]


def test_a_model_that_marks_other_layers_is_noted():
    config = replace(CONFIG, mtp_layers=1)
    with pytest.warns(
        FileNote, match=r'run.sh: has 1 layers of multi-token .*marks 0; mark them with "mtp": true'
    ):
        plan_of_config(config, model_of((5, False)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan_of_config(config, model_of((4, False), (1, True)))


def test_another_model_is_refused_with_both_numbers():
    words = "has 5 layers, 1 of them for multi-token prediction, and the model 'tiny' has 7 BODY layers"
    with pytest.raises(InputError, match=words):
        plan_of_config(replace(CONFIG, mtp_layers=1), model_of((7, False)))


def test_layers_that_are_dropped_are_no_plan():
    with pytest.raises(InputError, match="places 5 of its 6 layers; mend the rules"):
        plan_of_config(replace(CONFIG, layers=6), model_of((6, False)))


def test_a_type_that_is_not_measured_names_the_key_that_would_do():
    config = replace(CONFIG, types=(((SELECTIVE, NONE, NONE), (NONE, NONE)),))
    with pytest.raises(
        InputError, match=r"'body0' as selective, .* add memory_select_rec in MB to this layer"
    ):
        plan_of_config(config, model_of((5, False)))
    bare = Model(name="t", layers=(layer_from_times(name="b", kind=LayerKind.BODY, count=5, forward_ms=1),))
    with pytest.raises(InputError, match="add memory_activation and memory_recompute in MB"):
        plan_of_config(CONFIG, bare)


def test_other_stages_or_chunks_are_refused():
    with pytest.raises(InputError) as refused:
        plan_of_config(CONFIG, model_of((5, False)), {"stages": 4, "interleave": 2})
    assert refused.value.faults == (
        "has 2 stages, not 4; give --stages 2",
        "has 1 chunks a stage, not 2; give --interleave 1",
    )


def test_everything_that_is_missing_is_said_at_once():
    rule = BrokenRule(key="offset", rule="must add up to 1", found="0")
    config = PipelineConfig(
        target="megatron", where="run.sh", unknown=("--num-layers is $N",), broken=(rule,)
    )
    assert missing_for_price(config, {}) == [
        "does not say the number of stages; write it into the file",
        "does not say the number of micro-batches; give --micro-batches",
        "does not say the layers of every cell: --num-layers is $N; offset: must add up to 1 (got 0)",
    ]
    with pytest.raises(InputError, match=r"run\.sh: 3 faults"):
        plan_of_config(config, model_of((5, False)))


def test_sizes_without_an_order_are_no_fault_of_the_file():
    cells = ((NONE,), (NONE,))
    config = replace(CONFIG, interleave=2, micro_batches=3, layers=4, types=(cells, cells), schedule=None)
    with pytest.raises(ScheduleError, match="3 micro-batches are not a multiple of 2 stages"):
        plan_of_config(config, model_of((4, False)))


@pytest.mark.parametrize(
    ("sentence", "is_settled"),
    [
        ("--global-batch-size is ${GBS}; write its value", True),
        ("--micro-batch-size is $MBS; write its value", True),
        ("--tensor-model-parallel-size is ${TP}; write its value", True),
        ("the number of micro-batches does not follow from the file; give --micro-batches", True),
        ("micro-batches are not known: neither num_pp_microbatches nor local_batch_size is given", True),
        ("--microbatch-group-size-per-virtual-pipeline-stage is ${G}; write its value", False),
        ("--pipeline-model-parallel-size is ${PP}; write its value", False),
        ("the layers of the model are not known: model.flavor does not say them", False),
    ],
)
def test_micro_batches_that_are_given_settle_what_they_follow_from(sentence, is_settled):
    config = replace(CONFIG, micro_batches=None, unknown=(sentence,))
    assert still_unknown(config, {}) == (sentence,)
    assert still_unknown(config, {"micro_batches": 8}) == (() if is_settled else (sentence,))
    # With micro-batches of its own the file meant something else.
    assert still_unknown(replace(config, micro_batches=4), {"micro_batches": 8}) == (sentence,)


def test_a_schedule_that_is_given_settles_that_the_file_names_none():
    sentence = "the schedule is not known: the layers lie on a V, as under zbv or dualpipev"
    config = replace(CONFIG, schedule=None, unknown=(sentence,))
    assert still_unknown(config, {"micro_batches": 4}) == (sentence,)
    assert still_unknown(config, {"schedule": ScheduleName.ZBV}) == ()
    # An order that the file names and that can not be read is another fault, which no name mends.
    config = replace(config, unknown=("SCHEDULE_CSV is not known: none.csv: there is no such file",))
    assert still_unknown(config, {"schedule": ScheduleName.ZBV}) == config.unknown
