"""The keys to paste into a MindFormers YAML."""

import pytest
from hypothesis import given

from sapp_ppb.errors import InputError
from sapp_ppb.problem import Problem
from sapp_ppb.schedules import ScheduleName
from sapp_ppb.targets import plan_from_types
from sapp_ppb.targets.mindformers.target import MINDFORMERS
from sapp_ppb.writers import mindformers_into, mindformers_text
from tests.mindformers_cases import BOTH, FULL, NONE, SELECTIVE, model_of
from tests.strategies import plans_in_any_mode


def test_chunks_have_rows_and_lists_without_layers_are_false():
    problem = Problem(model=model_of(8, mtp=1), stages=2, interleave=2, micro_batches=4)
    types = (((FULL, SELECTIVE, NONE), (SELECTIVE,)), ((NONE, NONE), (NONE, NONE, NONE)))
    assert mindformers_text(plan_from_types(problem, types)) == (
        "# Keys of a MindFormers YAML; put them into the sections of yours.\n"
        "parallel_config:\n"
        "  pipeline_stage: 2\n"
        "  micro_batch_num: 4\n"
        "parallel:\n"
        "  pipeline_config:\n"
        "    pipeline_interleave: True\n"
        "    pipeline_scheduler: '1f1b'\n"
        "model:\n"
        "  model_config:\n"
        "    num_layers: 8\n"
        "    mtp_depth: 1\n"
        "    pp_interleave_num: 2\n"
        "    offset: [[1, -1],\n"  # 9 div 4 = 2
        "             [0, 1]]\n"
        "recompute_config:\n"
        "  recompute: [[1, 0],\n"
        "              [0, 0]]\n"
        "  select_recompute: [[2, 1],\n"  # counts the FULL one too
        "                     [0, 0]]\n"
        "  select_comm_recompute: False\n"
    )


@pytest.mark.parametrize(
    ("name", "chunks", "words"),
    [
        (ScheduleName.GPIPE, 1, ["pipeline_interleave: True", "pipeline_scheduler: 'gpipe'"]),
        (ScheduleName.LOOPED_BFS, 2, ["pipeline_interleave: True", "pipeline_scheduler: 'gpipe'"]),
        (ScheduleName.ZBV, 2, ["pipeline_interleave: True", "pipeline_scheduler: 'zero_bubble_v'"]),
        (ScheduleName.SEQ1F1B, 1, ["pipeline_scheduler: 'seqpipe'", "seq_split_num: 3"]),
        (ScheduleName.ONE_F_ONE_B, 1, ["pipeline_interleave: False", "pipeline_scheduler: '1f1b'"]),
    ],
)
def test_schedules_in_its_words(name, chunks, words):
    pieces = 3 if name is ScheduleName.SEQ1F1B else 1
    problem = Problem(
        model=model_of(4 * chunks),
        stages=2,
        interleave=chunks,
        micro_batches=4,
        schedule=name,
        sequence_chunks=pieces,
    )
    text = mindformers_text(plan_from_types(problem, (((BOTH, NONE), (NONE, NONE)),) * chunks))
    assert [word for word in words if word not in text] == []
    assert ("seq_split_num" in text) == (pieces > 1)


@given(plans_in_any_mode())
def test_a_plan_that_can_not_be_said_is_refused_with_every_reason(plan):
    unsaid = MINDFORMERS.unsaid(plan)
    if not unsaid:
        assert mindformers_text(plan)
        return
    with pytest.raises(InputError) as caught:
        mindformers_text(plan)
    assert caught.value.faults == unsaid
    with pytest.raises(InputError) as caught:
        mindformers_into("model: {}\n", plan, "run.yaml")
    assert caught.value.faults == unsaid
