"""What is written for PyTorch is what it would run, and a file keeps everything else."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given

from sapp_ppb.costs import Recompute
from sapp_ppb.errors import InputError
from sapp_ppb.readers.frameworks.pytorch_config import read_pytorch
from sapp_ppb.schedules import ScheduleName, parse_csv
from sapp_ppb.targets.cell_types import plan_from_types
from sapp_ppb.targets.pytorch.target import PYTORCH, class_of
from sapp_ppb.writers.frameworks.pytorch import pytorch_csv, pytorch_into, pytorch_text
from tests.pages import DOCS, shown
from tests.parts_plans import FULL, NONE, SELECTIVE, plan_along, pytorch_plans

PAGE = DOCS / "frameworks" / "pytorch.md"


def small_plan():
    """Four stages on two ranks, of 2, 1, 1 and 2 layers."""
    cells = [[FULL, NONE], [FULL], [SELECTIVE], [NONE, NONE]]
    return plan_along([6], cells, stages=2, schedule=ScheduleName.INTERLEAVED, micro_batches=4)


def written(folder, plan):
    """File of a plan, with its order beside it."""
    for name, text in pytorch_csv(plan).items():
        (folder / name).write_text(text)
    if plan.problem.order_file:
        (folder / plan.problem.order_file.path).write_text(plan.problem.order_file.text)
    (folder / "pytorch.py").write_text(pytorch_text(plan))
    return folder / "pytorch.py"


def assert_same(config, plan):
    problem = plan.problem
    assert (config.broken, config.unknown) == ((), ())
    assert (config.stages, config.interleave) == (problem.stages, problem.interleave)
    assert config.micro_batches == problem.micro_batches
    assert config.layers == problem.model.body_count
    if class_of(problem) is None:  # the CSV is the order, whatever made it
        assert config.schedule is ScheduleName.CUSTOM
        assert config.order_file is not None
        assert parse_csv(config.order_file.text).rows == problem.order.rows
    else:
        assert (config.schedule, config.order_file) == (problem.schedule_name, None)
    assert plan_from_types(problem, config.types) == plan


@given(pytorch_plans())
def test_what_is_written_is_read_as_the_same_plan(tmp_path_factory, plan):
    assert PYTORCH.unsaid(plan) == ()
    path = written(tmp_path_factory.mktemp("pytorch"), plan)
    assert_same(read_pytorch(path), plan)
    assert_same(read_pytorch(path, plan.problem.model.body_count), plan)


@given(pytorch_plans())
def test_a_file_says_the_plan_and_keeps_the_rest(tmp_path_factory, plan):
    path = written(tmp_path_factory.mktemp("pytorch"), plan)
    before = "# mine\n" + pytorch_text(small_plan()).replace(
        "N_MICROBATCHES = 4", "N_MICROBATCHES=4  # a step"
    )
    after = pytorch_into(before, plan, "job.py")
    path.write_text(after)
    assert_same(read_pytorch(path), plan)
    assert after == "# mine\n" + pytorch_text(plan).replace(
        f"N_MICROBATCHES = {plan.problem.micro_batches}",
        f"N_MICROBATCHES={plan.problem.micro_batches}  # a step",
    )


@given(pytorch_plans())
def test_the_cuts_alone_say_the_split_of_one_stage_a_rank(tmp_path_factory, plan):
    text = pytorch_text(plan)
    start, stop = text.index("SPLIT_SPEC = "), text.index("N_MICROBATCHES")
    cuts = text[start:stop]
    path = tmp_path_factory.mktemp("pytorch") / "job.py"
    path.write_text(
        f"{cuts}\npipe = pipeline(model, split_spec=SPLIT_SPEC)\nSchedule1F1B(stage, n_microbatches=64)"
    )
    config = read_pytorch(path, plan.problem.model.body_count)
    assert config.types is not None
    assert [len(cell) for cell in config.types[0]] == plan.layers_per_cell.tolist()
    assert config.broken == ()


@given(pytorch_plans())
def test_the_function_that_is_written_wraps_the_layers_of_the_plan(plan):
    def given_names(**names):
        module = ModuleType("stand-in")
        vars(module).update(names)
        return module

    names: dict[str, object] = {}
    points = SimpleNamespace(BEGINNING="before", END="behind")
    policies = given_names(create_selective_checkpoint_contexts=lambda policy: ("keeps", policy))
    with pytest.MonkeyPatch.context() as patch:
        wrapper = given_names(checkpoint_wrapper=lambda layer, context_fn=None: (layer, context_fn))
        place = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
        patch.setitem(sys.modules, place, wrapper)
        patch.setitem(sys.modules, "torch.distributed.pipelining", given_names(SplitPoint=points))
        patch.setitem(sys.modules, "torch.utils.checkpoint", policies)
        exec(pytorch_text(plan), names)
    wrapped = names["wrapped"]
    assert callable(wrapped)
    found = []
    for index in range(plan.problem.model.body_count):
        layer = wrapped(index, "layer", policy="some ops")
        if layer == "layer":
            found.append(NONE)
        else:
            found.append(FULL if layer[1] is None else SELECTIVE)
            assert layer[1] is None or layer[1]() == ("keeps", "some ops")
    for recompute in Recompute:
        assert found.count(recompute) == plan.counts[:, recompute].sum()
    if SELECTIVE in found:
        with pytest.raises(ValueError, match="needs a policy"):
            wrapped(found.index(SELECTIVE), "layer")


def test_an_order_that_pytorch_does_not_make_is_a_csv():
    plan = plan_along([2], [[NONE], [NONE]], stages=2, micro_batches=1)
    # Its 1F1B wants as many micro-batches as stages.
    assert "SCHEDULE_CLASS = None  #" in pytorch_text(plan)
    assert 'SCHEDULE_CSV = "schedule.csv"' in pytorch_text(plan)
    assert pytorch_csv(plan) == {"schedule.csv": "0F0,0B0\n1F0,1B0\n"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("N_MICROBATCHES = (", "the Python is broken"),
        ("N_MICROBATCHES = 4\n", "gives pipeline_stages, .* nowhere"),
        ("N_MICROBATCHES = 4\nN_MICROBATCHES = 8\n", "n_microbatches is given more than once"),
    ],
)
def test_what_can_not_be_edited_is_refused(text, words):
    with pytest.raises(InputError, match=words):
        pytorch_into(text, small_plan(), "job.py")


def test_a_plan_that_can_not_be_said_is_refused_with_the_reason():
    plan = plan_along([2], [[Recompute.BOTH], [Recompute.COMM]], stages=2)
    for write in (pytorch_text, lambda plan: pytorch_into("", plan, "job.py")):
        with pytest.raises(
            InputError, match="nothing recomputes its communication; this plan has comm, both"
        ):
            write(plan)


def test_the_page_shows_what_is_written():
    assert pytorch_text(small_plan()) in shown(PAGE, "python")
    assert pytorch_csv(small_plan())["schedule.csv"] in shown(PAGE, "csv")
