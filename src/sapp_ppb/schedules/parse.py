"""Read an order from its text form, PyTorch's notation with compute ops only."""

import re

from sapp_ppb.schedules.op import Op, OpKind, Placement, Schedule
from sapp_ppb.schedules.wording import schedule_error

# Nine digits are more than any order has, and keep a typing error from asking for a huge table.
_OP = re.compile(r"([0-9]{1,9})([FBIW])([0-9]{1,9})")


def parse_csv(text: str, placement: Placement = Placement.LOOP, name: str = "custom") -> Schedule:
    r"""
    Read an order: a line a stage, ops like ``2F0`` parted by commas.

    S is the number of lines, V follows from the largest cell and M from the
    largest micro-batch.  The order is read, not judged: that is
    ``check_schedule``'s work.

    Parameters
    ----------
    text
        The order; line s is stage s.  Spaces around an op and empty lines at
        the end do not count.
    placement
        Where the cells live.
    name
        Name of the schedule, also in the error.

    Raises
    ------
    ScheduleError
        Naming row (1 is stage 0) and column (1 is the first op) of each entry
        that is no op; idle entries and overlapped pairs are refused too.

    Examples
    --------
    >>> order = parse_csv("0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n")
    >>> order.stages, order.chunks, order.micro_batches  # 2 lines; cells 0 to 3; only micro-batch 0
    (2, 2, 1)
    """
    faults: list[str] = []
    lines = text.rstrip().splitlines()
    rows = tuple(_row(number, line, faults) for number, line in enumerate(lines, start=1))
    if not rows:
        faults.append("found no rows, needs one for each stage")
    if faults:
        raise schedule_error(name, faults)
    stages = len(rows)
    return Schedule(
        name=name,
        stages=stages,
        chunks=max(op.cell for row in rows for op in row) // stages + 1,
        micro_batches=max(op.micro_batch for row in rows for op in row) + 1,
        placement=placement,
        rows=rows,
    )


def _row(number: int, line: str, faults: list[str]) -> tuple[Op, ...]:
    """Ops of a line; what is no op is added to the faults."""
    ops = []
    for column, entry in enumerate(line.split(","), start=1):
        found = _OP.fullmatch(entry.strip())
        if found:
            cell, kind, micro_batch = found.groups()
            ops.append(Op(OpKind[kind], int(cell), int(micro_batch)))
        else:
            faults.append(f"row {number}, column {column}: {_no_op(entry.strip())}")
    return tuple(ops)


def _no_op(entry: str) -> str:
    """Why an entry is no op."""
    if not entry:
        return "found an idle entry; leave idle entries out, only the order counts"
    if "OVERLAP" in entry or entry.startswith("("):
        return f"found {entry!r}; overlapped pairs can not be read yet"
    return f"found {entry!r}; an op is a cell, one of F, B, I, W and a micro-batch, like 2F0"
