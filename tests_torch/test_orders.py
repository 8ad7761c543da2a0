"""Our orders against those of the installed PyTorch."""

import pytest

from sapp_ppb.schedules import ScheduleName, build_schedule
from tests_torch.real_runs import TORCH_NAMES
from tests_torch.torch_orders import torch_order

STAGES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)
MICRO_BATCHES = (*range(1, 25), 32, 40, 48, 64)
CHUNKS = {
    ScheduleName.GPIPE: (1,),
    ScheduleName.ONE_F_ONE_B: (1,),
    # PyTorch's interleaved schedule of one chunk warms up longer than 1F1B; ours has at least two.
    ScheduleName.INTERLEAVED: (2, 3, 4),
    ScheduleName.LOOPED_BFS: (1, 2, 3, 4),
    ScheduleName.INTERLEAVED_ZERO_BUBBLE: (1, 2, 3, 4),
    ScheduleName.ZBV: (2,),
    ScheduleName.DUALPIPEV: (2,),
}


def rounds(stages, micro_batches):
    """Count the rounds of equally many micro-batches in PyTorch's interleaved schedules."""
    return max(1, micro_batches // stages)


def accepts(name, stages, micro_batches):
    """Whether PyTorch documents that it has the schedule for these sizes."""
    if name is ScheduleName.ONE_F_ONE_B:
        return micro_batches >= stages
    if name is ScheduleName.DUALPIPEV:
        return micro_batches >= 2 * stages
    if name in (ScheduleName.INTERLEAVED, ScheduleName.INTERLEAVED_ZERO_BUBBLE):
        return micro_batches % rounds(stages, micro_batches) == 0
    return True


def our_order(name, stages, chunks, micro_batches):
    group = micro_batches // rounds(stages, micro_batches) if name is ScheduleName.INTERLEAVED else None
    return build_schedule(name, stages, chunks, micro_batches, group).to_csv().splitlines()


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("name", CHUNKS, ids=lambda name: name.value)
def test_orders_are_those_of_pytorch_wherever_it_has_one(name, stages):
    for chunks in CHUNKS[name]:
        for micro_batches in MICRO_BATCHES:
            sizes = (stages, chunks, micro_batches)
            if accepts(name, stages, micro_batches):
                assert our_order(name, *sizes) == torch_order(TORCH_NAMES[name], *sizes), sizes
            else:
                with pytest.raises(ValueError, match=r"(?i)micro-?batches"):
                    torch_order(TORCH_NAMES[name], *sizes)


def test_the_installed_version_is_the_one_that_was_tried():
    from importlib.metadata import version

    # A build names where it runs behind the plus: 2.13.0+cpu.
    assert version("torch").split("+")[0] == "2.13.0"
