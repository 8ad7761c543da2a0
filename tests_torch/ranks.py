"""
Run pipelines for real: ``python -m tests_torch.ranks JOBS.json FOLDER``.

A process of its own, so that PyTorch is imported once and every rank is a fork of it.
Ranks write what they saw to FOLDER, a file each.
"""

import json
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.distributed import pipelining
from torch.distributed.pipelining import schedules

from tests_torch.sleeping import SleepingCell

Job = dict[str, Any]
Span = tuple[str, float, float]

# Numbers in a micro-batch: so few that sending them takes next to no time.
_WIDTH = 4
# A rank that waits longer than this for its neighbour waits for ever.
_PATIENCE = timedelta(seconds=60)


def main(jobs_file: str, folder: str) -> None:
    """Run the jobs, those of equally many stages in the same processes."""
    jobs = json.loads(Path(jobs_file).read_text(encoding="utf-8"))
    torch.set_num_threads(1)
    for stages in sorted({job["stages"] for job in jobs}):
        chosen = {name: job for name, job in enumerate(jobs) if job["stages"] == stages}
        with tempfile.TemporaryDirectory() as meeting:
            arguments = (stages, chosen, meeting, folder)
            torch.multiprocessing.start_processes(_rank, arguments, nprocs=stages, start_method="fork")


def _rank(rank: int, stages: int, jobs: dict[int, Job], meeting: str, folder: str) -> None:
    """Be one stage of every job."""
    import os

    # Names of hosts need not resolve; the machine's own loop is always there.
    loops = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    os.environ.setdefault("GLOO_SOCKET_IFNAME", loops[0])
    distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}/store", rank=rank, world_size=stages, timeout=_PATIENCE
    )
    for name, job in jobs.items():
        steps = _run(rank, job)
        Path(folder, f"{name}-{rank}.json").write_text(json.dumps(steps), encoding="utf-8")
    distributed.destroy_process_group()


def _run(rank: int, job: Job) -> list[list[Span]]:
    """Spans of one stage in every step but the first, in which PyTorch looks at shapes."""
    seen: list[Span] = []
    cells = [_stage(cell, job, seen) for cell in job["cells_of_stage"][rank]]
    schedule = _schedule(job, cells)
    # A row a micro-batch, each with its own number in it.
    tensor = torch.arange(1.0, job["micro_batches"] + 1)[:, None].repeat(1, _WIDTH)
    steps = []
    for _ in range(1 + job["steps"]):
        seen.clear()
        for cell in cells:
            cell.submod.zero_grad()
        distributed.barrier()
        inputs = (tensor,) if cells[0].is_first else ()
        target = {"target": tensor} if any(cell.is_last for cell in cells) else {}
        schedule.step(*inputs, **target)
        steps.append(list(seen))
        _check_gradients(cells, tensor)
    return steps[1:]


def _check_gradients(cells: list[pipelining.PipelineStage], tensor: torch.Tensor) -> None:
    """
    See that every micro-batch went through every cell, there and back.

    All parameters are 1, so the last cell gives what the first was given, x.  The loss is
    the sum of x times the target, which is x too, over all micro-batches; as every cell
    multiplies by its parameter, that sum is the gradient too, and PyTorch divides it by M.
    """
    expected = (tensor * tensor).sum() / len(tensor)
    for cell in cells:
        for name, parameter in cell.submod.named_parameters():
            torch.testing.assert_close(parameter.grad, expected, msg=f"{cell.stage_index} {name}")


def _stage(cell: int, job: Job, seen: list[Span]) -> pipelining.PipelineStage:
    """Make a stage of PyTorch, our cell, that notes what it does."""
    times = {key: job[key][cell] for key in ("forward_ms", "input_ms", "weight_ms")}
    module = SleepingCell(**times, first=cell == 0)
    stage = pipelining.PipelineStage(module, cell, len(job["forward_ms"]), torch.device("cpu"))
    for method, kind in (
        ("forward_one_chunk", lambda _: "F"),
        ("backward_one_chunk", lambda given: "B" if given.get("full_backward", True) else "I"),
        ("backward_weight_one_chunk", lambda _: "W"),
    ):
        setattr(stage, method, _noted(getattr(stage, method), cell, kind, seen))
    return stage


def _noted(
    method: Callable[..., Any], cell: int, kind: Callable[[dict[str, Any]], str], seen: list[Span]
) -> Callable[..., Any]:
    """Wrap a method so that it notes its op, start and end, seconds of the clock that ranks share."""

    def noted(micro_batch: int, *args: Any, **given: Any) -> Any:
        start = time.monotonic()
        result = method(micro_batch, *args, **given)
        seen.append((f"{cell}{kind(given)}{micro_batch}", start, time.monotonic()))
        return result

    return noted


def _schedule(job: Job, cells: list[pipelining.PipelineStage]) -> schedules._PipelineSchedule:
    """PyTorch's schedule of the given name, or the order of a CSV."""
    sizes = {
        "n_microbatches": job["micro_batches"],
        "loss_fn": lambda output, target: (output * target).sum(),
    }
    if job["order"] is not None:
        schedule = schedules._PipelineScheduleRuntime(cells, **sizes)
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write(job["order"])
            file.flush()
            schedule._load_csv(file.name)
        return schedule
    kind = schedules.get_schedule_class(job["schedule"])
    single = issubclass(kind, schedules.PipelineScheduleSingle)
    return kind(cells[0] if single else cells, **sizes)


if __name__ == "__main__":
    main(*sys.argv[1:])
