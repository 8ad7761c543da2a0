"""Read an order from its text form, PyTorch's notation with compute ops only."""

import re
from dataclasses import dataclass, field

from sapp_ppb.schedules.op import WHOLE, Op, OpKind, Placement, Schedule
from sapp_ppb.schedules.wording import schedule_error

# Nine digits are more than any order has, and keep a typing error from asking for a huge table.
_OP = re.compile(r"([0-9]{1,9})([FBIW])([0-9]{1,9})(?:\.([0-9]{1,9}))?")
_PAIR = re.compile(r"\(\s*([^;]*?)\s*;\s*([^;]*?)\s*\)\s*OVERLAP_F_B")
# What PyTorch writes into a table of compute and communication together.
_OTHER = re.compile(r"[0-9]*(?:SEND|RECV|UNSHARD|RESHARD|REDUCE_GRAD)")
_LONGEST_SHOWN = 60
_MOST_OPS, _MOST_ENTRIES = 1_500_000, 8_000_000  # read before anything is known of the sizes


@dataclass
class _Row:
    """Ops of a line, the places where pairs begin, and what is no op."""

    ops: list[Op] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def parse_csv(text: str, placement: Placement | None = None, name: str = "custom") -> Schedule:
    r"""
    Read an order: a line a stage, ops like ``2F0`` parted by commas.

    S is the number of lines; V, M and k follow from the largest cell, micro-batch
    and sequence chunk.  An idle entry is empty: only the order counts.  The order is
    read, not judged: that is ``check_schedule``'s work.

    Parameters
    ----------
    text
        The order; line s is stage s.  Spaces around an op and empty lines at
        the end do not count.  ``(0F3;7B1)OVERLAP_F_B`` is an overlapped pair,
        ``0F3.1`` the second sequence chunk of a micro-batch that is cut.
    placement
        Where the cells live; None: on a V where cell S is on the last stage,
        else on a loop.
    name
        Name of the schedule, also in the error.

    Raises
    ------
    ScheduleError
        Naming row (1 is stage 0) and column (1 is the first op) of each entry
        that is no op.

    Examples
    --------
    >>> order = parse_csv("0F0,,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n")
    >>> order.stages, order.chunks, order.micro_batches  # 2 lines; cells 0 to 3; only micro-batch 0
    (2, 2, 1)
    """
    if sum(map(text.count, "FBIW")) > _MOST_OPS or text.count(",") > _MOST_ENTRIES:
        fault = f"holds more than {_MOST_OPS:,} ops or {_MOST_ENTRIES:,} entries; is it the right file?"
        raise schedule_error(name, [fault])
    rows = [
        _row(number, line)
        for number, line in enumerate(text.removeprefix("\ufeff").rstrip().splitlines(), start=1)
    ]
    faults = [fault for row in rows for fault in row.faults]
    if not faults and not any(row.ops for row in rows):
        faults.append("found no ops, needs a line of them for each stage")
    if faults:
        raise schedule_error(name, faults)
    stages = len(rows)
    return Schedule(
        name=name,
        stages=stages,
        chunks=max(op.cell for row in rows for op in row.ops) // stages + 1,
        micro_batches=max(op.micro_batch for row in rows for op in row.ops) + 1,
        placement=_placement(rows) if placement is None else placement,
        rows=tuple(tuple(row.ops) for row in rows),
        sequence_chunks=max(1, max(op.sequence_chunk for row in rows for op in row.ops) + 1),
        pairs=tuple(tuple(row.pairs) for row in rows) if any(row.pairs for row in rows) else (),
    )


def _placement(rows: list[_Row]) -> Placement:
    """On a V, cell S follows cell S - 1 on the last stage."""
    stages = len(rows)
    turns = stages > 1 and any(op.cell == stages for op in rows[-1].ops)
    return Placement.V if turns else Placement.LOOP


def _row(number: int, line: str) -> _Row:
    """Read a line."""
    row = _Row()
    for column, entry in enumerate(line.split(","), start=1):
        words = entry.strip()
        pair = _PAIR.fullmatch(words)
        ops = [_op(part) for part in (pair.groups() if pair else (words,))] if words else []
        known = [op for op in ops if op is not None]
        if len(known) < len(ops) or (pair and [op.kind for op in known] != [OpKind.F, OpKind.B]):
            row.faults.append(f"row {number}, column {column}: {_no_op(words)}")
            continue
        if pair:
            row.pairs.append(len(row.ops))
        row.ops += known
    return row


def _op(text: str) -> Op | None:
    """Op of its text; None for what is none."""
    found = _OP.fullmatch(text)
    if found is None:
        return None
    cell, kind, micro_batch, chunk = found.groups()
    return Op(OpKind[kind], int(cell), int(micro_batch), WHOLE if chunk is None else int(chunk))


def _no_op(entry: str) -> str:
    """Why an entry is no op."""
    shown = repr(entry if len(entry) <= _LONGEST_SHOWN else entry[: _LONGEST_SHOWN - 3] + "...")
    if _OTHER.match(entry):
        return f"found {shown}; only compute ops can be read, PyTorch's format compute_only"
    if "OVERLAP" in entry or entry.startswith("("):
        return f"found {shown}; a pair is a forward and a whole backward, like (0F3;7B1)OVERLAP_F_B"
    return f"found {shown}; an op is a cell, one of F, B, I, W and a micro-batch, like 2F0"
