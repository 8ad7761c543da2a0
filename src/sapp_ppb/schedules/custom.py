"""
Custom: any order that can run, from a file in PyTorch's notation.

Such a file for two stages and two micro-batches, and what it draws::

    0F0,0F1,0B0,0B1
    1F0,1B0,1F1,1B1

    stage 0 | 0F0 0F1  .  0B0  .  0B1
    stage 1 |  .  1F0 1B0 1F1 1B1

Rule: line s is stage s; its ops stand in the order in which the stage runs them, with
commas between them.  Idle entries (nothing between two commas) do not count, so the
table that PyTorch prints slot by slot reads like the one with compute ops alone.
Every op stands there once.  Where two chunks lie on a V (cell S on the last stage)
is seen from the ops.

Source: PyTorch 2.13, ``torch.distributed.pipelining``, the CSV of
``_PipelineScheduleRuntime._load_csv`` in the format ``compute_only``.
"""

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules.check import check_schedule
from sapp_ppb.schedules.op import Schedule
from sapp_ppb.schedules.parse import parse_csv
from sapp_ppb.schedules.wording import schedule_error


@dataclass(frozen=True, kw_only=True)
class OrderFile:
    """
    A file that holds an order: where it is, and what it says.

    Attributes
    ----------
    path
        Path as it was given, also in errors.
    text
        What the file holds.

    Examples
    --------
    >>> OrderFile(path="order.csv", text="0F0,0B0").sha256[:8]  # printf 0F0,0B0 | sha256sum
    'b83c824a'
    """

    path: str
    text: str = field(repr=False)

    @cached_property
    def sha256(self) -> str:
        """Hash of the file's bytes, hexadecimal."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()


def custom(
    stages: int, chunks: int, micro_batches: int, sequence_chunks: int, order: OrderFile | None
) -> Schedule:
    r"""
    Read and judge an order from a file.

    Parameters
    ----------
    stages, chunks, micro_batches, sequence_chunks
        S, V, M and k, which the file must have.
    order
        The file.

    Raises
    ------
    ScheduleError
        If there is no file, it holds what is no op, has other sizes, or can not run; a
        deadlock is named by the op that each stage waits to run.

    Examples
    --------
    The row of stage 1 as drawn above:

    >>> file = OrderFile(path="order.csv", text="0F0,0F1,0B0,0B1\n,1F0,1B0,1F1,1B1")
    >>> print(custom(2, 1, 2, 1, file).to_csv().splitlines()[1])
    1F0,1B0,1F1,1B1
    """
    if order is None:
        raise ScheduleError("custom: needs an order; give --order FILE.csv")
    _check_length(order, stages * chunks * micro_batches * sequence_chunks)
    schedule = parse_csv(order.text, name=order.path)
    wanted = {
        "stages": stages,
        "chunks": chunks,
        "micro_batches": micro_batches,
        "sequence_chunks": sequence_chunks,
    }
    faults = [
        f"holds {found} {size.replace('_', '-')} (asked for {number}); give --{_OPTIONS[size]} {found}"
        for size, number in wanted.items()
        if (found := getattr(schedule, size)) != number
    ]
    if faults:
        raise schedule_error(order.path, faults)
    try:
        check_schedule(schedule)
    except ScheduleError as error:
        text = str(error)
        raise ScheduleError(text if text.startswith(order.path) else f"{order.path}: {text}") from None
    return replace(schedule, name="custom")


def _check_length(order: OrderFile, pieces: int) -> None:
    """Refuse a file of far more entries than ops, before there is an op for each."""
    entries = order.text.count(",") + order.text.count("\n") + 1
    most = _MOST_IDLE * 3 * pieces
    if entries > most:
        raise ScheduleError(
            f"{order.path}: holds {entries:,} entries, of which these sizes can have {most:,} at most; "
            "check the file, --stages, --interleave and --micro-batches"
        )


# Entries for each op, of which all but one are idle.
_MOST_IDLE = 100
_OPTIONS = {
    "stages": "stages",
    "chunks": "interleave",
    "micro_batches": "micro-batches",
    "sequence_chunks": "sequence-chunks",
}
