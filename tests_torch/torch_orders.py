"""Orders as the installed PyTorch makes them, without a process that runs them."""

from typing import Any

from torch.distributed.pipelining import schedules


class StandIn:
    """What a schedule asks of a stage, and a note of what it has the stage do."""

    submod = None

    def __init__(self, cell: int, cells: int, rank: int, ranks: int) -> None:
        self.stage_index, self.num_stages = cell, cells
        self.group_rank, self.group_size = rank, ranks
        self.is_first, self.is_last = cell == 0, False
        self.noted: list[str] = []

    def forward_one_chunk(self, micro_batch: int, *_: Any, **__: Any) -> None:
        """Note an F."""
        self.noted.append(f"{self.stage_index}F{micro_batch}")

    def backward_one_chunk(self, micro_batch: int, **_: Any) -> None:
        """Note a B."""
        self.noted.append(f"{self.stage_index}B{micro_batch}")

    def nothing(self, *_: Any) -> list[Any]:
        """Nothing to send, to receive or to reduce."""
        return []

    get_fwd_recv_ops = get_fwd_send_ops = get_bwd_recv_ops = get_bwd_send_ops = nothing
    perform_reduce_grad = nothing


def torch_order(name: str, stages: int, chunks: int, micro_batches: int) -> list[str]:
    """
    Order of one of PyTorch's schedules, as lines of CSV.

    Raises
    ------
    ValueError
        Where PyTorch has no such schedule for these sizes.
    """
    kind = schedules.get_schedule_class(name)
    if issubclass(kind, schedules.PipelineScheduleSingle):
        return [_looped(kind, rank, stages, micro_batches) for rank in range(stages)]
    cells = [StandIn(chunk * stages, chunks * stages, 0, stages) for chunk in range(chunks)]
    table = kind(cells, n_microbatches=micro_batches).pipeline_order
    # None is an idle turn.
    return [",".join(str(action) for action in table[rank] if action is not None) for rank in range(stages)]


def _looped(kind: type, rank: int, stages: int, micro_batches: int) -> str:
    """
    Have a schedule of one stage a rank run its loop over a stage that does nothing.

    The loop and not the table of such a schedule is its order: the table of 1F1B numbers
    the last rank's forwards from 1 on.
    """
    stage = StandIn(rank, stages, rank, stages)
    schedule = kind(stage, n_microbatches=micro_batches)
    schedule._initialize_stage = stage.nothing
    schedule._step_microbatches([()] * micro_batches, [{}] * micro_batches)
    return ",".join(stage.noted)
