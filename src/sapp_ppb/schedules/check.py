"""
The judge of every order: each op once, in its place, and able to run.

It knows no schedule by name, so a generator's mistake, a file's and a user's
own order all meet the same judge.
"""

from collections.abc import Iterator
from itertools import islice

from sapp_ppb.errors import ScheduleError
from sapp_ppb.schedules.op import Op, OpKind, Schedule
from sapp_ppb.schedules.wording import SHOWN, check_sizes, cut_list, schedule_error

_F, _B, _I, _W = (1 << kind for kind in OpKind)
_COMPLETE = (_F | _B, _F | _I | _W)
_ALWAYS = -1  # slot of a tensor that nobody has to make


def check_schedule(schedule: Schedule) -> None:
    r"""
    Refuse an order that is incomplete, misplaced or can not run.

    Every cell must run F of every micro-batch once, and either B, or I and W.
    F needs the F of the cell before, B and I need the B or I of the cell after
    (in the last cell their own F), W needs its I.

    Raises
    ------
    ScheduleError
        Naming stage, op and what is allowed for every fault; or, for ops that
        wait for each other for ever, the op each stage is stuck on.

    Notes
    -----
    Linear in the number of ops.

    Examples
    --------
    >>> from sapp_ppb.schedules.parse import parse_csv
    >>> check_schedule(parse_csv("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n"))
    >>> check_schedule(parse_csv("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"))
    Traceback (most recent call last):
    sapp_ppb.errors.ScheduleError: these ops wait for each other: 0B0, 1F1
    """
    _check_shape(schedule)
    seen, faults = _place_ops(schedule)
    pairs = schedule.cells * schedule.micro_batches
    whole = sum(kinds in _COMPLETE for kinds in seen.values())
    faults += islice(_incomplete(schedule, seen), SHOWN)
    # Only the first incomplete ones are spelled out, so count the others.
    total = len(faults) + max(0, pairs - whole - SHOWN)
    if faults:
        raise schedule_error(schedule.name, faults, total)
    _check_runs(schedule)


def _check_shape(schedule: Schedule) -> None:
    """Refuse sizes that no order can have."""
    check_sizes(
        schedule.name,
        stages=schedule.stages,
        chunks=schedule.chunks,
        micro_batches=schedule.micro_batches,
    )
    if len(schedule.rows) != schedule.stages:
        raise ScheduleError(
            f"{schedule.name}: found {len(schedule.rows)} rows, "
            f"needs one for each of {schedule.stages} stages"
        )


def _place_ops(schedule: Schedule) -> tuple[dict[int, int], list[str]]:
    """Kinds seen of each cell and micro-batch, as bits, and the ops that are out of place."""
    cells, micro_batches = range(schedule.cells), range(schedule.micro_batches)
    seen: dict[int, int] = {}
    faults = []
    for stage, row in enumerate(schedule.rows):
        for op in row:
            if op.cell in cells and op.micro_batch in micro_batches:
                slot, bit = op.cell * len(micro_batches) + op.micro_batch, 1 << op.kind
                kinds = seen.get(slot, 0)
                # Also noted where it does not belong: an op on a wrong stage is not missing as well.
                seen[slot] = kinds | bit
                fault = " again; each op is allowed once" if kinds & bit else _away(schedule, stage, op)
            else:
                fault = f"; cells end at {cells[-1]}, micro-batches at {micro_batches[-1]}"
            if fault:
                faults.append(f"stage {stage}: found {op}{fault}")
    return seen, faults


def _away(schedule: Schedule, stage: int, op: Op) -> str:
    """Say on which other stage an op belongs, or nothing."""
    home = schedule.placement.stage_of(op.cell, schedule.stages)
    return "" if home == stage else f"; cell {op.cell} lives on stage {home}"


def _incomplete(schedule: Schedule, seen: dict[int, int]) -> Iterator[str]:
    """Cells and micro-batches whose ops do not make up one forward and one backward."""
    for slot in range(schedule.cells * schedule.micro_batches):
        kinds = seen.get(slot, 0)
        if kinds not in _COMPLETE:
            cell, micro_batch = divmod(slot, schedule.micro_batches)
            found = " ".join(str(Op(kind, cell, micro_batch)) for kind in OpKind if kinds & 1 << kind)
            stage = schedule.placement.stage_of(cell, schedule.stages)
            yield (
                f"stage {stage}: found {found or 'no op'} for cell {cell}, micro-batch {micro_batch}; "
                "needs F and either B or both I and W"
            )


def _check_runs(schedule: Schedule) -> None:
    """Refuse a complete order whose ops wait for ever."""
    ends = _run(schedule)
    stuck = {stage: end for stage, end in enumerate(ends) if end < len(schedule.rows[stage])}
    # An op that stands before one it needs on its own stage is a cause; the other stages only wait for it.
    causes = [fault for stage, end in stuck.items() if (fault := _stands_before(schedule, stage, end))]
    if causes:
        raise schedule_error(schedule.name, causes)
    if stuck:
        ops = [str(schedule.rows[stage][end]) for stage, end in stuck.items()]
        raise ScheduleError(f"these ops wait for each other: {', '.join(cut_list(ops))}")


def _run(schedule: Schedule) -> list[int]:
    """Run every stage as far as it gets, whatever ops cost, and count the ops of each."""
    cells, micro_batches = schedule.cells, schedule.micro_batches
    made = bytearray(2 * cells * micro_batches + 1)
    made[_ALWAYS] = 1
    ends = [0] * schedule.stages
    waiting: dict[int, list[int]] = {}
    ready = list(range(schedule.stages))
    while ready:
        stage = ready.pop()
        row = schedule.rows[stage]
        while ends[stage] < len(row):
            op = row[ends[stage]]
            need = _needs(op, cells, micro_batches)
            if not made[need]:
                waiting.setdefault(need, []).append(stage)
                break
            result = _makes(op, cells, micro_batches)
            made[result] = 1
            ready += waiting.pop(result, ())
            ends[stage] += 1
    return ends


def _needs(op: Op, cells: int, micro_batches: int) -> int:
    """Slot of the tensor that an op needs; outputs come first, gradients ``cells`` rows later."""
    kind, cell, micro_batch = op
    if kind is OpKind.F:
        return (cell - 1) * micro_batches + micro_batch if cell else _ALWAYS
    if kind is OpKind.W:
        source = cells + cell
    elif cell == cells - 1:
        source = cell
    else:
        source = cells + cell + 1
    return source * micro_batches + micro_batch


def _makes(op: Op, cells: int, micro_batches: int) -> int:
    """Slot of the tensor that an op makes for others; a W makes none."""
    kind, cell, micro_batch = op
    if kind is OpKind.W:
        return _ALWAYS
    return (cell if kind is OpKind.F else cells + cell) * micro_batches + micro_batch


def _stands_before(schedule: Schedule, stage: int, end: int) -> str:
    """Say which later op of its own stage a stuck op waits for, if it is one."""
    row, sizes = schedule.rows[stage], (schedule.cells, schedule.micro_batches)
    need = _needs(row[end], *sizes)
    later = next((op for op in row[end + 1 :] if _makes(op, *sizes) == need), None)
    return f"stage {stage}: found {row[end]} before {later}, which it needs" if later else ""
