"""The problem that a command line gives, for every verb that plans."""

from pathlib import Path
from typing import TYPE_CHECKING

from sapp_ppb.cli.options import (
    flavour,
    memory_margin,
    micro_batch_group,
    numbers,
    order_file,
    p2p_mode,
    recompute_types,
    schedule_name,
)

if TYPE_CHECKING:
    from sapp_ppb.problem import Problem


def given_problem(
    model: Path,
    *,
    stages: int,
    micro_batches: int,
    interleave: int | None = None,
    memory_limit: str | None = None,
    memory_margin_: str = "0",
    constant_memory: str | None = None,
    p2p: str = "0",
    schedule: str | None = None,
    micro_batch_group_: str | None = None,
    sequence_chunks: int = 1,
    order: Path | None = None,
    p2p_mode_: str = "async",
    overlap_factor: float = 0.0,
    flavour_: str | None = None,
    recompute: str | None = None,
    max_recompute_types: int | None = None,
    recompute_working_set: bool = False,
    min_layers: int = 1,
    target: str | None = None,
) -> "Problem":
    """
    Read the model file and put the options, as they were typed, beside it.

    Raises
    ------
    InputError
        If the file or an option is not what it must be.
    """
    from sapp_ppb.problem import Problem
    from sapp_ppb.readers import read_model
    from sapp_ppb.schedules import usual_chunks

    name = schedule_name(schedule)
    return Problem(
        model=read_model(model),
        stages=stages,
        micro_batches=micro_batches,
        interleave=usual_chunks(name) if interleave is None else interleave,
        schedule=name,
        micro_batch_group=micro_batch_group(micro_batch_group_),
        sequence_chunks=sequence_chunks,
        order_file=order_file(order),
        p2p_mode=p2p_mode(p2p_mode_),
        overlap_factor=overlap_factor,
        flavour=flavour(flavour_),
        memory_limit_mb=None if memory_limit is None else numbers("--memory-limit", memory_limit, "MB"),
        constant_memory_mb=None
        if constant_memory is None
        else numbers("--constant-memory", constant_memory, "MB"),
        memory_margin=memory_margin(memory_margin_),
        recompute=recompute_types(recompute),
        max_recompute_types=max_recompute_types,
        recompute_working_set=recompute_working_set,
        p2p_ms=numbers("--p2p", p2p, "ms"),
        min_layers_per_cell=min_layers,
        target=target,
    )
